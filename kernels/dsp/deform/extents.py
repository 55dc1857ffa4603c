"""The launch that notes which rows of x the points of each output row touch, so that the scatter reads no others."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence

import numpy as np

from kernels.deform_points import Floats, Points
from kernels.dsp.deform.vectors import Extents
from kernels.dsp.dw.shares import mine
from kernels.dsp.dx.geometry import pieces
from simulator.instructions import Instruction
from simulator.kernel import Core, Space
from simulator.memory.boxes import load_box, store_box
from simulator.memory.memories import Buffer
from simulator.tiles import Loop, Step, walk
from simulator.values.numerics import dtype

ELEMENTS = 16384
"""Offsets in AM at a time."""

LOAD, STORE = 1, 3
"""DMA channels."""


def extents_of(points: Points, cuts: Sequence[tuple[int, int]]) -> Floats:
    """[N x Ho, pieces of columns, deformable groups, 2]: the lowest row of pixels, and the one above the highest.

    Where no point is inside they are H and -2: no row lies between.
    """
    shape, conv = points.shape, points.shape.conv
    split = (conv.n * conv.out[0], conv.out[1], shape.deform_groups, conv.taps)
    inside, low = points.inside.reshape(split), points.row.reshape(split)
    lowest, highest = np.where(inside, low, conv.size[0]), np.where(inside, low + 1, -2)
    found = np.zeros((split[0], len(cuts), shape.deform_groups, 2), np.float32)
    for index, (first, count) in enumerate(cuts):
        part = (slice(None), slice(first, first + count))
        found[:, index, :, 0] = lowest[part].min(axis=(1, 3))
        found[:, index, :, 1] = highest[part].max(axis=(1, 3))
    return found


class DeformExtents:
    """Extents [N, Ho, deformable groups, 2] from offsets [N, Ho, Wo, 2 x points], output rows shared by the cores."""

    name = "deform_extents"
    kind = "vector"
    axes: tuple[str, ...] = ("i", "j")

    def __init__(self, points: Points, offset: Buffer, extents: Buffer) -> None:
        """Read `offset`, write `extents`."""
        self.points = points
        self.offset = offset
        self.extents = extents
        shape = points.shape
        self.cuts = pieces(shape.conv.out[1], max(1, ELEMENTS // (2 * shape.points)))
        self.found = extents_of(points, self.cuts)

    def rows(self, rank: int, count: int) -> range:
        """The numbers of a core's output rows, through all images."""
        conv = self.points.shape.conv
        first, number = mine(conv.n * conv.out[0], rank, count) or (0, 0)
        return range(first, first + number)

    def core_class(self, rank: int, count: int) -> Hashable | None:
        """Cores with as many rows."""
        return len(self.rows(rank, count)) or None

    def origins(self, rank: int, count: int) -> list[tuple[int, ...]]:
        """The number of each row."""
        return [(number,) for number in self.rows(rank, count)]

    def setup(self, space: Space) -> None:
        """Two pieces of offsets, two rows of extents."""
        shape = self.points.shape
        most = max(count for _, count in self.cuts) * 2 * shape.points
        space.ring("offset", "array", most, self.offset.dtype, depth=2)
        space.ring("extents", "array", 2 * shape.deform_groups, dtype("fp32"), depth=2)

    def program(self, core: Core) -> Iterator[Instruction]:
        """Rows outside, pieces of columns inside."""
        loops = (
            Loop(lambda _: self.rows(core.rank, core.count), store=lambda step: self._store(core, step)),
            Loop(lambda _: self.cuts, load=lambda step: self._load(core, step)),
        )
        yield from walk(loops, lambda step: self._note(core, step))

    def _load(self, core: Core, step: Step) -> Iterator[Instruction]:
        row, (j, count), shape = _outside(step).tile, step.tile, self.points.shape
        frame = (shape.conv.n * shape.conv.out[0], shape.conv.out[1], 2 * shape.points)
        yield from load_box(
            core.rings["offset"][step.ordinal], self.offset, (row, j, 0), (1, count, 2 * shape.points),
            channel=LOAD, coords=(row, j), name="load_offset", frame=frame,
        )  # fmt: skip

    def _note(self, core: Core, step: Step) -> Iterator[Instruction]:
        up, (j, count), shape = _outside(step), step.tile, self.points.shape
        piece = self.cuts.index(step.tile)
        given = core.rings["offset"][step.ordinal].dense((count, 2 * shape.points))
        out = core.rings["extents"][up.ordinal].dense((shape.deform_groups, 2))
        points = count * shape.points
        found = self.found[up.tile, piece]
        yield Extents(out, given, found, points, begins=piece == 0, coords=(up.tile, j))

    def _store(self, core: Core, step: Step) -> Iterator[Instruction]:
        wide, local = 2 * self.points.shape.deform_groups, core.rings["extents"][step.ordinal]
        yield from store_box(
            self.extents, (step.tile, 0), (1, wide), local, channel=STORE, coords=(step.tile, -1),
            name="store_extents", frame=(self.extents.size // wide, wide),
        )  # fmt: skip


def _outside(step: Step) -> Step:
    """The step of the loop outside."""
    assert step.up is not None  # noqa: S101  # the loops lie in each other
    return step.up
