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
from dataclasses import dataclass
from math import prod

from kernels.dsp.dx.geometry import Geometry, Panel, pieces
from kernels.dsp.dx.panels import PanelPlan, planner
from kernels.dsp.dx.program import DxProgram
from kernels.dsp.dx.shares import in_step, panels
from kernels.dsp.dx.tiling import DxTiling
from kernels.errors import TilingError
from simulator.instructions import Instruction
from simulator.kernel import Core, Space
from simulator.memory.memories import Buffer
from simulator.values.numerics import DType, dtype


@dataclass(frozen=True, slots=True)
class DxTensors:
    """The operands in DDR: dy [N, D, H, W, Cout], w [Cout, taps, Cin / groups], dx [N, D, H, W, Cin], a workspace."""

    dy: Buffer
    w: Buffer
    dx: Buffer
    workspace: Buffer | None = None


@dataclass(frozen=True, slots=True)
class Work:
    """A panel of a core, its plan, and the coordinates (n, d, h, w, c) of its first element."""

    panel: Panel
    plan: PanelPlan
    origin: tuple[int, ...]


class ConvDx:
    """The kernel of one launch."""

    name = "conv_dx"
    kind = "conv"
    axes: tuple[str, ...] = ("n", "d", "h", "w", "c", "tap", "k", "o")

    def __init__(
        self,
        geometry: Geometry,
        tiling: DxTiling,
        tensors: DxTensors,
        operand: DType,
        cores: int,
        *,
        accumulate: bool = False,
    ) -> None:
        """A kernel for these tensors on so many cores; with `accumulate` dx is added to, else written."""
        self.geometry = geometry
        self.tiling = tiling
        self.tensors = tensors
        self.operand = operand
        self.sum_type = dtype(tiling.fp16_accumulate if operand.name == "fp16" else "fp32")
        self.rate = operand.name + ("_fp16" if self.sum_type.name == "fp16" else "")
        self.accumulate = accumulate
        self.together = tiling.dy_in_gsm and in_step(geometry, tiling.split, tiling.channels, cores)
        self._planner = planner(geometry, tiling)
        self._work: dict[tuple[int, int], tuple[Work, ...]] = {}

    def key(self) -> Hashable:
        """Geometry, tiling, types and memories, and whether dx is added to; the machine adds core and count."""
        t = self.tensors
        types = (self.operand.name, t.dx.dtype.name, t.dy.memory, t.w.memory, t.dx.memory)
        return (type(self), self.geometry, self.tiling, types, self.together, self.accumulate)

    def work(self, rank: int, count: int) -> tuple[Work, ...]:
        """The panels of a core, with their plans."""
        if (rank, count) not in self._work:
            mine = panels(self.geometry, self.tiling, rank, count)
            self._work[rank, count] = tuple(
                Work(p, self._planner.plan(p), origin(self.geometry, p)) for p in mine
            )
        return self._work[rank, count]

    def core_class(self, rank: int, count: int) -> Hashable | None:
        """Panels of equal sizes and plans, in the same order, and equal parts of what the cores load together."""
        mine = self.work(rank, count)
        if not mine:
            return None
        alone = [self.cuts(work, rank, count) for work in distinct(mine)] if self.together else []
        cuts = tuple(tuple(number for _, _, number in cut) for cut in alone)
        return (self.weight_part(rank, count)[1], cuts, tuple(self.work_class(work) for work in mine))

    def origins(self, rank: int, count: int) -> list[tuple[int, ...]]:
        """(n, d, h, w, c) of a core's panels; what else a product's coordinates say is relative to its panel."""
        return [work.origin for work in self.work(rank, count)]

    def work_class(self, work: Work) -> Hashable:
        """Equal for panels whose instructions cost the same."""
        p = work.panel
        return (p.nb, p.hb, p.wb, p.gb, p.cb, self._planner.cost_class(work.plan))

    def cuts(self, work: Work, rank: int, count: int) -> list[tuple[int, int, int]]:
        """(image, first, number) of what a core loads of a dy panel that the cores load together.

        In outputs where the panel has whole rows of one plane, else in rows.
        """
        frame = work.plan.frame
        if frame is None:
            return []
        active = [r for r in range(count) if self.work(r, count)]
        units = frame[2] * frame[3] if self.whole_rows(frame) else frame[2]
        strips = pieces(units, -(-units * frame[0] // len(active))) if frame[1] == 1 else [(0, units)]
        cuts = [(image, first, number) for image in range(frame[0]) for first, number in strips]
        return cuts[active.index(rank) :: len(active)]

    def whole_rows(self, frame: tuple[int, ...]) -> bool:
        """Whether the dy of a panel is made of whole output rows of one plane, which lie one after the other."""
        return frame[1] == 1 and frame[3] == self.geometry.w.out

    def setup(self, space: Space) -> None:
        """Rings of dy rows, weights, columns, and panels of dx and dy, as large as the largest tile of any core."""
        t = self.tiling
        every = [work for core in space.cores for work in self.work(core.rank, core.count)]
        kinds = distinct(every)
        rows = max((prod(c.size) for w in kinds for b in w.plan.blocks for c in b.chunks if c.m), default=1)
        space.ring(
            "dy_rows", "scalar", rows, self.operand, depth=1 + min(t.ahead, 1), remedy="lower positions or k"
        )
        out = max((w.panel.nb * w.panel.hb * w.panel.wb * w.panel.gb * w.panel.cb for w in kinds), default=1)
        less = "lower rows, cols, images or channels"
        space.ring("dx", "array", out, self.sum_type, depth=t.dx_buffers, remedy=less)
        if self.tensors.dx.dtype is not self.sum_type:
            space.ring("dx_out", "array", out, self.tensors.dx.dtype, remedy=less)
        if t.column != "none":
            self._setup_columns(space, kinds)
        self._setup_weights(space, kinds)
        if t.dy_in_gsm:
            size = max((prod(w.plan.frame) for w in kinds if w.plan.frame), default=1)
            ring = space.common_ring if self.together else space.ring
            ring(
                "dy_panel",
                "shared",
                size,
                self.operand,
                depth=t.dy_buffers,
                remedy=f"{less}, or set gsm_holds",
            )

    def _setup_columns(self, space: Space, kinds: Sequence[Work]) -> None:
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

    def _setup_weights(self, space: Space, kinds: Sequence[Work]) -> None:
        t, g = self.tiling, self.geometry
        if t.weights == "am":
            most = max((prod(self.resident(self.work(c.rank, c.count))[1]) for c in space.cores), default=1)
            space.ring("weights", "array", most, self.operand, remedy="set weights=stream or weights=gsm")
        else:
            block = max((prod(b.size) for w in kinds for b in w.plan.blocks if b.size), default=1)
            space.ring(
                "weights",
                "array",
                block,
                self.operand,
                depth=2,
                remedy="lower block_channels, block_taps or k",
            )
        if t.w_in_gsm:
            space.common_ring(
                "w_all", "shared", g.cout * g.taps * g.cig, self.operand, remedy="set weights=stream"
            )

    def resident(self, mine: Sequence[Work]) -> tuple[tuple[int, int, int], tuple[int, int, int]]:
        """The box (start, size) of the weights that a core's panels use."""
        g, own = self.geometry, [work.panel for work in mine]
        first, last = min(p.g for p in own), max(p.g + p.gb for p in own)
        low, high = min(p.c for p in own), max(p.c + p.cb for p in own)
        return (first * g.cog, 0, low), ((last - first) * g.cog, g.taps, high - low)

    def weight_part(self, rank: int, count: int) -> tuple[int, int]:
        """(first, number) of the output channels whose weights a core brings into GSM."""
        if not self.tiling.w_in_gsm:
            return 0, 0
        active = [r for r in range(count) if self.work(r, count)]
        cuts = pieces(self.geometry.cout, -(-self.geometry.cout // len(active)))
        place = active.index(rank)
        return cuts[place] if place < len(cuts) else (0, 0)

    def program(self, core: Core) -> Iterator[Instruction]:
        """Weights that stay, then panels, blocks and chunks."""
        return DxProgram(self, core).instructions()

    def values(self, core: Core) -> Iterator[Instruction]:
        """The same, with the products of a block as one step."""
        return DxProgram(self, core).steps()


def origin(geometry: Geometry, panel: Panel) -> tuple[int, ...]:
    """The first image, plane, row, column and channel of a panel."""
    return (panel.n, panel.d, panel.h, panel.w, panel.g * geometry.cig + panel.c)


def distinct(every: Sequence[Work]) -> list[Work]:
    """One panel of each plan."""
    return list({id(work.plan): work for work in every}.values())
