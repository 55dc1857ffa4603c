"""The numbers of the page's loops: every multiply and every add rounded to fp32, in the order of the loops.

Padding is what the page makes of it: zeros in the transposed im2col, which are multiplied (an infinite dout makes NaN
there), and absent taps in col2im and in the serial backward.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from kernels.nx.geometry import Geometry, window

Floats = NDArray[np.float32]

BLOCK = 1 << 16
"""Sums that are kept at a time: they stay in a cache."""


def matmul_t(a: Floats, turned: Floats) -> Floats:
    """A [m, k] times the transpose of b [n, k], given turned as [k, n]: sums in the order of k, from 0."""
    (m, k), n = a.shape, turned.shape[1]
    out = np.zeros((m, n), np.float32)
    step = max(1, BLOCK // max(1, n))
    with np.errstate(over="ignore", invalid="ignore", under="ignore"):
        for low in range(0, m, step):
            sums = out[low : low + step]
            term = np.empty_like(sums)
            for i in range(k):
                np.multiply(a[low : low + step, i, None], turned[i], out=term)
                np.add(sums, term, out=sums)
    return out


def row_sums(a: Floats) -> Floats:
    """The sum of each row, from 0 and from the left."""
    if not a.size:
        return np.zeros(len(a), np.float32)
    with np.errstate(over="ignore", invalid="ignore"):
        found: Floats = np.add.accumulate(a, axis=1, dtype=np.float32)[:, -1] + np.float32(0)
    return found


def windows_of_row(g: Geometry, oh: int) -> Iterator[tuple[int, int, int, slice, slice]]:
    """(kh, kw, ih, columns of the output, columns of the input) of the taps of a row of outputs that lie inside.

    Taps come with falling kw: for an element of the input, that is the order in which the outputs are visited.
    """
    for kh in range(g.kh):
        ih = oh * g.stride + kh - g.pad
        if 0 <= ih < g.h:
            for kw in reversed(range(g.kw)):
                found = window(g.ow, g.w, kw, g.stride, g.pad)
                if found is not None:
                    yield kh, kw, ih, *found


def im2col_row(g: Geometry, columns: Floats, source: Floats, oh: int) -> None:
    """Row `oh` of the transposed im2col: columns [C_in, KH, KW, OH, OW] from source [C_in, H, W]."""
    columns[:, :, :, oh] = 0
    for kh, kw, ih, outputs, places in windows_of_row(g, oh):
        columns[:, kh, kw, oh, outputs] = source[:, ih, places]


def col2im_row(g: Geometry, total: Floats, dcol: Floats, oh: int) -> None:
    """Scatter row `oh` of dcol [OH, OW, C_in, KH, KW] onto total [C_in, H, W]."""
    with np.errstate(over="ignore", invalid="ignore"):
        for kh, kw, ih, outputs, places in windows_of_row(g, oh):
            place = total[:, ih, places]
            np.add(place, dcol[oh, outputs, :, kh, kw].T, out=place)


def add_input_gradient(g: Geometry, total: Floats, dout: Floats, weight: Floats) -> None:
    """Total [C_in, H, W] += the part of one output channel, dout [OH, OW] and weight [C_in, KH, KW].

    Taps come with falling kh and kw, so that an element is added to in the order of the outputs.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        for kh in reversed(range(g.kh)):
            rows = window(g.oh, g.h, kh, g.stride, g.pad)
            for kw in reversed(range(g.kw)):
                columns = window(g.ow, g.w, kw, g.stride, g.pad)
                if rows is not None and columns is not None:
                    place = total[:, rows[1], columns[1]]
                    np.add(place, dout[rows[0], columns[0]] * weight[:, kh, kw, None, None], out=place)


def add_weight_gradient(g: Geometry, total: Floats, dout: Floats, source: Floats) -> None:
    """Total [C_in, KH, KW] += the part of one output channel, output by output, of the taps inside source."""
    with np.errstate(over="ignore", invalid="ignore"):
        for oh in range(g.oh):
            kh, ih = _inside(oh, g.kh, g.h, g.stride, g.pad)
            for ow in range(g.ow):
                kw, iw = _inside(ow, g.kw, g.w, g.stride, g.pad)
                total[:, kh, kw] += dout[oh, ow] * source[:, ih, iw]


def _inside(out: int, kernel: int, size: int, stride: int, pad: int) -> tuple[slice, slice]:
    """The taps of one output on one axis that lie inside the input, and their places."""
    start = out * stride - pad
    low, high = max(0, -start), min(kernel, size - start)
    high = max(low, high)
    return slice(low, high), slice(start + low, start + high)
