"""The program of one cube core for an image side: the stages of its loops."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from math import ceil
from typing import TYPE_CHECKING

import numpy as np

from kernels.davinci.added_bias import AddedBias
from kernels.davinci.grid import Task
from kernels.davinci.moving import StepMove, StraightLoad, image_out, store
from kernels.davinci.sides import FRACTAL
from kernels.davinci.terms import Mask, Multiply, same_slot
from kernels.davinci.tiles import Box, Chunk, Positions, box_of, pieces
from kernels.davinci.window import instructions_of, window_of
from simulator.cube import Load2d, Load3d, Move, Window
from simulator.cube.window import places
from simulator.instructions import Instruction
from simulator.kernel import Core
from simulator.memory.memories import Buffer, View
from simulator.tiles import Loop, Step, nothing, walk

if TYPE_CHECKING:
    from kernels.davinci.image import ConvImage

Part = tuple[int, int]
"""(first, number) of the (block, tap) pairs of a chunk: a K step."""


class ImageProgram:
    """Stages of tiles (store), chunks (load to L1) and K steps (load to L0, multiply)."""

    def __init__(self, kernel: ConvImage, core: Core) -> None:
        """Look up the core's tiles."""
        self.kernel = kernel
        self.core = core
        self.grid = kernel.grid
        self.tasks = kernel.tasks(core.rank, core.count)
        self.weights = kernel.grid.tiling.weights
        self._read: dict[tuple[Positions, Chunk, Part], tuple[Box, Window, int]] = {}
        given = kernel.tensors.bias
        chip = kernel.rings.target
        self.bias = None if given is None else AddedBias(core, kernel.grid, given, self.tasks, chip)

    def instructions(self) -> Iterator[Instruction]:
        """All of it."""
        t = self.grid.tiling
        ahead = (min(t.l1_a, t.l1_b) if self.weights == "chunk" else t.l1_a) - 1
        by_step = self._load_step_weights if self.weights == "step" else nothing
        loops = (
            self._tile_loop(),
            Loop(self._chunks, load=self._load_chunk, ahead=ahead, fence=not ahead),
            Loop(self._steps, load=by_step, ahead=t.l1_b - 1, fence=t.l1_b == 1),
            Loop(lambda up: (up.tile,) if up else (), load=self._load_step, ahead=1),
        )
        yield from walk(loops, self._multiply)

    def _tile_loop(self) -> Loop:
        """Tiles, each with its bias where there is one."""
        if self.bias is None:
            return Loop(lambda _: self.tasks, store=self._store, ahead=0)
        return Loop(
            lambda _: self.tasks, load=self.bias.load, enter=self.bias.enter, store=self._store, ahead=1
        )

    # -- tiles -------------------------------------------------------------------------------------------------

    def _chunks(self, step: Step | None) -> Sequence[Chunk]:
        return self.grid.work(_tile(step))

    def _steps(self, step: Step | None) -> Sequence[Part]:
        assert step is not None  # noqa: S101  # the loops lie in each other
        chunk: Chunk = step.tile
        return pieces(chunk.steps, max(1, self.grid.tiling.k // self.grid.sides.c0))

    def _box(self, task: Task, chunk: Chunk) -> Box:
        if chunk.plane is None:
            return Box(0, 0, 0, 0)
        return box_of(self.grid.axes, task.tile, chunk.tap, chunk.taps)

    def _coords(self, task: Task, chunk: Chunk | None = None) -> tuple[int, ...]:
        if chunk is None:
            return (*task.origin, -1)
        k = (chunk.depth * self.grid.source.blocks + chunk.block) * self.grid.sides.plane_taps + chunk.tap
        return (*task.origin, k)

    # -- GM to L1 ------------------------------------------------------------------------------------------------

    def _load_chunk(self, step: Step) -> Iterator[Instruction]:
        """Image rows, then weights."""
        task, chunk = _tile(step.up), step.tile
        box, source, coords = self._box(task, chunk), self.kernel.tensors.source, self._coords(task, chunk)
        if not box.empty:
            plane = task.g * self.grid.source.blocks + chunk.block
            start = (task.n, chunk.plane, plane, box.row, box.column, 0)
            extent = (1, 1, chunk.blocks, box.rows, box.columns, self.grid.sides.c0)
            local = self.core.rings["image"][step.ordinal].dense(extent)
            yield Move(local, source.box(start, extent), coords=coords, name="load_image")
        if self.weights == "chunk":
            first, size, frame = self._weights_box(task, chunk)
            local = self.core.rings["weights"][step.ordinal].dense(size)
            place = self.kernel.tensors.weights.box(first, size, frame=frame)
            yield Move(local, place, coords=coords, name="load_weights")

    def _load_step_weights(self, step: Step) -> Iterator[Instruction]:
        """Weights of a K step to L1, which only weights in the order of their use allow."""
        assert step.up is not None  # noqa: S101  # the loops lie in each other
        task, chunk, at = _tile(step.up.up), step.up.tile, 0
        for block, tap, taps in within_blocks(step.tile, chunk.taps):
            source = self._fractals(task, chunk, block, tap, taps)
            ring = self.core.rings["weights"][step.ordinal]
            local = ring.dense(source.shape, at * source.shape[1] * source.shape[2])
            yield StepMove(local, source, coords=self._coords(task, chunk), name="load_weights")
            at += taps

    def _fractals(self, task: Task, chunk: Chunk, block: int, tap: int, taps: int) -> View:
        """Taps of one block of a chunk's weights in main memory, [taps, channels, C0]."""
        one = Chunk(chunk.depth, chunk.plane, chunk.block + block, 1, chunk.tap + tap, taps)
        start, size, frame = self._weights_box(task, one)
        shape = (taps, self.grid.channels(task.blocks), self.grid.sides.c0)
        return self.kernel.tensors.weights.box(start, size, frame=frame, shape=shape)

    def _weights_box(
        self, task: Task, chunk: Chunk
    ) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
        """(start, size, frame) of a chunk's weights: K along rows seen from the small side, along columns else."""
        g, kd, blocks, taps, wide, sixteen, c0 = self.grid.sides.weight_shape
        frame = (g, kd, blocks, taps, wide * sixteen, c0)
        if self.grid.way == "gather":
            across = self.grid.channels(task.blocks)
            start = (task.g, chunk.depth, chunk.block, chunk.tap, task.block * c0, 0)
            return start, (1, 1, chunk.blocks, chunk.taps, across, c0), frame
        start = (task.g, chunk.depth, task.block, chunk.tap, chunk.block * c0, 0)
        return start, (1, 1, task.blocks, chunk.taps, chunk.blocks * c0, c0), frame

    # -- L1 to L0 ------------------------------------------------------------------------------------------------

    def _load_step(self, step: Step) -> Iterator[Instruction]:
        """im2col of the step to L0A, its weights to L0B."""
        task, chunk, part = _inside(step)
        steps = part[1]
        box, window, count = self._reads(task, chunk, part)
        size = (chunk.blocks, box.rows, box.columns, self.grid.sides.c0)
        image = self._ring("image", step).dense((chunk.blocks, 1, 1, size[-1]) if box.empty else size)
        coords = self._coords(task, chunk)
        yield Load3d(self._columns(step, task, steps), image, window, count=count, coords=coords)
        if self.weights == "l0b":
            yield from self._straight_weights(step, task, chunk, part)
        elif self.grid.way == "gather":
            yield self._weights(step, task, part)
        else:
            yield from self._turned_weights(step, task, chunk, part)

    def _reads(self, task: Task, chunk: Chunk, part: Part) -> tuple[Box, Window, int]:
        """What a K step reads of its chunk, and the instructions that it takes: the same in every image."""
        key = (task.tile, chunk, part)
        found = self._read.get(key)
        if found is None:
            axes, box = self.grid.axes, self._box(task, chunk)
            window = window_of(axes, task.tile, box, chunk.tap, chunk.taps, part[0])
            found = self._read[key] = box, window, instructions_of(axes, task.tile, chunk, part[1])
        return found

    def _ring(self, name: str, step: Step) -> Buffer:
        """The buffer in L1 that a K step reads: that of its chunk, or its own."""
        assert step.up is not None and step.up.up is not None  # noqa: S101, PT018  # the loops lie in each other
        own = name == "weights" and self.weights == "step"
        return self.core.rings[name][step.up.ordinal if own else step.up.up.ordinal]

    def _columns(self, step: Step, task: Task, steps: int) -> View:
        return self.core.rings["a"][step.ordinal].dense((task.tile.executed, steps * self.grid.sides.c0))

    def _step_weights(self, step: Step, task: Task, steps: int, first: int = 0) -> View:
        c0, across = self.grid.sides.c0, self.grid.channels(task.blocks)
        return self.core.rings["b"][step.ordinal].dense((steps * c0, across), first * c0 * across)

    def _weights(self, step: Step, task: Task, part: Part) -> Instruction:
        """Seen from the small side: fractals as they lie, one instruction."""
        c0, across, (first, steps) = self.grid.sides.c0, self.grid.channels(task.blocks), part
        first = 0 if self.weights == "step" else first
        source = self._ring("weights", step).dense((steps, across, c0), first * across * c0)
        out = self._step_weights(step, task, steps)
        return Load2d(out, source, axes=(0, 2, 1), coords=self._coords(task, _inside(step)[1]))

    def _straight_weights(self, step: Step, task: Task, chunk: Chunk, part: Part) -> Iterator[Instruction]:
        """From main memory to L0B, which only weights in the order of their use allow."""
        at = 0
        for block, tap, taps in within_blocks(part, chunk.taps):
            source = self._fractals(task, chunk, block, tap, taps)
            out = self._step_weights(step, task, taps, at)
            yield StraightLoad(out, source, coords=self._coords(task, chunk), name="load_weights")
            at += taps

    def _turned_weights(self, step: Step, task: Task, chunk: Chunk, part: Part) -> Iterator[Instruction]:
        """Seen from the large side: turned on the way, an instruction for each block of 16 x 16."""
        c0, across, at = self.grid.sides.c0, self.grid.channels(task.blocks), 0
        frame = (task.blocks, chunk.taps, chunk.blocks * c0, c0)
        for block, tap, taps in within_blocks(part, chunk.taps):
            box = ((0, tap, block * c0, 0), (task.blocks, taps, c0, c0))
            source = self._ring("weights", step).box(*box, frame=frame)
            count = ceil(taps * c0 / FRACTAL * ceil(across / FRACTAL))
            out = self._step_weights(step, task, taps, at)
            coords = self._coords(task, chunk)
            yield Load2d(out, source, transpose=True, axes=(1, 2, 0, 3), count=count, coords=coords)
            at += taps

    # -- sums ------------------------------------------------------------------------------------------------------

    def _sums(self, task: Task, ordinal: int) -> View:
        shape = (task.tile.executed, self.grid.channels(task.blocks))
        return self.core.rings["sums"][ordinal].dense(shape)

    def _multiply(self, step: Step) -> Iterator[Instruction]:
        """One step of K."""
        task, chunk, (first, steps) = _inside(step)
        begins = first == 0 and chunk == self.grid.work(task)[0]
        bias = self.bias.begin(_outermost(step)) if begins and self.bias and self.bias.table else None
        yield Multiply(
            self._sums(task, _outermost(step).ordinal),
            self._columns(step, task, steps),
            self._step_weights(step, task, steps),
            partial(self._terms, task, chunk, first, steps),
            rate=self.kernel.rate,
            accumulate=not begins,
            coords=self._coords(task, chunk),
            absent=self.kernel.absent,
            bias=bias,
        )

    def _terms(self, task: Task, chunk: Chunk, first: int, steps: int) -> tuple[Mask, Mask]:
        """Which elements of a step's columns and weights there are."""
        sides, box = self.grid.sides, self._box(task, chunk)
        window = window_of(self.grid.axes, task.tile, box, chunk.tap, chunk.taps)
        there = places(window, task.tile.executed, (box.rows, box.columns))[1]
        units = [divmod(unit, chunk.taps) for unit in range(first, first + steps)]
        columns = np.repeat(there[:, [tap for _, tap in units]], sides.c0, axis=1)
        single = (sides.cl, sides.cs) if self.grid.way == "gather" else (sides.cs, sides.cl)
        across = (task.block * sides.c0, self.grid.channels(task.blocks), single[1])
        weights = [same_slot((chunk.block + b) * sides.c0, sides.c0, single[0], *across) for b, _ in units]
        return columns, np.concatenate(weights)

    # -- out -------------------------------------------------------------------------------------------------------

    def _store(self, step: Step) -> Iterator[Instruction]:
        """The tile leaves for main memory, row by row where rows are padded."""
        task, grid, target = step.tile, self.grid, self.kernel.tensors.target
        n, d, blocks, h, w, c0 = target.shape
        start = (task.n, task.plane, task.g * grid.target.blocks + task.block, task.tile.first, 0)
        size = (1, 1, task.blocks, task.tile.length, c0)
        place = target.box(start, size, frame=(n, d, blocks, h * w, c0))
        sums, coords = self._sums(task, step.ordinal), self._coords(task)
        out = image_out(task.tile, task.blocks, grid.channels(task.blocks), c0)
        added = None if self.bias is None else self.bias.added(step)
        yield from store(self.core, self.kernel.rings, place, sums, out, coords, added=added)


def within_blocks(part: Part, taps: int) -> list[tuple[int, int, int]]:
    """(block, first tap, taps) of each block that a K step reads a part of."""
    first, steps = part
    found = []
    while steps:
        block, tap = divmod(first, taps)
        taken = min(steps, taps - tap)
        found.append((block, tap, taken))
        first, steps = first + taken, steps - taken
    return found


def _inside(step: Step) -> tuple[Task, Chunk, Part]:
    """Tile, chunk and part of a K step, a step of the innermost loop."""
    assert step.up is not None and step.up.up is not None  # noqa: S101, PT018  # the loops lie in each other
    return _tile(step.up.up.up), step.up.up.tile, step.tile


def _outermost(step: Step) -> Step:
    """The step of the outermost loop."""
    return step if step.up is None else _outermost(step.up)


def _tile(step: Step | None) -> Task:
    """The tile of a step of the outermost loop."""
    assert step is not None  # noqa: S101  # the loops lie in each other
    task: Task = step.tile
    return task
