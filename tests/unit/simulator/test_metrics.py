"""Figures of traces that are small enough to compute by hand."""

import time
from dataclasses import dataclass

import numpy as np
import pytest

from simulator.results.intervals import busy_cycles, busy_intervals, clip
from simulator.results.metrics import (
    bound,
    cores_active,
    main_engine,
    measure,
    percent,
    stalls,
    traffic,
    utilisation,
)
from simulator.results.trace import Trace
from targets.errors import TilesimError
from tests.unit.simulator.made import TWO_TILES, Row, made_trace, small_target

TARGET = small_target()


@dataclass(frozen=True)
class Launch:
    """A launch's time."""

    start: int
    end: int


def vpu(core: int, start: int, end: int, *, launch: int = 0, row: int = -1, reason: str = "none") -> Row:
    """A row of the VPU that was issued when it started."""
    return (launch, core, "VPU", "product", start, start, end, 0, "", "", row, reason)


def dma(core: int, start: int, end: int, *, launch: int = 0, size: int = 64) -> Row:
    """A load on channel 0 that was issued when it started."""
    return (launch, core, "DMA0", "load", start, start, end, size, "ddr", "am", -1, "none")


def test_overlaps_count_once() -> None:
    """Transfers that overlap on a lane, nest in one another or touch are one busy stretch; gaps are kept."""
    trace = made_trace(
        [
            dma(0, 0, 50),
            dma(0, 10, 20),
            dma(0, 40, 60),
            dma(0, 60, 70),
            dma(0, 75, 75),
            dma(0, 80, 90),
            dma(1, 85, 95),
        ]
    )
    found = busy_intervals(trace)
    assert list(zip(found.core, found.engine, found.start, found.end, strict=True)) == [
        (0, 2, 0, 70),
        (0, 2, 80, 90),
        (1, 2, 85, 95),
    ]
    assert busy_cycles(trace).tolist() == [[0, 0, 80, 0], [0, 0, 10, 0]]


def test_utilisation_counts_all_lanes_of_the_cores_asked_for() -> None:
    """DMA sums its two channels; a core that was asked for and idle counts."""
    trace = made_trace(TWO_TILES)
    assert utilisation(trace, TARGET, cores=1, cycles=100) == {"SCALAR": 0.01, "VPU": 0.4, "DMA": 0.47}
    assert utilisation(trace, TARGET, cores=2, cycles=100) == {"SCALAR": 0.005, "VPU": 0.2, "DMA": 0.235}


def test_traffic_counts_reads_and_writes_of_each_memory() -> None:
    """Two loads of 240 bytes and a store of 40 are reads of one memory and writes of the other."""
    assert traffic(made_trace(TWO_TILES)) == {
        "ddr": {"read": 480, "write": 40},
        "am": {"read": 40, "write": 480},
    }


def test_stalls_of_one_core() -> None:
    """The launch's cost, each wait and the end of the core share the cycles that the VPU was not busy."""
    table = stalls(made_trace(TWO_TILES), TARGET, cores=1, cycles=100, launches=[Launch(0, 100)])
    assert table is not None
    assert (table.engine, table.cores, table.busy.tolist()) == ("VPU", (0,), [40])
    assert list(zip(table.reasons, table.lost[0].tolist(), strict=True)) == [
        ("waits for DMA0", 30),
        ("waits for DMA1", 10),
        ("launch", 10),
        ("no work", 10),
    ]


def test_stalls_of_an_idle_core() -> None:
    """A core that was asked for and did nothing pays for the launch and then has no work."""
    table = stalls(made_trace(TWO_TILES), TARGET, cores=2, cycles=100)
    assert table is not None
    assert table.shares() == {"no work": 0.5, "waits for DMA0": 0.15, "launch": 0.1, "waits for DMA1": 0.05}
    assert table.cores == (0, 1)


def test_every_reason_has_its_name() -> None:
    """Each reason has a name of its own; waiting for nothing is issue, nobody's result a result."""
    reasons = ("none", "issue", "barrier", "flag", "engine", "dependency")
    rows = [
        vpu(0, 0, 1),
        *(vpu(0, 2**i, 2**i + 1, reason=reason) for i, reason in enumerate(reasons, start=1)),
    ]
    table = stalls(made_trace(rows), TARGET, cores=1, cycles=65)
    assert table is not None
    gaps = dict(zip(table.reasons, table.lost[0].tolist(), strict=True))
    assert gaps == {"issue": 1 + 1, "barrier": 3, "flag": 7, "engine": 15, "a result": 31}


def test_stalls_of_two_launches() -> None:
    """Each launch has its own beginning and end; one without the VPU is time without work for it."""
    rows = [
        *(dma(0, 20, 30, launch=0), vpu(0, 35, 50, launch=0, row=0, reason="dependency")),
        dma(0, 75, 95, launch=1),
    ]
    table = stalls(made_trace(rows), TARGET, cores=1, cycles=100, launches=[Launch(0, 60), Launch(60, 100)])
    assert table is not None
    # 20 and 15 cycles before the first instructions; 15 until the first product; 10 and 25 after the last
    assert dict(zip(table.reasons, table.lost[0].tolist(), strict=True)) == {
        "launch": 35,
        "no work": 35,
        "waits for DMA0": 15,
    }
    assert table.busy.tolist() == [15]


@pytest.mark.parametrize("seed", range(5))
def test_busy_and_lost_are_all_the_time(seed: int) -> None:
    """Whatever the trace, a core's busy and lost cycles add up to the run's length."""
    trace = random_trace(500, 3, seed)
    cycles = int(trace["end"].max()) + 17
    table = stalls(trace, TARGET, cores=4, cycles=cycles)
    assert table is not None
    assert (table.busy + table.lost.sum(axis=1)).tolist() == [cycles] * 4


def test_launch_ends_when_the_first_instruction_is_issued() -> None:
    """The wait of an instruction that was issued and not yet started is its own, not the launch's."""
    row = (0, 0, "VPU", "product", 5, 9, 12, 0, "", "", -1, "flag")
    table = stalls(made_trace([row]), TARGET, cores=1, cycles=12)
    assert table is not None
    assert dict(zip(table.reasons, table.lost[0].tolist(), strict=True)) == {"launch": 5, "flag": 4}


def test_the_longest_wait_for_a_lane_has_the_name_of_what_it_was_for() -> None:
    """Of a lane that loads and stores, the name is that of the instruction whose waits are longest in sum."""
    rows = [
        (0, 0, "DMA0", "load", 0, 0, 30, 8, "ddr", "am", -1, "none"),
        (0, 0, "VPU", "product", 0, 30, 40, 0, "", "", 0, "dependency"),
        (0, 0, "DMA0", "store", 0, 40, 60, 8, "am", "ddr", 1, "dependency"),
        (0, 0, "VPU", "product", 0, 60, 70, 0, "", "", 2, "dependency"),
        (0, 0, "DMA0", "store", 0, 70, 90, 8, "am", "ddr", 3, "dependency"),
        (0, 0, "VPU", "product", 0, 90, 95, 0, "", "", 4, "dependency"),
        (0, 0, "VPU", "product", 95, 99, 100, 0, "", "", 4, "engine"),
    ]
    table = stalls(made_trace(rows), TARGET, cores=1, cycles=100)
    assert table is not None
    assert table.awaited == {
        "waits for DMA0": "store"
    }  # 20 + 20 cycles, the load 30; the last wait is no result


def test_unrecorded_launch_is_refused() -> None:
    """A row of launch 2 with one record is an error and no silent zero."""
    with pytest.raises(TilesimError, match="launch that is not recorded: got 2, limit 0"):
        stalls(made_trace([vpu(0, 1, 2, launch=2)]), TARGET, cores=1, cycles=5)


def test_main_engine_computes() -> None:
    """The main engine is the busiest that carries no bytes, even beside a busier DMA; else the busiest."""
    assert main_engine(made_trace([dma(0, 0, 90), vpu(0, 90, 95)]), TARGET) == "VPU"
    assert main_engine(made_trace([dma(0, 0, 90)]), TARGET) == "DMA"
    assert main_engine(made_trace([]), TARGET) is None


def test_bound_names_the_main_engine_and_its_greatest_wait() -> None:
    """The sentence of a run whose main engine is the busiest."""
    used = {"SCALAR": 0.99, "VPU": 0.86, "DMA": 0.5}
    assert bound("VPU", used, {"waits for DMA0": 0.07, "barrier": 0.02}) == (
        "VPU is busy 86 % of the time; it waits most for DMA0 (7 %)"
    )
    assert bound("VPU", used, {"waits for DMA0": 0.07}, {"waits for DMA0": "load_w"}) == (
        "VPU is busy 86 % of the time; it waits most for load_w on DMA0 (7 %)"
    )
    assert bound("VPU", used, {"no work": 0.075}) == (
        "VPU is busy 86 % of the time; it loses most to having no work (7.5 %)"
    )
    assert bound("VPU", used, {}) == "VPU is busy 86 % of the time"


def test_bound_names_a_busier_engine_first() -> None:
    """When an engine that moves data is busier, the sentence begins with it."""
    assert measure(made_trace(TWO_TILES), TARGET, cores=1, cycles=100).bound == (
        "DMA is busy 47 % of the time; VPU is busy 40 % and waits most for load on DMA0 (30 %)"
    )


def test_bound_of_nothing() -> None:
    """A run without instructions says so, with zeros for all figures."""
    figures = measure(made_trace([]), TARGET, cores=2, cycles=0)
    assert (figures.bound, figures.balance, figures.stalls) == ("nothing ran on any engine", None, {})
    assert figures.utilisation == {"SCALAR": 0.0, "VPU": 0.0, "DMA": 0.0}


def test_balance() -> None:
    """The least and the most busy core are named; the evenness is mean over most."""
    trace = made_trace([vpu(0, 0, 50), vpu(1, 0, 100), vpu(3, 0, 90)])
    even = measure(trace, TARGET, cores=3, cycles=100).balance
    assert even is not None
    assert (even.least, even.least_core, even.most, even.most_core) == (0.5, 0, 1.0, 1)
    assert even.evenness == pytest.approx(0.8)


def test_active_cores_do_more_than_wait() -> None:
    """A core that only meets a barrier is not active."""
    barrier = (0, 2, "SCALAR", "barrier", 0, 0, 5, 0, "", "", -1, "none")
    assert cores_active(made_trace([vpu(0, 0, 5), vpu(1, 0, 5), barrier]), TARGET) == 2


def test_clip_cuts_times_and_bytes() -> None:
    """Half of a transfer inside a window is half of its bytes; rows outside are gone."""
    part = clip(made_trace([dma(0, 0, 10), dma(0, 20, 40, size=100), dma(0, 50, 60)]), 30, 50)
    assert part.timeline() == [(30, 40, "DMA0", "load")]
    assert part["bytes"].tolist() == [50]


@pytest.mark.parametrize(
    ("share", "text"), [(0.864, "86 %"), (0.07, "7 %"), (0.0035, "0.4 %"), (0.0, "0 %"), (1, "100 %")]
)
def test_percent(share: float, text: str) -> None:
    """Shares are readable at every size."""
    assert percent(share) == text


def test_rows_are_not_looped_over() -> None:
    """All figures of a million rows take less time than a loop that looks at every number of them."""
    trace = random_trace(250_000, 4, seed=1)
    assert len(trace) == 1_000_000
    columns = [column for column in trace.columns().values() if column.dtype.kind in "iu"]
    begun = time.process_time()
    measure(trace, TARGET, cores=4, cycles=int(trace["end"].max()))
    measured = time.process_time() - begun
    assert sum(1 for column in columns for number in column if int(number) >= 0) > len(trace)
    assert measured < time.process_time() - begun - measured


def random_trace(rows: int, cores: int, seed: int) -> Trace:
    """So many rows on each of some cores: any lanes, reasons and lengths, in one launch."""
    draw = np.random.default_rng(seed)
    total = rows * cores
    start = np.sort(draw.integers(0, 20 * rows, (cores, rows)), axis=1).ravel()
    engine = draw.integers(1, 4, total)
    whole = np.zeros(total, dtype=np.int64)
    copies = (engine > 1).astype(np.int64)
    columns = {"launch": whole, "core": np.repeat(np.arange(cores), rows), "engine": engine, "name": engine}
    columns |= dict.fromkeys(("issued", "ready", "start"), start)
    columns |= {"end": start + draw.integers(0, 40, total), "bytes": 256 * copies}
    columns |= {"source": copies - 1, "destination": 2 * copies - 1}
    columns |= {"waited_row": draw.integers(-1, total, total), "waited_reason": draw.integers(0, 6, total)}
    return Trace(columns, **made_trace([]).lists())
