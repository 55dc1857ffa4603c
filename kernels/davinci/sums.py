"""What the cores do for the weights' gradient: tiles of dw, and the chunks of positions that each is summed over."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from itertools import product
from typing import NamedTuple

from kernels.davinci.sides import FRACTAL, Sides
from kernels.davinci.split import share
from kernels.davinci.tiles import Axes, Box, Positions, box_of, ceil_to, pieces, tiles_of
from kernels.davinci.tiling import WeightTiling


class Tile(NamedTuple):
    """A tile of dw.

    Merged group g, depth tap, blocks [row, row + rows) of the strided side, (block, tap) pairs [unit, unit + units).
    """

    g: int
    depth: int
    row: int
    rows: int
    unit: int
    units: int


class Piece(NamedTuple):
    """Positions of one plane of one image of the strided side."""

    n: int
    plane: int
    tile: Positions


class Sum(NamedTuple):
    """A tile, and the pieces that a core sums for it before it leaves."""

    tile: Tile
    pieces: tuple[Piece, ...]

    @property
    def origin(self) -> tuple[int, ...]:
        """Group, depth tap, first row, first pair, first image, plane and position."""
        tile, first = self.tile, self.pieces[0]
        return tile.g, tile.depth, tile.row, tile.unit, first.n, first.plane, first.tile.first

    def key(self) -> tuple[object, ...]:
        """Equal for sums of equal timing."""
        return (self.tile[1:], tuple(piece[1:] for piece in self.pieces))


@dataclass(frozen=True)
class WeightGrid:
    """The tiles of dw and the pieces of its sums."""

    sides: Sides
    tiling: WeightTiling

    @cached_property
    def axes(self) -> Axes:
        """The reach of D, H, W, from the strided side."""
        return self.sides.reach("gather")

    @cached_property
    def rows(self) -> list[tuple[int, int]]:
        """(first, number) of the strided side's channel blocks of each tile."""
        return pieces(self.sides.small.blocks, max(1, self.tiling.m // self.sides.c0))

    @cached_property
    def columns(self) -> list[tuple[int, int, int, int]]:
        """Group, depth tap, and (first, number) of the (block, tap) pairs of each tile."""
        s = self.sides
        units = pieces(s.large.blocks * s.plane_taps, max(1, self.tiling.n // s.c0))
        return [(g, kd, *cut) for g in range(s.groups) for kd in range(s.kernel[0]) for cut in units]

    @cached_property
    def pieces(self) -> list[Piece]:
        """All pieces, image by image, plane by plane."""
        depth, height, width = self.sides.small_size
        t = self.tiling
        cut = tiles_of(height, width, t.rows * width if t.columns >= width else t.columns, False)
        return [Piece(n, d, tile) for n, d, tile in product(range(self.sides.n), range(depth), cut)]

    def sums(self, rank: int) -> list[Sum]:
        """What a core does: its pieces of its tiles, chunk by chunk or tile by tile."""
        t = self.tiling
        if rank >= t.batch * t.m_parts * t.n_parts:
            return []
        batch, rest = divmod(rank, t.m_parts * t.n_parts)
        m, n = divmod(rest, t.n_parts)
        mine = [self.pieces[i] for i in share(len(self.pieces), t.batch, batch)]
        tiles = [
            Tile(g, kd, *self.rows[r], unit, units)
            for g, kd, unit, units in (self.columns[i] for i in share(len(self.columns), t.n_parts, n))
            for r in share(len(self.rows), t.m_parts, m)
        ]
        runs = [[piece] for piece in mine] if t.flush == "chunk" else [mine]
        found = [Sum(tile, self._read(tile, run)) for run in runs for tile in tiles]
        return [each for each in found if each.pieces]

    def _read(self, tile: Tile, run: list[Piece]) -> tuple[Piece, ...]:
        """The pieces that read anything for a tile."""
        return tuple(piece for piece in run if not self.box(tile, piece).empty)

    def plane(self, tile: Tile, piece: Piece) -> int | None:
        """The plane that a piece reads, None where there is none."""
        return self.axes[0].source(piece.plane, tile.depth)

    def taps(self, tile: Tile) -> tuple[int, int]:
        """(first, number) of the plane taps that L1 serves: all of them where the tile has more than one block."""
        taps = self.sides.plane_taps
        first, last = tile.unit // taps, (tile.unit + tile.units - 1) // taps
        whole = first != last or self.tiling.window == "kernel"
        return (0, taps) if whole else (tile.unit % taps, tile.units)

    def blocks(self, tile: Tile) -> tuple[int, int]:
        """(first, number) of the blocks of a tile's pairs."""
        taps = self.sides.plane_taps
        first, last = tile.unit // taps, (tile.unit + tile.units - 1) // taps
        return first, last - first + 1

    def box(self, tile: Tile, piece: Piece) -> Box:
        """What a piece reads of its plane for a tile."""
        if self.plane(tile, piece) is None:
            return Box(0, 0, 0, 0)
        return box_of(self.axes, piece.tile, *self.taps(tile))

    def channels(self, tile: Tile) -> int:
        """Rows of a tile's product."""
        return tile.rows * self.sides.c0

    @property
    def widest(self) -> int:
        """Rows of the largest tile's product, in whole fractals."""
        return ceil_to(max((count for _, count in self.rows), default=1) * self.sides.c0, FRACTAL)
