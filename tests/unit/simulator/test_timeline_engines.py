"""Timelines of one core, computed by hand: issue, queues, start-ups, rings of buffers.

A copy of 25 elements is 100 bytes: 5 cycles of start-up and 10 of stream. A product of k elements takes k
cycles, a fill of n elements n cycles. An issue takes 1 cycle and comes before the instruction enters its
queue.
"""

from collections.abc import Iterator

import pytest

from simulator.instructions import Instruction
from simulator.kernel import Core
from simulator.tiles import Loop, Step, walk
from tests.unit.simulator.listed import (
    Bench,
    Local,
    Overrides,
    Timeline,
    all_of,
    fill,
    load,
    row_times_column,
    store,
)

OVERLAP: Overrides = {"path.ddr->am.overlap": True}


def loads(bench: Bench, *counts: int, then: int = 0) -> Timeline:
    """The timeline of loads of so many elements on one channel, and of a fill behind them."""
    x = bench.tensor("x", 100)

    def program(core: Core) -> Iterator[Instruction]:
        for step, count in enumerate(counts):
            yield load(all_of(core, "a", count), x.box((0,), (count,)), name=f"load {step}")
        if then:
            yield fill(core, "b", then)

    return bench.run(program, Local("a", 100), Local("b", 100)).timeline()


def test_an_engine_works_in_order() -> None:
    """Copies of 100, 40, 4 bytes are issued at 1, 2, 3 and last 5 + 10, 5 + 4 and 5 + 1 (0.4 rounded up)."""
    assert loads(Bench(), 25, 10, 1) == [
        (1, 16, "DMA0", "load 0"),
        (16, 25, "DMA0", "load 1"),
        (25, 31, "DMA0", "load 2"),
    ]


def test_two_engines_overlap() -> None:
    """The fill (issued at 2) runs beside the load; the store is issued when the VPU has ended, at 22 + 1."""
    bench = Bench()
    x, y = bench.tensor("x", 25), bench.tensor("y", 20)

    def program(core: Core) -> Iterator[Instruction]:
        yield load(all_of(core, "a"), x.box((0,), (25,)))
        yield fill(core, "b", 20)
        yield store(y.box((0,), (20,)), all_of(core, "b", 20))

    assert bench.run(program, Local("a"), Local("b")).timeline() == [
        (1, 16, "DMA0", "load"),
        (2, 22, "VPU", "fill"),
        (23, 36, "DMA1", "store"),
    ]


def test_two_channels_share_the_port_of_their_core() -> None:
    """Streams begin at 6 and 7.

    The first has 10 bytes alone, then both have 5: 90 left take 18 cycles, to 25; the second has then had 90,
    and its last 10 take a cycle. The link of 100 would carry both at once.
    """
    bench = Bench(overrides={"link.ddr.bytes_per_cycle": 100})
    x = bench.tensor("x", 50)

    def program(core: Core) -> Iterator[Instruction]:
        yield load(all_of(core, "a"), x.box((0,), (25,)), channel=0)
        yield load(all_of(core, "b"), x.box((25,), (25,)), channel=1)

    assert bench.run(program, Local("a"), Local("b")).timeline() == [
        (1, 25, "DMA0", "load"),
        (2, 26, "DMA1", "load"),
    ]


def tiles(depth: int) -> Timeline:
    """Four tiles of a load and a product, with so many buffers and loads as far ahead as they allow."""
    bench = Bench()
    x = bench.tensor("x", 100)

    def program(core: Core) -> Iterator[Instruction]:
        def bring(step: Step) -> Iterator[Instruction]:
            yield load(all_of(core, "a", step=step.ordinal), x.box((25 * step.tile,), (25,)))

        def compute(step: Step) -> Iterator[Instruction]:
            yield row_times_column(core.rings["o"][0], core.rings["a"][step.ordinal], core.rings["w"][0])

        yield from walk([Loop(lambda _: range(4), load=bring, ahead=depth - 1)], compute)

    return bench.run(program, Local("a", depth=depth), Local("w"), Local("o")).timeline()


def test_a_ring_of_one_buffer_overlaps_nothing() -> None:
    """Load 15, product 25 and an issue before the next load: 41 cycles a tile."""
    assert tiles(1) == [
        (1, 16, "DMA0", "load"),
        (16, 41, "VPU", "matmul"),
        (42, 57, "DMA0", "load"),
        (57, 82, "VPU", "matmul"),
        (83, 98, "DMA0", "load"),
        (98, 123, "VPU", "matmul"),
        (124, 139, "DMA0", "load"),
        (139, 164, "VPU", "matmul"),
    ]


def test_a_ring_of_two_buffers_loads_the_next_tile_meanwhile() -> None:
    """Load t + 1 goes before product t: each product but the last costs 25 and two issues.

    Load 2 may overwrite buffer 0 from 41 on and is issued at 42.
    """
    assert tiles(2) == [
        (1, 16, "DMA0", "load"),
        (16, 41, "VPU", "matmul"),
        (16, 31, "DMA0", "load"),
        (42, 57, "DMA0", "load"),
        (43, 68, "VPU", "matmul"),
        (69, 84, "DMA0", "load"),
        (70, 95, "VPU", "matmul"),
        (96, 121, "VPU", "matmul"),
    ]


def test_a_ring_of_three_buffers_loads_two_tiles_ahead() -> None:
    """Three loads queue up first; the fourth, issued at 42, waits for the channel until 46."""
    assert tiles(3) == [
        (1, 16, "DMA0", "load"),
        (16, 41, "VPU", "matmul"),
        (16, 31, "DMA0", "load"),
        (31, 46, "DMA0", "load"),
        (43, 68, "VPU", "matmul"),
        (46, 61, "DMA0", "load"),
        (69, 94, "VPU", "matmul"),
        (95, 120, "VPU", "matmul"),
    ]


def test_a_full_queue_stalls_the_issue() -> None:
    """Two loads may wait.

    The fourth is issued one cycle after the second starts at 16, the fifth one after the third starts at 31,
    and the fill after that.
    """
    assert loads(Bench(overrides={"engine.dma.queue_depth": 2}), 25, 25, 25, 25, 25, then=5) == [
        (1, 16, "DMA0", "load 0"),
        (16, 31, "DMA0", "load 1"),
        (31, 46, "DMA0", "load 2"),
        (33, 38, "VPU", "fill"),
        (46, 61, "DMA0", "load 3"),
        (61, 76, "DMA0", "load 4"),
    ]


def test_a_blocking_engine_holds_the_scalar_unit() -> None:
    """Each issue comes after the end of the copy before: 16 + 1, 32 + 1."""
    assert loads(Bench(overrides={"engine.dma.issue": "blocking"}), 25, 25, then=5) == [
        (1, 16, "DMA0", "load 0"),
        (17, 32, "DMA0", "load 1"),
        (33, 38, "VPU", "fill"),
    ]


def test_a_queued_vector_unit_lets_the_scalar_unit_go_on() -> None:
    """Three fills are issued at 1, 2 and 3 and run one after the other; the load is issued at 4."""
    bench = Bench(overrides={"engine.vpu.issue": "queued"})
    x = bench.tensor("x", 25)

    def program(core: Core) -> Iterator[Instruction]:
        for _ in range(3):
            yield fill(core, "b", 10)
        yield load(all_of(core, "a"), x.box((0,), (25,)))

    assert bench.run(program, Local("a"), Local("b")).timeline() == [
        (1, 11, "VPU", "fill"),
        (4, 19, "DMA0", "load"),
        (11, 21, "VPU", "fill"),
        (21, 31, "VPU", "fill"),
    ]


def test_start_ups_run_during_the_stream_before() -> None:
    """Load 0 streams from 6 to 16.

    Load 1 starts up from 6 and streams from 16; load 2 starts up when load 1 streams.
    """
    assert loads(Bench(overrides=OVERLAP), 25, 25, 25) == [
        (1, 16, "DMA0", "load 0"),
        (6, 26, "DMA0", "load 1"),
        (16, 36, "DMA0", "load 2"),
    ]


def test_bytes_flow_behind_the_start_up_and_the_stream_before() -> None:
    """Of three loads with overlapped start-ups, the bytes flow from 6 to 16, to 26, to 36."""
    bench = Bench(overrides=OVERLAP)
    x = bench.tensor("x", 25)
    trace = bench.run(
        lambda core: [load(all_of(core, "a", 25), x.box((0,), (25,))) for _ in range(3)], Local("a", 25)
    )
    assert trace["flow"].tolist() == [6, 16, 26]
    assert trace["end"].tolist() == [16, 26, 36]


def test_start_ups_follow_each_other_behind_short_streams() -> None:
    """A stream of 4 bytes takes a cycle: what counts is one start-up of 5 cycles after the other."""
    assert loads(Bench(overrides=OVERLAP), 1, 1, 1) == [
        (1, 7, "DMA0", "load 0"),
        (6, 12, "DMA0", "load 1"),
        (11, 17, "DMA0", "load 2"),
    ]


@pytest.mark.parametrize(("floor", "ends"), [(10, (16, 31)), (15, (16, 31)), (30, (31, 61))])
def test_a_copy_lasts_at_least_the_floor_of_its_path(floor: int, ends: tuple[int, int]) -> None:
    """max(floor, 5 + 10), start-up included."""
    assert loads(Bench(overrides={"path.ddr->am.floor_cycles": floor}), 25, 25) == [
        (1, ends[0], "DMA0", "load 0"),
        (ends[0], ends[1], "DMA0", "load 1"),
    ]


def test_a_floor_holds_the_stream_behind_it() -> None:
    """The floor keeps load 0 until 1 + 20.

    Load 1 starts up from 6 and streams from 21, past its floor of 26.
    """
    assert loads(Bench(overrides={**OVERLAP, "path.ddr->am.floor_cycles": 20}), 25, 25) == [
        (1, 21, "DMA0", "load 0"),
        (6, 31, "DMA0", "load 1"),
    ]


STORE_FIRST_FIVE_COLUMNS = ((0, 0), (5, 5))
"""Start and size of a box of a tensor of 10 by 10 elements: rows of 20 bytes, 40 apart."""


@pytest.mark.parametrize(
    ("start", "size", "waits"),
    [
        ((0, 5), (5, 5), False),  # the other half of the same rows: interleaved, no byte in common
        ((5, 0), (5, 5), False),  # rows below
        ((0, 4), (5, 5), True),  # one column in common
        ((4, 0), (5, 5), True),  # one row in common
        ((4, 4), (5, 5), True),  # one element in common
        ((4, 5), (5, 5), False),  # rows that touch corner to corner
    ],
)
@pytest.mark.parametrize("first", ["store", "load"])
def test_only_ranges_that_overlap_in_ddr_order_two_channels(
    first: str, start: tuple[int, int], size: tuple[int, int], waits: bool
) -> None:
    """A load and a store that share an element wait for each other.

    The second is issued at 2 and runs at once or waits until 16. Ports and link carry both at full rate.
    """
    bench = Bench(overrides={"link.ddr.bytes_per_cycle": 20})
    x = bench.tensor("x", 10, 10)

    def program(core: Core) -> Iterator[Instruction]:
        box = x.box(*STORE_FIRST_FIVE_COLUMNS)
        out = core.rings["b"][0].dense((5, 5))
        into = core.rings["a"][0].dense((5, 5))
        if first == "store":
            yield store(box, out)
            yield load(into, x.box(start, size))
        else:
            yield load(into, x.box(start, size))
            yield store(box, out)

    second = (16, 31) if waits else (2, 17)
    names = {"store": ("DMA1", "store"), "load": ("DMA0", "load")}
    other = "load" if first == "store" else "store"
    expected = [(1, 16, *names[first]), (*second, *names[other])]
    assert bench.run(program, Local("a"), Local("b")).timeline() == expected


@pytest.mark.parametrize(("start", "waits"), [(24, True), (25, False)])
def test_two_writes_of_one_place_stay_in_order(start: int, waits: bool) -> None:
    """The second store of an element waits for the first, on another channel too.

    Both share the port (5 bytes each) where they do not wait: streams from 6 and 7, as in the test of the
    port.
    """
    bench = Bench()
    x = bench.tensor("x", 50)

    def program(core: Core) -> Iterator[Instruction]:
        yield store(x.box((0,), (25,)), all_of(core, "a"), channel=1)
        yield store(x.box((start,), (25,)), all_of(core, "b"), channel=0)

    expected = (
        [(1, 16, "DMA1", "store"), (16, 31, "DMA0", "store")]
        if waits
        else [(1, 25, "DMA1", "store"), (2, 26, "DMA0", "store")]
    )
    assert bench.run(program, Local("a"), Local("b")).timeline() == expected
