"""How much of each column of pixels every lane is busy, for traces with more instructions than pixels."""

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def coverage(
    row: NDArray[np.int64], start: Floats, end: Floats, rows: int, columns: int, weight: Floats | None = None
) -> Floats:
    """How much of every column the intervals of each row cover: [rows, columns], 1 is all of it.

    Intervals that overlap count twice. With a weight, each interval counts as often.

    Args:
        row: the row of each interval.
        start: where each begins, in columns (0 to `columns`); outside it is cut.
        end: where each ends, in the same unit.
        rows: rows of the result.
        columns: columns of the result.
        weight: one an interval.
    """
    scale = np.ones(len(row)) if weight is None else weight
    return _covered_after(row, start, rows, columns, scale) - _covered_after(row, end, rows, columns, scale)


def _covered_after(row: NDArray[np.int64], point: Floats, rows: int, columns: int, weight: Floats) -> Floats:
    """What half-lines from the points to the right cover of each column."""
    point = np.clip(point, 0, columns)
    column = np.minimum(point.astype(np.int64), columns)
    part = point - column
    width = columns + 2
    # A half-line covers 1 - part of its first column and all of those after it: differences, then sums.
    first = np.bincount(row * width + column, weights=weight * (1 - part), minlength=rows * width)
    after = np.bincount(row * width + column + 1, weights=weight * part, minlength=rows * width)
    covered: Floats = np.cumsum((first + after).reshape(rows, width), axis=1)[:, :columns]
    return covered


def painted(busy: Floats, colours: Floats, background: Floats) -> Floats:
    """Colours of lanes by column: that of what covers most of it, the paler the less it is covered.

    Args:
        busy: [lanes, columns, names], shares of each column.
        colours: [names, 3], red, green and blue from 0 to 1.
        background: [3].

    Returns:
        [lanes, columns, 3].
    """
    total = np.clip(busy.sum(axis=2), 0, 1)
    strength = np.where(total > 1e-9, np.maximum(total, 0.2), 0)[..., None]  # what is there can be seen
    result: Floats = background + strength * (colours[busy.argmax(axis=2)] - background)
    return result
