"""The product of a chunk: rows of dy, turned, times im2col(x), with what lies in the padding left out."""

from __future__ import annotations

import numpy as np

from kernels.dsp.dw.turns import TurnPlan
from simulator.instructions import Coords, Matmul
from simulator.memory.memories import View
from simulator.values.numerics import Array, product, product_fp16


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
        """Multiply, tap by tap where it matters."""
        if not self.plan.present or np.isfinite(self.reads[0].array()).all():
            super().execute()
            return
        a, b, out = self.reads[0].array(), self.reads[1].array(), self.writes[0].array()
        left = a.swapaxes(0, 1) if b.ndim == 3 else a
        box = (self.plan.ib, self.plan.span.rows, self.plan.span.cols)
        by_tap = b.reshape(*b.shape[:-2], *box, self.taps, -1)
        total = out.reshape(*out.shape[:-1], self.taps, -1)
        for tap in self.plan.present:
            place = (slice(None), tap.rows, tap.cols)
            rows = left.reshape(*left.shape[:-1], *box)[..., *place].reshape(*left.shape[:-1], -1)
            columns = by_tap[..., *place, tap.tap, :].reshape(*b.shape[:-2], rows.shape[-1], -1)
            self._add(total[..., tap.tap, :], rows, columns)

    def _add(self, total: Array, rows: Array, columns: Array) -> None:
        with np.errstate(invalid="ignore", over="ignore"):
            if self.rate.endswith("_fp16"):
                total[...] = product_fp16(total, rows, columns)
            else:
                np.add(total, product(rows, columns), out=total)
