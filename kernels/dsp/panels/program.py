"""The program of one core for a convolution by panels: the stages of its three loops."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from kernels.dsp.dx.geometry import Panel
from kernels.dsp.dx.panels import BlockPlan
from simulator.instructions import Barrier, Copy, Instruction
from simulator.kernel import Core
from simulator.memory.boxes import load_box, store_box
from simulator.memory.memories import Buffer, View
from simulator.tiles import Loop, Step, walk
from simulator.vector import Cast, Fill, Spread

if TYPE_CHECKING:
    from kernels.dsp.panels.kernel import PanelKernel, Work

LOAD_ROWS, LOAD_WEIGHTS, LOAD_PANEL, STORE = range(4)
"""DMA channels."""

GSM_WEIGHTS, PANEL, REUSE = range(3)
"""Barriers: weights are in GSM; a source panel that all cores loaded is there; its buffer is free again."""

NO_PRODUCT = (-1, -1, -1)
"""Coordinates (tap, k, o) of what is no part of a product."""


class PanelProgram:
    """Stages of panels (load source, begin and store result), blocks (load weights) and chunks (load rows, compute)."""

    def __init__(self, kernel: PanelKernel, core: Core) -> None:
        """Look up the core's share."""
        self.kernel = kernel
        self.core = core
        self.geometry = kernel.geometry
        self.tiling = kernel.tiling
        self.mine = kernel.work(core.rank, core.count)
        self.panels_ahead = min(self.tiling.ahead, self.tiling.dy_buffers - 1)
        self.resident = kernel.resident(self.mine)

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

    # -- what subclasses say ---------------------------------------------------------------------------------

    def _load_rows(self, step: Step) -> Iterable[Instruction]:
        """Rows of the source into SM, for one chunk."""
        raise NotImplementedError

    def _compute(self, step: Step) -> Iterable[Instruction]:
        """A product, and where it is added."""
        raise NotImplementedError

    def _compute_block(self, step: Step) -> Iterable[Instruction]:
        """All products of a block, from the source of its panel."""
        raise NotImplementedError

    # -- weights ---------------------------------------------------------------------------------------------

    def _prologue(self) -> Iterator[Instruction]:
        """Weights that stay for the whole launch: into GSM by all cores together, or into AM."""
        kernel, rings = self.kernel, self.core.rings
        if self.tiling.w_in_gsm:
            frame = kernel.weight_rows()
            first, number = kernel.weight_part(self.core.rank, self.core.count)
            if number:
                part = (number, frame[1])
                local = rings["w_all"][0].dense(part, first * frame[1])
                source = kernel.tensors.w.box((first, 0), part, frame=frame)
                yield Copy(local, source, channel=LOAD_PANEL, name="load_w")
            yield Barrier(GSM_WEIGHTS)
        if self.tiling.weights == "am":
            start, size = self.resident
            held, w = rings["weights"][0], kernel.tensors.w
            yield from load_box(held, w, start, size, channel=LOAD_WEIGHTS, name="load_w")
        yield from self._load_bias()

    def _load_bias(self) -> Iterator[Instruction]:
        """The bias, in the type of the sums."""
        bias, rings = self.kernel.tensors.bias, self.core.rings
        if bias is None:
            return
        given = rings["bias_given" if "bias_given" in rings else "bias"][0]
        yield from load_box(given, bias, (0,), bias.shape, channel=LOAD_WEIGHTS, name="load_bias")
        if "bias_given" in rings:
            yield Cast(rings["bias"][0].dense(bias.shape), given.dense(bias.shape))

    def _load_weights(self, step: Step) -> Iterable[Instruction]:
        """A block of weights into AM, from DDR or GSM, unless all of them are there."""
        plan: BlockPlan = step.tile
        if self.tiling.weights == "am" or not plan.size or step.up is None:
            return ()
        start = self.kernel.weight_start(step.up.tile.panel, plan.place)
        source, frame = self.kernel.tensors.w, None
        if self.tiling.weights == "gsm":
            source, frame = self.core.rings["w_all"][0], self.kernel.tensors.w.shape
        coords = (*step.up.tile.origin, plan.block.tap, plan.block.k, -1)
        local = self.core.rings["weights"][step.ordinal]
        return load_box(
            local, source, start, plan.size, channel=LOAD_WEIGHTS, coords=coords, name="load_w", frame=frame
        )

    def _weights(
        self,
        panel: Panel,
        plan: BlockPlan,
        ordinal: int,
        shape: tuple[int, ...],
        part: tuple[tuple[int, ...], tuple[int, ...]] | None = None,
    ) -> View:
        """The block of weights in AM, or a part (start, size) of it, seen in a shape."""
        ring = self.core.rings["weights"]
        begin, size = part or ((0,) * len(plan.size), plan.size)
        if self.tiling.weights != "am":
            return (
                ring[ordinal].box(begin, size, frame=plan.size, shape=shape)
                if part
                else ring[ordinal].dense(shape)
            )
        origin, frame = self.resident
        first = self.kernel.weight_start(panel, plan.place)
        start = tuple(f + b - o for f, b, o in zip(first, begin, origin, strict=True))
        return ring[0].box(start, size, frame=frame, shape=shape)

    # -- panels ----------------------------------------------------------------------------------------------

    def _load_panel(self, step: Step) -> Iterator[Instruction]:
        """The source that a panel reads, into GSM: whole, or this core's part of it."""
        work: Work = step.tile
        panel, frame = work.panel, work.plan.frame
        if not self.tiling.dy_in_gsm or frame is None:
            return
        local, source = self.core.rings[self.kernel.source_name][step.ordinal], self.kernel.tensors.source
        coords, name = work.origin + NO_PRODUCT, f"load_{self.kernel.source_name}"
        if not self.kernel.together:
            place = self._corner(work)
            yield from load_box(local, source, place, frame, channel=LOAD_PANEL, coords=coords, name=name)
            return
        flat, (od, oh, ow) = self.kernel.whole_rows(frame), work.plan.corner
        shape = source.shape
        whole = (*shape[:2], shape[2] * shape[3], 1, shape[4]) if flat else shape
        for image, first, number in self.kernel.cuts(work, self.core.rank, self.core.count):
            down, right = (oh * frame[3] + first, 0) if flat else (oh + first, ow)
            place = (panel.n + image, od, down, right, panel.g * self.geometry.cog)
            size = (1, frame[1], number, 1 if flat else frame[3], frame[4])
            begin = (image * frame[1] * frame[2] * frame[3] + first * (1 if flat else frame[3])) * frame[4]
            yield from load_box(
                local, source, place, size,
                channel=LOAD_PANEL, coords=coords, name=name, first=begin, frame=whole,
            )  # fmt: skip

    def _corner(self, work: Work) -> tuple[int, ...]:
        """The first element of the source that a panel reads."""
        return (work.panel.n, *work.plan.corner, work.panel.g * self.geometry.cog)

    def _source(
        self, panel_step: Step, place: tuple[int, ...]
    ) -> tuple[Buffer, tuple[int, ...] | None, tuple[int, ...]]:
        """(buffer, its frame, first index) of a place of a panel's source: in the panel that GSM holds, or in DDR."""
        work: Work = panel_step.tile
        if self.tiling.dy_in_gsm:
            return self.core.rings[self.kernel.source_name][panel_step.ordinal], work.plan.frame, place
        first = tuple(o + p for o, p in zip(self._corner(work), place, strict=True))
        return self.kernel.tensors.source, None, first

    def _begin_panel(self, step: Step) -> Iterator[Instruction]:
        """Meet the other cores where the source was loaded together; then the panel's first values."""
        if self.kernel.together and (step.ordinal == 0 or not self.panels_ahead):
            yield Barrier(PANEL)
        yield from self._start(step.tile, step.ordinal, self._result(step.tile.panel, step.ordinal))

    def _start(self, work: Work, ordinal: int, total: View) -> Iterator[Instruction]:  # noqa: ARG002  # dx stages by it
        """Start the panel at the bias, or at zero."""
        coords, panel = work.origin + NO_PRODUCT, work.panel
        if self.kernel.tensors.bias is None:
            yield Fill(total, coords=coords)
            return
        wide = panel.gb * panel.cb
        rows = total.buffer.dense((panel.nb * panel.hb * panel.wb, wide))
        bias = self.core.rings["bias"][0].dense((wide,), panel.g * self.geometry.cig + panel.c)
        yield Spread(rows, bias, coords=coords)

    def _result(self, panel: Panel, ordinal: int) -> View:
        shape = (panel.nb, panel.hb, panel.wb, panel.gb, panel.cb)
        return self.core.rings[self.kernel.result_name][ordinal].dense(shape)

    def _result_box(self, panel: Panel) -> tuple[tuple[int, ...], tuple[int, ...]]:
        start = (panel.n, panel.d, panel.h, panel.w, panel.g * self.geometry.cig + panel.c)
        return start, (panel.nb, 1, panel.hb, panel.wb, panel.gb * panel.cb)

    def _store_panel(self, step: Step) -> Iterator[Instruction]:
        """The panel is complete: round it once and send it out."""
        panel = step.tile.panel
        source, coords = self._result(panel, step.ordinal), step.tile.origin + NO_PRODUCT
        local = source.buffer
        if "staged" in self.core.rings:
            local = self.core.rings["staged"][step.ordinal]
            yield Cast(local.dense(source.shape), source, coords=coords)
        if self.kernel.together and not step.last:
            # Before the store, so that nobody waits for it: the cores have done with this panel's source.
            yield Barrier(REUSE)
        name = f"store_{self.kernel.result_name}"
        box = self._result_box(panel)
        yield from store_box(self.kernel.tensors.result, *box, local, channel=STORE, coords=coords, name=name)
