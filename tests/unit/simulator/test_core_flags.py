"""Flags between the engines of a core: derived from hazards, they cost issue cycles, queue slots and latency.

A load of 25 elements takes 5 + 10 cycles, a product of 25 steps 25, an issue 1.
"""

from collections.abc import Iterator

import pytest

from simulator.instructions import Instruction
from simulator.kernel import Core
from tests.unit.simulator.listed import Bench, Local, Overrides, all_of, fill, load, row_times_column, store

BUFFERS = Local("a"), Local("b"), Local("w"), Local("o"), Local("long", 100)


def product(core: Core, of: str) -> Instruction:
    """A product of 25 steps that reads one of the buffers."""
    return row_times_column(core.rings["o"][0], core.rings[of][0], core.rings["w"][0])


def costs(set_cycles: int, wait_cycles: int, latency: int = 0) -> Overrides:
    """What flags cost."""
    return {
        "issue.flag_set_cycles": set_cycles,
        "issue.flag_wait_cycles": wait_cycles,
        "sync.flag_latency_cycles": latency,
    }


def test_a_flag_costs_a_set_a_wait_and_a_latency() -> None:
    """A load, a product that needs it, and a store that needs the product: two pairs of flags.

    The load is issued at 1, its set at 3; the product at 3 + 3 + 1 = 7. The set ends with the load, at 16; 10
    cycles later the product runs, 26 to 51, and blocks. Its set ends at 53, the store is issued at 53 + 3 + 1
    = 57, and its flag has come at 63: the load's latency counts from the end of the set, not of the product.
    The store of one element takes 6.
    """
    bench = Bench(overrides=costs(2, 3, 10))
    x = bench.tensor("x", 26)

    def program(core: Core) -> Iterator[Instruction]:
        yield load(all_of(core, "a"), x.box((0,), (25,)))
        yield product(core, "a")
        yield store(x.box((25,), (1,)), all_of(core, "o", 1))

    trace = bench.run(program, *BUFFERS)
    assert trace.timeline() == [(1, 16, "DMA0", "load"), (26, 51, "VPU", "matmul"), (63, 69, "DMA1", "store")]
    assert trace["issued"].tolist() == [1, 7, 57]
    assert trace["ready"].tolist() == [1, 26, 63]


def test_the_latency_runs_from_the_set_that_is_issued_late() -> None:
    """A set that takes 20 cycles of issue ends at 21, after the load (16): its latency of 10 runs to 31.

    The product is issued at 21 + 3 + 1.
    """
    bench = Bench(overrides=costs(20, 3, 10))
    x = bench.tensor("x", 25)

    def program(core: Core) -> Iterator[Instruction]:
        yield load(all_of(core, "a"), x.box((0,), (25,)))
        yield product(core, "a")

    trace = bench.run(program, *BUFFERS)
    assert trace["issued"].tolist() == [1, 25]
    assert trace.timeline() == [(1, 16, "DMA0", "load"), (31, 56, "VPU", "matmul")]


@pytest.mark.parametrize(
    ("order", "issued", "products"),
    [
        # b is loaded after a: who has awaited it need not await a. b's set is issued at 4, product 1 at
        # 4 + 3 + 1 and b is there at 31; product 2 is issued at 56 + 1.
        (("b", "a"), [1, 2, 8, 57], [(31, 56), (57, 82)]),
        # The other way round each product has its flag: a's set is issued at 3, load b at 4, b's set at 6,
        # product 1 at 10 and a is there at 16; product 2 is issued at 41 + 3 + 1.
        (("a", "b"), [1, 4, 10, 45], [(16, 41), (45, 70)]),
    ],
)
def test_no_flag_where_a_later_one_of_the_pair_was_awaited(
    order: tuple[str, str], issued: list[int], products: list[tuple[int, int]]
) -> None:
    """Two loads on one channel and a product of each: set 2, wait 3, no latency."""
    bench = Bench(overrides=costs(2, 3))
    x = bench.tensor("x", 50)

    def program(core: Core) -> Iterator[Instruction]:
        yield load(all_of(core, "a"), x.box((0,), (25,)))
        yield load(all_of(core, "b"), x.box((25,), (25,)))
        for name in order:
            yield product(core, name)

    trace = bench.run(program, *BUFFERS)
    assert trace["issued"].tolist() == issued
    assert [row[:2] for row in trace.timeline() if row[2] == "VPU"] == products


def test_one_result_for_two_engines_is_two_flags() -> None:
    """A fill that two channels store takes two sets (4 cycles from its end at 6), each store a wait.

    The stores are issued at 10 + 3 + 1 and 14 + 3 + 1.
    """
    bench = Bench(overrides=costs(2, 3))
    x = bench.tensor("x", 50)

    def program(core: Core) -> Iterator[Instruction]:
        yield fill(core, "a", 5)
        yield store(x.box((0,), (5,)), all_of(core, "a", 5), channel=0)
        yield store(x.box((5,), (5,)), all_of(core, "a", 5), channel=1)

    assert bench.run(program, *BUFFERS)["issued"].tolist() == [1, 14, 18]


@pytest.mark.parametrize(("flags", "issued"), [((0, 0), [1, 2, 8, 9, 10]), ((1, 1), [1, 2, 10, 47, 48])])
def test_a_wait_takes_a_slot_of_its_queue(flags: tuple[int, int], issued: list[int]) -> None:
    """A queue of two holds a store and its wait, and no more while a load of 400 bytes runs to 46.

    Without flags the fill is issued at 2 and ends at 7, the store is issued at 8, the next load at 9. With
    flags: the fill's set at 8, wait and store at 10; the load stalls until the store starts at 46.
    """
    bench = Bench(overrides={"engine.dma.queue_depth": 2, **costs(*flags)})
    x = bench.tensor("x", 200)

    def program(core: Core) -> Iterator[Instruction]:
        yield load(all_of(core, "long", 100), x.box((0,), (100,)))
        yield fill(core, "a", 5)
        yield store(x.box((100,), (5,)), all_of(core, "a", 5), channel=0)
        yield load(all_of(core, "b"), x.box((150,), (25,)))
        yield fill(core, "o", 5)

    assert bench.run(program, *BUFFERS)["issued"].tolist() == issued


@pytest.mark.parametrize(("flags", "issued"), [((0, 0), [1, 2, 3, 4]), ((1, 1), [1, 2, 47, 49])])
def test_a_set_takes_a_slot_of_its_queue(flags: tuple[int, int], issued: list[int]) -> None:
    """A queue of two holds a load and the set behind it while another runs to 46.

    The third load, which nobody awaits, stalls until the second starts; the product follows with its wait: 47
    + 1 + 1.
    """
    bench = Bench(overrides={"engine.dma.queue_depth": 2, **costs(*flags)})
    x = bench.tensor("x", 200)

    def program(core: Core) -> Iterator[Instruction]:
        yield load(all_of(core, "long", 100), x.box((0,), (100,)))
        yield load(all_of(core, "a"), x.box((100,), (25,)))
        yield load(all_of(core, "b"), x.box((150,), (25,)))
        yield product(core, "a")

    assert bench.run(program, *BUFFERS)["issued"].tolist() == issued


def test_a_set_is_issued_before_the_queue_of_the_next_instruction_stalls_it() -> None:
    """A set of 5 cycles follows its load at once, whatever the next instruction waits for.

    Stores on channel 1 are issued at 1, 2 and 3 (two may wait) and take 45 cycles each; the load of channel 0
    is issued at 4, its set at 9. The fourth store stalls until the second starts at 46 and is issued at 47,
    the product at 48.
    """
    bench = Bench(overrides={"engine.dma.queue_depth": 2, "link.ddr.bytes_per_cycle": 100, **costs(5, 0)})
    x = bench.tensor("x", 400)

    def program(core: Core) -> Iterator[Instruction]:
        for part in range(3):
            yield store(x.box((100 * part,), (100,)), all_of(core, "long", 100))
        yield load(all_of(core, "a"), x.box((300,), (25,)))
        yield store(x.box((375,), (5,)), all_of(core, "w", 5))
        yield product(core, "a")

    assert bench.run(program, *BUFFERS)["issued"].tolist() == [1, 2, 3, 4, 47, 48]
