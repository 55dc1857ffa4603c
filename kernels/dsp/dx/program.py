"""The program of one core for the input gradient: rows of dy are rows of products, columns are added onto dx."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, cast

from kernels.dsp.dx.columns import AXES, Columns
from kernels.dsp.dx.panels import BlockPlan, ChunkPlan
from kernels.dsp.panels.program import LOAD_PANEL, LOAD_ROWS, NO_PRODUCT, PanelProgram
from simulator.instructions import Instruction, MatmulInto
from simulator.kernel import Core
from simulator.memory.boxes import load_box
from simulator.memory.memories import View
from simulator.tiles import Step
from simulator.vector import Cast

if TYPE_CHECKING:
    from kernels.dsp.dx.geometry import Panel
    from kernels.dsp.dx.kernel import ConvDx
    from kernels.dsp.panels.kernel import Work


class DxProgram(PanelProgram):
    """Panels of dx."""

    kernel: ConvDx

    def __init__(self, kernel: ConvDx, core: Core) -> None:
        """Look up the core's share."""
        super().__init__(kernel, core)
        # Sums that arrive in their own type, in a buffer that no panel before needs any more.
        self.loads_dx_early = (
            kernel.accumulate and "staged" not in core.rings and self.tiling.dx_buffers > self.panels_ahead
        )
        self.columns = Columns(kernel.sum_type, kernel.rate, kernel.tiling, kernel.tensors.workspace)

    def _load_panel(self, step: Step) -> Iterator[Instruction]:
        """What a panel adds to, where it can be loaded early, and the dy that it reads."""
        if self.loads_dx_early:
            yield from self._load_dx(step.tile, step.ordinal)
        yield from super()._load_panel(step)

    def _load_dx(self, work: Work, ordinal: int) -> Iterable[Instruction]:
        """What dx holds, as the panel's sums or, in another type, where these leave from."""
        held = self.core.rings["staged" if "staged" in self.core.rings else "dx"][ordinal]
        dx, box, coords = self.kernel.tensors.result, self._result_box(work.panel), work.origin + NO_PRODUCT
        return load_box(held, dx, *box, channel=LOAD_PANEL, coords=coords, name="load_dx")

    def _start(self, work: Work, ordinal: int, total: View) -> Iterator[Instruction]:
        """Start dx at what it holds, where that is added to."""
        if not self.kernel.accumulate:
            yield from super()._start(work, ordinal, total)
            return
        if not self.loads_dx_early:
            yield from self._load_dx(work, ordinal)
        if "staged" in self.core.rings:
            held = self.core.rings["staged"][ordinal]
            yield Cast(total, held.dense(total.shape), coords=work.origin + NO_PRODUCT)

    def _load_rows(self, step: Step) -> Iterable[Instruction]:
        """Rows of dy into SM: [m, k], or [m, groups, k]."""
        chunk: ChunkPlan = step.tile
        if not chunk.m or step.up is None or step.up.up is None:
            return ()
        work, block = step.up.up.tile, step.up.tile.block
        source, frame, place = self._source(step.up.up, chunk.place)
        coords = (*work.origin, block.tap, block.k, chunk.place[2])
        local = self.core.rings["rows"][step.ordinal]
        return load_box(
            local, source, place, chunk.size, channel=LOAD_ROWS, coords=coords, name="load_rows", frame=frame
        )

    def _compute_block(self, step: Step) -> Iterator[Instruction]:
        """All products of a block, from the dy of its panel."""
        plan: BlockPlan = step.tile
        if step.up is None:
            return
        panel = step.up.tile.panel
        for chunk in cast("tuple[ChunkPlan, ...]", plan.whole):
            source, frame, place = self._source(step.up, chunk.place)
            rows = source.box(place, chunk.size, frame=frame, shape=_rows_shape(chunk, plan, panel))
            weights, total = self._block(panel, plan, step.ordinal), self._result(panel, step.up.ordinal)
            yield MatmulInto(total, chunk.seen, rows, weights, chunk.parts, rate=self.kernel.rate, axes=AXES)

    def _compute(self, step: Step) -> Iterable[Instruction]:
        """A product, and its columns onto dx."""
        chunk: ChunkPlan = step.tile
        if not chunk.m or step.up is None or step.up.up is None:
            return ()
        plan, work = step.up.tile, step.up.up.tile
        panel = work.panel
        rows = self.core.rings["rows"][step.ordinal].dense(_rows_shape(chunk, plan, panel))
        weights = self._block(panel, plan, step.up.ordinal)
        total = self._result(panel, step.up.up.ordinal)
        coords = (*work.origin, plan.block.tap, plan.block.k, chunk.place[2])
        return self.columns.add(self.core, plan, chunk, rows, weights, total, step.ordinal, coords)

    def _block(self, panel: Panel, plan: BlockPlan, ordinal: int) -> View:
        """The block of weights in AM, [k, taps x channels] or [groups, k, taps x channels]."""
        block, width = plan.block, plan.block.taps * plan.block.cb
        shape = (block.kb, width) if panel.gb == 1 else (panel.gb, block.kb, width)
        return self._weights(panel, plan, ordinal, shape)


def _rows_shape(chunk: ChunkPlan, plan: BlockPlan, panel: Panel) -> tuple[int, ...]:
    return (chunk.m, plan.block.kb) if panel.gb == 1 else (chunk.m, panel.gb, plan.block.kb)
