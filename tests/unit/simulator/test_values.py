"""What is computed: hostile memory, dropped hazards, DMA that lands early or late, races between cores."""

from collections.abc import Callable, Iterator, Sequence
from typing import get_args

import numpy as np
import pytest
from numpy.typing import NDArray

from simulator.errors import RaceError
from simulator.instructions import Barrier, FlagSet, FlagWait, Instruction
from simulator.kernel import Core
from simulator.machine import Checks
from simulator.memory.memories import Buffer
from simulator.values.completion import DmaMode
from simulator.vector import Fill
from tests.unit.simulator.listed import (
    FP32,
    INSTANT,
    NOTHING,
    Bench,
    Local,
    Overrides,
    Program,
    all_of,
    fill,
    load,
    row_times_column,
    store,
)

BUFFERS = Local("a"), Local("b"), Local("o")
MODES = get_args(DmaMode)
NO_LATENCY: Overrides = {
    **INSTANT,
    "sync.barrier_latency_cycles": 0,
    "sync.cross_core_flag_latency_cycles": 0,
}
RAMP = np.arange(25, dtype=np.float32)

Write = Callable[[Buffer, Buffer], Program]
"""Makes a program that reads the first tensor and writes the second."""


def outcome(
    write: Write, cores: int = 1, checks: Checks | None = None, overrides: Overrides = NOTHING
) -> NDArray[np.float32]:
    """What the second tensor (fresh, 50 elements) holds after the program."""
    bench = Bench(cores, overrides, numerics=True, checks=checks)
    x = bench.tensor("x", 50)
    y = bench.tensor("y", 50)
    y.data = np.full(50, np.nan, np.float32)
    bench.run(write(x, y), *BUFFERS)
    return np.array(y.data, np.float32)


def product_of_a_load(x: Buffer, y: Buffer) -> Program:
    """Loads a row and a column and stores the sum of squares of 0, ..., 24: 24 x 25 x 49 / 6 = 4,900."""

    def program(core: Core) -> Iterator[Instruction]:
        yield load(all_of(core, "a"), x.box((0,), (25,)), channel=0)
        yield load(all_of(core, "b"), x.box((0,), (25,)), channel=1)
        yield row_times_column(core.rings["o"][0], core.rings["a"][0], core.rings["b"][0])
        yield store(y.box((0,), (1,)), all_of(core, "o", 1))

    return program


def reused_buffer(x: Buffer, y: Buffer) -> Program:
    """Stores a loaded buffer and zeroes it behind the store."""

    def program(core: Core) -> Iterator[Instruction]:
        yield load(all_of(core, "a"), x.box((0,), (25,)))
        yield store(y.box((0,), (25,)), all_of(core, "a"))
        yield fill(core, "a", 25)

    return program


def test_a_fresh_buffer_is_nan() -> None:
    """A kernel's buffers hold NaN in every launch, also where the launch before wrote."""
    bench = Bench(numerics=True)
    y = bench.tensor("y", 25)

    def fills(core: Core) -> Iterator[Instruction]:
        yield fill(core, "a")
        yield store(y.box((0,), (25,)), all_of(core, "a"))

    def stores(core: Core) -> Iterator[Instruction]:
        yield store(y.box((0,), (25,)), all_of(core, "a"))

    bench.run(fills, *BUFFERS)
    assert not y.numbers().any()
    bench.run(stores, *BUFFERS)
    assert np.isnan(y.numbers().astype(np.float32)).all()


def test_a_result_is_nan_until_it_is_written() -> None:
    """A tensor without values begins as NaN."""
    machine = Bench(numerics=True).machine
    y = machine.tensor("y", (3, 4), FP32)
    assert np.isnan(y.numbers().astype(np.float32)).all()


def test_a_view_that_is_not_contiguous_is_written_where_it_lies() -> None:
    """Columns 2 and 3 of a tensor of 5 by 5 get ten zeros, the others keep their numbers."""
    bench = Bench(numerics=True)
    y = bench.tensor("y", 5, 5)

    def program(core: Core) -> Iterator[Instruction]:
        yield fill(core, "a", 10)
        yield store(y.box((0, 2), (5, 2)), core.rings["a"][0].dense((5, 2)))

    bench.run(program, *BUFFERS)
    expected = RAMP.reshape(5, 5).copy()
    expected[:, 2:4] = 0
    assert np.array_equal(y.numbers(), expected)


def test_a_box_in_another_shape_is_written_or_refused() -> None:
    """Two columns seen as ten elements in a row: a copy writes them, arithmetic on them raises."""
    bench = Bench(numerics=True)
    y = bench.tensor("y", 5, 5)
    columns = y.box((0, 2), (5, 2), shape=(10,))

    def program(core: Core) -> Iterator[Instruction]:
        yield fill(core, "a", 10)
        yield store(columns, all_of(core, "a", 10))

    bench.run(program, *BUFFERS)
    assert not columns.array().any()
    with pytest.raises(ValueError, match="read-only"):
        Fill(columns).execute()


@pytest.mark.parametrize("dma", MODES)
def test_numbers_do_not_depend_on_when_dma_lands(dma: DmaMode) -> None:
    """Right programs of one core give the same in all modes."""
    assert outcome(product_of_a_load, checks=Checks(dma=dma))[0] == 4900
    assert np.array_equal(outcome(reused_buffer, checks=Checks(dma=dma))[:25], RAMP)


def test_a_read_that_does_not_wait_for_its_write_is_seen() -> None:
    """Without the read after write of AM the product ends before its loads have landed, and is NaN."""
    checks = Checks(dropped=frozenset({("am", "raw")}))
    assert np.isnan(outcome(product_of_a_load, checks=checks, overrides={"path.ddr->am.start_cycles": 50})[0])


def test_a_read_that_is_right_by_luck_is_seen_when_dma_lands_late() -> None:
    """The loads end at 26, the product that did not wait at 28; late, nothing makes them land before."""
    dropped = frozenset({("am", "raw")})
    assert outcome(product_of_a_load, checks=Checks(dropped=dropped))[0] == 4900
    assert np.isnan(outcome(product_of_a_load, checks=Checks(dropped=dropped, dma="late"))[0])


def test_a_write_that_does_not_wait_for_a_read_is_seen() -> None:
    """Without the write after read of AM the fill, faster than the store, zeroes what is being stored."""
    dropped = Checks(dropped=frozenset({("am", "war")}))
    assert not outcome(reused_buffer, checks=dropped, overrides={"port.store.bytes_per_cycle": 1})[:25].any()


def test_a_write_that_does_not_wait_for_a_write_is_seen() -> None:
    """Without the write after write of DDR the shorter second store is overtaken by the first."""

    def twice(x: Buffer, y: Buffer) -> Program:
        def program(core: Core) -> Iterator[Instruction]:
            yield load(all_of(core, "a"), x.box((0,), (25,)))
            yield fill(core, "b", 5)
            yield store(y.box((0,), (25,)), all_of(core, "a"), channel=0)
            yield store(y.box((5,), (5,)), all_of(core, "b", 5), channel=1)

        return program

    right = np.where((RAMP >= 5) & (RAMP < 10), 0, RAMP)
    assert np.array_equal(outcome(twice)[:25], right)
    assert np.array_equal(outcome(twice, checks=Checks(dropped=frozenset({("ddr", "waw")})))[:25], RAMP)


def test_a_hazard_of_another_memory_stays() -> None:
    """What is dropped in GSM changes nothing in AM."""
    assert outcome(product_of_a_load, checks=Checks(dropped=frozenset({("gsm", "raw")})))[0] == 4900


Between = Callable[[bool], Sequence[Instruction]]
"""What stands behind the store of the core that writes (True), and before the load of the other."""


def nothing(_: bool) -> Sequence[Instruction]:
    """No order at all."""
    return ()


def barrier(_: bool) -> Sequence[Instruction]:
    """All cores meet."""
    return (Barrier(),)


def flag(writes: bool) -> Sequence[Instruction]:
    """The writer sets a flag on the channel of its store, the reader awaits it on the channel of its load."""
    return (FlagSet("go", "dma", channel=1),) if writes else (FlagWait("go", "dma"),)


def flag_of_another_channel(writes: bool) -> Sequence[Instruction]:
    """The flag does not go through the queue that stores."""
    return (FlagSet("go", "dma", channel=0),) if writes else (FlagWait("go", "dma"),)


def handed_over(between: Between, pause: int = 0, writer: int = 0) -> Write:
    """One core takes x to y; the other (after a pause) takes that on to the other half of y."""

    def write(x: Buffer, y: Buffer) -> Program:
        def program(core: Core) -> Iterator[Instruction]:
            if core.index == writer:
                yield load(all_of(core, "a"), x.box((0,), (25,)))
                yield store(y.box((0,), (25,)), all_of(core, "a"))
                yield from between(core.index == writer)
            else:
                if pause:
                    yield fill(core, "b", pause)
                yield from between(core.index == writer)
                yield load(all_of(core, "a"), y.box((0,), (25,)))
                yield store(y.box((25,), (25,)), all_of(core, "a"))

        return program

    return write


@pytest.mark.parametrize("between", [barrier, flag])
@pytest.mark.parametrize("dma", MODES)
@pytest.mark.parametrize("writer", [0, 1])
@pytest.mark.parametrize("overrides", [NOTHING, NO_LATENCY], ids=["latency", "none"])
def test_what_a_core_hands_over_arrives(
    between: Between, dma: DmaMode, writer: int, overrides: Overrides
) -> None:
    """With a barrier or flag a core reads what another wrote, whenever DMA lands, with latency or without."""
    made = outcome(handed_over(between, writer=writer), 2, Checks(dma=dma), overrides)
    assert np.array_equal(made, np.tile(RAMP, 2))


def test_a_barrier_left_out_shows_when_dma_lands_late() -> None:
    """A long pause of core 1 makes it right by luck; late DMA still has the store in flight: NaN."""
    made = {
        dma: outcome(handed_over(nothing, pause=25), 2, Checks(dma=dma), {"vector.run_cycles": 50})
        for dma in MODES
    }
    assert np.array_equal(made["modelled"], np.tile(RAMP, 2))
    assert np.isnan(made["late"][25:]).all()


def test_a_barrier_left_out_shows_when_dma_lands_early() -> None:
    """Core 0 loads from 0 to 10 what core 1 zeroes from 5 to 7: early, the load has landed before."""
    overrides = {**INSTANT, "link.ddr.bytes_per_cycle": 100}

    def write(_: Buffer, y: Buffer) -> Program:
        y.data = np.tile(RAMP, 2)

        def program(core: Core) -> Iterator[Instruction]:
            if core.index == 0:
                yield load(all_of(core, "a"), y.box((0,), (25,)))
                yield store(y.box((25,), (25,)), all_of(core, "a"))
            else:
                yield fill(core, "a", 5)
                yield store(y.box((0,), (5,)), all_of(core, "a", 5))

        return program

    modelled = outcome(write, 2, Checks(dma="modelled"), overrides)
    early = outcome(write, 2, Checks(dma="early"), overrides)
    assert not modelled[25:30].any()
    assert np.array_equal(early[25:], RAMP)


@pytest.mark.parametrize("numerics", [False, True])
@pytest.mark.parametrize("dma", MODES)
def test_a_race_names_both_sides(numerics: bool, dma: DmaMode) -> None:
    """Store and load of two cores with nothing between them are named: who, what, which bytes, when.

    Core 0: load 1 to 16, store 16 to 31 (fresh in y). Core 1: fill issued at 1, 1 to 51, load 52 to 67.
    """
    bench = Bench(2, numerics=numerics, checks=Checks(races=True, dma=dma))
    x, y = bench.tensor("x", 25), bench.tensor("y", 50)
    with pytest.raises(RaceError) as caught:
        bench.run(handed_over(nothing, pause=50)(x, y), Local("a"), Local("b", 50))
    text = str(caught.value)
    assert "y in ddr" in text
    assert f"core 0 writes {y.address:#x}+100 with store (entry 1, cycles 16 to 31)" in text
    assert f"core 1 reads {y.address:#x}+100 with load (entry 1, cycles 52 to 67)" in text
    assert "barrier" in caught.value.remedy


def race(write: Write, overrides: Overrides = NOTHING, dma: DmaMode = "modelled") -> None:
    """Run on two cores under the race check, without numbers."""
    bench = Bench(2, overrides, checks=Checks(races=True, dma=dma))
    bench.run(write(bench.tensor("x", 50), bench.tensor("y", 50)), *BUFFERS)


@pytest.mark.parametrize("between", [barrier, flag])
@pytest.mark.parametrize("writer", [0, 1])
@pytest.mark.parametrize("overrides", [NOTHING, NO_LATENCY], ids=["latency", "none"])
@pytest.mark.parametrize("dma", MODES)
def test_ordered_cores_do_not_race(between: Between, writer: int, overrides: Overrides, dma: DmaMode) -> None:
    """The twins of the race, with a barrier or a flag, pass, whoever writes, with a latency or none."""
    race(handed_over(between, writer=writer), overrides, dma)


def test_a_flag_orders_its_own_engine_only() -> None:
    """A flag set on channel 0 says nothing of the store on channel 1."""
    with pytest.raises(RaceError, match="core 0 writes"):
        race(handed_over(flag_of_another_channel))


def test_a_barrier_before_is_not_between() -> None:
    """Cores that met before the store race all the same."""

    def write(x: Buffer, y: Buffer) -> Program:
        def program(core: Core) -> Iterator[Instruction]:
            yield Barrier()
            yield from handed_over(nothing)(x, y)(core)

        return program

    with pytest.raises(RaceError, match="core 1 reads"):
        race(write)


@pytest.mark.parametrize(("second", "fails"), [(24, True), (25, False)])
def test_two_cores_may_write_side_by_side(second: int, fails: bool) -> None:
    """Writes of two cores race where they share an element, and only there."""

    def write(_: Buffer, y: Buffer) -> Program:
        def program(core: Core) -> Iterator[Instruction]:
            yield store(y.box((second * core.rank,), (25,)), all_of(core, "a"))

        return program

    if fails:
        with pytest.raises(RaceError, match=r"core 0 writes .* core 1 writes"):
            race(write)
    else:
        race(write)


def test_two_cores_may_read_one_place() -> None:
    """Reads never race."""

    def write(x: Buffer, _: Buffer) -> Program:
        return lambda core: [load(all_of(core, "a"), x.box((0,), (25,)))]

    race(write)
