"""dx with tiles that the caller gives: M is Hin x Win, N is Cin, K is Cout x Kh x Kw.

    for each image, N tile of L1, M tile of L1:
        for each N tile of L0, M tile of L0:                  (sums in L0C)
            for each K tile of L1:                            (gradient rows and weights: GM to L1, every time)
                for each K tile of L0:                        (load3d to L0A, load2d to L0B, multiply)
            sums to GM: rounded once

The nest is that of pypto's implementation of the operator (hicann/pypto, convbp_operation_impl.cpp), for one group and
one plane. Images are NDC1HWC0, weights FRACTAL_Z. What load3d finds in the padding, or between the elements of a
gradient that strides spread, is zero and is multiplied: 0 x NaN is NaN.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import NamedTuple

from kernels.davinci.image_program import within_blocks
from kernels.davinci.moving import image_out
from kernels.davinci.sides import FRACTAL, Sides
from kernels.davinci.space import kind_with
from kernels.davinci.split import share, used
from kernels.davinci.tiles import Axes, Chunk, Positions, box_of, pieces, tiles_of
from kernels.davinci.window import window_of
from simulator.cube import Fixpipe, Load2d, Load3d, Mmad, Move
from simulator.instructions import Instruction
from simulator.kernel import Core, Space
from simulator.memory.memories import Buffer, View
from simulator.tiles import Loop, Step, walk
from simulator.values.numerics import DType, dtype
from targets.schema import Target

Part = tuple[int, int]
"""(first, number) of the (block, tap) pairs of an L1 tile of K: an L0 tile of K."""


@dataclass(frozen=True, slots=True)
class GivenTiles:
    """Sizes in elements of an L1 tile and an L0 tile, and room in elements for a tile of the gradient in L1."""

    m1: int
    k1: int
    n1: int
    m0: int
    k0: int
    n0: int
    gradient: int


class Task(NamedTuple):
    """An L1 tile: image, positions, channel blocks [block, block + blocks)."""

    n: int
    tile: Positions
    block: int
    blocks: int

    @property
    def origin(self) -> tuple[int, ...]:
        """Image, first channel block, first position."""
        return self.n, self.block, self.tile.first


class Piece(NamedTuple):
    """An L0 tile: positions, and channel blocks counted from those of its L1 tile."""

    tile: Positions
    block: int
    blocks: int


class GivenTilesDx:
    """The kernel of one launch; L1 and L0 tiles are double where two copies fit."""

    name = "conv_dx"
    kind = "conv"
    axes: tuple[str, ...] = ("n", "c", "p", "c0", "p0", "k")

    def __init__(
        self, sides: Sides, tiles: GivenTiles, gradient: Buffer, weights: Buffer, dx: Buffer, chip: Target
    ) -> None:
        """A kernel for these tensors in main memory."""
        self.sides = sides
        self.tiles = tiles
        self.gradient = gradient
        self.weights = weights
        self.dx = dx
        self.reach: Axes = sides.reach("scatter")
        self.core_kinds = (kind_with(chip, "cube"),)
        self._room = {name: chip.memory[name].size_bytes for name in ("l1", "l0a", "l0b", "l0c")}
        self.chunks = [
            Chunk(0, 0, block, blocks, 0, sides.plane_taps)
            for block, blocks in pieces(sides.small.blocks, tiles.k1 // (FRACTAL * sides.plane_taps))
        ]

    def tasks(self, rank: int, count: int) -> list[Task]:
        """The L1 tiles of a core: the nest's outer loops, cut into runs of equal length."""
        _, height, width = self.sides.large.size
        columns = pieces(self.sides.large.blocks, self.tiles.n1 // FRACTAL)
        rows = tiles_of(height, width, self.tiles.m1, rows=False)
        every = list(product(range(self.sides.n), columns, rows))
        parts = used(len(every), count)
        mine = share(len(every), parts, rank) if rank < parts else range(0)
        return [Task(every[i][0], every[i][2], *every[i][1]) for i in mine]

    def core_class(self, rank: int, count: int) -> Hashable | None:
        """Tiles of the same positions and channels."""
        return tuple((t.tile, t.block, t.blocks) for t in self.tasks(rank, count)) or None

    def origins(self, rank: int, count: int) -> list[tuple[int, ...]]:
        """(n, c, p) of a core's tiles."""
        return [task.origin for task in self.tasks(rank, count)]

    def setup(self, space: Space) -> None:
        """Rings of the given sizes."""
        t, size = self.tiles, self.gradient.dtype.size_bytes
        both = (t.gradient + t.k1 * t.n1) * size
        self.l1_depth = 2 if 2 * both <= self._room["l1"] else 1
        self._ring(space, "gradient", "l1", t.gradient, self.gradient.dtype, self.l1_depth)
        self._ring(space, "weights", "l1", t.k1 * t.n1, self.gradient.dtype, self.l1_depth)
        halves = (("a", "l0a", t.m0 * t.k0), ("b", "l0b", t.k0 * t.n0))
        depths = []
        for name, memory, count in halves:
            depths.append(2 if 2 * count * size <= self._room[memory] else 1)
            self._ring(space, name, memory, count, self.gradient.dtype, depths[-1])
        self.l0_ahead = min(depths) - 1
        double = 2 * t.m0 * t.n0 * 4 <= self._room["l0c"]
        self._ring(space, "sums", "l0c", t.m0 * t.n0, dtype("fp32"), 2 if double else 1)

    def _ring(self, space: Space, name: str, memory: str, count: int, kind: DType, depth: int) -> None:
        space.ring(name, memory, count, kind, depth=depth, remedy="lower the tile sizes")

    def program(self, core: Core) -> Iterator[Instruction]:
        """L1 tiles, L0 tiles, K tiles of L1, K tiles of L0."""
        tasks = self.tasks(core.rank, core.count)
        stages = _Stages(self, core)
        loops = (
            Loop(lambda _: tasks),
            Loop(self._pieces, store=stages.store),
            Loop(lambda _: self.chunks, load=stages.load_chunk, ahead=self.l1_depth - 1),
            Loop(self._parts, load=stages.load_part, ahead=self.l0_ahead),
        )
        yield from walk(loops, stages.multiply)

    def values(self, core: Core) -> Iterator[Instruction]:
        """The same: numbers are made by the instructions that are timed."""
        return self.program(core)

    def _pieces(self, step: Step | None) -> Sequence[Piece]:
        """The L0 tiles of an L1 tile, channels outside."""
        task: Task = _above(step).tile
        columns = pieces(task.blocks, self.tiles.n0 // FRACTAL)
        rows = pieces(task.tile.length, self.tiles.m0)
        return [
            Piece(Positions(task.tile.first + first, count, task.tile.width, False), block, blocks)
            for block, blocks in columns
            for first, count in rows
        ]

    def _parts(self, step: Step | None) -> Sequence[Part]:
        chunk: Chunk = _above(step).tile
        return pieces(chunk.steps, self.tiles.k0 // FRACTAL)


class _Stages:
    """Load, compute and store of one core."""

    def __init__(self, kernel: GivenTilesDx, core: Core) -> None:
        self.kernel = kernel
        self.core = core
        self.c0 = kernel.sides.c0

    def load_chunk(self, step: Step) -> Iterator[Instruction]:
        """The gradient that the L1 tile of M reads, and the weights of the L1 tile of N."""
        piece = _above(step.up)
        task, chunk = _above(piece.up).tile, step.tile
        kernel, coords = self.kernel, self._coords(step)
        box = box_of(kernel.reach, task.tile, 0, chunk.taps)
        if not box.empty:
            start = (task.n, 0, chunk.block, box.row, box.column, 0)
            size = (1, 1, chunk.blocks, box.rows, box.columns, self.c0)
            local = self.core.rings["gradient"][step.ordinal].dense(size)
            yield Move(local, kernel.gradient.box(start, size), coords=coords, name="load_gradient")
        g, kd, blocks, taps, wide, sixteen, c0 = kernel.sides.weight_shape
        start = (0, 0, task.block, 0, chunk.block * c0, 0)
        size = (1, 1, task.blocks, taps, chunk.blocks * c0, c0)
        place = kernel.weights.box(start, size, frame=(g, kd, blocks, taps, wide * sixteen, c0))
        yield Move(
            self.core.rings["weights"][step.ordinal].dense(size), place, coords=coords, name="load_weights"
        )

    def load_part(self, step: Step) -> Iterator[Instruction]:
        """im2col of the L0 tile of M to L0A; weights of the L0 tile of N, turned, to L0B."""
        above = _above(step.up)
        piece, chunk, (first, steps) = _above(above.up).tile, above.tile, step.tile
        task = _above(_above(above.up).up).tile
        box = box_of(self.kernel.reach, task.tile, 0, chunk.taps)
        size = (chunk.blocks, 1, 1, self.c0) if box.empty else (chunk.blocks, box.rows, box.columns, self.c0)
        image = self.core.rings["gradient"][above.ordinal].dense(size)
        window = window_of(self.kernel.reach, piece.tile, box, 0, chunk.taps, first)
        yield Load3d(self._a(step), image, window, coords=self._coords(above))
        at = 0
        frame = (task.blocks, chunk.taps, chunk.blocks * self.c0, self.c0)
        for block, tap, taps in within_blocks((first, steps), chunk.taps):
            start, extent = (piece.block, tap, block * self.c0, 0), (piece.blocks, taps, self.c0, self.c0)
            source = self.core.rings["weights"][above.ordinal].box(start, extent, frame=frame)
            out = self._b(step, taps, at)
            yield Load2d(
                out,
                source,
                transpose=True,
                axes=(1, 2, 0, 3),
                count=taps * piece.blocks,
                coords=self._coords(above),
            )
            at += taps

    def multiply(self, step: Step) -> Iterator[Instruction]:
        """One L0 tile of K."""
        above = _above(step.up)
        chunk, (first, steps) = above.tile, step.tile
        yield Mmad(
            self._sums(_above(above.up)),
            self._a(step),
            self._b(step, steps, 0),
            rate=self.kernel.gradient.dtype.name,
            accumulate=not (first == 0 and chunk is self.kernel.chunks[0]),
            coords=self._coords(above),
        )

    def store(self, step: Step) -> Iterator[Instruction]:
        """Sums leave for main memory, rounded."""
        piece, task, dx = step.tile, _above(step.up).tile, self.kernel.dx
        n, d, blocks, height, width, c0 = dx.shape
        start = (task.n, 0, task.block + piece.block, piece.tile.first, 0)
        size = (1, 1, piece.blocks, piece.tile.length, c0)
        place = dx.box(start, size, frame=(n, d, blocks, height * width, c0))
        out = image_out(piece.tile, piece.blocks, piece.blocks * c0, c0)
        coords = (*task.origin, piece.block, piece.tile.first - task.tile.first, -1)
        yield Fixpipe(
            place,
            self._sums(step),
            layout=out.layout,
            form=out.form,
            part=out.part,
            axes=out.axes,
            coords=coords,
        )

    def _a(self, step: Step) -> View:
        piece: Piece = _above(_above(step.up).up).tile
        return self.core.rings["a"][step.ordinal].dense((piece.tile.length, step.tile[1] * self.c0))

    def _b(self, step: Step, steps: int, first: int) -> View:
        piece: Piece = _above(_above(step.up).up).tile
        across = piece.blocks * self.c0
        return self.core.rings["b"][step.ordinal].dense((steps * self.c0, across), first * self.c0 * across)

    def _sums(self, step: Step) -> View:
        piece: Piece = step.tile
        return self.core.rings["sums"][step.ordinal].dense((piece.tile.length, piece.blocks * self.c0))

    def _coords(self, step: Step) -> tuple[int, ...]:
        """Of an L1 tile of K: image, channels and positions of both levels, first block of K."""
        piece = _above(step.up)
        task = _above(piece.up).tile
        below = piece.tile
        return (*task.origin, below.block, below.tile.first - task.tile.first, step.tile.block)


def _above(step: Step | None) -> Step:
    """The step of the loop outside, which there is."""
    assert step is not None  # noqa: S101  # the loops lie in each other
    return step
