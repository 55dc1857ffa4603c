"""The input gradient on a DSP: products of dy and weights by tiles, then col2im onto rows of dx that stay on the chip.

    for each panel of dx:                                            (dy panel to GSM)
        for each block of columns (taps x channels x a piece of Cout):   (weights to AM)
            for each chunk of outputs:                               (dy rows to SM)
                columns = dy rows [m, k] x weights [k, n];  dx += col2im(columns)
        dx panel to DDR

Layouts in DDR: dy and dx are [N, D, H, W, C]; weights are tap-major, [Cout, taps, Cin / groups].
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from math import prod

from kernels.dsp.dx.geometry import Geometry, Panel
from kernels.dsp.dx.panels import planner
from kernels.dsp.dx.program import DxProgram
from kernels.dsp.dx.tiling import DxTiling
from kernels.dsp.panels.kernel import Box, PanelKernel, PanelTensors, Work
from kernels.errors import TilingError
from simulator.instructions import Instruction
from simulator.kernel import Core, Space
from simulator.values.numerics import DType

__all__ = ["ConvDx", "DxTensors", "Work"]

DxTensors = PanelTensors
"""dy, the tap-major weights, dx, and the workspace of columns."""


class ConvDx(PanelKernel):
    """The kernel of one launch."""

    name = "conv_dx"
    source_name = "dy"
    result_name = "dx"

    def __init__(
        self,
        geometry: Geometry,
        tiling: DxTiling,
        tensors: PanelTensors,
        operand: DType,
        cores: int,
        *,
        accumulate: bool = False,
        name: str = "",
    ) -> None:
        """A kernel for these tensors on so many cores; with `accumulate` dx is added to, else written."""
        super().__init__(geometry, tiling, tensors, operand, cores, planner(geometry, tiling), name=name)
        self.accumulate = accumulate

    def key(self) -> Hashable:
        """Whether dx is added to, beside the rest."""
        return (super().key(), self.accumulate)

    def _setup_columns(self, space: Space, kinds: Sequence[Work]) -> None:
        """Columns, unless products are added at once."""
        if self.tiling.column == "none":
            return
        half = self.tiling.budget_bytes // 2 // self.sum_type.size_bytes
        most = max((prod(c.seen) for w in kinds for b in w.plan.blocks for c in b.chunks if c.m), default=0)
        if most > half:
            raise TilingError(
                "a product's columns do not fit half of the column buffer",
                field="budget_bytes",
                got=f"{2 * most * self.sum_type.size_bytes} bytes wanted",
                limit=f"{self.tiling.budget_bytes} bytes",
                remedy="raise budget_bytes, or lower positions, block_channels or block_taps",
            )
        space.ring("columns", "array", half, self.sum_type, depth=2, remedy="lower budget_bytes")

    def weight_rows(self) -> tuple[int, int]:
        """An output channel a row."""
        return self.geometry.cout, self.geometry.taps * self.geometry.cig

    def weight_start(self, panel: Panel, place: tuple[int, ...]) -> tuple[int, ...]:
        """(output channel, tap, channel) of a block."""
        return (panel.g * self.geometry.cog + place[0], *place[1:])

    def resident(self, mine: Sequence[Work]) -> Box:
        """The box (start, size) of the weights that a core's panels use."""
        g, own = self.geometry, [work.panel for work in mine]
        first, last = min(p.g for p in own), max(p.g + p.gb for p in own)
        low, high = min(p.c for p in own), max(p.c + p.cb for p in own)
        return (first * g.cog, 0, low), ((last - first) * g.cog, g.taps, high - low)

    def program(self, core: Core) -> Iterator[Instruction]:
        """Weights that stay, then panels, blocks and chunks."""
        return DxProgram(self, core).instructions()

    def values(self, core: Core) -> Iterator[Instruction]:
        """The same, with the products of a block as one step."""
        return DxProgram(self, core).steps()
