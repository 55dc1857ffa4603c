"""The program of one cube core for the weights' gradient: the stages of its loops."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from kernels.davinci.moving import Out, store
from kernels.davinci.sums import Piece, Sum, Tile
from kernels.davinci.terms import Mask, Multiply
from kernels.davinci.tiles import Chunk, Positions, pieces
from kernels.davinci.window import instructions_of, window_of
from simulator.cube import Load2d, Load3d, Move, Window
from simulator.cube.window import places
from simulator.instructions import Instruction
from simulator.kernel import Core
from simulator.memory.memories import View
from simulator.tiles import Loop, Step, walk

if TYPE_CHECKING:
    from kernels.davinci.weights import ConvWeights


class WeightsProgram:
    """Stages of sums (store), pieces (load to L1) and steps of positions (load to L0, multiply)."""

    def __init__(self, kernel: ConvWeights, core: Core) -> None:
        """Look up the core's sums."""
        self.kernel = kernel
        self.core = core
        self.grid = kernel.grid
        self.sums = kernel.sums(core.rank)
        self.c0 = kernel.grid.sides.c0

    def instructions(self) -> Iterator[Instruction]:
        """All of it; what has one buffer in L1 is loaded when its piece begins."""
        t = self.grid.tiling
        single = min(t.l1_a, t.l1_b) == 1
        loops = (
            Loop(lambda _: self.sums, store=self._store, ahead=0),
            Loop(
                lambda up: _sum(up).pieces,
                load=lambda step: self._load_piece(step, 2),
                enter=lambda step: self._load_piece(step, 1),
                fence=single,
            ),
            Loop(self._steps, load=self._load_step, ahead=1),
        )
        yield from walk(loops, self._multiply)

    def _steps(self, up: Step | None) -> Sequence[tuple[int, int]]:
        """(first, number) of the positions of each step of a piece."""
        assert up is not None  # noqa: S101  # the loops lie in each other
        piece: Piece = up.tile
        return pieces(piece.tile.length, self.grid.tiling.k)

    def _coords(self, each: Sum, piece: Piece | None = None) -> tuple[int, ...]:
        return (*each.origin, -1 if piece is None else piece.tile.first)

    # -- GM to L1 ------------------------------------------------------------------------------------------------

    def _load_piece(self, step: Step, buffers: int) -> Iterator[Instruction]:
        """Both images of a piece, as far as they have so many buffers."""
        t = self.grid.tiling
        if t.l1_a == buffers:
            yield self._load_small(step)
        if t.l1_b == buffers:
            yield self._load_large(step)

    def _load_small(self, step: Step) -> Instruction:
        """Positions of the strided side."""
        each, piece, source = _sum(step.up), step.tile, self.kernel.tensors.small
        n, d, c, h, w, c0 = source.shape
        block = each.tile.g * self.grid.sides.small.blocks + each.tile.row
        start = (piece.n, piece.plane, block, piece.tile.first, 0)
        size = (1, 1, each.tile.rows, piece.tile.length, c0)
        place = source.box(start, size, frame=(n, d, c, h * w, c0))
        local = self.core.rings["small"][step.ordinal].dense(size)
        return Move(local, place, coords=self._coords(each, piece), name="load_small")

    def _load_large(self, step: Step) -> Instruction:
        """What they read of the other side."""
        each, piece = _sum(step.up), step.tile
        box, (block, blocks) = self.grid.box(each.tile, piece), self.grid.blocks(each.tile)
        plane = self.grid.plane(each.tile, piece)
        assert plane is not None  # noqa: S101  # pieces that read nothing are left out
        first = each.tile.g * self.grid.sides.large.blocks + block
        start = (piece.n, plane, first, box.row, box.column, 0)
        size = (1, 1, blocks, box.rows, box.columns, self.c0)
        local = self.core.rings["large"][step.ordinal].dense(size)
        place = self.kernel.tensors.large.box(start, size)
        return Move(local, place, coords=self._coords(each, piece), name="load_large")

    # -- L1 to L0 ------------------------------------------------------------------------------------------------

    def _load_step(self, step: Step) -> Iterator[Instruction]:
        """Dy is turned on its way to L0A; im2col of x to L0B."""
        up = step.up
        assert up is not None  # noqa: S101  # the loops lie in each other
        each, piece, (first, count) = _sum(up.up), up.tile, step.tile
        tile, coords = each.tile, self._coords(each, piece)
        whole = (tile.rows, piece.tile.length, self.c0)
        ring = self.core.rings["small"][up.ordinal]
        source = ring.box((0, first, 0), (tile.rows, count, self.c0), frame=whole)
        yield Load2d(self._left(step, tile, count), source, transpose=True, axes=(0, 2, 1), coords=coords)
        box, (_, blocks) = self.grid.box(tile, piece), self.grid.blocks(tile)
        image = self.core.rings["large"][up.ordinal].dense((blocks, box.rows, box.columns, self.c0))
        part = Positions(piece.tile.first + first, count, piece.tile.width, False)
        instructions = instructions_of(self.grid.axes, part, self._taps(tile), tile.units)
        window = self._window(tile, piece, part)
        yield Load3d(self._right(step, tile, count), image, window, count=instructions, coords=coords)

    def _taps(self, tile: Tile) -> Chunk:
        (tap, taps), (block, blocks) = self.grid.taps(tile), self.grid.blocks(tile)
        return Chunk(tile.depth, 0, block, blocks, tap, taps)

    def _window(self, tile: Tile, piece: Piece, part: Positions) -> Window:
        tap, taps = self.grid.taps(tile)
        unit = tile.unit - self.grid.blocks(tile)[0] * self.grid.sides.plane_taps - tap
        return window_of(self.grid.axes, part, self.grid.box(tile, piece), tap, taps, unit)

    def _left(self, step: Step, tile: Tile, count: int) -> View:
        return self.core.rings["a"][step.ordinal].dense((self.grid.channels(tile), count))

    def _right(self, step: Step, tile: Tile, count: int) -> View:
        return self.core.rings["b"][step.ordinal].dense((count, tile.units * self.c0))

    # -- sums ------------------------------------------------------------------------------------------------------

    def _total(self, tile: Tile, ordinal: int) -> View:
        return self.core.rings["sums"][ordinal].dense((self.grid.channels(tile), tile.units * self.c0))

    def _multiply(self, step: Step) -> Iterator[Instruction]:
        """One step of positions."""
        up = step.up
        assert up is not None and up.up is not None  # noqa: S101, PT018  # the loops lie in each other
        each, piece, (first, count) = _sum(up.up), up.tile, step.tile
        begins = first == 0 and piece == each.pieces[0]
        part = Positions(piece.tile.first + first, count, piece.tile.width, False)
        yield Multiply(
            self._total(each.tile, up.up.ordinal),
            self._left(step, each.tile, count),
            self._right(step, each.tile, count),
            lambda: self._terms(each.tile, piece, part),
            rate=self.kernel.rate,
            accumulate=not begins,
            coords=self._coords(each, piece),
            absent=self.kernel.absent,
        )

    def _terms(self, tile: Tile, piece: Piece, part: Positions) -> tuple[Mask, Mask]:
        """All of dy is there; of the columns what is in the image. Products between merged groups are never used."""
        window, box = self._window(tile, piece, part), self.grid.box(tile, piece)
        there = places(window, part.length, (box.rows, box.columns))[1]
        units = [(window.unit + unit) % len(window.taps) for unit in range(tile.units)]
        left = np.ones((self.grid.channels(tile), part.length), bool)
        return left, np.repeat(there[:, units], self.c0, axis=1)

    # -- out -------------------------------------------------------------------------------------------------------

    def _store(self, step: Step) -> Iterator[Instruction]:
        """The sums are added to dw."""
        each: Sum = step.tile
        tile, dw = each.tile, self.kernel.tensors.dw
        g, kd, blocks, taps, wide, sixteen, c0 = dw.shape
        start = (tile.g, tile.depth, tile.unit, tile.row * c0, 0)
        size = (1, 1, tile.units, self.grid.channels(tile), c0)
        place = dw.box(start, size, frame=(g, kd, blocks * taps, wide * sixteen, c0))
        out = Out((size[3], tile.units, c0), (slice(None),), (1, 0, 2), "nz")
        sums = self._total(tile, step.ordinal)
        coords = self._coords(each)
        yield from store(self.core, self.kernel.rings, place, sums, out, coords, atomic=True)


def _sum(step: Step | None) -> Sum:
    """The sum of a step of the outermost loop."""
    assert step is not None  # noqa: S101  # the loops lie in each other
    each: Sum = step.tile
    return each
