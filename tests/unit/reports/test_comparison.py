"""Runs beside each other: figures by hand, refusals, and the picture."""

import itertools
import json
from pathlib import Path
from typing import Any

import pytest

import tilesim
from reports.canvas import pixels
from reports.comparison import HEADINGS, compare
from reports.comparison_picture import draw_comparison
from targets.errors import TilesimError
from tests.unit.reports.synthetic import synthetic_run
from tests.unit.simulator.made import made_run, made_trace


def test_figures_by_hand() -> None:
    """1,800 MACs in 100 cycles at 1,000 MHz, on two cores of which one works."""
    (row,) = compare([made_run()]).rows
    assert (row.label, row.dtype, row.cores, row.cycles, row.time_us) == ("small", "fp32", 2, 100, 0.1)
    assert row.achieved_gflops == pytest.approx(36.0)
    assert row.share_of_peak == pytest.approx(36 / 384)
    # DMA is busy 36 + 58 of 4 x 100 cycles, the VPU 40 of 2 x 100
    assert row.engine == "DMA"
    assert row.engine_busy == pytest.approx(94 / 400)
    assert (row.memory, row.read_bytes, row.written_bytes) == ("ddr", 480, 40)


def test_table_has_a_line_a_run() -> None:
    """Heads, then the figures of each run below them."""
    lines = str(compare({"before": made_run(), "after": made_run(cycles=200)})).splitlines()
    assert len(lines) == 3
    assert lines[0].split()[:4] == list(HEADINGS[:4])
    assert [line.split()[0] for line in lines[1:]] == ["before", "after"]
    assert "18.0" in lines[2]
    assert lines[1].index("fp32") == lines[0].index("type")


def test_names_of_runs_on_one_target() -> None:
    """Cores or types that differ are in the names; what is the same in both is numbered."""
    runs = [made_run(cores=1), made_run(cores=2), made_run(cores=2, dtype="fp16")]
    assert [row.label for row in compare(runs).rows] == [
        "small, 1 cores, fp32",
        "small, 2 cores, fp32",
        "small, 2 cores, fp16",
    ]
    assert [row.label for row in compare([made_run(), made_run()]).rows] == ["small #1", "small #2"]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"operator": "gemm"}, "runs of different operator: got conv_backward and gemm"),
        ({"shape": {"n": 2}}, "runs of different shape"),
        ({"useful_macs": 1}, "runs of different useful work"),
    ],
)
def test_runs_of_different_problems_are_refused(changes: dict[str, Any], message: str) -> None:
    """Times of different work say nothing about the targets."""
    with pytest.raises(TilesimError, match=message):
        compare([made_run(), made_run(**changes)])
    with pytest.raises(TilesimError, match="no run to compare"):
        compare([])


def test_run_that_did_nothing() -> None:
    """Without instructions there is no engine, and no share of a peak that is not known."""
    run = made_run(made_trace([]), cycles=0, launches=[], peak_flops_per_cycle=0.0, useful_macs=0)
    (row,) = compare([run]).rows
    assert (row.engine, row.share_of_peak, row.read_bytes) == ("", 0.0, 0)
    assert "none" in row.cells()


@pytest.mark.parametrize("count", [1, 2, 12])
def test_picture_holds_all_its_text(count: int, tmp_path: Path) -> None:
    """Names and figures of every run are in the picture, and none leaves it or covers the next line's."""
    comparison = compare({f"run {i}": synthetic_run(24, 4) for i in range(count)})
    comparison.save(tmp_path / "x.png")
    assert (tmp_path / "x.png").read_bytes()[:4] == b"\x89PNG"
    figure = draw_comparison(comparison)
    figure.draw_without_rendering()
    width, height = pixels(figure)
    for axes in figure.axes:
        boxes = [text.get_window_extent() for text in axes.texts]
        assert len(boxes) == count
        assert not any(a.overlaps(b) for a, b in itertools.pairwise(boxes))
        assert all(box.x1 <= width and 0 <= box.y0 <= box.y1 <= height for box in boxes)
    for left, right in zip(figure.axes, figure.axes[1:], strict=False):
        reach = max(text.get_window_extent().x1 for text in left.texts)
        assert reach <= right.get_window_extent().x0
    assert [label.get_text().split("\n")[0] for label in figure.axes[0].get_yticklabels()] == [
        f"run {i}" for i in range(count)
    ]


def test_comparison_is_plain_and_public() -> None:
    """The record is JSON, and the function is tilesim's."""
    assert tilesim.compare is compare
    record = compare([made_run()]).to_dict()
    assert json.loads(json.dumps(record, allow_nan=False)) == record
    assert record["runs"][0]["engine"] == "DMA"
