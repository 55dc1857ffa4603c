"""The product of a chunk: rows of dy, turned, times im2col(x), with what lies in the padding left out."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from kernels.dsp.dw.shares import Block
from kernels.dsp.dw.turns import Turn, TurnPlan
from simulator.instructions import Coords, Instruction, Matmul
from simulator.memory.memories import View
from simulator.values.numerics import Array, product, product_fp16

if TYPE_CHECKING:
    from kernels.dsp.dw.kernel import ConvDw


class ChunkProduct(Matmul):
    """out [.., rows, taps x channels] += dy [rows, .., outputs] times columns [.., outputs, taps x channels].

    The chip multiplies columns that are zero where a tap lies in the padding. Zero times a finite number adds nothing;
    where dy is not finite, only the outputs that have the tap are multiplied: absent is not 0 x NaN.
    """

    __slots__ = ("plan", "taps")

    def __init__(
        self, out: View, a: View, b: View, plan: TurnPlan, taps: int, *, rate: str, coords: Coords = ()
    ) -> None:
        """A product of `taps` taps under a plan."""
        super().__init__(out, a, b, rate=rate, accumulate=True, coords=coords)
        self.plan = plan
        self.taps = taps

    def execute(self) -> None:
        """Multiply and add."""
        a, b = self.reads[0].array(), self.reads[1].array()
        left = a.swapaxes(0, 1) if b.ndim == 3 else a
        add_product(self.writes[0].array(), left, b, self.plan, self.taps, self.rate)


class ChunkSums(Instruction):
    """All products of a chunk under one block, straight from dy and x in DDR: values only, it has no cost."""

    __slots__ = ("block", "kernel", "turn")

    def __init__(self, out: View, kernel: ConvDw, block: Block, turn: Turn) -> None:
        """Add the chunk to the block's sums."""
        super().__init__((), (out,))
        self.kernel = kernel
        self.block = block
        self.turn = turn

    def execute(self) -> None:
        """Gather, multiply and add."""
        plan, block, out = self.turn.plan, self.block, self.writes[0].array()
        assert plan is not None  # noqa: S101  # chunks without a plan have no values
        left, right = self._rows(plan), self._columns(plan)
        if block.gb == 1:
            left, right = left[0], right[0]
        add_product(out, left, right, plan, block.taps, self.kernel.rate)

    def _rows(self, plan: TurnPlan) -> Array:
        """The rows of dy, turned: [groups, Cout, outputs]."""
        g, block, span, n = self.kernel.geometry, self.block, plan.span, self.turn.n
        first = block.g * g.cog + block.k
        place = (slice(n, n + plan.ib), span.od, slice(span.oh, span.oh + span.rows))
        part = self.kernel.tensors.dy.numbers()[*place, span.ow : span.ow + span.cols]
        rows = part[..., first : first + block.gb * block.kb].reshape(plan.outputs, block.gb, block.kb)
        return np.ascontiguousarray(rows.transpose(1, 2, 0))

    def _columns(self, plan: TurnPlan) -> Array:
        """im2col(x), zero where a tap is absent: [groups, outputs, taps x channels]."""
        g, block, n = self.kernel.geometry, self.block, self.turn.n
        wide, first = block.gb * block.cb, block.g * g.cig + block.c
        x, channels = self.kernel.tensors.x.numbers(), slice(first, first + wide)
        columns = np.zeros((*plan.box, block.taps, wide), x.dtype)
        for tap in plan.present:
            read = x[n : n + plan.ib, tap.plane, tap.rows_of_x, tap.cols_of_x, channels]
            columns[:, tap.rows, tap.cols, tap.tap] = read
        by_group = columns.reshape(plan.outputs, block.taps, block.gb, block.cb).transpose(2, 0, 1, 3)
        return by_group.reshape(block.gb, plan.outputs, block.width)


def add_product(total: Array, left: Array, right: Array, plan: TurnPlan, taps: int, rate: str) -> None:
    """Add to total [.., rows, taps x channels] left [.., rows, outputs] x right [.., outputs, taps x channels].

    Tap by tap, over the outputs that have it, where that matters.
    """
    if plan.whole or np.isfinite(left).all():
        _add(total, left, right, rate)
        return
    by_tap = right.reshape(*right.shape[:-2], *plan.box, taps, -1)
    sums = total.reshape(*total.shape[:-1], taps, -1)
    for tap in plan.present:
        place = (slice(None), tap.rows, tap.cols)
        rows = left.reshape(*left.shape[:-1], *plan.box)[..., *place].reshape(*left.shape[:-1], -1)
        columns = by_tap[..., *place, tap.tap, :].reshape(*right.shape[:-2], rows.shape[-1], -1)
        _add(sums[..., tap.tap, :], rows, columns, rate)


def _add(total: Array, rows: Array, columns: Array, rate: str) -> None:
    with np.errstate(invalid="ignore", over="ignore"):
        if rate.endswith("_fp16"):
            total[...] = product_fp16(total, rows, columns)
        else:
            np.add(total, product(rows, columns), out=total)
