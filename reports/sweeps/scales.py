"""Axes and colours of a sweep's pictures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap, to_hex
from matplotlib.ticker import FixedLocator, FuncFormatter, LogLocator, NullLocator

from reports.colours import INK, SERIES
from reports.sweeps.front import is_number
from reports.sweeps.words import shown, text, title

GRID = "#e4e9ee"
SCALE = LinearSegmentedColormap.from_list("tilesim", ["#f2f7f5", "#8fd0c4", "#2a9d8f", "#1d6fa5", "#1b2f5b"])
"""From light to dark, for figures and for the values of a field that is a number."""

_MOST_TICKS = 16
_LOG_FROM, _LOG_VALUES = 6.0, 20.0
"""Ratio of the greatest to the least from which an axis of a field, and one of figures, is logarithmic."""


def series_colours(values: Sequence[Any]) -> dict[Any, str]:
    """A colour for each value: numbers from light to dark, others different ones."""
    if all(is_number(value) for value in values) and len(values) > 1:
        step = 0.75 / (len(values) - 1)
        return {value: to_hex(SCALE(0.25 + i * step)) for i, value in enumerate(values)}
    return {value: SERIES[i % len(SERIES)] for i, value in enumerate(values)}


def field_axis(axes: Axes, name: str, values: Sequence[float]) -> None:
    """The lower axis: the values of a field, each with a tick if they are few; logarithmic where they span much."""
    if _spans(values, _LOG_FROM):
        axes.set_xscale("log")
    if len(values) <= _MOST_TICKS:
        axes.xaxis.set_major_locator(FixedLocator(list(values)))
    elif axes.get_xscale() == "log":
        axes.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5), numticks=30))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: text(name, value)))
    axes.set_xlabel(title(name), fontsize=9, color=INK)


def figure_axis(axes: Axes, name: str, values: Sequence[float]) -> None:
    """The left axis: figures from zero, or logarithmic where they span much."""
    formatter = FuncFormatter(lambda value, _: text(name, value))
    if _spans(values, _LOG_VALUES):
        axes.set_yscale("log")
        axes.set_ylim(min(values) / 1.3, max(values) * 1.3)
        axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5), numticks=30))
        axes.yaxis.set_minor_locator(NullLocator())
    else:
        axes.set_ylim(0, 1.08 * max(values) or 1)
    axes.yaxis.set_major_formatter(formatter)
    axes.set_ylabel(title(name), fontsize=9, color=INK)
    axes.grid(color=GRID, zorder=0)
    axes.set_axisbelow(True)


def figures_of(rows: Sequence[Mapping[str, Any]], name: str) -> list[float]:
    """A column in the unit of its axis."""
    return [float(shown(name, row[name])) for row in rows]


def _spans(values: Sequence[float], ratio: float) -> bool:
    return min(values) > 0 and max(values) >= ratio * min(values)
