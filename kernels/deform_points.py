"""Where the taps of a deformable convolution read: the pixels around each sampling point, computed in fp32.

A point is inside where both coordinates lie between -1 and the size of their axis, both excluded; a NaN or an infinity
is not. Points are numbered as the kernel takes them: output positions (image, row, column) outside, then deformable
group and tap.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from kernels.errors import OperandError
from kernels.shape.checks import shown
from kernels.shape.deform import DeformShape
from simulator.values.numerics import Array

Floats = NDArray[np.float32]
Whole = NDArray[np.intp]
Truth = NDArray[np.bool_]

DEFAULT_OFFSETS = "uniform:2"
"""Offsets where none are given: learned ones lie mostly within two pixels."""

SEED = 2
"""Of the offsets of a model: the same in every run."""


def model_offsets(shape: DeformShape, words: str) -> Floats:
    """Offsets of a stated model: "zero", or "uniform:r", independent and uniform within r pixels on each axis.

    Raises:
        OperandError: there is no such model.
    """
    name, _, radius = str(words).partition(":")
    if words == "zero":
        return np.zeros(shape.offset_shape, np.float32)
    try:
        reach = float(radius)
    except ValueError:
        reach = -1.0
    if name != "uniform" or not 0 <= reach < np.inf:
        limit = "zero, or uniform:r with pixels r"
        raise OperandError("no such model of offsets", argument="offsets", got=shown(words), limit=limit)
    return np.random.default_rng(SEED).uniform(-reach, reach, shape.offset_shape).astype(np.float32)


class Cell(NamedTuple):
    """What the points of a tile read; the arrays are those of the points inside, in their order.

    Attributes:
        inside: for every point of the tile, whether it is.
        y, x: how far the point lies behind the low corner, in [0, 1).
        there: which of its four corners lie in the image, [inside, 4].
        pixels: the first element of those corners in x [N, H, W, C], point by point.
        features: the first element of the point in the features [N, Ho x Kh, Wo x Kw, C].
    """

    inside: Truth
    y: Floats
    x: Floats
    there: Truth
    pixels: Whole
    features: Whole


@dataclass(frozen=True)
class Points:
    """All sampling points: [N x Ho x Wo, deformable groups x taps] each.

    Attributes:
        shape: the geometry.
        row, column: the pixel at the low corner; 0 where the point is not inside.
        y, x: how far the point lies behind it.
        inside: whether it is.
    """

    shape: DeformShape
    row: Whole
    column: Whole
    y: Floats
    x: Floats
    inside: Truth

    @classmethod
    def of(cls, shape: DeformShape, offset: Array) -> Points:
        """The points of offsets [N, 2 x points, *out] in the type that they are stored in."""
        conv, (oy, ox) = shape.conv, planes_of(shape, offset)
        taps = np.indices(conv.kernel).reshape(2, -1)
        places = np.indices(conv.out).reshape(2, -1)
        found = []
        for axis, moved in enumerate((oy, ox)):
            step, low = conv.stride[axis], conv.padding[axis][0]
            base = places[axis][:, None] * step - low + taps[axis] * conv.dilation[axis]
            whole = np.tile(base, (conv.n, shape.deform_groups)).astype(np.float32)
            found.append(whole + moved.astype(np.float32))
        h, v = found
        inside = (h > -1) & (h < conv.size[0]) & (v > -1) & (v < conv.size[1])
        h, v = np.where(inside, h, 0), np.where(inside, v, 0)
        row, column = np.floor(h), np.floor(v)
        return cls(shape, row.astype(np.intp), column.astype(np.intp), h - row, v - column, inside)

    @property
    def positions(self) -> int:
        """Output positions of all images."""
        return len(self.inside)

    def cell(self, position: int, positions: int, point: int, points: int) -> Cell:
        """The points [point, point + points) of some consecutive positions."""
        part = (slice(position, position + positions), slice(point, point + points))
        inside = self.inside[part]
        at = np.nonzero(inside)
        where, number = at[0] + position, at[1] + point
        rows = self.row[part][at][:, None] + ROWS
        columns = self.column[part][at][:, None] + COLUMNS
        (height, width), conv = self.shape.conv.size, self.shape.conv
        there = (rows >= 0) & (rows < height) & (columns >= 0) & (columns < width)
        image, place = np.divmod(where, conv.out[0] * conv.out[1])
        group, tap = np.divmod(number, conv.taps)
        first = group * self.shape.channels
        pixels = ((image[:, None] * height + rows) * width + columns) * conv.cin + first[:, None]
        features = self._features(image, place, tap) * conv.cin + first
        return Cell(inside.reshape(-1), self.y[part][at], self.x[part][at], there, pixels[there], features)

    def _features(self, image: Whole, place: Whole, tap: Whole) -> Whole:
        """The number of a feature's pixel."""
        (high, wide), (kh, kw) = self.shape.conv.out, self.shape.conv.kernel
        (i, j), (a, b) = np.divmod(place, wide), np.divmod(tap, kw)
        return np.asarray((image * high * kh + i * kh + a) * (wide * kw) + j * kw + b)


ROWS, COLUMNS = np.array([0, 0, 1, 1]), np.array([0, 1, 0, 1])
"""The four corners, from the low one."""


def planes_of(shape: DeformShape, offset: Array) -> tuple[Array, Array]:
    """Offsets by rows and by columns, [N x Ho x Wo, points] each."""
    n, high, wide = shape.conv.n, *shape.conv.out
    turned = np.moveaxis(offset.reshape(n, shape.points, 2, high, wide), (3, 4), (1, 2))
    turned = turned.reshape(n * high * wide, shape.points, 2)
    return turned[..., 0], turned[..., 1]


def resampled(points: Points, x: Array, mask: Array | None) -> Array:
    """Return x [N, C, H, W] as the forward pass samples it, in fp32 and rounded once: [N, C, Ho x Kh, Wo x Kw].

    Taps that are not inside are zeros, as they lie in the memory of the chip.
    """
    shape, conv = points.shape, points.shape.conv
    cell = points.cell(0, points.positions, 0, shape.points)
    held = np.ascontiguousarray(np.moveaxis(x, 1, -1)).reshape(-1).astype(np.float32)
    run = np.arange(shape.channels)
    corners = spread(cell, held[cell.pixels[:, None] + run])
    with np.errstate(over="ignore", invalid="ignore"):
        value = bilinear(cell, corners)
        if mask is not None:
            value = value * _factors(mask)[cell.inside][:, None]
        out = np.zeros(conv.n * conv.out[0] * conv.out[1] * conv.taps * conv.cin, x.dtype)
        out[cell.features[:, None] + run] = value.astype(x.dtype)
    n, _, high, wide = shape.features.x_shape
    return np.ascontiguousarray(np.moveaxis(out.reshape(n, high, wide, conv.cin), -1, 1))


class Terms(NamedTuple):
    """What the channels of each point add to its gradients, [inside, channels] each, before they are summed.

    Attributes:
        x, y: to those of its offsets by columns and by rows.
        mask: to that of its factor.
    """

    x: Floats
    y: Floats
    mask: Floats


def terms_of(cell: Cell, corners: Floats, upstream: Floats, factors: Floats | None) -> Terms:
    """Channels' parts of the gradients of offsets and masks.

    Args:
        cell: where the points lie.
        corners: pixels around them, [inside, 4, channels].
        upstream: gradients of their features, [inside, channels].
        factors: their masks, [inside]; None where there are none.
    """
    through = upstream if factors is None else upstream * factors[:, None]
    y, x = cell.y[:, None], cell.x[:, None]
    low, right, down, far = (corners[:, corner] for corner in range(4))
    return Terms(
        through * ((1 - y) * (right - low) + y * (far - down)),
        through * ((1 - x) * (down - low) + x * (far - right)),
        upstream * bilinear(cell, corners),
    )


def shares_of(cell: Cell) -> Floats:
    """The part of each point that falls on each of its corners, [inside, 4]."""
    y, x = cell.y, cell.x
    return np.stack([(1 - y) * (1 - x), (1 - y) * x, y * (1 - x), y * x], axis=1)


def summed(terms: Floats) -> Floats:
    """Sums over channels, one after the other."""
    return np.asarray(np.add.accumulate(terms, axis=-1)[:, -1])


def _factors(mask: Array) -> Floats:
    return np.moveaxis(mask, 1, -1).reshape(-1).astype(np.float32)


def spread(cell: Cell, values: NDArray[Any]) -> Floats:
    """Channels of the corners that are there, with zeros for the others: [inside, 4, channels]."""
    found = np.zeros((*cell.there.shape, values.shape[-1]), np.float32)
    found[cell.there] = values
    return found


def bilinear(cell: Cell, corners: Floats) -> Floats:
    """The value at each point, [inside, channels]."""
    y, x = cell.y[:, None], cell.x[:, None]
    upper = (1 - x) * corners[:, 0] + x * corners[:, 1]
    lower = (1 - x) * corners[:, 2] + x * corners[:, 3]
    return np.asarray((1 - y) * upper + y * lower)
