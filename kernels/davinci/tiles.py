"""Tiles of an image side, and the L1 chunks of K below each."""

from __future__ import annotations

from functools import lru_cache
from math import ceil
from typing import NamedTuple

from kernels.davinci.reach import Reach
from kernels.davinci.sides import FRACTAL

Axes = tuple[Reach, Reach, Reach]


def pieces(size: int, most: int) -> list[tuple[int, int]]:
    """(first, length) of the pieces of at most `most` that a size is cut into."""
    return [(first, min(most, size - first)) for first in range(0, size, most)]


def ceil_to(value: int, unit: int) -> int:
    """The next multiple of a unit."""
    return -(-value // unit) * unit


class Positions(NamedTuple):
    """Consecutive positions [first, first + length) of a plane that is `width` wide; `padded`: each row to fractals."""

    first: int
    length: int
    width: int
    padded: bool

    @property
    def rows(self) -> tuple[int, int]:
        """The first row and the last one."""
        return self.first // self.width, (self.first + self.length - 1) // self.width

    @property
    def columns(self) -> tuple[int, int]:
        """The first column and the last one."""
        top, bottom = self.rows
        if top != bottom:
            return 0, self.width - 1
        return self.first % self.width, (self.first + self.length - 1) % self.width

    @property
    def executed(self) -> int:
        """Rows of the product: the positions, or what they are with padded rows."""
        if not self.padded:
            return self.length
        top, bottom = self.rows
        low, high = self.columns
        return (bottom - top + 1) * ceil_to(high - low + 1, FRACTAL)


@lru_cache(maxsize=4096)
def tiles_of(height: int, width: int, m: int, rows: bool) -> tuple[Positions, ...]:
    """The tiles of a plane: at most m positions each, whole rows where `rows` and they fit."""
    if not rows and m >= width:
        return tuple(Positions(first, count, width, False) for first, count in pieces(height * width, m))
    wide = ceil_to(width, FRACTAL)
    if rows and m >= wide:
        return tuple(
            Positions(first * width, count * width, width, True) for first, count in pieces(height, m // wide)
        )
    return tuple(
        Positions(row * width + first, count, width, rows)
        for row in range(height)
        for first, count in pieces(width, m)
    )


class Chunk(NamedTuple):
    """A part of K: source blocks [block, block + blocks), plane taps [tap, tap + taps) of one depth tap.

    `plane` is the source plane that it reads, None where there is none.
    """

    depth: int
    plane: int | None
    block: int
    blocks: int
    tap: int
    taps: int

    @property
    def steps(self) -> int:
        """Its length in blocks of C0: (block, tap) pairs."""
        return self.blocks * self.taps


class Box(NamedTuple):
    """Rows [row, row + rows) and columns [column, column + columns) of a source plane."""

    row: int
    rows: int
    column: int
    columns: int

    @property
    def empty(self) -> bool:
        """Whether nothing is in it."""
        return not (self.rows and self.columns)


def chunks_of(axes: Axes, target_plane: int, blocks: int, chunk_blocks: int, chunk_taps: int) -> list[Chunk]:
    """The chunks of K below a tile of one target plane; those whose source plane is absent are left out."""
    depth, height, width = axes
    found = []
    for tap_d in range(depth.kernel):
        plane = depth.source(target_plane, tap_d)
        if plane is not None:
            found += [
                Chunk(tap_d, plane, b, bb, t, tb)
                for b, bb in pieces(blocks, chunk_blocks)
                for t, tb in pieces(height.kernel * width.kernel, chunk_taps)
            ]
    return found


def box_of(axes: Axes, tile: Positions, tap: int, taps: int) -> Box:
    """What a tile reads of a source plane with some plane taps; whole rows where it spans several."""
    _, height, width = axes
    first, last = tap // width.kernel, (tap + taps - 1) // width.kernel
    a, b = height.span(*tile.rows, first, last)
    low, high = (
        (tap % width.kernel, (tap + taps - 1) % width.kernel) if first == last else (0, width.kernel - 1)
    )
    if tile.rows[0] != tile.rows[1] and first != last:
        c, d = 0, width.sources
    else:
        c, d = width.span(*tile.columns, low, high)
    return Box(a, b - a, c, d - c)


def most_box(axes: Axes, m: int, rows: bool, taps: int) -> tuple[int, int]:
    """(rows, columns) that the box of any tile has at most, spread."""
    _, height, width = axes
    across, down = min(taps, width.kernel), min(height.kernel, ceil((taps - 1) / width.kernel) + 1)
    wide = ceil_to(width.targets, FRACTAL)
    crossed = 1 if m < width.targets else ceil((m - 1) / width.targets) + 1
    lines = min(max(1, m // wide) if rows else crossed, height.targets)
    long = width.targets if lines > 1 else min(m, width.targets)
    if down > 1:
        across = width.kernel
    if lines > 1 and down > 1:
        return _reached(height, lines, down), width.places
    return _reached(height, lines, down), _reached(width, long, across)


def _reached(reach: Reach, targets: int, taps: int) -> int:
    """Places between the first and the last that targets reach with taps, no more than there are."""
    return min(reach.places, (targets - 1) * reach.step + (taps - 1) * abs(reach.tap) + 1)
