"""Curves of a sweep: a figure over a field, one curve for each value of another."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.figure import Figure

from reports.canvas import add_axes, add_legend, new_figure
from reports.sweeps.front import Row, values_of
from reports.sweeps.scales import field_axis, figure_axis, figures_of, series_colours
from reports.sweeps.words import text

_HEIGHT = 620


def draw_curves(rows: Sequence[Row], x: str, series: str, value: str, *, lines: bool) -> Figure:
    """Draw a column over a field; `lines` joins the points of a curve. Without a series there is one curve."""
    figure = new_figure(_HEIGHT)
    axes = add_axes(figure, 0, _HEIGHT)
    field_axis(axes, x, values_of(rows, x))
    figure_axis(axes, value, figures_of(rows, value))
    colours = series_colours(values_of(rows, series) if series else [""])
    for name, colour in colours.items():
        own = sorted(
            (row for row in rows if not series or row[series] == name), key=lambda row: float(row[x])
        )
        style = "-" if lines else "none"
        axes.plot(
            [row[x] for row in own], figures_of(own, value), ls=style, color=colour, marker="o", ms=5, lw=1.8
        )
    if series:
        add_legend(figure, {text(series, name): colour for name, colour in colours.items()}, series)
    return figure
