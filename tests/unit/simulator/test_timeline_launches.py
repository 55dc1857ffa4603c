"""Launches, barriers and flags between cores: timelines by hand."""

from collections.abc import Iterator

import pytest

from simulator.errors import DeadlockError, ProgramError
from simulator.instructions import Barrier, FlagSet, FlagWait, Instruction
from simulator.kernel import Core
from tests.unit.simulator.listed import (
    INSTANT,
    Bench,
    ListKernel,
    Local,
    Overrides,
    all_of,
    fill,
    load,
    store,
)

AM = Local("a"), Local("b", 100)


def test_a_launch_costs_by_its_kind_and_its_cores() -> None:
    """Kind "default" costs 100 and 10 a core, "clear" 50 and none.

    The programs of three launches begin at 120 (2 cores), 136 + 50 and 207 + 110 (1 core).
    """
    overrides = {
        "launch.default.cycles": 100,
        "launch.default.cycles_per_core": 10,
        "launch.clear.cycles": 50,
    }
    bench = Bench(2, overrides)
    x = bench.tensor("x", 25)

    def loads(core: Core) -> Iterator[Instruction]:
        if core.rank == 0:
            yield load(all_of(core, "a"), x.box((0,), (25,)))

    def fills(core: Core) -> Iterator[Instruction]:
        yield fill(core, "b", 20)

    machine = bench.machine
    launches = [
        machine.launch(ListKernel(loads, *AM, name="first")),
        machine.launch(ListKernel(fills, *AM, name="second", kind="clear")),
        machine.launch(ListKernel(fills, *AM, name="third", classes=lambda rank: 0 if rank else None)),
    ]
    assert [(r.name, r.kind, r.start, r.end, r.cores) for r in launches] == [
        ("first", "default", 0, 136, 2),
        ("second", "clear", 136, 207, 2),
        ("third", "default", 207, 338, 1),
    ]
    trace = machine.trace()
    assert trace.timeline(0) == [(121, 136, "DMA0", "load"), (187, 207, "VPU", "fill")]
    assert trace.timeline(1) == [(187, 207, "VPU", "fill"), (318, 338, "VPU", "fill")]
    assert trace["launch"].tolist() == [0, 1, 1, 2]
    assert machine.cycles == 338


def test_a_launch_without_work_costs_its_start() -> None:
    """No core has an instruction: the launch ends where its programs would begin."""
    bench = Bench(2, {"launch.default.cycles": 100, "launch.default.cycles_per_core": 10})
    bench.run(lambda _: ())
    assert bench.machine.cycles == 120


def test_a_barrier_opens_after_the_last_arrival() -> None:
    """Core 0 comes at 1.

    Core 1 is late: its fill lasts from 1 to 21, and one issue. Core 2 issues its barrier at 2 and arrives at
    16, when its store has ended; core 3's fill does not touch shared memory, but blocks: 6 + 1. The barrier
    lasts from the last arrival, 22, to 22 + 10; each core was ready for it when it arrived, and what follows is
    issued at 33.
    """
    bench = Bench(4)
    y = bench.tensor("y", 25)

    def program(core: Core) -> Iterator[Instruction]:
        if core.index in (1, 3):
            yield fill(core, "b", 20 if core.index == 1 else 5)
        if core.index == 2:
            yield store(y.box((0,), (25,)), all_of(core, "a"))
        yield Barrier()
        yield fill(core, "b", 5)

    trace = bench.run(program, *AM)
    after = (33, 38, "VPU", "fill")
    assert [trace.timeline(core) for core in range(4)] == [
        [(22, 32, "SCALAR", "barrier"), after],
        [(1, 21, "VPU", "fill"), (22, 32, "SCALAR", "barrier"), after],
        [(1, 16, "DMA1", "store"), (22, 32, "SCALAR", "barrier"), after],
        [(1, 6, "VPU", "fill"), (22, 32, "SCALAR", "barrier"), after],
    ]
    barriers = trace["name"] == trace.names.index("barrier")
    assert trace["ready"][barriers].tolist() == [1, 22, 16, 7]


def test_work_in_private_memory_does_not_delay_an_arrival() -> None:
    """With a queued vector unit, a fill of 100 goes on while the core arrives at 2.

    The next one queues behind it.
    """
    bench = Bench(2, {"engine.vpu.issue": "queued"})

    def program(core: Core) -> Iterator[Instruction]:
        yield fill(core, "b", 100)
        yield Barrier()
        yield fill(core, "a", 5)

    trace = bench.run(program, *AM)
    assert trace.timeline() == [
        (1, 101, "VPU", "fill"),
        (2, 12, "SCALAR", "barrier"),
        (101, 106, "VPU", "fill"),
    ]


@pytest.mark.parametrize(("cores", "latency"), [(1, 13), (2, 16), (4, 22), (8, 34)])
def test_a_barrier_may_cost_more_with_more_cores(cores: int, latency: int) -> None:
    """10 cycles, and 3 for each core."""
    bench = Bench(cores, {"sync.barrier_cycles_per_core": 3})
    trace = bench.run(lambda _: [Barrier()])
    assert {tuple(trace.timeline(core)) for core in range(cores)} == {
        ((1, 1 + latency, "SCALAR", "barrier"),)
    }


def test_barriers_of_some_of_the_cores() -> None:
    """Cores 0 and 1 meet at 6 + 16, cores 2 and 3 at 31 + 16, at barriers of one number.

    A barrier of all comes after.
    """
    bench = Bench(4, {"sync.barrier_cycles_per_core": 3})

    def program(core: Core) -> Iterator[Instruction]:
        if core.index in (1, 2):
            yield fill(core, "b", 5 if core.index == 1 else 30)
        yield Barrier(cores=(0, 1) if core.index < 2 else (2, 3))
        yield Barrier(1)

    trace = bench.run(program, *AM)
    assert [trace.timeline(core)[-2:] for core in range(4)] == [
        [(7, 23, "SCALAR", "barrier"), (49, 71, "SCALAR", "barrier")],
        [(7, 23, "SCALAR", "barrier"), (49, 71, "SCALAR", "barrier")],
        [(32, 48, "SCALAR", "barrier"), (49, 71, "SCALAR", "barrier")],
        [(32, 48, "SCALAR", "barrier"), (49, 71, "SCALAR", "barrier")],
    ]


def test_a_core_at_a_barrier_of_others_is_an_error() -> None:
    """A barrier of cores 0 and 1 never opens for core 2."""
    with pytest.raises(ProgramError, match="barrier 7"):
        Bench(3).run(lambda _: [Barrier(7, cores=(0, 1))])


def handed_over(wait_after: int, overrides: Overrides = INSTANT) -> list[tuple[int, int, str, str]]:
    """Core 0 stores (10 cycles) and sets a flag; core 1 fills so long, then awaits it and loads."""
    bench = Bench(2, overrides)
    x = bench.tensor("x", 25)

    def program(core: Core) -> Iterator[Instruction]:
        if core.index == 0:
            yield store(x.box((0,), (25,)), all_of(core, "a"), channel=0)
            yield FlagSet("go", "dma")
            return
        if wait_after:
            yield fill(core, "b", wait_after)
        yield FlagWait("go", "dma")
        yield load(all_of(core, "a"), x.box((0,), (25,)))

    trace = bench.run(program, *AM)
    assert trace.timeline(0) == [(0, 10, "DMA0", "store"), (10, 10, "DMA0", "set_flag")]
    return [row for row in trace.timeline(1) if row[2] == "DMA0"]


@pytest.mark.parametrize(
    ("wait_after", "held", "loaded"),
    [
        (0, (10, 20), (20, 30)),  # waits in the queue for the set at 10, then 10 cycles of latency
        (14, (14, 20), (20, 30)),  # the latency has run since 10
        (40, (40, 40), (40, 50)),  # long over
    ],
)
def test_a_flag_holds_the_engine_of_another_core(
    wait_after: int, held: tuple[int, int], loaded: tuple[int, int]
) -> None:
    """The set goes through the queue of its engine behind the store; the latency runs from its end."""
    assert handed_over(wait_after) == [(*held, "DMA0", "wait_flag"), (*loaded, "DMA0", "load")]


def test_a_start_up_never_runs_during_the_wait_for_a_flag() -> None:
    """Start-ups overlap the stream of a transfer, and a wait for a flag has none.

    The load of 5 + 10 begins at 20.
    """
    overrides = {**INSTANT, "path.ddr->am.overlap": True, "path.ddr->am.start_cycles": 5}
    assert handed_over(0, overrides) == [(10, 20, "DMA0", "wait_flag"), (20, 35, "DMA0", "load")]


def test_setting_and_awaiting_cost_issue_cycles() -> None:
    """Set costs 3, wait 4.

    Core 0: store issued at 1, set at 4, on the engine at 16. Core 1: wait issued at 4, load at 5.
    """
    bench = Bench(2, {"issue.flag_set_cycles": 3, "issue.flag_wait_cycles": 4})
    x = bench.tensor("x", 25)

    def program(core: Core) -> Iterator[Instruction]:
        if core.index == 0:
            yield store(x.box((0,), (25,)), all_of(core, "a"), channel=0)
            yield FlagSet("go", "dma")
        else:
            yield FlagWait("go", "dma")
            yield load(all_of(core, "a"), x.box((0,), (25,)))

    trace = bench.run(program, *AM)
    assert trace["issued"].tolist() == [1, 4, 4, 5]
    assert trace.timeline(0) == [(1, 16, "DMA0", "store"), (16, 16, "DMA0", "set_flag")]
    assert trace.timeline(1) == [(16, 26, "DMA0", "wait_flag"), (26, 41, "DMA0", "load")]


def test_a_flag_is_lowered_by_the_one_that_awaited_it() -> None:
    """Two sets, at 10 and 20, let two waits through one after the other: 10 + 10 and 20 + 10."""
    bench = Bench(2, INSTANT)
    x = bench.tensor("x", 50)

    def program(core: Core) -> Iterator[Instruction]:
        for half in range(2):
            if core.index == 0:
                yield store(x.box((25 * half,), (25,)), all_of(core, "a"), channel=0)
                yield FlagSet("go", "dma")
            else:
                yield FlagWait("go", "dma")

    trace = bench.run(program, *AM)
    assert trace.timeline(1) == [(10, 20, "DMA0", "wait_flag"), (20, 30, "DMA0", "wait_flag")]


def test_a_barrier_that_a_core_never_reaches_is_a_deadlock() -> None:
    """The error says who waits, for what, since when, and how many came."""

    def program(core: Core) -> Iterator[Instruction]:
        yield fill(core, "b", 10 * (core.index + 1))
        if core.index != 1:
            yield Barrier(3)

    with pytest.raises(DeadlockError) as caught:
        Bench(3).run(program, *AM)
    assert caught.value.waiting == (
        "core 0 SCALAR waits at barrier 3 since cycle 12 (2 of 3 cores are there)",
        "core 2 SCALAR waits at barrier 3 since cycle 32 (2 of 3 cores are there)",
    )
    assert all(sentence in str(caught.value) for sentence in caught.value.waiting)


def test_a_flag_that_is_never_set_is_a_deadlock() -> None:
    """Core 1 waits on its DMA since the load before it ended, at 16; core 0 has finished."""
    bench = Bench(2)
    x = bench.tensor("x", 25)

    def program(core: Core) -> Iterator[Instruction]:
        if core.index == 1:
            yield load(all_of(core, "a"), x.box((0,), (25,)))
            yield FlagWait("go", "dma")

    with pytest.raises(DeadlockError) as caught:
        bench.run(program, *AM)
    assert caught.value.waiting == ("core 1 DMA0 waits for flag go since cycle 16",)


def test_a_deadlock_names_the_flag_behind_what_depends_on_it() -> None:
    """The VPU stands with a fill that needs the end of a load behind the wait for a flag.

    The flag is what is missing.
    """
    bench = Bench(1)
    x = bench.tensor("x", 25)

    def program(core: Core) -> Iterator[Instruction]:
        yield FlagWait("go", "dma")
        yield load(all_of(core, "a"), x.box((0,), (25,)))
        yield fill(core, "a", 5)

    with pytest.raises(DeadlockError) as caught:
        bench.run(program, *AM)
    assert caught.value.waiting == ("core 0 DMA0 waits for flag go since cycle 0",)


def test_two_cores_that_wait_for_each_other_are_a_deadlock() -> None:
    """Each awaits the other's flag before it sets its own."""

    def program(core: Core) -> Iterator[Instruction]:
        yield FlagWait(f"from {1 - core.index}", "dma")
        yield FlagSet(f"from {core.index}", "dma")

    with pytest.raises(DeadlockError) as caught:
        Bench(2).run(program)
    assert caught.value.waiting == (
        "core 0 DMA0 waits for flag from 1 since cycle 0",
        "core 1 DMA0 waits for flag from 0 since cycle 0",
    )
