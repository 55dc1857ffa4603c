"""Shared links: max-min fair division in integers, ports, costs, bursts and capacities that grow.

Timelines are computed by hand. In those of machines nothing but streams and fills takes time, unless a test
says so.
"""

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simulator.instructions import Instruction, link_bytes
from simulator.kernel import Core
from simulator.timing.links import UNIT, Flow, SharedLink
from tests.unit.simulator.listed import INSTANT, Bench, Local, Overrides, all_of, fill, load, store


def ends(link: SharedLink, joins: list[tuple[int, Flow]]) -> list[int]:
    """Drive a link as the event model does: ends first, then joins, then new shares; the end of each flow."""
    due: int | None = None
    over: dict[int, int] = {}
    waiting = sorted(enumerate(joins), key=lambda item: item[1][0])
    while waiting or due is not None:
        now = min(time for time in (due, waiting[0][1][0] if waiting else None) if time is not None)
        over.update({id(flow): now for flow in link.ended(now)})
        while waiting and waiting[0][1][0] == now:
            link.join(waiting.pop(0)[1][1], now)
        due = link.share(now)
    return [over[id(flow)] for _, flow in joins]


def test_three_flows_share_a_link() -> None:
    """Three flows of 1,000 bytes that start at 0, 0 and 40 end at 150, 150 and 172.

    The link has 17.75 bytes a cycle: two flows get 8.875 each and have 645 bytes left at 40; three get
    floor(17.75 x 2^16 / 3) = 387,754 units (5.9167) each: 645 bytes take 109.01 cycles, so both end at 150.
    The third has then 349.2 bytes left and the port's 16 bytes a cycle: 21.8 cycles, to 172.
    """
    rate, port = int(17.75 * UNIT), 16 * UNIT
    flows = [Flow(1000 * UNIT, core, port) for core in range(3)]
    assert ends(SharedLink("ddr", rate), list(zip((0, 0, 40), flows, strict=True))) == [150, 150, 172]


def test_three_cores_share_a_link() -> None:
    """The same three flows in a machine: core 2 is busy with a fill until 40."""
    overrides = {**INSTANT, "link.ddr.bytes_per_cycle": 17.75, "port.load.bytes_per_cycle": 16}
    bench = Bench(3, overrides)
    x = bench.tensor("x", 250)

    def program(core: Core) -> Iterator[Instruction]:
        if core.index == 2:
            yield fill(core, "b", 40)
        yield load(all_of(core, "a", 250), x.box((0,), (250,)))

    trace = bench.run(program, Local("a", 250), Local("b", 40))
    assert trace.timeline(0) == trace.timeline(1) == [(0, 150, "DMA0", "load")]
    assert trace.timeline(2) == [(0, 40, "VPU", "fill"), (40, 172, "DMA0", "load")]


def test_unequal_caps_are_filled_round_by_round() -> None:
    """A link of 10, ports of 2, 3.5 and 10.

    Fair is 3.33: the first takes its 2; fair is then 4: the second takes 3.5; the third gets 4.5. The first's
    40 bytes end at 20 (the second has had 70 of 84, the third 90 of 180); then fair is 5: 3.5 and 6.5, the
    second ends 4 cycles later (the third has had 116); its last 64 bytes at 10 take 6.4 cycles, to 31.
    """
    ports = {
        "port.load.bytes_per_cycle": 2,
        "port.store.bytes_per_cycle": 3.5,
        "port.fetch.bytes_per_cycle": 10,
    }
    bench = Bench(3, {**INSTANT, **ports})
    x = bench.tensor("x", 45)

    def program(core: Core) -> Iterator[Instruction]:
        if core.index == 0:
            yield load(all_of(core, "a", 10), x.box((0,), (10,)))
        elif core.index == 1:
            yield store(x.box((0,), (21,)), all_of(core, "a", 21))
        else:
            yield load(all_of(core, "g", 45), x.box((0,), (45,)), name="fetch")

    trace = bench.run(program, Local("a", 45), Local("g", 45, memory="gsm"))
    assert [trace.timeline(core) for core in range(3)] == [
        [(0, 20, "DMA0", "load")],
        [(0, 24, "DMA1", "store")],
        [(0, 31, "DMA0", "fetch")],
    ]


def test_shares_are_floored_and_the_rest_is_unused() -> None:
    """10 units among 3 flows are 3 each: 9 units take 3 cycles, 10 take 4, not 3 and a third."""
    flows = [Flow(left, core, 100) for core, left in enumerate((9, 10, 12))]
    assert ends(SharedLink("ddr", 10), [(0, flow) for flow in flows]) == [3, 4, 4]


def test_equal_flows_in_one_are_as_many() -> None:
    """A flow of weight 3 takes three shares: 12 units among 4 are 3 each, 30 units take 10 cycles."""
    flows = [Flow(30, 0, 100, weight=3), Flow(30, 1, 100)]
    assert ends(SharedLink("ddr", 12), [(0, flow) for flow in flows]) == [10, 10]


def one_copy(overrides: Overrides, *, stores: bool = False, cores: int = 1) -> int:
    """Cycles of one copy of 100 bytes on each core."""
    bench = Bench(cores, {**INSTANT, **overrides})
    x = bench.tensor("x", 25 * cores)

    def program(core: Core) -> Iterator[Instruction]:
        box = x.box((25 * core.rank,), (25,))
        yield store(box, all_of(core, "a")) if stores else load(all_of(core, "a"), box)

    return int(bench.run(program, Local("a"))["end"].max())


@pytest.mark.parametrize(
    ("cost", "port", "cycles"),
    [
        (1.0, 10, 10),
        (2.0, 10, 20),  # 200 of the link's bytes at 10
        (1.25, 10, 13),  # 125 at 10, rounded up
        (1.25, 4, 25),  # the port's 4 bytes a cycle are bytes of the tensor: 100 / 4
        (4.0, 4, 40),  # the link's 10 / 4 = 2.5 bytes a cycle are less than the port's 4
    ],
)
def test_writes_cost_more_of_a_link_than_of_a_port(cost: float, port: float, cycles: int) -> None:
    """A cost factor takes bandwidth of the link; reads keep theirs."""
    overrides = {"link.ddr.write_cost": cost, "port.store.bytes_per_cycle": port}
    assert one_copy(overrides, stores=True) == cycles
    assert one_copy(overrides) == 10


def test_reads_may_cost_more_too() -> None:
    """100 bytes at a factor of 1.5 on a link of 10."""
    assert one_copy({"link.ddr.read_cost": 1.5}) == 15


@pytest.mark.parametrize(
    ("cores", "cycles"),
    [
        (1, 10),  # link 12.5, port 10
        (2, 14),  # link 15: 7.5 each, 13.3 cycles
        (4, 20),  # link 20: 5 each
        (8, 27),  # link 30: 3.75 each, 26.7 cycles
    ],
)
def test_a_link_may_grow_with_the_cores_of_the_launch(cores: int, cycles: int) -> None:
    """10 bytes a cycle and 2.5 for each core."""
    assert one_copy({"link.ddr.bytes_per_cycle_per_core": 2.5}, cores=cores) == cycles


def test_efficiency_takes_its_part_of_a_link() -> None:
    """100 bytes at 0.8 x 10 a cycle: 12.5 cycles, rounded up."""
    assert one_copy({"link.ddr.efficiency": 0.8}) == 13


@pytest.mark.parametrize(
    ("width", "size", "cycles"),
    [
        (32, (1, 5), 7),  # one row of 20 bytes: a burst of 64, 6.4 cycles
        (32, (8, 5), 52),  # 8 rows, 128 bytes apart: 8 bursts
        (25, (8, 5), 103),  # 100 bytes apart: rows may begin 60 bytes into a burst and take two: 1,024 bytes
        (24, (8, 5), 52),  # 96 bytes apart: rows begin 0 or 32 bytes into a burst and fit
        (24, (8, 10), 103),  # 40 bytes, 96 apart: from byte 32 they reach into a second burst
        (25, (8, 25), 84),  # whole rows are one piece of 800 bytes: 13 bursts, 832 bytes
    ],
)
def test_rows_are_charged_in_whole_bursts(width: int, size: tuple[int, int], cycles: int) -> None:
    """Bursts of 64 bytes on a link of 10 bytes a cycle; the packed side, in AM, does not count."""
    bench = Bench(overrides={**INSTANT, "link.ddr.burst_bytes": 64})
    x = bench.tensor("x", 8, width)

    def program(core: Core) -> Iterator[Instruction]:
        yield load(core.rings["a"][0].dense(size), x.box((0, 0), size))

    assert bench.run(program, Local("a", 200)).timeline() == [(0, cycles, "DMA0", "load")]


def test_a_store_is_charged_by_the_rows_it_writes() -> None:
    """8 rows of 20 bytes in bursts of 64 with 16 bytes a row on top: 640 bytes, and 5 cycles of start-up."""
    overrides = {
        **INSTANT,
        "link.ddr.burst_bytes": 64,
        "link.ddr.row_overhead_bytes": 16,
        "path.am->ddr.start_cycles": 5,
    }
    bench = Bench(overrides=overrides)
    y = bench.tensor("y", 8, 32)

    def program(core: Core) -> Iterator[Instruction]:
        yield store(y.box((0, 3), (8, 5)), core.rings["a"][0].dense((8, 5)))

    trace = bench.run(program, Local("a", 40))
    assert trace.timeline() == [(0, 69, "DMA1", "store")]
    assert trace["bytes"].tolist() == [160]


@given(
    rows=st.integers(1, 20),
    row_bytes=st.integers(1, 300),
    gap=st.integers(0, 200),
    burst=st.sampled_from([1, 2, 16, 64, 96]),
)
def test_no_row_ever_needs_more_bursts_than_it_is_charged(
    rows: int, row_bytes: int, gap: int, burst: int
) -> None:
    """Counting the bursts that each row touches, from a base that is aligned."""
    stride = row_bytes + gap
    begins = [row * stride for row in range(rows)]
    touched = [(begin + row_bytes - 1) // burst - begin // burst + 1 for begin in begins]
    charged = link_bytes(rows, row_bytes, stride, burst, 0)
    assert sum(touched) * burst <= charged <= rows * (max(touched) + 1) * burst


PortOfFlow = st.tuples(st.integers(0, 3), st.integers(1, 4))


@st.composite
def crowds(draw: st.DrawFn) -> tuple[int, list[Flow]]:
    """A link's rate and flows of several ports, each port with one rate."""
    ports = draw(st.lists(st.integers(20, 400), min_size=1, max_size=5))
    members = draw(st.lists(st.integers(0, len(ports) - 1), min_size=1, max_size=8))
    weights = [draw(st.integers(1, 4)) for _ in ports]
    lefts = [draw(st.integers(1, 5000)) for _ in members]
    flows = [Flow(left, port, ports[port], weights[port]) for left, port in zip(lefts, members, strict=True)]
    return draw(st.integers(50, 1000)), flows


@given(crowds())
def test_a_link_divides_max_min_fairly(crowd: tuple[int, list[Flow]]) -> None:
    """Shares sum up to no more than the link, and nobody gets more than its part of its port.

    Who gets less than that has the largest rate, and less is left over than one unit a flow, unless all have
    what their ports allow.
    """
    rate, flows = crowd
    link = SharedLink("ddr", rate)
    for flow in flows:
        link.join(flow, 0)
    link.share(0)
    caps = [flow.port_rate // sum(f.port == flow.port for f in flows) for flow in flows]
    total = sum(flow.rate * flow.weight for flow in flows)
    assert total <= rate
    assert all(flow.rate <= cap for flow, cap in zip(flows, caps, strict=True))
    largest = max(flow.rate for flow in flows)
    below = [flow for flow, cap in zip(flows, caps, strict=True) if flow.rate < cap]
    assert all(flow.rate == largest for flow in below)
    assert not below or rate - total < sum(flow.weight for flow in below)


@given(crowds(), st.data())
def test_every_flow_carries_its_bytes(crowd: tuple[int, list[Flow]], data: st.DataObject) -> None:
    """Whatever joins when, no flow ends before its port or the link could have carried it.

    The link is never late by more than a cycle and the floors for each change of shares.
    """
    rate, flows = crowd
    starts = [data.draw(st.integers(0, 60)) for _ in flows]
    units = [flow.left for flow in flows]
    over = ends(SharedLink("ddr", rate), list(zip(starts, flows, strict=True)))
    for flow, start, end, carried in zip(flows, starts, over, units, strict=True):
        assert (end - start) * min(rate, flow.port_rate) >= carried
        assert flow.left - flow.rate * (end - flow.since) <= 0
        assert flow.left - flow.rate * (end - flow.since - 1) > 0


def test_ports_that_share_take_turns() -> None:
    """A load at 10 and a store at 5 bytes a cycle of one core, 1,000 bytes each: as long as in turn.

    While both go on each has half of its port: at 200 the load ends (1,000 / 5); the store has 500 bytes left and all
    of its port, 100 cycles. Apart they take 100 and 200 cycles side by side.
    """
    rates = {
        "link.ddr.bytes_per_cycle": 100,
        "port.load.bytes_per_cycle": 10,
        "port.store.bytes_per_cycle": 5,
    }

    def last_end(shares: str) -> int:
        bench = Bench(1, {**INSTANT, **rates, "port.store.shares": shares})
        x, y = bench.tensor("x", 250), bench.tensor("y", 250)

        def program(core: Core) -> Iterator[Instruction]:
            yield load(all_of(core, "a", 250), x.box((0,), (250,)))
            yield store(y.box((0,), (250,)), all_of(core, "b", 250), channel=1)

        return max(end for _, end, _, _ in bench.run(program, Local("a", 250), Local("b", 250)).timeline(0))

    assert (last_end("load"), last_end("")) == (300, 200)
