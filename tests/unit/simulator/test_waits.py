"""What an instruction waited for last: the reason, and the row of who made it wait."""

from collections.abc import Iterator

import pytest

from simulator.instructions import Barrier, FlagSet, FlagWait, Instruction
from simulator.kernel import Core
from simulator.results.trace import Trace
from tests.unit.simulator.listed import Bench, Local, all_of, fill, load, row_times_column, store

BUFFERS = Local("a"), Local("b"), Local("w"), Local("o")


def waits(trace: Trace) -> list[tuple[int, str, str, int]]:
    """(core, name, reason, row) of every row."""
    columns = [trace[name].tolist() for name in ("core", "name", "waited_reason", "waited_row")]
    return [(c, trace.names[n], trace.reasons[r], row) for c, n, r, row in zip(*columns, strict=True)]


def test_issue_engine_and_dependency() -> None:
    """A load waits for its issue, the next for its channel, a product for the later load.

    Loads: 1 to 16, 16 to 31. Product issued at 3, 31 to 56. The store of its result is issued at 57, when the
    product has ended: it waits for its issue only.
    """
    bench = Bench()
    x, y = bench.tensor("x", 50), bench.tensor("y", 1)

    def program(core: Core) -> Iterator[Instruction]:
        yield load(all_of(core, "a"), x.box((0,), (25,)))
        yield load(all_of(core, "w"), x.box((25,), (25,)))
        yield row_times_column(core.rings["o"][0], core.rings["a"][0], core.rings["w"][0])
        yield store(y.box((0,), (1,)), all_of(core, "o", 1))

    trace = bench.run(program, *BUFFERS)
    assert waits(trace) == [
        (0, "load", "issue", -1),
        (0, "load", "engine", 0),
        (0, "matmul", "dependency", 1),
        (0, "store", "issue", -1),
    ]
    assert trace["issued"].tolist() == [1, 2, 3, 57]
    assert trace["ready"].tolist() == [1, 2, 31, 57]


@pytest.mark.parametrize(
    ("channel", "reason"),
    [
        (1, "dependency"),  # free since 9, a is stored at 16
        (0, "engine"),  # the store is the one before it on the channel
    ],
)
def test_a_load_waits_for_a_store_as_a_reader_or_as_the_one_before(channel: int, reason: str) -> None:
    """A store of a on channel 0 (1 to 16), a short load on channel 1 (2 to 9), a load of a behind them."""
    bench = Bench()
    x, y = bench.tensor("x", 50), bench.tensor("y", 25)

    def program(core: Core) -> Iterator[Instruction]:
        yield store(y.box((0,), (25,)), all_of(core, "a"), channel=0)
        yield load(all_of(core, "b", 5), x.box((0,), (5,)), channel=1)
        yield load(all_of(core, "a"), x.box((25,), (25,)), channel=channel)

    assert waits(bench.run(program, *BUFFERS))[2] == (0, "load", reason, 0)


def test_an_engine_that_is_free_later_than_the_dependency_counts() -> None:
    """The store of a fill (issued at 7 + 1, needed since 7) waits for a long load on its channel, to 46."""
    bench = Bench()
    x, y = bench.tensor("x", 100), bench.tensor("y", 5)

    def program(core: Core) -> Iterator[Instruction]:
        yield load(all_of(core, "long", 100), x.box((0,), (100,)), channel=1)
        yield fill(core, "b", 5)
        yield store(y.box((0,), (5,)), all_of(core, "b", 5), channel=1)

    trace = bench.run(program, *BUFFERS, Local("long", 100))
    assert trace["start"].tolist() == [1, 2, 46]
    assert waits(trace)[2] == (0, "store", "engine", 0)


def test_a_start_up_waits_for_the_copy_whose_stream_it_runs_beside() -> None:
    """Load 1 starts up at 6, when load 0 begins to stream, load 2 at 16."""
    bench = Bench(overrides={"path.ddr->am.overlap": True})
    x = bench.tensor("x", 75)

    def program(core: Core) -> Iterator[Instruction]:
        for part in range(3):
            yield load(all_of(core, "a", step=part), x.box((25 * part,), (25,)))

    trace = bench.run(program, Local("a", depth=3))
    assert trace["start"].tolist() == [1, 6, 16]
    assert waits(trace) == [
        (0, "load", "issue", -1),
        (0, "load", "engine", 0),
        (0, "load", "engine", 1),
    ]


def test_a_dependency_on_two_engines_names_the_later() -> None:
    """A product needs loads of 100 and of 20 bytes on two channels, both at full rate: the first is later."""
    bench = Bench(overrides={"link.ddr.bytes_per_cycle": 20, "port.load.bytes_per_cycle": 20})
    x = bench.tensor("x", 50)

    def program(core: Core) -> Iterator[Instruction]:
        yield load(all_of(core, "a"), x.box((0,), (25,)), channel=0)
        yield load(all_of(core, "w", 5), x.box((25,), (5,)), channel=1)
        yield row_times_column(core.rings["o"][0], core.rings["a"][0], core.rings["w"][0])

    assert waits(bench.run(program, *BUFFERS))[2] == (0, "matmul", "dependency", 0)


def test_a_barrier_names_the_last_to_come() -> None:
    """Core 1 comes last, with row 3, and waits for itself; of cores that come at once the first counts."""
    bench = Bench(3)

    def program(core: Core) -> Iterator[Instruction]:
        if core.index == 1:
            yield fill(core, "a", 20)
        yield Barrier()
        yield Barrier(1)

    assert waits(bench.run(program, *BUFFERS)) == [
        (0, "barrier", "barrier", 3),
        (0, "barrier", "barrier", 1),
        (1, "fill", "issue", -1),
        (1, "barrier", "barrier", 3),
        (1, "barrier", "barrier", 1),
        (2, "barrier", "barrier", 3),
        (2, "barrier", "barrier", 1),
    ]


def test_of_cores_that_come_at_once_a_barrier_names_the_first() -> None:
    """Core 1's store ends at 16, and in the same cycle, after the ends, core 0 issues its barrier: 15 + 1.

    Core 0's barrier names itself, the first; core 1's names the store that held it.
    """
    bench = Bench(2)
    y = bench.tensor("y", 25)

    def program(core: Core) -> Iterator[Instruction]:
        if core.index == 0:
            yield fill(core, "a", 14)
        else:
            yield store(y.box((0,), (25,)), all_of(core, "a"))
        yield Barrier()

    trace = bench.run(program, *BUFFERS)
    assert trace["start"].tolist() == [1, 16, 1, 16]
    assert [row for *_, row in waits(trace)] == [-1, 1, -1, 2]


def test_rows_of_a_later_launch_name_rows_of_that_launch() -> None:
    """The same in the second launch, whose rows follow those of the first."""
    bench = Bench(2)
    x = bench.tensor("x", 25)

    def program(core: Core) -> Iterator[Instruction]:
        yield load(all_of(core, "a"), x.box((0,), (25,)))
        yield fill(core, "a")
        yield Barrier()

    bench.run(program, *BUFFERS)
    trace = bench.run(program, *BUFFERS)
    assert waits(trace)[:6] == [
        (0, "load", "issue", -1),
        (0, "fill", "dependency", 0),
        (0, "barrier", "barrier", 2),
        (1, "load", "issue", -1),
        (1, "fill", "dependency", 3),
        (1, "barrier", "barrier", 2),
    ]
    assert [row for *_, row in waits(trace)[6:]] == [-1, 6, 8, -1, 9, 8]


def test_a_wait_for_a_flag_names_the_flag() -> None:
    """Core 0 waits until core 1 sets the flag at 21; what follows on the channel waits for the engine."""
    bench = Bench(2)
    x = bench.tensor("x", 25)

    def program(core: Core) -> Iterator[Instruction]:
        if core.index == 1:
            yield fill(core, "a", 20)
            yield FlagSet("go", "vpu")
        else:
            yield FlagWait("go", "dma")
            yield load(all_of(core, "a"), x.box((0,), (25,)))

    trace = bench.run(program, *BUFFERS)
    assert waits(trace) == [
        (0, "wait_flag", "flag", 3),
        (0, "load", "engine", 0),
        (1, "fill", "issue", -1),
        (1, "set_flag", "issue", -1),
    ]
    assert trace.timeline(0) == [(21, 31, "DMA0", "wait_flag"), (31, 46, "DMA0", "load")]


def test_what_follows_a_barrier_leads_back_to_what_held_it() -> None:
    """Each core's fill waited for its barrier, core 0's barrier for core 1's, and that one for core 1's store."""
    bench = Bench(2)
    y = bench.tensor("y", 25)

    def program(core: Core) -> Iterator[Instruction]:
        if core.index == 1:
            yield store(y.box((0,), (25,)), all_of(core, "a"))
        yield Barrier()
        yield fill(core, "a", 5)

    assert waits(bench.run(program, *BUFFERS)) == [
        (0, "barrier", "barrier", 3),
        (0, "fill", "barrier", 0),
        (1, "store", "issue", -1),
        (1, "barrier", "dependency", 2),
        (1, "fill", "barrier", 3),
    ]
