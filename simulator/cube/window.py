"""Which elements of an image a load makes columns of, and how many of its rows each fractal spans."""

from __future__ import annotations

from collections import Counter
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from simulator.cube.fractals import FRACTAL_ROWS
from simulator.values.numerics import Array

Indices = NDArray[np.intp]


class Window(NamedTuple):
    """An im2col of a part of an image: one row a position, one block of columns a tap.

    Position p (row p // width, column p % width) reads with tap (y, x) the place (row * step_y + y + origin_y,
    column * step_x + x + origin_x). Element (i, j) of the source lies at place (i * spread_y, j * spread_x); places
    outside it and between its elements are zeros.

    Attributes:
        width: positions of one row.
        first: the first position that is loaded.
        taps: (y, x) of each tap: kernel index times dilation, any sign.
        step: strides.
        origin: place of position 0 with tap (0, 0), counted from the first element of the source.
        spread: distance of the source's elements (the stride of the convolution where its gradient is gathered).
        unit: the first block of columns that is loaded; blocks count channel block by channel block, in it tap by tap.
        by_rows: each row of positions begins a fractal of its own.
    """

    width: int
    first: int
    taps: tuple[tuple[int, int], ...]
    step: tuple[int, int] = (1, 1)
    origin: tuple[int, int] = (0, 0)
    spread: tuple[int, int] = (1, 1)
    unit: int = 0
    by_rows: bool = False


@lru_cache(maxsize=16384)
def spans(window: Window, count: int) -> tuple[tuple[int, int], ...]:
    """(rows of the image that a fractal's positions span, how many such fractals) for `count` positions."""
    ends = window.first + count
    found: Counter[int] = Counter()
    start = window.first
    while start < ends:
        row_end = (start // window.width + 1) * window.width
        stop = min(start + FRACTAL_ROWS, ends, row_end if window.by_rows else ends)
        found[(stop - 1) // window.width - start // window.width + 1] += 1
        start = stop
    return tuple(sorted(found.items()))


def places(window: Window, count: int, size: tuple[int, int]) -> tuple[Indices, NDArray[np.bool_]]:
    """Flat index into the source [height, width] of each (position, tap), and whether there is such an element.

    The block of columns at which a load begins does not matter: the steps of one im2col share them.
    """
    return _places(window._replace(unit=0), count, size)


@lru_cache(maxsize=64)  # some 100 KB each
def _places(window: Window, count: int, size: tuple[int, int]) -> tuple[Indices, NDArray[np.bool_]]:
    """What `places` returns."""
    position = np.arange(window.first, window.first + count)
    taps = np.array(window.taps, dtype=np.intp).reshape(-1, 2)
    axes = zip(
        np.divmod(position, window.width),
        window.step,
        taps.T,
        window.origin,
        window.spread,
        size,
        strict=True,
    )
    row, column = (_axis(*axis) for axis in axes)
    there = (row >= 0) & (column >= 0)
    return np.where(there, row * size[1] + column, 0), there


def _axis(at: Indices, step: int, tap: Indices, origin: int, spread: int, size: int) -> Indices:
    """Source index of (position, tap) along one axis, -1 where there is none."""
    index, between = np.divmod(at[:, None] * step + tap[None, :] + origin, spread)
    return np.where((between == 0) & (index >= 0) & (index < size), index, -1)


def columns(source: Array, window: Window, count: int, units: int) -> Array:
    """The matrix [count, units * C] of a source [blocks, height, width, C]; what is not there is zero."""
    _, height, width, channels = source.shape
    index, there = places(window, count, (height, width))
    taps = len(window.taps)
    out = np.zeros((count, units, channels), source.dtype)
    for block in range(window.unit // taps, -(-(window.unit + units) // taps)):
        low, high = max(window.unit, block * taps), min(window.unit + units, (block + 1) * taps)
        chosen = slice(low - block * taps, high - block * taps)
        here = there[:, chosen]
        if not here.any():
            continue
        found = source[block].reshape(height * width, channels)[index[:, chosen]]
        if not here.all():
            found[~here] = 0
        out[:, low - window.unit : high - window.unit] = found
    return out.reshape(count, units * channels)
