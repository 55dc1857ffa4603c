"""A convolution by panels of its result: what the input gradient and the forward convolution have in common.

    for each panel of the result:                                    (what it reads of the source to GSM)
        for each block (taps x channels of the result x a piece of the sum):     (weights to AM)
            for each chunk of outputs:                               (rows of the source to SM)
                panel += rows [m, k] x weights [k, n]
        panel to DDR

Source and result are [N, D, H, W, C] in DDR.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from math import prod

from kernels.dsp.dx.geometry import Geometry, Panel, pieces
from kernels.dsp.dx.panels import PanelPlan, Planner
from kernels.dsp.dx.shares import in_step, panels
from kernels.dsp.dx.tiling import DxTiling
from simulator.instructions import Instruction
from simulator.kernel import Core, Space
from simulator.memory.memories import Buffer
from simulator.values.numerics import DType, dtype

Box = tuple[tuple[int, ...], tuple[int, ...]]
"""Start and size on every axis."""


@dataclass(frozen=True, slots=True)
class PanelTensors:
    """The tensors in DDR.

    Attributes:
        source, result: [N, D, H, W, C].
        w: the weights in the order of the kernel.
        workspace: where columns wait, [cores, halves, elements].
        bias: what the result starts at, [C].
    """

    source: Buffer
    w: Buffer
    result: Buffer
    workspace: Buffer | None = None
    bias: Buffer | None = None


@dataclass(frozen=True, slots=True)
class Work:
    """A panel of a core, its plan, and the coordinates (n, d, h, w, c) of its first element."""

    panel: Panel
    plan: PanelPlan
    origin: tuple[int, ...]


class PanelKernel:
    """The kernel of one launch; subclasses say how weights lie and what a block computes."""

    name = "conv"
    kind = "conv"
    axes: tuple[str, ...] = ("n", "d", "h", "w", "c", "tap", "k", "o")
    source_name = "source"
    result_name = "result"

    def __init__(
        self,
        geometry: Geometry,
        tiling: DxTiling,
        tensors: PanelTensors,
        operand: DType,
        cores: int,
        planner: Planner,
        *,
        name: str = "",
    ) -> None:
        """A kernel for these tensors on so many cores; `name` is its launch's, where it is not its own."""
        self.name = name or type(self).name
        self.geometry = geometry
        self.tiling = tiling
        self.tensors = tensors
        self.operand = operand
        self.sum_type = dtype(tiling.fp16_accumulate if operand.name == "fp16" else "fp32")
        self.rate = operand.name + ("_fp16" if self.sum_type.name == "fp16" else "")
        self.together = tiling.dy_in_gsm and in_step(geometry, tiling.split, tiling.channels, cores)
        self._planner = planner
        self._work: dict[tuple[int, int], tuple[Work, ...]] = {}

    def key(self) -> Hashable:
        """Geometry, tiling, types and memories, and whether there is a bias; the machine adds core and count."""
        t = self.tensors
        types = (self.operand.name, t.result.dtype.name, t.source.memory, t.w.memory, t.result.memory)
        return (type(self), self.geometry, self.tiling, types, self.together, t.bias is not None)

    # -- what a core does ------------------------------------------------------------------------------------

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

    # -- what the cores load together ------------------------------------------------------------------------

    def cuts(self, work: Work, rank: int, count: int) -> list[tuple[int, int, int]]:
        """(image, first, number) of what a core loads of a source panel that the cores load together.

        In positions where the panel has whole rows of one plane, else in rows.
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
        """Whether the source of a panel is made of whole rows of one plane, which lie one after the other."""
        return frame[1] == 1 and frame[3] == self.geometry.w.out

    def weight_part(self, rank: int, count: int) -> tuple[int, int]:
        """(first, number) of the rows of the weights, seen as a matrix, that a core brings into GSM."""
        if not self.tiling.w_in_gsm:
            return 0, 0
        active = [r for r in range(count) if self.work(r, count)]
        rows = self.weight_rows()[0]
        cuts = pieces(rows, -(-rows // len(active)))
        place = active.index(rank)
        return cuts[place] if place < len(cuts) else (0, 0)

    # -- how the weights lie ---------------------------------------------------------------------------------

    def weight_rows(self) -> tuple[int, int]:
        """(rows, elements of a row) of the weights as a matrix whose rows the cores divide."""
        raise NotImplementedError

    def weight_start(self, panel: Panel, place: tuple[int, ...]) -> tuple[int, ...]:
        """Where in the weights a block begins that is at `place` of the panel's groups."""
        raise NotImplementedError

    def resident(self, mine: Sequence[Work]) -> Box:
        """The box of the weights that a core's panels use."""
        raise NotImplementedError

    # -- buffers ---------------------------------------------------------------------------------------------

    def setup(self, space: Space) -> None:
        """Rings of rows, weights, and panels of result and source, as large as the largest tile of any core."""
        t = self.tiling
        kinds = distinct([work for core in space.cores for work in self.work(core.rank, core.count)])
        rows = max((prod(c.size) for w in kinds for b in w.plan.blocks for c in b.chunks if c.m), default=1)
        depth = 1 + min(t.ahead, 1)
        space.ring("rows", "scalar", rows, self.operand, depth=depth, remedy="lower positions or k")
        out = max((w.panel.nb * w.panel.hb * w.panel.wb * w.panel.gb * w.panel.cb for w in kinds), default=1)
        less = "lower rows, cols, images or channels"
        space.ring(self.result_name, "array", out, self.sum_type, depth=t.dx_buffers, remedy=less)
        if self.tensors.result.dtype is not self.sum_type:
            space.ring("staged", "array", out, self.tensors.result.dtype, remedy=less)
        self._setup_columns(space, kinds)
        self._setup_bias(space)
        self._setup_weights(space, kinds)
        if t.dy_in_gsm:
            size = max((prod(w.plan.frame) for w in kinds if w.plan.frame), default=1)
            ring = space.common_ring if self.together else space.ring
            less = f"{less}, or set gsm_holds"
            ring(self.source_name, "shared", size, self.operand, depth=t.dy_buffers, remedy=less)

    def _setup_columns(self, space: Space, kinds: Sequence[Work]) -> None:
        """Products that wait to be added: there are none, unless a subclass keeps some."""

    def _setup_bias(self, space: Space) -> None:
        """The bias as it is given, and as it is added."""
        bias = self.tensors.bias
        if bias is None:
            return
        space.ring("bias", "array", bias.size, self.sum_type, remedy="lower channels or rows")
        if bias.dtype is not self.sum_type:
            space.ring("bias_given", "array", bias.size, bias.dtype, remedy="lower channels or rows")

    def _setup_weights(self, space: Space, kinds: Sequence[Work]) -> None:
        if self.tiling.weights == "am":
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
        if self.tiling.w_in_gsm:
            space.common_ring(
                "w_all", "shared", prod(self.weight_rows()), self.operand, remedy="set weights=stream"
            )

    def program(self, core: Core) -> Iterator[Instruction]:
        """Weights that stay, then panels, blocks and chunks."""
        raise NotImplementedError


def origin(geometry: Geometry, panel: Panel) -> tuple[int, ...]:
    """The first image, plane, row, column and channel of a panel."""
    return (panel.n, panel.d, panel.h, panel.w, panel.g * geometry.cig + panel.c)


def distinct(every: Sequence[Work]) -> list[Work]:
    """One panel of each plan."""
    return list({id(work.plan): work for work in every}.values())
