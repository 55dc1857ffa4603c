"""The tasks of an image side: every tile of every plane of every image and group, and who does which."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import product
from math import ceil
from typing import Literal, NamedTuple

from kernels.davinci.sides import FRACTAL, Side, Sides
from kernels.davinci.split import per_axis, share, used
from kernels.davinci.tiles import Axes, Chunk, Positions, box_of, chunks_of, pieces, tiles_of
from kernels.davinci.tiling import ImageTiling


class Task(NamedTuple):
    """One tile: image n, merged group g, target plane, positions, channel blocks [block, block + blocks)."""

    n: int
    g: int
    plane: int
    tile: Positions
    block: int
    blocks: int

    @property
    def origin(self) -> tuple[int, ...]:
        """Its coordinates: image, group, plane, first position, first channel block."""
        return self.n, self.g, self.plane, self.tile.first, self.block


@dataclass(frozen=True)
class Grid:
    """The tiles of the side that `way` computes: small ones gather, large ones scatter."""

    sides: Sides
    way: Literal["gather", "scatter"]
    tiling: ImageTiling

    @cached_property
    def axes(self) -> Axes:
        """The reach of D, H, W."""
        return self.sides.reach(self.way)

    @cached_property
    def target(self) -> Side:
        """The side that is computed."""
        return self.sides.small if self.way == "gather" else self.sides.large

    @cached_property
    def source(self) -> Side:
        """The side that is read."""
        return self.sides.large if self.way == "gather" else self.sides.small

    @cached_property
    def tiles(self) -> tuple[Positions, ...]:
        """The tiles of one target plane."""
        _, height, width = self.target.size
        return tiles_of(height, width, self.tiling.m, self.tiling.walk == "rows")

    @cached_property
    def columns(self) -> list[tuple[int, int]]:
        """(first, number) of the target's channel blocks of each tile."""
        return pieces(self.target.blocks, max(1, self.tiling.n // self.sides.c0))

    def work(self, task: Task) -> tuple[Chunk, ...]:
        """The chunks of K that have something to read; one that is all absent, where none has."""
        blocks = max(1, self.tiling.channels // self.sides.c0)
        return _chunks(self.axes, task.tile, task.plane, self.source.blocks, blocks, self.tiling.taps)

    @cached_property
    def _planes(self) -> list[tuple[int, int, int]]:
        """Image, group and plane of each target plane."""
        s = self.sides
        return list(product(range(s.n), range(s.groups), range(self.target.size[0])))

    def parts(self, cores: int) -> tuple[int, int, int]:
        """Parts of planes, tiles and columns that so many cores divide; one axis of all where they take tiles."""
        sizes = (len(self._planes), len(self.tiles), len(self.columns))
        if self.tiling.split == "axes":
            planes, tiles, columns = per_axis(sizes, cores)
            return planes, tiles, columns
        return used(sizes[0] * sizes[1] * sizes[2], cores), 1, 1

    def tasks(self, rank: int, cores: int) -> list[Task]:
        """What a core does, columns inside, planes outside."""
        parts = self.parts(cores)
        if self.tiling.split == "tiles":
            return [self._task(number) for number in share(self.count, parts[0], rank)] if parts[0] else []
        outer, tile, column = rank // (parts[1] * parts[2]), rank // parts[2] % parts[1], rank % parts[2]
        if outer >= parts[0]:
            return []
        return [
            self._made(plane, t, c)
            for plane in share(len(self._planes), parts[0], outer)
            for t in share(len(self.tiles), parts[1], tile)
            for c in share(len(self.columns), parts[2], column)
        ]

    @property
    def count(self) -> int:
        """Tiles of all planes."""
        return len(self._planes) * len(self.tiles) * len(self.columns)

    def _task(self, number: int) -> Task:
        rest, column = divmod(number, len(self.columns))
        plane, tile = divmod(rest, len(self.tiles))
        return self._made(plane, tile, column)

    def _made(self, plane: int, tile: int, column: int) -> Task:
        n, g, depth = self._planes[plane]
        return Task(n, g, depth, self.tiles[tile], *self.columns[column])

    def channels(self, blocks: int) -> int:
        """Columns of a tile's product: whole blocks seen from the large side, whole fractals from the small one."""
        wide = blocks * self.sides.c0
        return wide if self.way == "scatter" else ceil(wide / FRACTAL) * FRACTAL


@lru_cache(maxsize=4096)
def _chunks(
    axes: Axes, tile: Positions, plane: int, blocks: int, chunk_blocks: int, taps: int
) -> tuple[Chunk, ...]:
    every = chunks_of(axes, plane, blocks, chunk_blocks, taps)
    some = [c for c in every if not box_of(axes, tile, c.tap, c.taps).empty]
    return tuple(some or every[:1] or [Chunk(0, None, 0, 1, 0, 1)])
