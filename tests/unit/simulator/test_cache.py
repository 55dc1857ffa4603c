"""A cache by hand: four blocks of 100 bytes, 25 elements; HBM 10, L2 40, ports 20 bytes a cycle."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simulator.errors import ProgramError
from simulator.instructions import Barrier, Copy, FlagSet, FlagWait, Instruction
from simulator.kernel import Core
from simulator.machine import Checks
from simulator.memory.memories import Buffer, View
from simulator.memory.ranges import Range
from simulator.results.metrics import cache_traffic
from simulator.timing.cache import Cache, Fetch, Piece, pieces
from targets.schema import CacheSpec
from tests.unit.simulator.listed import FP32, Local, Program, all_of
from tests.unit.simulator.split import KindsKernel, SplitBench, by_kind
from tests.unit.targets.davinci import CACHE, NUMBER

UB = Local("ub", 125, memory="ub")
L1 = Local("l1", 125, memory="l1")
LINES = CACHE + f"line_bytes = {{ value = 50, {NUMBER} }}\n"


def read(core: Core, source: Buffer, first: int = 0, count: int = 25) -> Copy:
    """Elements of a tensor into the core's own memory."""
    local = "l1" if core.kind == "aic" else "ub"
    return Copy(all_of(core, local, count), source.box((first,), (count,)))


def write(core: Core, target: Buffer, first: int = 0, count: int = 25) -> Copy:
    """Elements of a vector core's memory into a tensor."""
    return Copy(target.box((first,), (count,)), all_of(core, "ub", count))


def spans(bench: SplitBench, program: Program, core: int = 1) -> list[tuple[int, int]]:
    """Start and end of each copy of a vector core, alone or beside others, in one more launch."""
    trace = bench.run(program, L1, UB)
    last = trace.select((trace["launch"] == len(bench.machine.launches) - 1) & (trace["core"] == core))
    return list(zip(last["start"].tolist(), last["end"].tolist(), strict=True))


def alone(program: Program) -> Program:
    """A program of the first vector core only."""
    return by_kind(aiv=lambda core: program(core) if core.slot == 0 else ())


@pytest.fixture
def bench(tmp_path: Path) -> SplitBench:
    """A cold cache."""
    return SplitBench(tmp_path, more=CACHE)


def test_a_first_read_goes_to_the_memory_and_a_second_to_the_cache(bench: SplitBench) -> None:
    """100 bytes at the HBM's 10, then at the port's 20."""
    x = bench.tensor("x", 25)
    assert spans(bench, alone(lambda core: [read(core, x), read(core, x)])) == [(0, 10), (10, 15)]


def test_the_next_launch_finds_what_the_last_one_left(bench: SplitBench) -> None:
    """The second launch begins at 10."""
    x = bench.tensor("x", 25)
    for expected in ((0, 10), (10, 15)):
        assert spans(bench, alone(lambda core: [read(core, x)])) == [expected]


def test_a_warm_cache_has_the_tensors(tmp_path: Path) -> None:
    """Of five blocks in four, the first is gone: reading it drives out the second, which drives out the third."""
    bench = SplitBench(tmp_path, more=CACHE, l2="warm")
    x = bench.tensor("x", 125)
    reads = alone(lambda core: [read(core, x, first) for first in (100, 25, 0, 50, 75)])
    assert spans(bench, reads) == [(0, 5), (5, 10), (10, 20), (20, 30), (30, 40)]


def test_a_second_reader_waits_for_the_fetch_and_then_hits(bench: SplitBench) -> None:
    """Core 0 fetches until 10; the vector cores share nothing but the L2: 5 cycles at their ports."""
    x = bench.tensor("x", 25)
    trace = bench.run(lambda core: [read(core, x)], L1, UB)
    assert [trace.timeline(core)[0][:2] for core in range(3)] == [(0, 10), (0, 15), (0, 15)]
    assert trace["hit"].tolist() == [0, 100, 100]
    assert trace["fetched"].tolist() == [100, 0, 0]


def test_hits_share_the_link_of_the_cache(tmp_path: Path) -> None:
    """Three ports of 20 on a link of 40: 13.33 bytes a cycle each, 7.5 cycles."""
    bench = SplitBench(tmp_path, more=CACHE, l2="warm")
    x = bench.tensor("x", 25)
    trace = bench.run(lambda core: [read(core, x)], L1, UB)
    assert [trace.timeline(core)[0][:2] for core in range(3)] == [(0, 8)] * 3


def test_a_copy_that_finds_half_has_two_flows_at_once(bench: SplitBench) -> None:
    """Each has half of the port: 100 bytes at 10 on both links."""
    x = bench.tensor("x", 50)
    found = spans(bench, alone(lambda core: [read(core, x), read(core, x, 0, 50)]))
    assert found == [(0, 10), (10, 20)]


def test_the_later_flow_ends_the_copy(tmp_path: Path) -> None:
    """With an HBM of 5 the missing half takes 20, the resident one 10."""
    slow = {"[link.hbm]\nbytes_per_cycle = { value = 10": "[link.hbm]\nbytes_per_cycle = { value = 5"}
    bench = SplitBench(tmp_path, more=CACHE, changes=slow)
    x = bench.tensor("x", 50)
    found = spans(bench, alone(lambda core: [read(core, x), read(core, x, 0, 50)]))
    assert found == [(0, 20), (20, 40)]


def test_a_write_of_whole_blocks_fetches_nothing(bench: SplitBench) -> None:
    """At the port's 20; what was written is resident."""
    x = bench.tensor("x", 25)
    assert spans(bench, alone(lambda core: [write(core, x), read(core, x)])) == [(0, 5), (5, 10)]
    assert cache_traffic(bench.machine.trace(), bench.target) == {
        "l2": {"read": 100, "write": 100},
        "hbm": {"read": 0, "write": 0},
    }


def test_a_write_of_a_part_fetches_the_block_once(bench: SplitBench) -> None:
    """40 bytes take 2 cycles, the block beside them 10; the next part finds it."""
    x = bench.tensor("x", 25)
    found = spans(bench, alone(lambda core: [write(core, x, 0, 10), write(core, x, 10, 10)]))
    assert found == [(0, 10), (10, 12)]


class Add(Copy):
    """A copy that adds."""

    def __init__(self, dst: View, src: View):
        super().__init__(dst, src)
        self.reads = (src, dst)


def test_a_copy_that_adds_fetches_what_it_adds_to(bench: SplitBench) -> None:
    """A whole block: 10 for the fetch, 5 at the port when it is there."""
    x = bench.tensor("x", 25)
    program = alone(lambda core: [Add(x.box((0,), (25,)), all_of(core, "ub"))] * 2)
    assert spans(bench, program) == [(0, 10), (10, 15)]


def test_what_was_written_goes_back_when_it_is_driven_out(bench: SplitBench) -> None:
    """The fetch of a fifth block and the write-back of the first share the HBM: 20 cycles for 100 bytes each."""
    x, y = bench.tensor("x", 100), bench.tensor("y", 25)
    found = spans(bench, alone(lambda core: [write(core, x, 0, 100), read(core, y)]))
    assert found == [(0, 20), (20, 40)]
    assert cache_traffic(bench.machine.trace(), bench.target) == {
        "l2": {"read": 0, "write": 400},
        "hbm": {"read": 100, "write": 100},
    }


def test_the_block_used_longest_ago_goes_first(bench: SplitBench) -> None:
    """Blocks 0 to 3, 0 again, 4 in the place of 1: then 0 is there and 1 is not."""
    x = bench.tensor("x", 125)
    order = (0, 1, 2, 3, 0, 4, 0, 1)
    found = spans(bench, alone(lambda core: [read(core, x, 25 * block) for block in order]))
    assert [end - start for start, end in found] == [10, 10, 10, 10, 5, 10, 5, 10]


def test_a_part_of_a_block_fetches_whole_lines(tmp_path: Path) -> None:
    """40 bytes fetch a block of 100, or a line of 50; what lies in the rest of it is resident then, and no more."""
    for more, expected in ((CACHE, [10, 2, 1]), (LINES, [5, 5, 1])):
        bench = SplitBench(tmp_path, more=more)
        x = bench.tensor("x", 25)
        program = alone(lambda core, x=x: [read(core, x, 0, 10), read(core, x, 15, 10), read(core, x, 10, 2)])  # type: ignore[misc]
        assert [end - start for start, end in spans(bench, program)] == expected


def test_equal_cores_are_simulated_one_by_one(tmp_path: Path) -> None:
    """Folded or not, the first core fetches for both."""
    made = []
    for fold in (True, False):
        bench = SplitBench(tmp_path, 2, more=CACHE, checks=Checks(fold=fold))
        x = bench.tensor("x", 25)
        kernel = KindsKernel(lambda core, x=x: [read(core, x)], L1, kinds=("aic",))  # type: ignore[misc]
        kernel._classes = lambda _: "equal"
        bench.machine.launch(kernel)
        made.append(bench.machine.trace())
    assert made[0] == made[1]
    assert [made[0].timeline(core)[0][:2] for core in (0, 3)] == [(0, 10), (0, 15)]


def test_equal_cores_have_their_own_addresses_tiles_and_flags(tmp_path: Path) -> None:
    """Each cube core reads a part of its own and hands it to a vector core; the trace is that of unlike cores."""

    def programs(x: Buffer) -> Program:
        def cube(core: Core) -> list[Instruction]:
            part = Copy(all_of(core, "l1"), x.box((50 * core.rank,), (25,)), coords=(core.rank,))
            return [part, FlagSet(core.group, "mte2"), Barrier()]

        def vector(core: Core) -> list[Instruction]:
            got = [FlagWait(core.group, "mte2"), read(core, x, 50 * core.group)] if not core.slot else []
            return [*got, Barrier()]

        return by_kind(aic=cube, aiv=vector)

    made = []
    for fold in (True, False):
        bench = SplitBench(tmp_path, 2, more=CACHE, checks=Checks(fold=fold))
        kernel = Slots(programs(bench.tensor("x", 100)), L1, UB)
        bench.machine.launch(kernel)
        made.append(bench.machine.trace())
    assert made[0] == made[1]
    loads = made[0]["fetched"] > 0
    assert made[0]["tile"][loads].tolist() == [0, 1]
    assert made[0]["hit"].sum() == 200


class Slots(KindsKernel):
    """Cores of one slot are equal."""

    axes: tuple[str, ...] = ("tile",)

    def kind_class(self, kind: str, rank: int, count: int) -> Hashable | None:  # noqa: ARG002  (as kernels have it)
        """The slot."""
        return rank % 2 if kind == "aiv" else 0


@pytest.mark.parametrize("second", [[0, 0], [], [10]])
def test_equal_cores_of_unlike_programs_are_refused(bench: SplitBench, second: list[int]) -> None:
    """One more, none, or another size than the first core's."""
    x = bench.tensor("x", 25)
    counts = {0: [0], 1: second}

    def program(core: Core) -> list[Instruction]:
        return [read(core, x, 0, 25 - less) for less in counts.get(core.slot, [])]

    kernel = KindsKernel(program, UB, kinds=("aiv",))
    kernel._classes = lambda _: "equal"
    with pytest.raises(ProgramError, match="cores of one class with unlike programs"):
        bench.machine.launch(kernel)


class Keyed(KindsKernel):
    """A kernel whose programs could serve again, but for their addresses."""

    def key(self) -> Hashable:
        """Equal for all."""
        return "keyed"


def test_a_program_of_other_addresses_is_another_one(bench: SplitBench) -> None:
    """The same kernel on another tensor finds nothing."""
    tensors = [bench.tensor(name, 25) for name in "xyx"]

    def reading(x: Buffer) -> Program:
        def program(core: Core) -> Iterable[Instruction]:
            return [read(core, x)]

        return program

    for x in (tensors[0], tensors[1], tensors[0]):
        bench.machine.launch(Keyed(reading(x), L1, kinds=("aic",)))
    assert [launch.cycles for launch in bench.machine.launches] == [10, 10, 5]


class Plain:
    """A cache of two blocks of 64 bytes in lines of 16, as sets of lines in a list of blocks."""

    def __init__(self) -> None:
        self.blocks: list[tuple[int, set[int], set[int]]] = []

    def touch(self, start: int, size: int, writes: bool) -> tuple[int, int, int]:
        """(touched, missing, evicted) lines."""
        touched = missing = evicted = 0
        for number in range(start // 64, (start + size - 1) // 64 + 1):
            held = next((each for each in self.blocks if each[0] == number), None)
            if held is None:
                if len(self.blocks) == 2:
                    evicted += len(self.blocks.pop(0)[2])
                held = (number, set(), set())
            else:
                self.blocks.remove(held)
            self.blocks.append(held)
            for line in range(number * 64, number * 64 + 64, 16):
                inside = min(line + 16, start + size) - max(line, start)
                if inside <= 0:
                    continue
                touched += 1
                if line not in held[1] and not (writes and inside == 16):
                    missing += 1
                held[1].add(line)
                if writes:
                    held[2].add(line)
        return touched, missing, evicted


class Nobody:
    """Has fetches and waits for none."""

    def flowed(self, now: int) -> None:
        """Nothing comes of it."""

    def arrived(self, now: int) -> None:
        """Nothing comes of it."""


@given(st.lists(st.tuples(st.integers(0, 300), st.integers(1, 100), st.booleans()), max_size=30))
def test_a_cache_finds_what_a_plain_list_of_blocks_finds(touches: list[tuple[int, int, bool]]) -> None:
    """Lines touched, missing and written back, for any sequence of reads and writes."""
    cache = Cache(CacheSpec(size_bytes=128, block_bytes=64, line_bytes=16, link="l2"))
    plain = Plain()
    for start, size, writes in touches:
        fetch = Fetch(Nobody())
        found = (cache.write if writes else cache.read)(Range(start, 1, size, size), (), fetch)
        assert found[:3] == plain.touch(start, size, writes)
        fetch.flowed(0)


def test_numbers_change_nothing_of_what_a_cache_finds(tmp_path: Path) -> None:
    """The second half of x goes to y; the trace is the same without numbers."""
    traces = []
    for numerics in (False, True):
        bench = SplitBench(tmp_path, more=CACHE, numerics=numerics)
        x, y = bench.tensor("x", 50), bench.tensor("y", 25)
        program = alone(lambda core, x=x, y=y: [read(core, x, 25), write(core, y), read(core, x, 0, 50)])  # type: ignore[misc]
        traces.append(bench.run(program, L1, UB))
        if numerics:
            assert y.numbers().tolist() == list(range(25, 50))
    assert traces[0] == traces[1]


ROWS = st.tuples(
    st.integers(0, 63),
    st.integers(1, 6),
    st.integers(1, 100),
    st.integers(0, 90),
    st.sampled_from([8, 16, 64]),
)


@given(ROWS)
def test_the_lines_of_a_range_are_those_that_its_bytes_lie_in(case: tuple[int, int, int, int, int]) -> None:
    """Byte by byte, in blocks of 64."""
    offset, rows, row_bytes, gap, line = case
    stride, each = row_bytes + gap, 64 // line
    counts: dict[int, int] = {}
    for row in range(rows):
        for byte in range(offset + row * stride, offset + row * stride + row_bytes):
            counts[byte // line] = counts.get(byte // line, 0) + 1
    count_of_lines, found = pieces(offset, rows, row_bytes, stride, 64, line)
    assert count_of_lines == len(counts)
    for block, touched, partial in found:
        for bit in range(each):
            count = counts.pop(block * each + bit, 0)
            assert bool(touched >> bit & 1) == bool(count)
            if gap:
                assert bool(partial >> bit & 1) == (0 < count < line)
    assert not counts


@given(st.data())
def test_a_box_of_any_levels_touches_the_lines_of_its_elements(data: st.DataObject) -> None:
    """Element by element, of four bytes, in blocks of 64 and lines of 16."""
    shape = tuple(data.draw(st.lists(st.integers(1, 5), min_size=1, max_size=4)))
    start = tuple(data.draw(st.integers(0, extent - 1)) for extent in shape)
    size = tuple(data.draw(st.integers(1, extent - low)) for low, extent in zip(start, shape, strict=True))
    span, outer = Buffer("gm", "x", 0, shape, FP32, True).box(start, size).levels()
    count, found = pieces(span.base, span.rows, span.row_bytes, span.stride, 64, 16, outer)
    inside = np.zeros(shape, bool)
    inside[tuple(slice(low, low + extent) for low, extent in zip(start, size, strict=True))] = True
    lines = set((np.flatnonzero(inside) // 4).tolist())
    assert {4 * p.block + bit for p in found for bit in range(4) if p.touched >> bit & 1} == lines
    assert count == len(lines)


def test_a_range_of_no_bytes_touches_nothing() -> None:
    """No rows, or rows of no bytes; and what half a line looks like."""
    assert pieces(0, 0, 8, 8, 64, 8) == pieces(0, 3, 0, 8, 64, 8) == (0, ())
    assert pieces(60, 1, 8, 8, 64, 8) == (2, (Piece(0, 0x80, 0x80), Piece(1, 1, 1)))


def test_the_trace_of_a_chip_with_a_cache_can_be_joined_and_saved(bench: SplitBench, tmp_path: Path) -> None:
    """Its three columns go along; another chip's trace has none."""
    x = bench.tensor("x", 25)
    trace = bench.run(lambda core: [read(core, x)], L1, UB)
    trace.write(tmp_path / "trace.parquet")
    assert type(trace).read(tmp_path / "trace.parquet") == trace
    plain = SplitBench(tmp_path)
    other = plain.run(by_kind(aic=lambda core: [read(core, plain.tensor("x", 25))]), L1, UB)
    assert "hit" not in other.columns()
    joined = type(trace).concat([other, trace])
    assert joined["fetched"].tolist() == [0, *trace["fetched"].tolist()]
