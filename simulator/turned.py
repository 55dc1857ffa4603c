"""The matrix product of two operands whose rows both run along k."""

from __future__ import annotations

import numpy as np

from simulator.errors import ProgramError
from simulator.instructions import Coords, Instruction, Matmul
from simulator.memory.memories import View
from simulator.values.numerics import product, product_fp16


class MatmulTurned(Matmul):
    """out [m, n] (+)= a [m, k] times b [n, k] transposed, or out [n, m] where `out_turned` says so.

    Such a kernel sums along k in the lanes and stores its results one by one, so that their order is free. The cost is
    that of any product, by its own rate table ("fp64_nt").
    """

    __slots__ = ("out_turned",)
    name = "matmul_nt"

    def __init__(
        self,
        out: View,
        a: View,
        b: View,
        *,
        rate: str,
        accumulate: bool = False,
        out_turned: bool = False,
        coords: Coords = (),
    ) -> None:
        """Multiply on the rate table `rate` of the target.

        Raises:
            ProgramError: the sizes do not fit each other.
        """
        (m, k), (n, depth) = a.shape, b.shape
        if depth != k or out.shape != ((n, m) if out_turned else (m, n)):
            what = "a product of sizes that do not fit"
            raise ProgramError(what, got=f"{a.shape} x {b.shape} transposed -> {out.shape}")
        Instruction.__init__(self, (a, b, out) if accumulate else (a, b), (out,), coords)
        self.groups, self.m, self.n, self.k = 1, m, n, k
        self.macs = m * n * k
        self.rate = rate
        self.accumulate = accumulate
        self.out_turned = out_turned

    def execute(self) -> None:
        """Multiply; sums are those of the other products."""
        a, b = self.reads[0].array(), self.reads[1].array().T
        out = self.writes[0].array()
        out = out.T if self.out_turned else out
        if "_fp16" in self.rate:
            out[...] = product_fp16(out if self.accumulate else None, a, b)
        elif self.accumulate:
            np.add(out, product(a, b), out=out)
        else:
            out[...] = product(a, b)
