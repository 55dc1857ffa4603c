"""Launches on several kinds of cores, by hand: streams of 100 bytes, HBM 10 and ports 20 bytes a cycle."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from pathlib import Path

import pytest

from simulator.errors import ProgramError
from simulator.instructions import Barrier, Copy, Cost, FlagSet, FlagWait, Instruction
from simulator.kernel import Core
from simulator.machine import Checks
from simulator.results.metrics import cores_active, measure
from simulator.values.steps import execute_in_order
from targets.schema import Target
from tests.unit.simulator.listed import ListKernel, Local, all_of
from tests.unit.simulator.split import LOCALS, KindsKernel, SplitBench, by_kind
from tests.unit.simulator.test_steps import Note
from tests.unit.targets.davinci import NUMBER


class Work(Instruction):
    """So many cycles on an engine, and more when it was idle."""

    name = "work"

    def __init__(self, engine: str, cycles: int, idle: int = 0):
        super().__init__((), ())
        self._engine = engine
        self.cycles = cycles
        self.idle = idle

    @property
    def queue(self) -> str:
        """The engine."""
        return self._engine

    def signature(self) -> Hashable:
        """The cycles."""
        return (self.name, self.cycles, self.idle)

    def cost(self, target: Target) -> Cost:  # noqa: ARG002  (it is given)
        """The cycles."""
        return Cost(0, self.cycles, idle_cycles=self.idle)


def test_cores_know_kind_group_and_slot(tmp_path: Path) -> None:
    """Ranks and counts are among the cores of a kind."""
    seen: list[tuple[int, str, int, int, int, int]] = []

    def program(core: Core) -> tuple[Instruction, ...]:
        seen.append((core.index, core.kind, core.group, core.slot, core.rank, core.count))
        return ()

    SplitBench(tmp_path, 2).run(program)
    assert seen == [
        (0, "aic", 0, 0, 0, 2),
        (1, "aiv", 0, 0, 0, 4),
        (2, "aiv", 0, 1, 1, 4),
        (3, "aic", 1, 0, 1, 2),
        (4, "aiv", 1, 0, 2, 4),
        (5, "aiv", 1, 1, 3, 4),
    ]


def test_a_kernel_that_does_not_say_runs_on_the_first_kind(tmp_path: Path) -> None:
    """The cube cores, of both groups; a launch counts groups."""
    bench = SplitBench(tmp_path, 2)
    record = bench.machine.launch(ListKernel(lambda _: [Work("cube", 3)]))
    assert bench.machine.trace().cores() == [0, 3]
    assert record.cores == 2


def test_a_launch_on_both_kinds_counts_groups(tmp_path: Path) -> None:
    """Six cores, two groups."""
    bench = SplitBench(tmp_path, 2)
    assert bench.machine.launch(KindsKernel(lambda _: [Work("mte2", 1)])).cores == 2


def test_copies_take_the_engine_of_their_path(tmp_path: Path) -> None:
    """Load and store of a vector core, and a load that shares the HBM: 5 bytes a cycle each until 20."""
    bench = SplitBench(tmp_path)
    x, y = bench.tensor("x", 25), bench.tensor("y", 25)
    trace = bench.run(
        by_kind(
            aic=lambda core: [Copy(all_of(core, "l1"), x.box((0,), (25,)))],
            aiv=lambda core: (
                [Copy(all_of(core, "ub"), x.box((0,), (25,))), Copy(y.box((0,), (25,)), all_of(core, "ub"))]
                if core.slot == 0
                else []
            ),
        )
    )
    assert trace.timeline(0) == [(0, 20, "MTE2", "copy")]
    assert trace.timeline(1) == [(0, 20, "MTE2", "copy"), (20, 30, "MTE3", "copy")]
    assert trace.engines == ("SCALAR", "CUBE", "MTE1", "MTE2", "MTE3", "VECTOR", "FIXPIPE")


@pytest.mark.parametrize("fold", [True, False])
def test_a_path_without_a_link_is_shared_with_nobody(tmp_path: Path, fold: bool) -> None:
    """100 bytes at the port's 20 take 5 cycles on both cores at once, folded or not."""
    bench = SplitBench(tmp_path, 2, checks=Checks(fold=fold))
    kernel = ListKernel(
        lambda core: [Copy(all_of(core, "l0a"), all_of(core, "l1"))] * 2,
        *LOCALS["aic"],
        classes=lambda _: "equal",
    )
    bench.machine.launch(kernel)
    for core in (0, 3):
        assert bench.machine.trace().timeline(core) == [(0, 5, "MTE1", "copy"), (5, 10, "MTE1", "copy")]


def test_flags_go_between_the_kinds_of_a_group(tmp_path: Path) -> None:
    """The load ends at 10; the flag lands 5 later; the store takes 10."""
    bench = SplitBench(tmp_path)
    x = bench.tensor("x", 25)
    trace = bench.run(
        by_kind(
            aic=lambda core: [
                Copy(all_of(core, "l1"), x.box((0,), (25,))),
                FlagSet(("tile", core.group), "mte2"),
            ],
            aiv=lambda core: (
                [FlagWait(("tile", core.group), "mte3"), Copy(x.box((0,), (25,)), all_of(core, "ub"))]
                if core.slot == 1
                else []
            ),
        )
    )
    assert trace.timeline(2) == [(10, 15, "MTE3", "wait_flag"), (15, 25, "MTE3", "copy")]


def test_a_barrier_is_for_all_cores_of_the_launch_or_for_named_ones(tmp_path: Path) -> None:
    """The load holds the cube core until 10, which holds both vector cores until 20; named cores do not wait."""
    for cores, opens in ((None, 20), ((1, 2), 10)):
        bench = SplitBench(tmp_path)
        x = bench.tensor("x", 25)
        trace = bench.run(
            by_kind(
                aic=lambda core, x=x, cores=cores: [  # type: ignore[misc]
                    Copy(all_of(core, "l1"), x.box((0,), (25,))),
                    *([] if cores else [Barrier()]),
                ],
                aiv=lambda _, cores=cores: [Barrier(0, cores), Work("vector", 2)],  # type: ignore[misc]
            )
        )
        assert [trace.timeline(core)[-1] for core in (1, 2)] == [(opens, opens + 2, "VECTOR", "work")] * 2


def test_an_engine_that_was_idle_takes_longer(tmp_path: Path) -> None:
    """2 back to back; 3 more at the beginning, and behind a barrier that opens at 10."""
    work = Work("cube", 2, idle=3)
    trace = SplitBench(tmp_path).run(by_kind(aic=lambda _: [work, work, Barrier(), work]), kinds=("aic",))
    cube = [(start, end) for start, end, engine, _ in trace.timeline(0) if engine == "CUBE"]
    assert cube == [(0, 5), (5, 7), (10, 15)]


def test_a_flag_between_two_instructions_does_not_make_an_engine_busy(tmp_path: Path) -> None:
    """The wait ends at 13, when the other core's set of 8 has landed; the cube has been idle since 7."""
    work = Work("cube", 2, idle=3)
    trace = SplitBench(tmp_path).run(
        by_kind(
            aic=lambda _: [work, FlagSet("mine", "cube"), work, FlagWait("other", "cube"), work],
            aiv=lambda core: [Work("vector", 8), FlagSet("other", "vector")] if core.slot == 0 else [],
        )
    )
    works = [(start, end) for start, end, _, name in trace.timeline(0) if name == "work"]
    assert works == [(0, 5), (5, 7), (13, 18)]


def test_cores_of_their_own_clock_take_longer(tmp_path: Path) -> None:
    """At 300 of 1,000 MHz 3 cycles are 10 of the target's; streams are in bytes a cycle of the target's."""
    slow = {"[core.aiv]\n": f"[core.aiv]\nclock_mhz = {{ value = 300, {NUMBER} }}\n"}
    bench = SplitBench(tmp_path, changes=slow)
    trace = bench.run(by_kind(aic=lambda _: [Work("cube", 3)], aiv=lambda _: [Work("vector", 3)]))
    assert trace.timeline(0) == [(0, 3, "CUBE", "work")]
    assert trace.timeline(1) == [(0, 10, "VECTOR", "work")]


def test_what_a_kind_lacks_is_refused(tmp_path: Path) -> None:
    """A memory that no core of the launch has, an engine, a path, a kind."""
    bench = SplitBench(tmp_path)
    with pytest.raises(ProgramError, match="no such memory: where ub, got ub, limit l1, l0a, gm"):
        bench.run(lambda _: (), Local("ub", memory="ub"), kinds=("aic",))
    with pytest.raises(ProgramError, match="no such engine: got cube, limit scalar, mte2, mte3, vector"):
        bench.run(lambda _: [Work("cube", 1)], kinds=("aiv",))
    with pytest.raises(ProgramError, match="no such path: where split, got l0a->l1"):
        bench.run(lambda core: [Copy(all_of(core, "l1"), all_of(core, "l0a"))], kinds=("aic",))
    with pytest.raises(ProgramError, match="no such kind of core: where list, got dsp, limit aic, aiv"):
        bench.run(lambda _: (), kinds=("dsp",))


def test_numbers_of_cores_that_wait_for_flags_come_after_the_set() -> None:
    """Core 0 waits for core 1, which stands behind it in the order of cores."""
    book: list[str] = []

    def first() -> Iterator[Instruction]:
        yield FlagWait("a", "mte3")
        yield Note(book, "first")

    def second() -> Iterator[Instruction]:
        yield Note(book, "second")
        yield FlagSet("a", "mte2")

    execute_in_order({0: first(), 1: second()})
    assert book == ["second", "first"]


def test_tensors_lie_in_the_main_memory(tmp_path: Path) -> None:
    """Which is GM on this chip."""
    assert SplitBench(tmp_path).tensor("x", 4).memory == "gm"


def test_cores_in_no_group_join_launches_of_their_kind(tmp_path: Path) -> None:
    """Of three, one for each group asked for: a barrier of three vector cores."""
    extra = {"[core.aiv]\n": f"[core.aiv]\nextra = {{ value = 3, {NUMBER} }}\n"}
    seen: list[tuple[int, int, int, int, int]] = []

    def program(core: Core) -> list[Instruction]:
        seen.append((core.index, core.group, core.slot, core.rank, core.count))
        return [Barrier(), Work("vector", 1)]

    bench = SplitBench(tmp_path, 1, changes=extra)
    trace = bench.run(program, kinds=("aiv",))
    assert seen == [(1, 0, 0, 0, 3), (2, 0, 1, 1, 3), (6, -1, 0, 2, 3)]
    assert trace.timeline(6) == [(0, 10, "SCALAR", "barrier"), (10, 11, "VECTOR", "work")]
    assert bench.machine.launches[0].cores == 2
    assert cores_active(trace, bench.target) == 1


def test_figures_of_a_run_count_the_cores_that_have_an_engine(tmp_path: Path) -> None:
    """One group asked for: one cube, two vector units; the second vector core is idle."""
    bench = SplitBench(tmp_path)
    programs = by_kind(
        aic=lambda _: [Work("cube", 10)], aiv=lambda core: [Work("vector", 5)] if core.slot == 0 else []
    )
    found = measure(bench.run(programs), bench.target, 1, 10)
    assert (found.main_engine, found.utilisation["CUBE"], found.utilisation["VECTOR"]) == ("CUBE", 1.0, 0.25)
    assert found.stall_table is not None
    assert list(found.stall_table.cores) == [0]


def test_kinds_may_take_part_in_different_ranks(tmp_path: Path) -> None:
    """The cube core of group 0 and the vector cores of group 1, and a barrier of these three."""

    class Parts(KindsKernel):
        def kind_class(self, kind: str, rank: int, count: int) -> Hashable | None:  # noqa: ARG002  (as kernels have it)
            return rank if (rank == 0 if kind == "aic" else rank >= 2) else None

    bench = SplitBench(tmp_path, 2)
    bench.machine.launch(Parts(lambda _: [Barrier()]))
    assert bench.machine.trace().cores() == [0, 4, 5]
