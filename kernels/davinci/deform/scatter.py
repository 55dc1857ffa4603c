"""The scatter: gradients of x, offsets and masks from that of the resampled features, on all vector cores.

Each core first writes its share of zeros; after a barrier it takes its share of the sampling points (image, output
position, deformable group, tap), tile by tile. A tile is a wave of the core's threads, a point each, that go through
their channels together.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from math import ceil
from typing import NamedTuple

from kernels.davinci.deform.bilinear import BilinearBackward
from kernels.davinci.space import kind_with
from kernels.davinci.split import share, used
from kernels.davinci.tiles import pieces
from kernels.davinci.vectors import PIECE
from kernels.deform_points import Points
from simulator.cube import Fill, Gather, Move, ScatterAdd
from simulator.instructions import Barrier, FlagSet, FlagWait, Instruction
from simulator.kernel import Core, Space
from simulator.memory.memories import Buffer
from simulator.tiles import Loop, Step, walk
from simulator.values.numerics import dtype
from targets.schema import Target

THREADS = 512
"""Threads of a vector core that run at once."""


class Tile(NamedTuple):
    """Points [point, point + points) of the output positions [position, position + positions)."""

    position: int
    positions: int
    point: int
    points: int


@dataclass(frozen=True)
class Tensors:
    """What the scatter reads and writes, channel last.

    Attributes:
        x: [N, H, W, C].
        features: gradient of the resampled features, [N, Ho x Kh, Wo x Kw, C].
        offsets: [N, Ho, Wo, planes x points]: planes of x, y and, for version 2, the mask.
        sums: of dx, [N, H, W, C] in fp32.
        scalars: gradients of `offsets`, in its places.
    """

    x: Buffer
    features: Buffer
    offsets: Buffer
    sums: Buffer
    scalars: Buffer


def tiles_of(positions: int, points: int, most: int) -> list[Tile]:
    """All tiles of at most `most` points, in the order of the points."""
    if points <= most:
        return [Tile(first, count, 0, points) for first, count in pieces(positions, most // points)]
    cut = pieces(points, most)
    return [Tile(position, 1, first, count) for position in range(positions) for first, count in cut]


class DeformScatter:
    """The kernel of the launch; with `ordered`, the cores make their additions one core after the other."""

    name = "deform_scatter"
    kind = "vector"
    axes: tuple[str, ...] = ("position", "point")

    def __init__(
        self,
        target: Target,
        points: Points,
        tensors: Tensors,
        elements: int,
        cores: int,
        *,
        ordered: bool = False,
    ) -> None:
        """Work on tiles of at most `elements` channels of points, fewer where `cores` vector cores can share them."""
        self.points = points
        self.tensors = tensors
        self.channels = points.shape.channels
        self.planes = 3 if points.shape.masked else 2
        fair = ceil(points.inside.size / cores)
        self.most = max(1, min(THREADS, elements // self.channels, fair))
        self.tiles = tiles_of(points.positions, points.shape.points, self.most)
        self.zeros = pieces(tensors.sums.size, PIECE)
        self.ordered = ordered
        self.store_engine = target.path[f"ub->{target.main_memory}"].engine
        self.core_kinds = (kind_with(target, "vector"),)

    def core_class(self, rank: int, count: int) -> Hashable | None:
        """Every core is its own: its addresses are data."""
        return rank if self.mine(rank, count) or self.my_zeros(rank, count) else None

    def mine(self, rank: int, count: int) -> range:
        """The numbers of a core's tiles."""
        return share(len(self.tiles), used(len(self.tiles), count), rank)

    def my_zeros(self, rank: int, count: int) -> range:
        """The numbers of the pieces that a core sets to zero."""
        return share(len(self.zeros), used(len(self.zeros), count), rank)

    def setup(self, space: Space) -> None:
        """Zeros; two tiles of everything."""
        t, fp32 = self.tensors, dtype("fp32")
        most = max((tile.positions * tile.points for tile in self.tiles), default=1)
        wide, less = most * self.channels, "lower scatter.elements, or use more deformable groups"
        space.ring("zeros", "ub", min(PIECE, t.sums.size), fp32)
        for name in ("offsets", "scalars"):
            space.ring(name, "ub", self.planes * most, t.offsets.dtype, depth=2, remedy=less)
        space.ring("upstream", "ub", wide, t.features.dtype, depth=2, remedy=less)
        space.ring("pixels", "ub", 4 * wide, t.x.dtype, depth=2, remedy=less)
        space.ring("adds", "ub", 4 * wide, fp32, depth=2, remedy=less)

    def program(self, core: Core) -> Iterator[Instruction]:
        """Zeros, a barrier, and tiles."""
        yield from self._clear(core)
        yield Barrier()
        listed = self.mine(core.rank, core.count)
        loops = (Loop(lambda _: listed, load=lambda step: self._load(core, step)),)
        chained = self.ordered and len(listed) > 0
        if chained and core.rank:
            yield FlagWait(("added", core.rank - 1), self.store_engine)
        yield from walk(loops, lambda step: self._compute(core, step))
        if chained and core.rank + 1 < used(len(self.tiles), core.count):
            yield FlagSet(("added", core.rank), self.store_engine)

    def values(self, core: Core) -> Iterator[Instruction]:
        """The same."""
        return self.program(core)

    def _clear(self, core: Core) -> Iterator[Instruction]:
        """A core's share of the zeros."""
        mine = [self.zeros[i] for i in self.my_zeros(core.rank, core.count)]
        ring, sums = core.rings["zeros"][0], self.tensors.sums
        if mine:
            yield Fill(ring.dense((max(length for _, length in mine),)), coords=(-1, -1))
        for first, length in mine:
            place = sums.box((first,), (length,), frame=(sums.size,))
            yield Move(place, ring.dense((length,)), coords=(-1, -1), name="store_zeros")

    def _load(self, core: Core, step: Step) -> Iterator[Instruction]:
        """Offsets, gradients of the features, and the pixels around the points that are inside."""
        tile, cell = self.tiles[step.tile], self.points.cell(*self.tiles[step.tile])
        coords, t, rings = (tile.position, tile.point), self.tensors, core.rings
        size = (tile.positions, self.planes, tile.points)
        place = t.offsets.box((tile.position, 0, tile.point), size, frame=self._frame)
        yield Move(rings["offsets"][step.ordinal].dense(size), place, coords=coords, name="load_offsets")
        for name, source, starts in (("upstream", t.features, cell.features), ("pixels", t.x, cell.pixels)):
            if len(starts):
                local = rings[name][step.ordinal].dense((len(starts), self.channels))
                runs = source.scattered(starts, self.channels)
                yield Gather(local, runs, coords=coords, name=f"gather_{name}")

    def _compute(self, core: Core, step: Step) -> Iterator[Instruction]:
        """What they add to dx, and their own gradients."""
        tile, cell = self.tiles[step.tile], self.points.cell(*self.tiles[step.tile])
        coords, t, turn = (tile.position, tile.point), self.tensors, step.ordinal
        size = (tile.positions, self.planes, tile.points)
        offsets, scalars, upstream, pixels, adds = (
            core.rings[name][turn] for name in ("offsets", "scalars", "upstream", "pixels", "adds")
        )
        inside, corners = len(cell.features), len(cell.pixels)
        local = adds.dense((corners, self.channels)) if corners else None
        values = upstream.dense((inside, self.channels)), pixels.dense((corners, self.channels))
        yield BilinearBackward(
            cell,
            self.channels,
            offsets.dense(size),
            scalars.dense(size),
            values if corners else None,
            local,
            coords=coords,
        )
        if local is not None:
            yield ScatterAdd(
                t.sums.scattered(cell.pixels, self.channels), local, coords=coords, name="add_dx"
            )
        place = t.scalars.box((tile.position, 0, tile.point), size, frame=self._frame)
        yield Move(place, scalars.dense(size), coords=coords, name="store_scalars")

    @property
    def _frame(self) -> tuple[int, int, int]:
        """Offsets as positions, planes and points."""
        return self.points.positions, self.planes, self.points.shape.points
