"""The Pareto front of a sweep: time against a cost."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from reports.canvas import add_axes, add_legend, new_figure, shortened
from reports.colours import INK
from reports.sweeps.front import Row, pareto_front, values_of
from reports.sweeps.scales import field_axis, figure_axis, figures_of
from reports.sweeps.words import text

_HEIGHT = 660
_POINT, _FRONT = "#9db4c6", "#d1495b"
_MOST_LABELS = 14


def draw_pareto(rows: Sequence[Row], cost: str, labels: Sequence[str]) -> Figure:
    """Draw all rows, and those that none beats with a line through them and the values of some fields beside them."""
    figure = new_figure(_HEIGHT)
    axes = add_axes(figure, 0, _HEIGHT)
    field_axis(axes, cost, values_of(rows, cost))
    figure_axis(axes, "time_ms", figures_of(rows, "time_ms"))
    front = pareto_front(rows, cost)
    axes.scatter([row[cost] for row in rows], figures_of(rows, "time_ms"), s=26, color=_POINT, lw=0, zorder=2)
    prices, times = [row[cost] for row in front], figures_of(front, "time_ms")
    axes.step(prices, times, where="post", color=_FRONT, lw=1.6, zorder=3)
    axes.scatter(prices, times, s=44, color=_FRONT, edgecolors="white", lw=0.7, zorder=4)
    _write_labels(axes, front, prices, times, labels)
    add_legend(
        figure, {"on the front": _FRONT, "other points": _POINT}, f"{len(front)} of {len(rows)} points"
    )
    return figure


def _write_labels(
    axes: Axes, front: Sequence[Row], prices: Sequence[float], times: Sequence[float], fields: Sequence[str]
) -> None:
    """The values of the points on the front, evenly chosen where they are many, to the upper right of each."""
    step = -(-len(front) // _MOST_LABELS)
    for i in range(0, len(front), step):
        words = ", ".join(text(name, front[i][name]) for name in fields)
        at = (prices[i], times[i])
        axes.annotate(
            shortened(words, 44), at, (5, 6), textcoords="offset points", fontsize=7.5, color=INK, rotation=20
        )
