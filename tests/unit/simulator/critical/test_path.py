"""Critical paths known by hand: an issue takes 1 cycle, a start-up 5; 100 bytes a copy at 10 a cycle."""

from collections.abc import Iterator

import pytest

from kernels.conv_backward import conv_backward
from kernels.shape.shapes import ConvShape
from simulator.instructions import Barrier, FlagSet, FlagWait, Instruction
from simulator.kernel import Core
from simulator.memory.memories import Buffer
from simulator.results.critical.path import UNKNOWN, CriticalPath, critical_path
from targets.errors import TilesimError
from targets.loader import load_target
from tests.unit.simulator.listed import Bench, Local, Program, all_of, fill, load, store
from tests.unit.simulator.made import made_run

AM = Local("a"), Local("b", 100)


def chain(path: CriticalPath) -> list[tuple[int, int, str, str]]:
    """Start, end, reason and instruction of each segment."""
    trace = path.trace
    named = [trace.names[code] for code in trace["name"].tolist()]
    return [(s.start, s.end, s.reason, named[s.row] if s.row >= 0 else "") for s in path.segments]


def loads(count: int, core: Core, tensor: Buffer) -> Iterator[Instruction]:
    """Loads of 100 bytes into parts of one buffer, on one channel."""
    for i in range(count):
        yield load(all_of(core, "b", 25, 0, 25 * i), tensor.box((25 * i,), (25,)))


def run(bench: Bench, program: Program) -> CriticalPath:
    """The path of a program on a bench."""
    bench.run(program, *AM)
    machine = bench.machine
    return critical_path(machine.trace(), machine.target, machine.launches, machine.cycles)


def test_a_load_a_product_and_a_store_follow_each_other() -> None:
    """Each waits for the one before; the store's issue waits for the engine that blocks."""
    bench = Bench()
    x, y = bench.tensor("x", 25), bench.tensor("y", 25)

    def program(core: Core) -> Iterator[Instruction]:
        yield load(all_of(core, "a"), x.box((0,), (25,)))
        yield fill(core, "a")
        yield store(y.box((0,), (25,)), all_of(core, "a"))

    path = run(bench, program)
    assert chain(path) == [
        (0, 1, "scalar issue", "load"),
        (1, 6, "start-up", "load"),
        (6, 16, "stream", "load"),
        (16, 41, "work", "fill"),
        (41, 42, "scalar issue", "store"),
        (42, 47, "start-up", "store"),
        (47, 57, "stream", "store"),
    ]
    assert path.table() == {
        ("VPU", "work"): 25,
        ("DMA", "stream"): 20,
        ("DMA", "start-up"): 10,
        ("SCALAR", "scalar issue"): 2,
    }


def test_two_cores_on_one_link_lose_to_each_other() -> None:
    """Alone a load would stream for 10 cycles; beside another one it takes 20."""
    bench = Bench(2)
    x = bench.tensor("x", 25)
    path = run(bench, lambda core: loads(1, core, x))
    assert [(s, e, why) for s, e, why, _ in chain(path)][1:] == [
        (1, 6, "start-up"),
        (6, 16, "stream"),
        (16, 26, "link contention"),
    ]


def test_a_full_queue_holds_the_issue() -> None:
    """The queue holds one: the third load is issued when the second starts, at 16, and the fills come after it."""
    bench = Bench(1, {"engine.dma.queue_depth": 1})
    x = bench.tensor("x", 75)

    def program(core: Core) -> Iterator[Instruction]:
        yield from loads(3, core, x)
        yield fill(core, "a", 25)
        yield fill(core, "a", 25)

    assert chain(run(bench, program))[2:] == [
        (6, 16, "stream", "load"),
        (16, 17, "queue full", "load"),
        (17, 18, "scalar issue", "fill"),
        (18, 43, "work", "fill"),
        (43, 44, "scalar issue", "fill"),
        (44, 69, "work", "fill"),
    ]


def test_a_barrier_leads_to_the_core_that_came_last() -> None:
    """Core 0 computes behind a barrier that core 1's store held; the launch cost stands at the begin."""
    bench = Bench(2, {"launch.default.cycles": 100})
    y = bench.tensor("y", 25)

    def program(core: Core) -> Iterator[Instruction]:
        if core.index == 1:
            yield store(y.box((0,), (25,)), all_of(core, "a"))
        yield Barrier()
        if core.index == 0:
            yield fill(core, "a", 5)

    assert chain(run(bench, program)) == [
        (0, 100, "launch", ""),
        (100, 101, "scalar issue", "store"),
        (101, 106, "start-up", "store"),
        (106, 116, "stream", "store"),
        (116, 126, "barrier", "barrier"),
        (126, 127, "scalar issue", "fill"),
        (127, 132, "work", "fill"),
    ]


def test_a_flag_leads_to_the_core_that_set_it() -> None:
    """Core 0's load waits for a flag that core 1 sets when its fill ends at 21, and for the flag's 10 cycles."""
    bench = Bench(2)
    x = bench.tensor("x", 25)

    def program(core: Core) -> Iterator[Instruction]:
        if core.index == 1:
            yield fill(core, "a", 20)
            yield FlagSet("go", "vpu")
        else:
            yield FlagWait("go", "dma")
            yield load(all_of(core, "a"), x.box((0,), (25,)))

    assert chain(run(bench, program)) == [
        (0, 1, "scalar issue", "fill"),
        (1, 21, "work", "fill"),
        (21, 31, "dependency", "wait_flag"),
        (31, 36, "start-up", "load"),
        (36, 46, "stream", "load"),
    ]


def test_start_ups_that_are_hidden_are_not_on_the_path() -> None:
    """With overlap only the first of three loads shows its start-up."""
    bench = Bench(1, {"path.ddr->am.overlap": True})
    x = bench.tensor("x", 75)
    path = run(bench, lambda core: loads(3, core, x))
    assert path.table() == {("DMA", "stream"): 30, ("DMA", "start-up"): 5, ("SCALAR", "scalar issue"): 1}
    assert path.rows() == [0, 1, 2]


def test_flags_between_engines_are_the_time_of_a_dependency() -> None:
    """The load ends at 16 and its flag lands 4 cycles later; setting it (2) and waiting for it (3) are hidden."""
    flags = {"issue.flag_set_cycles": 2, "issue.flag_wait_cycles": 3, "sync.flag_latency_cycles": 4}
    bench = Bench(1, flags)
    x = bench.tensor("x", 25)

    def program(core: Core) -> Iterator[Instruction]:
        yield load(all_of(core, "a"), x.box((0,), (25,)))
        yield fill(core, "a", 5)

    assert chain(run(bench, program))[2:] == [
        (6, 16, "stream", "load"),
        (16, 20, "dependency", "fill"),
        (20, 25, "work", "fill"),
    ]


SMALL = ConvShape(n=2, cin=32, size=(14, 14), cout=32, kernel=(3, 3), padding=1)


@pytest.mark.parametrize("target", ["mt7004", "ft78ne", "ascend910b1", "ascend310p3", "ascend950pr"])
def test_the_path_of_a_layer_is_its_run(target: str) -> None:
    """The segments follow each other from cycle 0 to the end, and the trace explains them all."""
    run = conv_backward(shape=SMALL, dtype="native", grads=("dx", "dw", "db"), target=target, numerics=False)
    path = critical_path(run.trace, run.target, run.launches, run.cycles)
    edges = [segment.end for segment in path.segments]
    assert [segment.start for segment in path.segments] == [0, *edges[:-1]]
    assert edges[-1] == run.cycles == sum(path.table().values())
    assert UNKNOWN not in {segment.reason for segment in path.segments}


def test_a_trace_without_costs_is_refused() -> None:
    """One made by hand, or by an older version."""
    run = made_run()
    with pytest.raises(TilesimError, match="cost"):
        critical_path(run.trace, load_target("mt7004"), run.launches, run.cycles)
