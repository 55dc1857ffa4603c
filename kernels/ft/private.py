"""The private call's kernel: one core, all operands in its array memory, nothing moved by DMA.

    for each panel of dx:                                        (fp16: its sums begin, in the workspace, in fp32)
        for each chunk of outputs:
            columns = dy rows [m, k] x weights [k, n]            (into the workspace)
            turned = columns, taps before channels               (where there are several of both)
            dx += col2im(turned)
                                                                 (fp16: its sums are rounded onto dx)

The weights are read as they are given, OIHW: a row of them is a column row with the channels before the taps. The 1x1
path adds its products straight onto dx; the depthwise path multiplies and adds vectors of channels.

The workspace holds, in this order: columns, turned columns (or turned weights), sums.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from typing import cast

from kernels.dsp.dx.columns import AXES
from kernels.dsp.dx.geometry import Geometry, Panel
from kernels.dsp.dx.panels import BlockPlan, ChunkPlan, planner
from kernels.dsp.dx.shares import panels
from kernels.dsp.dx.tiling import DxTiling
from kernels.ft.depthwise import SUMS, origin, reach
from kernels.ft.tilings import PrivateTiling
from simulator.instructions import Instruction, Matmul, MatmulInto
from simulator.kernel import Core, Space
from simulator.memory.memories import Buffer, View
from simulator.values.numerics import DType
from simulator.vector import Accumulate, Cast, MultiplyAdd, Permute


@dataclass(frozen=True, slots=True)
class PrivateTensors:
    """Operands in the core's array memory: dy [N, OH, OW, Cout], w [Cout, Cin / groups x taps], dx [N, H, W, Cin].

    The workspace is cut into columns, turned columns (depthwise: turned weights) and sums, which are used as far as the
    path needs them.
    """

    dy: Buffer
    w: Buffer
    dx: Buffer
    columns: Buffer
    turned: Buffer
    sums: Buffer


class PrivateDx:
    """The kernel of one launch."""

    kind = "conv"
    axes: tuple[str, ...] = ("n", "h", "w", "c", "tap", "o")

    def __init__(
        self, name: str, geometry: Geometry, tiling: PrivateTiling, tensors: PrivateTensors, operand: DType
    ) -> None:
        """A kernel for these tensors; dx is added to."""
        self.name = name
        self.geometry = geometry
        self.tiling = tiling
        self.tensors = tensors
        self.operand = operand
        self.staged = operand is not SUMS
        self.planner = planner(geometry, walk_of(geometry, tiling))

    def key(self) -> Hashable:
        """Geometry, tiling and type; there is one memory."""
        return (type(self), self.geometry, self.tiling, self.operand.name)

    def core_class(self, rank: int, count: int) -> Hashable | None:  # noqa: ARG002  # there is one core
        """The only core."""
        return 0

    def setup(self, space: Space) -> None:
        """Nothing: the caller gave all the memory there is."""

    def program(self, core: Core) -> Iterator[Instruction]:  # noqa: ARG002  # there is one core
        """Panels, and the products of each."""
        every = panels(self.geometry, self.tiling.panel_sizes, 0, 1)
        block: tuple[int, int] | None = None
        for panel in every:
            if not reach(self.geometry, panel).frame:
                continue
            if self.tiling.path == "depthwise" and (panel.g, panel.gb) != block:
                block = (panel.g, panel.gb)
                yield from self._turn_weights(panel)
            yield from self._panel(panel)

    def _panel(self, panel: Panel) -> Iterator[Instruction]:
        """One panel: its sums, in dx itself or in the workspace."""
        place, coords = self._in_dx(panel), origin(panel)
        total = self.tensors.sums.dense(place.shape) if self.staged else place
        if self.staged:
            yield Cast(total, place, coords=coords)
        yield from (
            self._depthwise(panel, total) if self.tiling.path == "depthwise" else self._products(panel, total)
        )
        if self.staged:
            yield Cast(place, total, coords=coords)

    def _in_dx(self, panel: Panel) -> View:
        """A panel where it lies; with the groups beside their channels where products are scattered."""
        width = panel.gb * panel.cb
        start = (panel.n, panel.h, panel.w, panel.g * self.geometry.cig + panel.c)
        shape: tuple[int, ...] = (panel.nb, panel.hb, panel.wb, panel.gb, panel.cb)
        if self.tiling.path == "depthwise":
            shape = (panel.nb, panel.hb, panel.wb, width)
        return self.tensors.dx.box(start, (panel.nb, panel.hb, panel.wb, width), shape=shape)

    # -- products --------------------------------------------------------------------------------------------

    def _products(self, panel: Panel, total: View) -> Iterator[Instruction]:
        """The products of a panel and their col2im."""
        plan = self.planner.plan(panel)
        for block in plan.blocks:
            for chunk in cast("tuple[ChunkPlan, ...]", block.chunks):
                if chunk.m:
                    yield from self._product(panel, plan.corner, block, chunk, total)

    def _product(
        self, panel: Panel, corner: tuple[int, int, int], block: BlockPlan, chunk: ChunkPlan, total: View
    ) -> Iterator[Instruction]:
        """One product, straight onto dx or by way of columns."""
        g, rate = self.geometry, self.operand.name
        coords = (*origin(panel)[:3], panel.g * g.cig, block.block.tap, chunk.place[2])
        rows = self._rows(panel, corner, chunk)
        width = g.cig * g.taps
        weights = self.tensors.w.box((panel.g * g.cog, 0), (g.cog, width))
        if self.tiling.path == "1x1":
            yield MatmulInto(
                total, chunk.seen, rows, weights, chunk.parts, rate=rate, axes=AXES, coords=coords
            )
            return
        columns = self.tensors.columns
        yield Matmul(columns.dense((chunk.m, width)), rows, weights, rate=rate, coords=coords)
        if g.taps > 1 and g.cig > 1:
            given = columns.dense((chunk.m, g.cig, g.taps))
            columns = self.tensors.turned
            yield Permute(columns.dense((chunk.m, g.taps, g.cig)), given, (0, 2, 1), coords=coords)
        if chunk.parts:
            yield Accumulate(
                total,
                columns.dense(chunk.seen),
                chunk.parts,
                axes=AXES,
                runs=chunk.runs,
                pieces=chunk.positions,
                piece_bytes=g.cig * SUMS.size_bytes,
                coords=coords,
            )

    def _rows(self, panel: Panel, corner: tuple[int, int, int], chunk: ChunkPlan) -> View:
        """Rows of dy, [m, Cout of the group], where they lie."""
        images, _, rows, cols, k = chunk.size
        start = (
            panel.n + chunk.place[0],
            corner[1] + chunk.place[2],
            corner[2] + chunk.place[3],
            panel.g * self.geometry.cog + chunk.place[4],
        )
        return self.tensors.dy.box(start, (images, rows, cols, k), shape=(chunk.m, k))

    # -- depthwise -------------------------------------------------------------------------------------------

    def _turn_weights(self, panel: Panel) -> Iterator[Instruction]:
        """The weights of a block of channels, [taps, channels], into the workspace."""
        given = self.tensors.w.box((panel.g, 0), (panel.gb, self.geometry.taps))
        yield Permute(self.tensors.turned.dense((self.geometry.taps, panel.gb)), given, (1, 0))

    def _depthwise(self, panel: Panel, total: View) -> Iterator[Instruction]:
        """All taps of a panel."""
        found = reach(self.geometry, panel)
        assert found.frame is not None  # noqa: S101  # panels that nothing reaches are left out
        yield MultiplyAdd(
            total,
            self.tensors.dy.box((panel.n, *found.corner, panel.g), found.frame),
            self.tensors.turned.dense((self.geometry.taps, panel.gb)),
            found.terms,
            runs=found.runs,
            positions=found.positions,
            coords=origin(panel),
        )


def walk_of(geometry: Geometry, tiling: PrivateTiling) -> DxTiling:
    """The tiling by which panels are planned: one group at a time, all its channels, whole column rows or none."""
    return DxTiling(
        split="batch",
        budget_bytes=8,
        column="none" if tiling.path == "1x1" else "rows",
        weights="am",
        gsm_holds="none",
        images=1,
        rows=tiling.rows,
        cols=tiling.cols,
        groups=1,
        channels=geometry.cig,
        block_channels=geometry.cig,
        block_taps=geometry.w.kernel,
        k=geometry.cog,
        positions=tiling.positions,
        dx_buffers=1,
        dy_buffers=1,
        ahead=0,
    )
