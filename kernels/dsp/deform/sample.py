"""The launch that reads x at the sampling points: the features for dw, and the gradients of offsets and masks.

A tile is all taps of a deformable group at neighbouring outputs; a core has all channels of its tiles, so that nothing
is summed between cores. The pixels around its points come as one window of x, where that has fewer pixels than the
points have corners; else the corners of each point come by DMA transfers of their own.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass

from kernels.deform_points import Points
from kernels.dsp.deform.tiles import Spot, Tile, Window, spots_of, transfers_of
from kernels.dsp.deform.tiling import DeformTiling
from kernels.dsp.deform.vectors import SamplePoints
from kernels.dsp.dw.shares import mine
from kernels.dsp.dx.geometry import pieces
from simulator.gather import GatherRuns
from simulator.instructions import Instruction
from simulator.kernel import Core, Space
from simulator.memory.boxes import load_box, store_box
from simulator.memory.memories import Buffer, View
from simulator.tiles import Loop, Step, walk
from simulator.values.numerics import dtype
from simulator.vector import Cast, Fill

LOAD_POINTS, LOAD_PIXELS, LOAD_UPSTREAM, STORE = 0, 1, 2, 3
"""DMA channels."""

PER_TAP = {"offset": 2, "mask": 1, "doffset": 2, "dmask": 1}
"""Numbers of a tap."""

SUMS = ("doffset", "dmask")


@dataclass(frozen=True)
class SampleTensors:
    """What the launch reads and writes, channel last; None for what there is not or what is not asked for.

    Attributes:
        x: [N, H, W, C].
        offset, doffset: [N, Ho, Wo, 2 x points].
        mask, dmask: [N, Ho, Wo, points].
        upstream, features: [N, Ho x Kh, Wo x Kw, C]; the gradient of the features, and the features.
    """

    x: Buffer
    offset: Buffer
    mask: Buffer | None
    upstream: Buffer | None
    features: Buffer | None
    doffset: Buffer | None
    dmask: Buffer | None

    @property
    def scalars(self) -> dict[str, Buffer]:
        """The tensors with numbers of each tap, by name."""
        return {name: buffer for name in PER_TAP if (buffer := getattr(self, name)) is not None}

    @property
    def sums(self) -> dict[str, Buffer]:
        """The gradients among them."""
        return {name: buffer for name, buffer in self.scalars.items() if name in SUMS}


class DeformSample:
    """The kernel of the launch."""

    name = "deform_sample"
    kind = "vector"
    axes: tuple[str, ...] = ("tile", "c")

    def __init__(self, points: Points, tiling: DeformTiling, tensors: SampleTensors) -> None:
        """Sample at `points`."""
        self.points = points
        self.tiling = tiling
        self.tensors = tensors
        self.spots = spots_of(points.shape, tiling.sample_positions)
        self.frame = shape_last(points)
        self.chunks = pieces(points.shape.channels, tiling.sample_channels) or [(0, 0)]

    def mine(self, rank: int, count: int) -> range:
        """The numbers of a core's tiles."""
        first, number = mine(len(self.spots), rank, count) or (0, 0)
        return range(first, first + number)

    def core_class(self, rank: int, count: int) -> Hashable | None:
        """Every core is its own: where it reads is data."""
        return rank if self.mine(rank, count) else None

    def setup(self, space: Space) -> None:
        """Two tiles of everything, and their sums in fp32."""
        t, taps = self.tensors, self.points.shape.conv.taps
        most = max((spot.columns for spot in self.spots), default=1) * taps
        wide = max(1, most * max(size for _, size in self.chunks))
        less = "lower sample_positions or sample_channels"
        for name, buffer in t.scalars.items():
            space.ring(name, "array", most * PER_TAP[name], buffer.dtype, depth=2, remedy=less)
        for name, buffer in t.sums.items():
            if buffer.dtype is not dtype("fp32"):
                size = most * PER_TAP[name]
                space.ring(f"{name}_sums", "array", size, dtype("fp32"), depth=2, remedy=less)
        space.ring("pixels", "array", 4 * wide, t.x.dtype, depth=2, remedy=less)
        for name, values in (("upstream", t.upstream), ("features", t.features)):
            if values is not None:
                space.ring(name, "array", wide, values.dtype, depth=2, remedy=less)

    def program(self, core: Core) -> Iterator[Instruction]:
        """Tiles outside, pieces of their channels inside."""
        stages = _Stages(self, core)
        loops = (
            Loop(
                lambda _: self.mine(core.rank, core.count),
                load=stages.load_points, enter=stages.begin, store=stages.store_sums,
            ),
            Loop(lambda _: self.chunks, load=stages.load_values),
        )  # fmt: skip
        yield from walk(loops, stages.sample)


class _Stages:
    """What one core does for a tile, and for a piece of its channels."""

    def __init__(self, kernel: DeformSample, core: Core) -> None:
        self.kernel = kernel
        self.rings = core.rings

    def _tile(self, number: int) -> Tile:
        return Tile.of(self.kernel.points, self.kernel.spots[number])

    def _box(self, name: str, spot: Spot) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Where the numbers of a spot's taps lie: first index and sizes."""
        each = PER_TAP[name] * self.kernel.points.shape.conv.taps
        return (spot.n, spot.i, spot.j, spot.group * each), (1, 1, spot.columns, each)

    def _local(self, name: str, ordinal: int, spot: Spot) -> View:
        each = PER_TAP[name.removesuffix("_sums")] * self.kernel.points.shape.conv.taps
        return self.rings[name][ordinal].dense((spot.columns, each))

    def _sums(self, name: str) -> str:
        """The ring of a gradient's sums."""
        return f"{name}_sums" if f"{name}_sums" in self.rings else name

    def load_points(self, step: Step) -> Iterator[Instruction]:
        """Offsets and masks."""
        spot = self.kernel.spots[step.tile]
        for name, buffer in self.kernel.tensors.scalars.items():
            if name not in SUMS:
                local = self.rings[name][step.ordinal]
                yield from load_box(
                    local, buffer, *self._box(name, spot),
                    channel=LOAD_POINTS, coords=(step.tile, -1), name=f"load_{name}",
                )  # fmt: skip

    def begin(self, step: Step) -> Iterator[Instruction]:
        """Sums start at zero."""
        spot = self.kernel.spots[step.tile]
        for name in self.kernel.tensors.sums:
            yield Fill(self._local(self._sums(name), step.ordinal, spot), coords=(step.tile, -1))

    def load_values(self, step: Step) -> Iterator[Instruction]:
        """The pixels around the points, and the gradients of their features."""
        number, (c, size) = _outside(step).tile, step.tile
        tile, t = self._tile(number), self.kernel.tensors
        if len(tile.cell.pixels) and size:
            yield from self._load_pixels(tile, self.rings["pixels"][step.ordinal], (c, size), (number, c))
        if t.upstream is not None and size:
            start, wide = self._features(tile.spot, c, size)
            yield from load_box(
                self.rings["upstream"][step.ordinal], t.upstream, start, wide, channel=LOAD_UPSTREAM,
                coords=(number, c), name="load_upstream", frame=self.kernel.frame,
            )  # fmt: skip

    def _load_pixels(
        self, tile: Tile, local: Buffer, piece: tuple[int, int], coords: tuple[int, int]
    ) -> Iterator[Instruction]:
        """A window, or corner by corner."""
        (c, size), x, shape = piece, self.kernel.tensors.x, self.kernel.points.shape
        window = Window.of(tile.cell, shape)
        if window is not None:
            start = (tile.spot.n, window.row, window.column, tile.spot.group * shape.channels + c)
            yield from load_box(
                local, x, start, (1, window.rows, window.columns, size),
                channel=LOAD_PIXELS, coords=coords, name="load_window",
            )  # fmt: skip
            return
        places, transfers = tile.cell.pixels + c, transfers_of(tile.cell, whole=size == shape.conv.cin)
        packed = local.dense((len(places), size))
        source = x.scattered(places, size)
        yield GatherRuns(packed, source, transfers, channel=LOAD_PIXELS, coords=coords, name="gather_pixels")

    def _features(self, spot: Spot, c: int, size: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Where a piece of a tile's features lies."""
        shape = self.kernel.points.shape
        (kh, kw), first = shape.conv.kernel, spot.group * shape.channels + c
        return (spot.n, spot.i * kh, spot.j * kw, first), (1, kh, spot.columns * kw, size)

    def sample(self, step: Step) -> Iterator[Instruction]:
        """The sums, and the features, which are stored."""
        up, (c, size) = _outside(step), step.tile
        tile, t, coords = self._tile(up.tile), self.kernel.tensors, (up.tile, c)
        spot, (kh, kw) = tile.spot, self.kernel.points.shape.conv.kernel
        piece = (kh, spot.columns * kw, size)
        reads = {name: self._local(name, up.ordinal, spot) for name in t.scalars if name not in SUMS}
        window, corners = Window.of(tile.cell, self.kernel.points.shape), len(tile.cell.pixels)
        if size and corners:
            held = corners if window is None else window.rows * window.columns
            reads["pixels"] = self.rings["pixels"][step.ordinal].dense((held, size))
        if size and t.upstream is not None:
            reads["upstream"] = self.rings["upstream"][step.ordinal].dense(piece)
        writes = {name: self._local(self._sums(name), up.ordinal, spot) for name in t.sums}
        if t.features is not None:
            writes["features"] = self.rings["features"][step.ordinal].dense(piece)
        index = None if window is None else window.places
        yield SamplePoints(tile, size, reads, writes, index, coords=coords)
        if t.features is not None and size:
            local = self.rings["features"][step.ordinal]
            yield from store_box(
                t.features, *self._features(spot, c, size), local, channel=STORE, coords=coords,
                name="store_features", frame=self.kernel.frame,
            )  # fmt: skip

    def store_sums(self, step: Step) -> Iterator[Instruction]:
        """Complete sums, rounded once."""
        spot, coords = self.kernel.spots[step.tile], (step.tile, -1)
        for name, buffer in self.kernel.tensors.sums.items():
            local = self._local(name, step.ordinal, spot)
            if self._sums(name) != name:
                yield Cast(local, self._local(self._sums(name), step.ordinal, spot), coords=coords)
            yield from store_box(
                buffer, *self._box(name, spot), local.buffer,
                channel=STORE, coords=coords, name=f"store_{name}",
            )  # fmt: skip


def shape_last(points: Points) -> tuple[int, ...]:
    """The features' shape, channel last."""
    n, c, high, wide = points.shape.features.x_shape
    return n, high, wide, c


def _outside(step: Step) -> Step:
    """The step of the loop outside."""
    assert step.up is not None  # noqa: S101  # the loops lie in each other
    return step.up
