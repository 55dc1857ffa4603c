"""The forward convolution on a DSP: products of im2col(x) and weights, added onto rows of y that stay on the chip.

    for each panel of y:                                             (x panel to GSM; y starts at the bias or zero)
        for each block (taps of a kernel row x channels of x x channels of y):   (weights to AM)
            for each chunk of outputs that have the same taps:       (rows of x to SM, tap beside tap)
                y += rows [m, taps x k] x weights [taps x k, n]
        y panel to DDR

The rows of a product are rows of im2col(x), made by DMA where they are needed; outputs at a border have fewer taps and
products of their own, so that padding is never stored, read or multiplied.

Layouts in DDR: x and y are [N, D, H, W, C]; weights are [groups, taps, Cin / groups, Cout / groups].
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from kernels.dsp.dx.geometry import Panel
from kernels.dsp.dx.tiling import DxTiling
from kernels.dsp.forward.geometry import ForwardGeometry
from kernels.dsp.forward.panels import planner
from kernels.dsp.forward.program import ForwardProgram
from kernels.dsp.panels.kernel import Box, PanelKernel, PanelTensors, Work
from simulator.instructions import Instruction
from simulator.kernel import Core
from simulator.values.numerics import DType


class ConvForward(PanelKernel):
    """The kernel of one launch."""

    name = "conv_forward"
    source_name = "x"
    result_name = "y"
    geometry: ForwardGeometry

    def __init__(
        self,
        geometry: ForwardGeometry,
        tiling: DxTiling,
        tensors: PanelTensors,
        operand: DType,
        cores: int,
        *,
        name: str = "",
    ) -> None:
        """A kernel for these tensors on so many cores."""
        super().__init__(geometry, tiling, tensors, operand, cores, planner(geometry, tiling), name=name)

    def weight_rows(self) -> tuple[int, int]:
        """A tap and an input channel a row."""
        g = self.geometry
        return g.groups * g.taps * g.cog, g.cig

    def weight_start(self, panel: Panel, place: tuple[int, ...]) -> tuple[int, ...]:
        """(group, tap, input channel, output channel) of a block."""
        return (panel.g + place[0], *place[1:])

    def resident(self, mine: Sequence[Work]) -> Box:
        """The box (start, size) of the weights that a core's panels use."""
        g, own = self.geometry, [work.panel for work in mine]
        first, last = min(p.g for p in own), max(p.g + p.gb for p in own)
        low, high = min(p.c for p in own), max(p.c + p.cb for p in own)
        return (first, 0, 0, low), (last - first, g.taps, g.cog, high - low)

    def program(self, core: Core) -> Iterator[Instruction]:
        """Weights that stay, then panels, blocks and chunks."""
        return ForwardProgram(self, core).instructions()

    def values(self, core: Core) -> Iterator[Instruction]:
        """The same, with the products of a block as one step."""
        return ForwardProgram(self, core).steps()
