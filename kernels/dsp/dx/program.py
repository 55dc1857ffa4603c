"""The program of one core for the input gradient: the stages of its three loops."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from kernels.dsp.dx.columns import AXES, Columns
from kernels.dsp.dx.geometry import Panel
from kernels.dsp.dx.panels import BlockPlan, ChunkPlan
from simulator.instructions import Barrier, Copy, Instruction, MatmulInto
from simulator.kernel import Core
from simulator.memory.boxes import load_box, store_box
from simulator.memory.memories import Buffer, View
from simulator.tiles import Loop, Step, walk
from simulator.vector import Cast, Fill

if TYPE_CHECKING:
    from kernels.dsp.dx.kernel import ConvDx, Work

LOAD_ROWS, LOAD_WEIGHTS, LOAD_PANEL, STORE = range(4)
"""DMA channels."""

GSM_WEIGHTS, PANEL, REUSE = range(3)
"""Barriers: weights are in GSM; a dy panel that all cores loaded is there; its buffer is free again."""


NO_PRODUCT = (-1, -1, -1)
"""Coordinates (tap, k, o) of what is no part of a product."""


class DxProgram:
    """Stages of panels (load dy, begin dx, store dx), blocks (load weights) and chunks (load rows, compute)."""

    def __init__(self, kernel: ConvDx, core: Core) -> None:
        """Look up the core's share."""
        self.kernel = kernel
        self.core = core
        self.geometry = kernel.geometry
        self.tiling = kernel.tiling
        self.mine = kernel.work(core.rank, core.count)
        self.panels_ahead = min(self.tiling.ahead, self.tiling.dy_buffers - 1)
        self.resident = kernel.resident(self.mine)
        # Sums that arrive in their own type, in a buffer that no panel before needs any more.
        self.loads_dx_early = (
            kernel.accumulate and "dx_out" not in core.rings and self.tiling.dx_buffers > self.panels_ahead
        )
        self.columns = Columns(kernel.sum_type, kernel.rate, kernel.tiling, kernel.tensors.workspace)

    def instructions(self) -> Iterator[Instruction]:
        """All of it."""
        yield from self._prologue()
        chunks = Loop(
            lambda up: up.tile.chunks if up else (), load=self._load_rows, ahead=min(self.tiling.ahead, 1)
        )
        yield from walk((*self._outer_loops(), chunks), self._compute)

    def steps(self) -> Iterator[Instruction]:
        """The same results, with all products of a block as one step."""
        yield from self._prologue()
        yield from walk(self._outer_loops(), self._compute_block)

    def _outer_loops(self) -> tuple[Loop, Loop]:
        t = self.tiling
        panels = Loop(
            lambda _: self.mine,
            load=self._load_panel,
            enter=self._begin_panel,
            store=self._store_panel,
            fence=self.kernel.together,
            ahead=self.panels_ahead,
        )
        blocks = Loop(
            lambda up: up.tile.plan.blocks if up else (),
            load=self._load_weights,
            passes=True,
            ahead=min(t.ahead, 1),
        )
        return panels, blocks

    def _prologue(self) -> Iterator[Instruction]:
        """Weights that stay for the whole launch: into GSM by all cores together, or into AM."""
        kernel, g = self.kernel, self.geometry
        if self.tiling.w_in_gsm:
            first, number = kernel.weight_part(self.core.rank, self.core.count)
            if number:
                part = (number, g.taps, g.cig)
                local = self.core.rings["w_all"][0].dense(part, first * g.taps * g.cig)
                yield Copy(
                    local, kernel.tensors.w.box((first, 0, 0), part), channel=LOAD_PANEL, name="load_w"
                )
            yield Barrier(GSM_WEIGHTS)
        if self.tiling.weights == "am":
            start, size = self.resident
            held = self.core.rings["weights"][0]
            yield from load_box(held, kernel.tensors.w, start, size, channel=LOAD_WEIGHTS, name="load_w")

    def _load_panel(self, step: Step) -> Iterator[Instruction]:
        """What a panel adds to, where it can be loaded early, and the dy that it reads."""
        if self.loads_dx_early:
            yield from self._load_dx(step)
        yield from self._load_dy(step)

    def _load_dx(self, step: Step) -> Iterable[Instruction]:
        """What dx holds, as the panel's sums or, in another type, where these leave from."""
        panel, coords = step.tile.panel, step.tile.origin + NO_PRODUCT
        held = self.core.rings["dx_out" if "dx_out" in self.core.rings else "dx"][step.ordinal]
        dx, box = self.kernel.tensors.dx, self._dx_box(panel)
        return load_box(held, dx, *box, channel=LOAD_PANEL, coords=coords, name="load_dx")

    def _load_dy(self, step: Step) -> Iterator[Instruction]:
        """The dy that a panel reads, into GSM: whole, or this core's part of it."""
        work: Work = step.tile
        panel, frame = work.panel, work.plan.frame
        if not self.tiling.dy_in_gsm or frame is None:
            return
        local, dy = self.core.rings["dy_panel"][step.ordinal], self.kernel.tensors.dy
        coords, channel = work.origin + NO_PRODUCT, panel.g * self.geometry.cog
        od, oh, ow = work.plan.corner
        if not self.kernel.together:
            place = (panel.n, od, oh, ow, channel)
            yield from load_box(local, dy, place, frame, channel=LOAD_PANEL, coords=coords, name="load_dy")
            return
        flat = self.kernel.whole_rows(frame)
        whole = (*dy.shape[:2], dy.shape[2] * dy.shape[3], 1, dy.shape[4]) if flat else dy.shape
        for image, first, number in self.kernel.cuts(work, self.core.rank, self.core.count):
            place = (
                panel.n + image,
                od,
                oh * frame[3] + first if flat else oh + first,
                0 if flat else ow,
                channel,
            )
            size = (1, frame[1], number, 1 if flat else frame[3], frame[4])
            begin = (image * frame[1] * frame[2] * frame[3] + first * (1 if flat else frame[3])) * frame[4]
            yield from load_box(
                local,
                dy,
                place,
                size,
                channel=LOAD_PANEL,
                coords=coords,
                name="load_dy",
                first=begin,
                frame=whole,
            )

    def _begin_panel(self, step: Step) -> Iterator[Instruction]:
        """Meet the other cores where dy was loaded together; start dx at zero or at what it holds."""
        panel = step.tile.panel
        coords, kernel = step.tile.origin + NO_PRODUCT, self.kernel
        if kernel.together and (step.ordinal == 0 or not self.panels_ahead):
            yield Barrier(PANEL)
        total = self._dx(panel, step.ordinal)
        if not kernel.accumulate:
            yield Fill(total, coords=coords)
            return
        if not self.loads_dx_early:
            yield from self._load_dx(step)
        if "dx_out" in self.core.rings:
            held = self.core.rings["dx_out"][step.ordinal]
            yield Cast(total, held.dense(total.shape), coords=coords)

    def _dx(self, panel: Panel, ordinal: int) -> View:
        return self.core.rings["dx"][ordinal].dense((panel.nb, panel.hb, panel.wb, panel.gb, panel.cb))

    def _dx_box(self, panel: Panel) -> tuple[tuple[int, ...], tuple[int, ...]]:
        start = (panel.n, panel.d, panel.h, panel.w, panel.g * self.geometry.cig + panel.c)
        return start, (panel.nb, 1, panel.hb, panel.wb, panel.gb * panel.cb)

    def _store_panel(self, step: Step) -> Iterator[Instruction]:
        """Dx is complete: round it once and send it out."""
        panel = step.tile.panel
        source, coords = self._dx(panel, step.ordinal), step.tile.origin + NO_PRODUCT
        local = source.buffer
        if "dx_out" in self.core.rings:
            local = self.core.rings["dx_out"][step.ordinal]
            yield Cast(local.dense(source.shape), source, coords=coords)
        if self.kernel.together and not step.last:
            # Before the store, so that nobody waits for it: the cores have done with this panel's dy.
            yield Barrier(REUSE)
        yield from store_box(
            self.kernel.tensors.dx, *self._dx_box(panel), local, channel=STORE, coords=coords, name="store_dx"
        )

    def _load_weights(self, step: Step) -> Iterable[Instruction]:
        """A block of weights into AM, from DDR or GSM, unless all of them are there."""
        plan: BlockPlan = step.tile
        if self.tiling.weights == "am" or not plan.size or step.up is None:
            return ()
        panel, g = step.up.tile.panel, self.geometry
        start = (panel.g * g.cog + plan.place[0], plan.place[1], plan.place[2])
        source, frame = self.kernel.tensors.w, None
        if self.tiling.weights == "gsm":
            source, frame = self.core.rings["w_all"][0], (g.cout, g.taps, g.cig)
        coords = (*step.up.tile.origin, plan.block.tap, plan.block.k, -1)
        local = self.core.rings["weights"][step.ordinal]
        return load_box(
            local, source, start, plan.size, channel=LOAD_WEIGHTS, coords=coords, name="load_w", frame=frame
        )

    def _load_rows(self, step: Step) -> Iterable[Instruction]:
        """Rows of dy into SM: [m, k], or [m, groups, k]."""
        chunk: ChunkPlan = step.tile
        if not chunk.m or step.up is None or step.up.up is None:
            return ()
        work, block = step.up.up.tile, step.up.tile.block
        source, frame, place = self._dy_source(step.up.up, chunk)
        coords = (*work.origin, block.tap, block.k, chunk.place[2])
        local = self.core.rings["dy_rows"][step.ordinal]
        return load_box(
            local, source, place, chunk.size, channel=LOAD_ROWS, coords=coords, name="load_rows", frame=frame
        )

    def _dy_source(
        self, panel_step: Step, chunk: ChunkPlan
    ) -> tuple[Buffer, tuple[int, ...] | None, tuple[int, ...]]:
        """(buffer, its frame, first index) of a chunk's rows of dy: in the panel that GSM holds, or in DDR."""
        work: Work = panel_step.tile
        if self.tiling.dy_in_gsm:
            return self.core.rings["dy_panel"][panel_step.ordinal], work.plan.frame, chunk.place
        origin = (work.panel.n, *work.plan.corner, work.panel.g * self.geometry.cog)
        return self.kernel.tensors.dy, None, tuple(o + p for o, p in zip(origin, chunk.place, strict=True))

    def _compute_block(self, step: Step) -> Iterator[Instruction]:
        """All products of a block, from the dy of its panel."""
        plan: BlockPlan = step.tile
        if step.up is None:
            return
        panel = step.up.tile.panel
        for chunk in plan.whole:
            source, frame, place = self._dy_source(step.up, chunk)
            shape = (chunk.m, plan.block.kb) if panel.gb == 1 else (chunk.m, panel.gb, plan.block.kb)
            rows = source.box(place, chunk.size, frame=frame, shape=shape)
            weights, total = self._weights(panel, plan, step.ordinal), self._dx(panel, step.up.ordinal)
            yield MatmulInto(total, chunk.seen, rows, weights, chunk.parts, rate=self.kernel.rate, axes=AXES)

    def _compute(self, step: Step) -> Iterable[Instruction]:
        """A product, and its columns onto dx."""
        chunk: ChunkPlan = step.tile
        if not chunk.m or step.up is None or step.up.up is None:
            return ()
        plan, work = step.up.tile, step.up.up.tile
        panel = work.panel
        block = plan.block
        shape = (chunk.m, block.kb) if panel.gb == 1 else (chunk.m, panel.gb, block.kb)
        rows = self.core.rings["dy_rows"][step.ordinal].dense(shape)
        weights = self._weights(panel, plan, step.up.ordinal)
        total = self._dx(panel, step.up.up.ordinal)
        coords = (*work.origin, block.tap, block.k, chunk.place[2])
        return self.columns.add(self.core, plan, chunk, rows, weights, total, step.ordinal, coords)

    def _weights(self, panel: Panel, plan: BlockPlan, ordinal: int) -> View:
        """The block of weights in AM, [k, taps x channels] or [groups, k, taps x channels]."""
        block, ring = plan.block, self.core.rings["weights"]
        width = block.taps * block.cb
        shape = (block.kb, width) if panel.gb == 1 else (panel.gb, block.kb, width)
        if self.tiling.weights != "am":
            return ring[ordinal].dense(shape)
        origin, frame = self.resident
        first = panel.g * self.geometry.cog + plan.place[0]
        start = (first - origin[0], plan.place[1], plan.place[2] - origin[2])
        return ring[0].box(start, plan.size, frame=frame, shape=shape)
