"""The heat map of a sweep: a figure by two fields, a cell a pair of values."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LogNorm, Normalize, to_hex
from matplotlib.figure import Figure

from reports.canvas import LEFT, add_axes, new_figure
from reports.colours import BACKGROUND, FAINT, INK, ink_on
from reports.sweeps.front import Row, values_of
from reports.sweeps.scales import SCALE
from reports.sweeps.words import shown, text, title

_LINE, _LEAST, _MOST = 52, 260, 900
_MOST_TEXTS = 20
"""Cells along an axis up to which each says its figure."""


def draw_heat_map(
    rows: Sequence[Row], best: Mapping[tuple[Hashable, ...], Row], x: str, y: str, value: str
) -> Figure:
    """Draw the figures of the pairs (x, y) in `best`; a pair of `rows` that is not there failed."""
    across, up = values_of(rows, x), values_of(rows, y)
    height = min(max(_LEAST, _LINE * len(up)), _MOST)
    figure = new_figure(height + 20)
    axes = add_axes(figure, 0, height, left=LEFT + 60)
    cells = {pair: float(shown(value, row[value])) for pair, row in best.items()}
    grid = np.array([[cells.get((i, j), np.nan) for i in across] for j in up])
    norm = _norm(list(cells.values()))
    axes.set_facecolor(BACKGROUND)
    axes.imshow(np.ma.masked_invalid(grid), cmap=SCALE, norm=norm, aspect="auto", origin="lower")
    axes.set_xticks(range(len(across)), [text(x, each) for each in across])
    axes.set_yticks(range(len(up)), [text(y, each) for each in up])
    axes.set_xlabel(title(x), fontsize=9, color=INK)
    axes.set_ylabel(title(y), fontsize=9, color=INK)
    if max(grid.shape) <= _MOST_TEXTS:
        tried = {(row[x], row[y]) for row in rows}
        failed = np.array([[(i, j) in tried and (i, j) not in cells for i in across] for j in up])
        _write_cells(axes, grid, failed, norm, value)
    return figure


def _norm(values: Sequence[float]) -> Normalize:
    """Logarithmic where the figures span much, so that the fast half does not become one colour."""
    low, high = min(values), max(values)
    if low > 0 and high > 8 * low:
        return LogNorm(low, high)
    return Normalize(low, high if high > low else low + 1)


def _write_cells(
    axes: Axes,
    grid: np.ndarray[tuple[int, int], np.dtype[np.float64]],
    failed: object,
    norm: Normalize,
    value: str,
) -> None:
    for (j, i), figure in np.ndenumerate(grid):
        if np.isfinite(figure):
            words, ink = text(value, float(figure)), ink_on(to_hex(SCALE(norm(float(figure)))))
        else:
            words, ink = ("failed" if np.asarray(failed)[j, i] else ""), FAINT
        axes.text(i, j, words, ha="center", va="center", fontsize=8, color=ink)
