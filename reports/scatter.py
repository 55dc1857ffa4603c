"""Predicted against measured, on logarithmic axes: each group of rows in its colour, and the band of 10 %."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator

from reports.canvas import (
    NOTES,
    PLOT_WIDTH,
    TOP,
    WIDTH,
    add_axes,
    new_figure,
    pixels,
    shortened,
    write_heading,
)
from reports.colours import FAINT, INK, SERIES
from targets.errors import TilesimError

BAND = 0.1
"""Half the width of the band: a share of the measured value."""

_HEIGHT = 760
_WIDTH = PLOT_WIDTH - 180  # room for the longer lines of the legend
_MARKS = ("o", "s", "^", "D", "v", "P", "X", "<", ">", "p")


@dataclass(frozen=True)
class Pair:
    """One row: what was measured and what was predicted, both above 0 and of one unit."""

    group: str
    measured: float
    predicted: float

    @property
    def error(self) -> float:
        """Predicted over measured, minus 1."""
        return self.predicted / self.measured - 1


def draw_scatter(pairs: Sequence[Pair], title: str, unit: str) -> Figure:
    """Draw predicted over measured; beside it the median of each group's absolute errors and how many are in the band.

    Raises:
        TilesimError: there is no row, or one that has no logarithm.
    """
    _check(pairs)
    figure = new_figure(_HEIGHT)
    axes = add_axes(figure, 0, _HEIGHT, width=_WIDTH)
    ends = _prepare(axes, pairs, unit)
    _draw_band(axes, ends)
    groups = list(dict.fromkeys(pair.group for pair in pairs))
    for i, group in enumerate(groups):
        own = [pair for pair in pairs if pair.group == group]
        axes.scatter(
            [pair.measured for pair in own],
            [pair.predicted for pair in own],
            s=42,
            marker=_MARKS[i // len(SERIES) % len(_MARKS)],
            color=SERIES[i % len(SERIES)],
            edgecolors="white",
            linewidths=0.6,
            zorder=3,
            label=_described(group, own),
        )
    _add_legend(figure, axes)
    within = f"{_within(pairs)} of {len(pairs)} rows are within {100 * BAND:.0f} %, the median error is"
    write_heading(figure, title, f"{within} {100 * _median(pairs):.1f} %")
    return figure


def _check(pairs: Sequence[Pair]) -> None:
    if not pairs:
        raise TilesimError("no row to draw", remedy="choose rows that have a measurement")
    for pair in pairs:
        if not all(math.isfinite(value) and value > 0 for value in (pair.measured, pair.predicted)):
            got = f"measured {pair.measured:g}, predicted {pair.predicted:g}"
            raise TilesimError(
                "a row that no logarithmic axis shows", where=pair.group, got=got, limit="above 0"
            )


def _within(pairs: Sequence[Pair]) -> int:
    return sum(abs(pair.error) <= BAND for pair in pairs)


def _median(pairs: Sequence[Pair]) -> float:
    return median(abs(pair.error) for pair in pairs)


def _described(group: str, pairs: Sequence[Pair]) -> str:
    return f"{shortened(group, 34)}: {100 * _median(pairs):.1f} %, {_within(pairs)} of {len(pairs)}"


def _prepare(axes: Axes, pairs: Sequence[Pair], unit: str) -> tuple[float, float]:
    """Equal logarithmic axes with room around all rows; returns their ends."""
    values = [value for pair in pairs for value in (pair.measured, pair.predicted)]
    ends = min(values) / 1.4, max(values) * 1.4
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlim(*ends)
    axes.set_ylim(*ends)
    decades = math.log10(ends[1] / ends[0])
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_locator(LogLocator(subs=(1, 2, 5) if decades < 3.5 else (1,), numticks=30))
        axis.set_minor_locator(LogLocator(subs=(), numticks=1))
        axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.6g}"))
    axes.grid(color="#e4e9ee", zorder=0)
    axes.set_xlabel(f"measured ({unit})", fontsize=9, color=INK)
    axes.set_ylabel(f"predicted ({unit})", fontsize=9, color=INK)
    return ends


def _draw_band(axes: Axes, ends: tuple[float, float]) -> None:
    line = np.array(ends)
    axes.fill_between(line, line * (1 - BAND), line * (1 + BAND), color="#e9eef3", lw=0, zorder=1)
    axes.plot(line, line, color=FAINT, lw=1, zorder=2)


def _add_legend(figure: Figure, axes: Axes) -> None:
    legend = figure.legend(
        loc="upper left",
        bbox_to_anchor=(axes.get_position().x1 + NOTES / WIDTH, 1 - (TOP - 6) / pixels(figure)[1]),
        title=f"median error, rows within {100 * BAND:.0f} %",
        frameon=False,
        fontsize=8,
        title_fontsize=8,
        labelcolor=INK,
        borderaxespad=0,
        alignment="left",
    )
    legend.get_title().set_fontweight("bold")
