"""Tiles of sampling points: all taps of a deformable group at neighbouring outputs, and where they read and add."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from kernels.deform_points import Cell, Points, Whole
from kernels.dsp.dx.geometry import pieces
from kernels.shape.deform import DeformShape
from simulator.values.numerics import Array


class Spot(NamedTuple):
    """Where a tile lies: image, output row, deformable group, first column and columns."""

    n: int
    i: int
    group: int
    j: int
    columns: int


def spots_of(shape: DeformShape, positions: int) -> list[Spot]:
    """All tiles of at most so many columns: images outside, then rows, deformable groups, and columns."""
    cuts = pieces(shape.conv.out[1], positions)
    return [
        Spot(n, i, group, j, count)
        for n in range(shape.conv.n)
        for i in range(shape.conv.out[0])
        for group in range(shape.deform_groups)
        for j, count in cuts
    ]


@dataclass(frozen=True)
class Tile:
    """The points of a spot, and where they read.

    Attributes:
        spot: where.
        kernel: rows and columns of taps.
        cell: its points: column by column, tap by tap.
    """

    spot: Spot
    kernel: tuple[int, int]
    cell: Cell

    @classmethod
    def of(cls, points: Points, spot: Spot) -> Tile:
        """The tile at a spot."""
        conv, (rows, columns) = points.shape.conv, points.shape.conv.out
        first = (spot.n * rows + spot.i) * columns + spot.j
        high, wide = conv.kernel
        return cls(spot, (high, wide), points.cell(first, spot.columns, spot.group * conv.taps, conv.taps))

    def points_of(self, rows: Array) -> Array:
        """Rows of features [tap rows, columns x tap columns, channels] as points [points, channels]."""
        wide = self.kernel[1]
        parts = rows.reshape(-1, self.spot.columns, wide, rows.shape[-1])
        return np.moveaxis(parts, 1, 0).reshape(self.spot.columns * len(parts) * wide, rows.shape[-1])

    def rows_of(self, points: Array) -> Array:
        """The opposite, of all taps."""
        high, wide = self.kernel
        parts = points.reshape(self.spot.columns, high, wide, points.shape[-1])
        return np.moveaxis(parts, 1, 0).reshape(high, self.spot.columns * wide, points.shape[-1])


class Window(NamedTuple):
    """The pixels [row, row + rows) x [column, column + columns) of an image, which hold all corners of a tile.

    `places` are those of the corners that are there, row by row of the window.
    """

    row: int
    rows: int
    column: int
    columns: int
    places: Whole

    @classmethod
    def of(cls, cell: Cell, shape: DeformShape) -> Window | None:
        """The least window; None where it has more pixels than there are corners, so that these come one by one."""
        if not len(cell.pixels):
            return None
        (height, width), places = shape.conv.size, cell.pixels // shape.conv.cin
        rows, columns = places // width % height, places % width
        row, column = int(rows.min()), int(columns.min())
        high, wide = int(rows.max()) - row + 1, int(columns.max()) - column + 1
        if high * wide > len(places):
            return None
        return cls(row, high, column, wide, (rows - row) * wide + columns - column)


@dataclass(frozen=True)
class Places:
    """Corners of a tile's points that lie in a band.

    Attributes:
        point, corner: which of the points inside, and which of its corners.
        pixels: the pixel in the band.
        points: points that have a corner in it.
    """

    point: Whole
    corner: Whole
    pixels: Whole
    points: int

    @classmethod
    def of(cls, cell: Cell, pixels: Whole, first: int, count: int) -> Places:
        """Corners there lie in pixels of x; the band has those from `first`."""
        kept = (pixels >= first) & (pixels < first + count)
        point, corner = (index[kept] for index in np.nonzero(cell.there))
        return cls(point, corner, pixels[kept] - first, len(np.unique(point)))


def transfers_of(cell: Cell, whole: bool) -> int:
    """DMA transfers that bring in the corners of the points: two levels each, the rows and what lies in one.

    With `whole` pixels, neighbours in a row are one run, and a point takes one; else four corners take two.
    """
    if whole:
        return int(cell.there.any(axis=1).sum())
    return int(np.where(cell.there.all(axis=1), 2, cell.there.any(axis=1)).sum())
