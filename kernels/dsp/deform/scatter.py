"""The launch that makes dx: each core owns bands of it, and adds up all that any sampling point leaves there.

A band is rows of one image and a block of the channels of a deformable group, in fp32 in AM until it is complete. The
DSP has no atomic additions: no two cores add to the same place, and every element is summed in the order of the points,
whatever the bands, the tiles and the cores are. The price is that a point whose corners lie in two bands is read twice.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from kernels.deform_points import Points
from kernels.dsp.deform.extents import extents_of
from kernels.dsp.deform.sample import shape_last
from kernels.dsp.deform.tiles import Places, Spot, Tile
from kernels.dsp.deform.tiling import DeformTiling
from kernels.dsp.deform.vectors import AddPoints
from kernels.dsp.dw.shares import mine
from kernels.dsp.dx.geometry import pieces
from simulator.instructions import Instruction
from simulator.kernel import Core, Space
from simulator.memory.boxes import load_box, store_box
from simulator.memory.memories import Buffer
from simulator.tiles import Loop, Step, walk
from simulator.values.numerics import dtype
from simulator.vector import Cast, Fill

LOAD_EXTENTS, LOAD_POINTS, LOAD_UPSTREAM, STORE = 0, 1, 2, 3
"""DMA channels."""


class Band(NamedTuple):
    """Rows [row, row + rows) of an image, and channels [c, c + channels) of a deformable group."""

    n: int
    group: int
    c: int
    channels: int
    row: int
    rows: int


class Part(NamedTuple):
    """A tile of which something falls into a band: its corners there, and the tap rows [first, first + rows) of them.

    `tile` is None where nothing does: a band is zeros at least.
    """

    tile: Tile | None
    places: Places | None
    first: int
    rows: int


NOTHING = Part(None, None, 0, 0)


@dataclass(frozen=True)
class ScatterTensors:
    """What the launch reads and writes, channel last.

    Attributes:
        upstream: gradient of the features, [N, Ho x Kh, Wo x Kw, C].
        offset: [N, Ho, Wo, 2 x points].
        mask: [N, Ho, Wo, points], or None.
        extents: [N, Ho, deformable groups, 2].
        dx: [N, H, W, C].
    """

    upstream: Buffer
    offset: Buffer
    mask: Buffer | None
    extents: Buffer
    dx: Buffer


class DeformScatter:
    """The kernel of the launch."""

    name = "deform_scatter"
    kind = "vector"
    axes: tuple[str, ...] = ("band", "i", "j")

    def __init__(self, points: Points, tiling: DeformTiling, tensors: ScatterTensors) -> None:
        """Add up what `points` leave."""
        self.points = points
        self.tensors = tensors
        self.frame = shape_last(points)
        shape, size = points.shape, points.shape.conv.size
        self.columns = pieces(shape.conv.out[1], tiling.scatter_positions)
        self.extents = extents_of(points, [(0, shape.conv.out[1])])[:, 0]
        self.bands = [
            Band(n, group, c, channels, row, rows)
            for n in range(shape.conv.n)
            for group in range(shape.deform_groups)
            for c, channels in pieces(shape.channels, tiling.scatter_channels)
            for row, rows in pieces(size[0], tiling.scatter_rows)
            if size[1]
        ]

    def mine(self, rank: int, count: int) -> range:
        """The numbers of a core's bands."""
        first, number = mine(len(self.bands), rank, count) or (0, 0)
        return range(first, first + number)

    def core_class(self, rank: int, count: int) -> Hashable | None:
        """Every core is its own: where it adds is data."""
        return rank if self.mine(rank, count) else None

    def parts(self, band: Band) -> list[Part]:
        """What falls into a band, in the order of the points; nothing at all is one part."""
        found, rows = [], self.points.shape.conv.out[0]
        for i in range(rows):
            low, high = self.extents[band.n * rows + i, band.group]
            if low < band.row + band.rows and high >= band.row:
                spots = (Spot(band.n, i, band.group, j, count) for j, count in self.columns)
                found += [part for spot in spots if (part := self._part(band, spot)) is not NOTHING]
        return found or [NOTHING]

    def _part(self, band: Band, spot: Spot) -> Part:
        conv, tile = self.points.shape.conv, Tile.of(self.points, spot)
        pixels = tile.cell.pixels // conv.cin
        (height, width), kw = conv.size, conv.kernel[1]
        first = (band.n * height + band.row) * width
        places = Places.of(tile.cell, pixels, first, band.rows * width)
        if not places.points:
            return NOTHING
        taps = np.nonzero(tile.cell.inside)[0][places.point] % conv.taps // kw
        return Part(tile, places, int(taps.min()), int(taps.max() - taps.min()) + 1)

    def setup(self, space: Space) -> None:
        """A band, and two tiles of what is added to it."""
        t, conv, fp32 = self.tensors, self.points.shape.conv, dtype("fp32")
        most = max(count for _, count in self.columns) * conv.taps
        channels = max((band.channels for band in self.bands), default=1)
        size = max((band.rows * conv.size[1] * band.channels for band in self.bands), default=1)
        less = "lower scatter_rows, scatter_channels or scatter_positions"
        space.ring("extents", "array", 2 * conv.out[0], fp32, remedy=less)
        space.ring("band", "array", size, fp32, remedy=less)
        if t.dx.dtype is not fp32:
            space.ring("band_out", "array", size, t.dx.dtype, remedy=less)
        for name, buffer, each in (
            ("offset", t.offset, 2),
            ("mask", t.mask, 1),
            ("upstream", t.upstream, channels),
        ):
            if buffer is not None:
                space.ring(name, "array", most * each, buffer.dtype, depth=2, remedy=less)

    def program(self, core: Core) -> Iterator[Instruction]:
        """Bands outside, tiles inside."""
        stages = _Stages(self, core)
        loops = (
            Loop(
                lambda _: self.mine(core.rank, core.count),
                load=stages.load_extents, enter=stages.begin, store=stages.store_band, ahead=0,
            ),
            Loop(stages.parts, load=stages.load_part),
        )  # fmt: skip
        yield from walk(loops, stages.add)


class _Stages:
    """What one core does for a band, and for each tile that adds to it."""

    def __init__(self, kernel: DeformScatter, core: Core) -> None:
        self.kernel = kernel
        self.rings = core.rings
        self._known: dict[int, list[Part]] = {}

    def parts(self, step: Step | None) -> list[Part]:
        """The tiles below a band, which are looked for once: loads and sums both ask."""
        assert step is not None  # noqa: S101  # the loop lies in another
        if step.tile not in self._known:
            self._known[step.tile] = self.kernel.parts(self.kernel.bands[step.tile])
        return self._known[step.tile]

    def load_extents(self, step: Step) -> Iterator[Instruction]:
        """The rows that the points of each output row touch."""
        band, extents = self.kernel.bands[step.tile], self.kernel.tensors.extents
        _, high, _, wide = extents.shape
        yield from load_box(
            self.rings["extents"][0], extents, (band.n, 0, band.group, 0), (1, high, 1, wide),
            channel=LOAD_EXTENTS, coords=(step.tile, -1, -1), name="load_extents",
        )  # fmt: skip

    def _size(self, number: int) -> tuple[int, int, int]:
        band = self.kernel.bands[number]
        return band.rows, self.kernel.points.shape.conv.size[1], band.channels

    def begin(self, step: Step) -> Iterator[Instruction]:
        """A band of zeros."""
        yield Fill(self.rings["band"][0].dense(self._size(step.tile)), coords=(step.tile, -1, -1))

    def load_part(self, step: Step) -> Iterator[Instruction]:
        """Offsets and masks of a tile, and the gradients of its features in the tap rows that reach the band."""
        part, number = step.tile, _outside(step).tile
        if part.tile is None:
            return
        spot, band, t = part.tile.spot, self.kernel.bands[number], self.kernel.tensors
        shape, coords = self.kernel.points.shape, (number, spot.i, spot.j)
        for name, buffer, each in (("offset", t.offset, 2), ("mask", t.mask, 1)):
            if buffer is not None:
                wide = each * shape.conv.taps
                yield from load_box(
                    self.rings[name][step.ordinal], buffer, (spot.n, spot.i, spot.j, spot.group * wide),
                    (1, 1, spot.columns, wide), channel=LOAD_POINTS, coords=coords, name=f"load_{name}",
                )  # fmt: skip
        (kh, kw), first = shape.conv.kernel, band.group * shape.channels + band.c
        yield from load_box(
            self.rings["upstream"][step.ordinal], t.upstream, (spot.n, spot.i * kh + part.first, spot.j * kw, first),
            (1, part.rows, spot.columns * kw, band.channels), channel=LOAD_UPSTREAM, coords=coords,
            name="load_upstream", frame=self.kernel.frame,
        )  # fmt: skip

    def add(self, step: Step) -> Iterator[Instruction]:
        """What a tile leaves in the band."""
        part, number = step.tile, _outside(step).tile
        if part.tile is None:
            return
        spot, band, conv = part.tile.spot, self.kernel.bands[number], self.kernel.points.shape.conv
        size: dict[str, tuple[int, ...]] = {
            "offset": (spot.columns, 2 * conv.taps),
            "mask": (spot.columns, conv.taps),
        }
        size["upstream"] = (part.rows, spot.columns * conv.kernel[1], band.channels)
        reads = {n: self.rings[n][step.ordinal].dense(dims) for n, dims in size.items() if n in self.rings}
        out = self.rings["band"][0].dense(self._size(number))
        yield AddPoints(part.tile, part.first, part.places, reads, out, coords=(number, spot.i, spot.j))

    def store_band(self, step: Step) -> Iterator[Instruction]:
        """The complete band, rounded once."""
        band, coords = self.kernel.bands[step.tile], (step.tile, -1, -1)
        local, size = self.rings["band"][0], self._size(step.tile)
        if "band_out" in self.rings:
            local = self.rings["band_out"][0]
            yield Cast(local.dense(size), self.rings["band"][0].dense(size), coords=coords)
        first = band.group * self.kernel.points.shape.channels + band.c
        yield from store_box(
            self.kernel.tensors.dx, (band.n, band.row, 0, first), (1, *size), local,
            channel=STORE, coords=coords, name="store_dx",
        )  # fmt: skip


def _outside(step: Step) -> Step:
    """The step of the loop outside."""
    assert step.up is not None  # noqa: S101  # the loops lie in each other
    return step.up
