"""The program of one core for the forward convolution: rows of x, tap by tap, are rows of products added onto y."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, cast

from kernels.dsp.dx.columns import AXES
from kernels.dsp.dx.geometry import Panel
from kernels.dsp.dx.panels import BlockPlan
from kernels.dsp.forward.panels import OutputChunk, RowCopy
from kernels.dsp.forward.product import BlockProduct
from kernels.dsp.panels.program import LOAD_ROWS, PanelProgram
from simulator.instructions import Copy, Instruction, MatmulInto
from simulator.memory.memories import View
from simulator.tiles import Step

if TYPE_CHECKING:
    from kernels.dsp.forward.kernel import ConvForward


class ForwardProgram(PanelProgram):
    """Panels of y."""

    kernel: ConvForward

    def _load_rows(self, step: Step) -> Iterator[Instruction]:
        """Rows of x into SM, tap beside tap: [m, taps x k], or [m, groups, taps x k]."""
        chunk: OutputChunk = step.tile
        if not chunk.m or step.up is None or step.up.up is None:
            return
        work, block = step.up.up.tile, step.up.tile.block
        coords = (*work.origin, block.tap + chunk.first, block.k, chunk.place[1])
        for copy in chunk.copies:
            yield self._row_copy(step, chunk, copy, coords)

    def _row_copy(self, step: Step, chunk: OutputChunk, copy: RowCopy, coords: tuple[int, ...]) -> Copy:
        image, row, column, tap = copy.place
        assert step.up is not None  # noqa: S101  # the loops lie in each other
        assert step.up.up is not None  # noqa: S101  # as above
        source = copy.read(self._source(step.up.up, copy.source), self.kernel.geometry)
        size = (copy.size[0], copy.size[2], copy.size[3], chunk.size[3], copy.taps, chunk.size[5])
        local = self.core.rings["rows"][step.ordinal]
        there = local.box((image, row, column, 0, tap, 0), size, frame=chunk.size)
        return Copy(there, source, channel=LOAD_ROWS, coords=coords, name="load_rows")

    def _compute(self, step: Step) -> Iterator[Instruction]:
        """A product, added onto its outputs."""
        chunk: OutputChunk = step.tile
        if not chunk.m or step.up is None or step.up.up is None:
            return
        plan, work = step.up.tile, step.up.up.tile
        k = chunk.taps * plan.block.kb
        shape = (chunk.m, k) if work.panel.gb == 1 else (chunk.m, work.panel.gb, k)
        rows = self.core.rings["rows"][step.ordinal].dense(shape)
        weights = self._block(work.panel, plan, chunk, step.up.ordinal)
        coords = (*work.origin, plan.block.tap + chunk.first, plan.block.k, chunk.place[1])
        yield MatmulInto(
            self._result(work.panel, step.up.up.ordinal), chunk.seen, rows, weights, chunk.parts,
            rate=self.kernel.rate, axes=AXES, coords=coords,
        )  # fmt: skip

    def _compute_block(self, step: Step) -> Iterator[Instruction]:
        """All products of a block, from the x of its panel."""
        plan: BlockPlan = step.tile
        if step.up is None:
            return
        panel = step.up.tile.panel
        total = self._result(panel, step.up.ordinal)
        for chunk in cast("tuple[OutputChunk, ...]", plan.whole):
            weights = self._block(panel, plan, chunk, step.ordinal)
            sources = [self._source(step.up, copy.source) for copy in chunk.copies]
            yield BlockProduct(total, weights, chunk, sources, self.kernel.geometry, self.kernel.rate)

    def _block(self, panel: Panel, plan: BlockPlan, chunk: OutputChunk, ordinal: int) -> View:
        """The weights of the chunk's taps in AM, [taps x k, channels] or [groups, taps x k, channels]."""
        block, k = plan.block, chunk.taps * plan.block.kb
        shape = (k, block.cb) if panel.gb == 1 else (panel.gb, k, block.cb)
        part = ((0, chunk.first, 0, 0), (plan.size[0], chunk.taps, *plan.size[2:]))
        return self._weights(panel, plan, ordinal, shape, part if chunk.taps < block.taps else None)
