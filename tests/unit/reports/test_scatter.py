"""The picture of predicted against measured."""

import itertools
from pathlib import Path

import pytest

from reports.canvas import pixels, write_png
from reports.scatter import Pair, draw_scatter
from targets.errors import TilesimError

PAIRS = [Pair("few", 10, 10.5), Pair("few", 100, 120), Pair("many", 1000, 950), Pair("many", 20, 20.2)]


def test_legend_has_the_errors_of_each_group() -> None:
    """Median of the absolute errors and rows within a tenth, worked out by hand."""
    figure = draw_scatter(PAIRS, "Rows", "GFLOPS")
    (legend,) = figure.legends
    assert [text.get_text() for text in legend.get_texts()] == ["few: 12.5 %, 1 of 2", "many: 3.0 %, 2 of 2"]
    assert "3 of 4 rows are within 10 %, the median error is 5.0 %" in [t.get_text() for t in figure.texts]


def test_points_are_the_rows() -> None:
    """Measured to the right, predicted up, both logarithmic and alike."""
    axes = draw_scatter(PAIRS, "Rows", "GFLOPS").axes[0]
    points = [tuple(xy) for c in axes.collections for xy in c.get_offsets().tolist() if c.get_label() != ""]  # type: ignore[union-attr]
    assert [point for point in points if point != (0, 0)] == [
        (pair.measured, pair.predicted) for pair in PAIRS
    ]
    assert (axes.get_xscale(), axes.get_yscale()) == ("log", "log")
    assert axes.get_xlim() == axes.get_ylim()
    assert axes.get_xlim()[0] < 10
    assert axes.get_xlim()[1] > 1000


@pytest.mark.parametrize("groups", [1, 14])
def test_picture_holds_all_its_text(groups: int, tmp_path: Path) -> None:
    """However many groups there are, their names are whole and apart."""
    pairs = [Pair(f"group {i} with a name that is rather long", 10 + i, 11 + i) for i in range(groups)]
    figure = draw_scatter(pairs, "Rows", "GFLOPS")
    write_png(figure)(tmp_path / "x.png")
    box = figure.legends[0].get_window_extent()
    assert box.x1 <= pixels(figure)[0]
    assert box.y0 >= 0
    for axis in (figure.axes[0].xaxis, figure.axes[0].yaxis):
        boxes = [label.get_window_extent() for label in axis.get_ticklabels() if label.get_text()]
        assert not any(a.overlaps(b) for a, b in itertools.pairwise(boxes))


@pytest.mark.parametrize("value", [0.0, -1.0, float("nan")])
def test_rows_without_a_logarithm_are_refused(value: float) -> None:
    """A measurement of nothing is an error with the row's group, and so is no row at all."""
    with pytest.raises(TilesimError, match="where few"):
        draw_scatter([*PAIRS, Pair("few", 10, value)], "Rows", "GFLOPS")
    with pytest.raises(TilesimError, match="no row to draw"):
        draw_scatter([], "Rows", "GFLOPS")
