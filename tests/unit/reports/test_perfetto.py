"""The trace for ui.perfetto.dev holds what the trace of the run holds."""

import itertools
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tilesim as ts
from reports import perfetto
from reports.links import shared_links, sizes_on_links
from reports.load import SavedRun, load
from reports.perfetto import nanoseconds, write_perfetto
from reports.rates import pieces
from reports.report import report
from targets.errors import TilesimError
from tests.unit.reports.parsed import Parsed, parse
from tests.unit.reports.synthetic import synthetic_run
from tests.unit.simulator.made import TWO_TILES, made_run, made_trace


def written(saved: SavedRun, folder: Path) -> Parsed:
    """The trace of a run, written and read back."""
    write_perfetto(saved, folder / "x.pftrace")
    return parse(folder / "x.pftrace")


def test_two_tiles_by_hand(tmp_path: Path) -> None:
    """Each instruction of a run at 1,000 MHz is a slice, with its facts and what it waited for."""
    tiled = [(*row, 7, -1) for row in TWO_TILES]
    made_run(made_trace(tiled, axes=("h", "w"))).save(tmp_path)
    found = written(load(tmp_path), tmp_path)
    assert [(s.thread, s.name, s.start, s.end) for s in found.slices] == [
        ("launches", "conv dx", 0, 100),
        ("DMA0", "load", 10, 40),
        ("DMA1", "load", 12, 70),
        ("VPU", "product", 40, 60),
        ("VPU", "product", 70, 90),
        ("DMA0", "store", 90, 96),
        ("SCALAR", "barrier", 98, 99),
    ]
    assert found.slices[0].facts == {"kind": "default", "cores": 2, "cycles": 100, "useful_macs": 1800}
    assert found.slices[5].facts == {
        "cycle issued": 90,
        "cycle ready": 90,
        "cycle start": 90,
        "cycle flow": 90,
        "cycle end": 96,
        "tile h": 7,
        "bytes": 40,
        "path": "am->ddr",
        "waited for": "dependency: product",
    }
    assert found.slices[6].facts["waited for"] == "barrier"
    assert "waited for" not in found.slices[1].facts
    assert [(a.start, b.start) for a, b in found.arrows()] == [(10, 40), (12, 70), (70, 90)]
    assert found.threads == [("core0", lane) for lane in ("SCALAR", "VPU", "DMA0", "DMA1")]


def test_counters_by_hand(tmp_path: Path) -> None:
    """The DDR's 8 bytes a cycle are shared by two loads; a cycle is a nanosecond."""
    made_run().save(tmp_path)
    found = written(load(tmp_path), tmp_path)
    assert found.units == {"ddr bandwidth": "GB/s", "ddr active transfers": "copies"}
    assert found.counters["ddr active transfers"] == [(10, 1), (12, 2), (40, 1), (70, 0), (90, 1), (96, 0)]
    times, rates = zip(*found.counters["ddr bandwidth"], strict=True)
    assert times == (10, 12, 40, 70, 90, 96)
    # DMA0's shares are 8, then 4: 16 + 112 of its 240 bytes. DMA1's are 4, then 8: 112 + 240 of its 240.
    first, second = 240 / (8 * 2 + 4 * 28), 240 / (4 * 28 + 8 * 30)
    assert rates == pytest.approx((8 * first, 4 * first + 4 * second, 8 * second, 0, 40 / 6, 0))


@pytest.mark.parametrize(("cores", "idle"), [(1, 0), (4, 1), (24, 0), (64, 3)])
def test_same_spans_arrows_and_bytes_as_the_trace(cores: int, idle: int, tmp_path: Path) -> None:
    """Spans by core, engine and name are those of the trace, so are arrows; counters carry its bytes."""
    synthetic_run(cores, 5, idle=idle).save(tmp_path)
    saved = load(tmp_path)
    found = written(saved, tmp_path)
    check_spans(saved, found)
    moved = saved.metrics.traffic_bytes
    assert carried(found, "ddr") == pytest.approx(sum(moved["ddr"].values()), rel=1e-3)
    assert carried(found, "gsm") == pytest.approx(moved["gsm"]["read"], rel=1e-3)


SHAPE = "n=2,cin=32,h=12,w=12,cout=48,kh=3,kw=3,pad=1"


@pytest.mark.parametrize(
    ("operator", "target", "options"),
    [
        ("conv_backward", "mt7004", {"shape": SHAPE, "dtype": "fp16"}),
        ("conv_backward", "ft78ne", {"shape": SHAPE, "grads": ("dw",)}),
        ("conv_backward", "ascend910b1", {"shape": SHAPE, "dtype": "bf16"}),
        ("deform_conv_backward", "ascend950pr", {"shape": SHAPE, "dtype": "fp32"}),
        ("conv2d_backward_fast", "nx_host", {"shape": SHAPE.replace("n=2", "n=1"), "cores": 4}),
    ],
)
def test_runs_parse_back(operator: str, target: str, options: dict[str, Any], tmp_path: Path) -> None:
    """So it is with runs of operators, on cores of one kind and of several, with a cache and without."""
    run = ts.run_operator(operator, target=target, numerics=False, check=False, **options)
    run.save(tmp_path / "run")
    saved = load(tmp_path / "run")
    found = written(saved, tmp_path)
    check_spans(saved, found)
    moved = sizes_on_links(saved.trace, saved.target).sum(axis=0).tolist()
    for link, size in zip(shared_links(saved.target), moved, strict=True):
        # A copy of some ten cycles loses up to a nanosecond in a hundred to rounding.
        assert carried(found, link) == pytest.approx(size, rel=0.02), link


def check_spans(saved: SavedRun, found: Parsed) -> None:
    """Spans and arrows are those of the trace, with the time of the scalar unit."""
    trace, target = saved.shown, saved.target
    begin, end = nanoseconds(target, trace["start"]), nanoseconds(target, trace["end"])
    rows = [
        (target.core_name(core), trace.engines[engine], trace.names[name], start, stop)
        for core, engine, name, start, stop in zip(
            *(trace[column].tolist() for column in ("core", "engine", "name")),
            begin.tolist(),
            end.tolist(),
            strict=True,
        )
    ]
    spans = [(s.process, s.thread.partition(" +")[0], s.name, s.start, s.end) for s in found.lanes()]
    assert Counter(spans) == Counter(rows)
    waited = trace["waited_row"]
    expected = Counter((rows[waited[row]], rows[row]) for row in np.flatnonzero(waited >= 0).tolist())
    arrows = Counter(
        tuple((s.process, s.thread.partition(" +")[0], s.name, s.start, s.end) for s in pair)
        for pair in found.arrows()
    )
    assert arrows == expected


def carried(found: Parsed, link: str) -> float:
    """Bytes: GB/s times nanoseconds."""
    values = found.counters.get(f"{link} bandwidth", [(0, 0.0)])
    assert values[-1][1] == 0
    return sum(rate * (later - at) for (at, rate), (later, _) in itertools.pairwise(values))


def test_copies_that_overlap_have_threads_beside_each_other(tmp_path: Path) -> None:
    """A copy that starts up while the one before streams is on a second thread of its engine, with its own times."""
    rows = [
        (0, 0, "DMA0", "load", 0, 0, 50, 100, "ddr", "am", -1, "none"),
        (0, 0, "DMA0", "load", 1, 30, 80, 100, "ddr", "am", 0, "engine"),
        (0, 0, "DMA0", "load", 2, 50, 90, 100, "ddr", "am", 1, "engine"),
    ]
    made_run(made_trace(rows), cores=1).save(tmp_path)
    found = written(load(tmp_path), tmp_path)
    assert [(s.thread, s.start, s.end) for s in found.lanes()] == [
        ("DMA0", 0, 50),
        ("DMA0 +1", 30, 80),
        ("DMA0", 50, 90),
    ]


def test_instructions_that_take_no_time_are_there(tmp_path: Path) -> None:
    """A slice may begin and end in one nanosecond, between two that touch it."""
    times = [(0, 10), (10, 10), (10, 10), (10, 20)]
    rows = [(0, 0, "VPU", "product", a, a, b, 0, "", "", -1, "none") for a, b in times]
    made_run(made_trace(rows), cores=1).save(tmp_path)
    found = written(load(tmp_path), tmp_path)
    assert [(s.thread, s.start, s.end) for s in found.lanes()] == [("VPU", a, b) for a, b in times]


def test_stretch_is_cut(tmp_path: Path) -> None:
    """Of a stretch, slices are cut at its ends, and counters begin with what they are there."""
    made_run().save(tmp_path)
    saved = load(tmp_path)
    perfetto.perfetto_in_place(saved, 50, 80)(tmp_path / "x.pftrace")
    found = parse(tmp_path / "x.pftrace")
    assert [(s.thread, s.start, s.end) for s in found.slices] == [
        ("launches", 50, 80),
        ("DMA1", 50, 70),
        ("VPU", 50, 60),
        ("VPU", 70, 80),
    ]
    assert found.counters["ddr active transfers"] == [(50, 1), (70, 0)]


def test_empty_run_has_a_trace(tmp_path: Path) -> None:
    """A run in which nothing happened can be written."""
    made_run(made_trace([]), cycles=0, launches=[]).save(tmp_path)
    assert written(load(tmp_path), tmp_path) == Parsed()


def test_missing_package_is_an_error_that_names_the_extra(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who asks for the trace is told; who does not gets the report and a reason in it."""
    made_run().save(tmp_path)
    monkeypatch.setitem(sys.modules, "perfetto.protos.perfetto.trace", None)
    with pytest.raises(TilesimError, match=r"pip install 'tilesim\[perfetto\]'"):
        report(tmp_path, perfetto=True)
    assert not (tmp_path / "report.md").exists()
    report(tmp_path)
    assert not (tmp_path / "trace.pftrace").exists()
    assert (
        "There is no `trace.pftrace`: a Perfetto trace needs a package"
        in (tmp_path / "report.md").read_text()
    )


def test_long_trace_is_left_out_unless_wanted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Beyond a number of instructions the file is written when it is asked for."""
    made_run().save(tmp_path)
    monkeypatch.setattr(perfetto, "MOST_ROWS", 5)
    report(tmp_path)
    assert not (tmp_path / "trace.pftrace").exists()
    assert "it would hold 6 instructions" in (tmp_path / "report.md").read_text()
    report(tmp_path, perfetto=True)
    assert (tmp_path / "trace.pftrace").exists()
    assert "[trace.pftrace](trace.pftrace), of the whole run" in (tmp_path / "report.md").read_text()


def test_pieces_stay_below_the_link(tmp_path: Path) -> None:
    """Shares that are divided again never add up to more than the link, and keep every copy's bytes."""
    flows = [(0, 150), (0, 150), (40, 172)]  # the golden of the links: 17.75 bytes a cycle, ports of 16
    rows = [
        (0, core, "DMA0", "load", start, start, end, 1000, "ddr", "am", -1, "none")
        for core, (start, end) in enumerate(flows)
    ]
    run = made_run(made_trace(rows), cores=3, cycles=172)
    link = run.target.link["ddr"].model_copy(update={"bytes_per_cycle": 17.75})
    target = run.target.model_copy(update={"link": {"ddr": link}})
    made_run(made_trace(rows), cores=3, cycles=172, target=target).save(tmp_path)
    parts = pieces(load(tmp_path))
    shares = {
        (row, start): rate
        for row, start, rate in zip(parts.row.tolist(), parts.start.tolist(), parts.rate, strict=True)
    }
    assert shares == pytest.approx(
        {
            **{(row, 0): 8.875 for row in (0, 1)},
            **{(row, 40): 17.75 / 3 for row in (0, 1)},
            (2, 40): 17.75 / 3,
            (2, 150): 16.0,
        },
        rel=0.01,
    )
