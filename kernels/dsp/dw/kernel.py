"""The gradient of the weights on a DSP: dw = dy^T x im2col(x), a block of dw at a time, summed over outputs.

    for each block of dw (groups, Cout, taps, channels):       (sums in AM, zero at first)
        for each chunk of k outputs:                           (im2col(x): rows of x to AM, tap by tap)
            for each strip of Cout:                            (dy: DDR to AM, turned, AM to GSM, GSM to SM)
                sums += dy^T [rows, k] x columns [k, taps x channels]
        sums to DDR: rounded once where they are complete, else in fp32 for the reduction

The micro-kernel wants rows of dy^T in SM, and dy has an output a row. The vector unit turns each strip in AM
(Permute), and since SM and AM exchange nothing by DMA, it goes by way of GSM. The DMA of the family has a mode that
transposes 32-bit elements; nothing is known of its speed, so that it is not used.

Rows of x that come for the next chunk are spread over the strips of this one: a DMA queue holds few of them.

Layouts in DDR: dy and x are [N, D, H, W, C]; dw is tap-major, [Cout, taps, Cin / groups].
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass

from kernels.dsp.dw.program import DwProgram
from kernels.dsp.dw.shares import Block, blocks, mine, parts
from kernels.dsp.dw.tiling import DwTiling
from kernels.dsp.dw.turns import Turn, turns
from kernels.dsp.dx.geometry import Geometry
from simulator.instructions import Instruction
from simulator.kernel import Core, Space
from simulator.memory.memories import Buffer
from simulator.values.numerics import DType, dtype

NONE = (-1, -1, -1, -1)
"""Output (n, d, h, w) of what belongs to a whole block."""


@dataclass(frozen=True, slots=True)
class DwTensors:
    """The tensors in DDR: dy [N, D, H, W, Cout], x [N, D, H, W, Cin], dw [cores with sums, Cout, taps, Cin/groups]."""

    dy: Buffer
    x: Buffer
    dw: Buffer


@dataclass(frozen=True, slots=True)
class Work:
    """What a core does: its blocks, the chunks of each, and where they begin in one list of all."""

    blocks: tuple[Block, ...]
    turns: tuple[Turn, ...]
    starts: tuple[int, ...]


class ConvDw:
    """The kernel of one launch."""

    name = "conv_dw"
    kind = "conv"
    axes: tuple[str, ...] = ("k", "c", "tap", "n", "d", "h", "w", "m")

    def __init__(self, geometry: Geometry, tiling: DwTiling, tensors: DwTensors, operand: DType) -> None:
        """A kernel for these tensors."""
        self.geometry = geometry
        self.tiling = tiling
        self.tensors = tensors
        self.operand = operand
        self.sum_type = dtype(tiling.fp16_accumulate if operand.name == "fp16" else "fp32")
        self.rate = operand.name + ("_fp16" if self.sum_type.name == "fp16" else "")
        self._work: dict[tuple[int, int], Work | None] = {}

    def work(self, rank: int, count: int) -> Work | None:
        """What core `rank` of `count` does, None for one that takes no part."""
        if (rank, count) not in self._work:
            self._work[rank, count] = self._share(rank, count)
        return self._work[rank, count]

    def _share(self, rank: int, count: int) -> Work | None:
        g, t = self.geometry, self.tiling
        own, share = blocks(g, t), parts(g, t.split, rank, count)
        if t.split == "channels":
            cut = mine(len(own), rank, count) if own else None
            own = own[cut[0] : sum(cut)] if cut else []
        if not own or share is None:
            return None
        listed: list[Turn] = []
        starts = []
        for index, block in enumerate(own):
            starts.append(len(listed))
            listed += turns(g, block, index, share, t.k)
        return Work(tuple(own), tuple(listed), (*starts, len(listed)))

    def slot(self, rank: int) -> int:
        """Which of the partial results is the core's."""
        return rank if self.tensors.dw.shape[0] > 1 else 0

    def core_class(self, rank: int, count: int) -> Hashable | None:
        """Blocks and chunks of equal sizes, in the same order."""
        work = self.work(rank, count)
        if work is None:
            return None
        sizes = tuple(block.size for block in work.blocks)
        return sizes, tuple((turn.block, turn.plan and turn.plan.key()) for turn in work.turns)

    def origins(self, rank: int, count: int) -> list[tuple[int, ...]]:
        """(k, c, tap, n, d, h, w) of a core's blocks and chunks."""
        work = self.work(rank, count)
        if work is None:
            return []
        whole = [self.origin(block, None) for block in work.blocks]
        return whole + [self.origin(work.blocks[turn.block], turn) for turn in work.turns if turn.plan]

    def origin(self, block: Block, turn: Turn | None) -> tuple[int, ...]:
        """First output channel, input channel, tap, and output of a chunk, or of a block."""
        g = self.geometry
        place = (block.g * g.cog + block.k, block.g * g.cig + block.c, block.tap)
        if turn is None or turn.plan is None:
            return place + NONE
        span = turn.plan.span
        return (*place, turn.n, span.od, span.oh, span.ow)

    def setup(self, space: Space) -> None:
        """Rings of sums, columns and strips of dy, as large as the largest of any core."""
        works = [w for core in space.cores if (w := self.work(core.rank, core.count)) is not None]
        every = {(w.blocks[t.block].size, t.plan.outputs if t.plan else 0) for w in works for t in w.turns}
        sums = max((gb * kb * taps * cb for (gb, kb, taps, cb), _ in every), default=1)
        columns = max((gb * taps * cb * m for (gb, _, taps, cb), m in every), default=1)
        strips = [
            (gb * min(kb, self.tiling.rows if gb == 1 else kb), taps * cb, m)
            for (gb, kb, taps, cb), m in every
        ]
        strip = max((rows * m for rows, _, m in strips), default=1)
        space.ring(
            "sums",
            "array",
            sums,
            self.sum_type,
            remedy="lower dw.out_channels, dw.channels, dw.taps or dw.groups",
        )
        if self.tensors.dw.dtype is not self.sum_type:
            part = max((rows * width for rows, width, _ in strips), default=1)
            space.ring("sums_out", "array", part, self.tensors.dw.dtype, depth=2, remedy="lower dw.rows")
        depth = 1 + self.tiling.ahead
        less = "lower dw.k, dw.channels or dw.taps"
        space.ring("columns", "array", columns, self.operand, depth=depth, remedy=less)
        if any(gb > 1 for (gb, *_), _ in every):
            space.ring("grouped", "array", columns, self.operand, remedy="lower dw.k or dw.groups")
        less = "lower dw.k or dw.rows"
        space.ring("dy_rows", "array", strip, self.operand, depth=depth, remedy=less)
        space.ring("dy_turned", "array", strip, self.operand, remedy=less)
        space.ring("dy_passing", "shared", strip, self.operand, depth=depth, remedy=less)
        space.ring("dy_strip", "scalar", strip, self.operand, depth=depth, remedy=less)

    def program(self, core: Core) -> Iterator[Instruction]:
        """Blocks, chunks, strips."""
        return DwProgram(self, core).instructions()

    def values(self, core: Core) -> Iterator[Instruction]:
        """The same, with the products of a chunk as one step."""
        return DwProgram(self, core).steps()
