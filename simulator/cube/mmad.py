"""The product of the cube."""

from __future__ import annotations

from collections.abc import Hashable
from math import ceil, prod

import numpy as np

from simulator.cube.fractals import FRACTAL_ROWS, block_elements, round_up, table_of
from simulator.errors import ProgramError
from simulator.instructions import Coords, Cost, Instruction
from simulator.memory.memories import View
from simulator.values.numerics import Array, product, round_hf32
from targets.schema import Target


class Mmad(Instruction):
    """out [m, n] (+)= a [m, k] times b [k, n]: fp32 in L0C, of operands in L0A and L0B.

    Shapes are logical: the cube multiplies whole fractals, and `macs` counts them.
    """

    __slots__ = ("accumulate", "k", "m", "macs", "n", "rate")
    engine = "cube"
    name = "mmad"

    def __init__(
        self, out: View, a: View, b: View, *, rate: str, accumulate: bool = False, coords: Coords = ()
    ) -> None:
        """Multiply on the cube table `rate` of the target ("fp16", "bf16", "fp32", "hf32").

        Raises:
            ProgramError: the sizes do not fit each other, or the operands are not stored as the rate takes them.
        """
        for view in (a, b):
            _check_type(view, rate)
        (m, k), n = _matrix(a), _matrix(b)[-1]
        if b.shape[0] != k or prod(out.shape) != m * n:
            raise ProgramError(
                "a product of sizes that do not fit", got=f"{a.shape} x {b.shape} -> {out.shape}"
            )
        super().__init__((a, b, out) if accumulate else (a, b), (out,), coords)
        self.m, self.n, self.k = m, n, k
        granule = block_elements(a.buffer.dtype.size_bytes)
        self.macs = round_up(m, FRACTAL_ROWS) * round_up(n, FRACTAL_ROWS) * round_up(k, granule)
        self.rate = rate
        self.accumulate = accumulate

    def signature(self) -> Hashable:
        """Sizes and rate."""
        return ("mmad", self.rate, self.m, self.n, self.k)

    def cost(self, target: Target) -> Cost:
        """ceil16(m) * ceil16(n) * ceil(k) multiply-adds, and a head that is longer after a pause.

        The formula is of the appendix on cube performance in the documentation of the Ascend C kit
        (mirror-cann/asc-devkit).

        Raises:
            ProgramError: the cube of the target does not take operands of this rate.
        """
        spec = table_of(target.cube, "cube rate", self.rate, target.name)
        whole = round_up(self.m, FRACTAL_ROWS) * round_up(self.n, FRACTAL_ROWS)
        cycles = ceil(whole * round_up(self.k, spec.granule_k) / spec.macs_per_cycle)
        pause = spec.isolated_head_cycles - spec.head_cycles
        return Cost(target.issue.matmul_cycles, cycles + spec.head_cycles, idle_cycles=pause)

    def execute(self) -> None:
        """Multiply; sums are fp32."""
        out = self.writes[0]
        made = product(self._operand(0), self._operand(1), passing=True)
        if not self.accumulate:
            out.put(made)
            return
        total = out.array()
        with np.errstate(over="ignore", invalid="ignore"):
            if total.flags.writeable:
                np.add(total, made.reshape(out.shape), out=total)
            else:
                out.put(total + made.reshape(out.shape))

    def _operand(self, place: int) -> Array:
        """What the cube reads: hf32 rounds it on the way."""
        values = self.reads[place].array()
        return round_hf32(values) if self.rate == "hf32" else values


def _check_type(view: View, rate: str) -> None:
    """Refuse an operand of another type than the cube reads: hf32 reads fp32, others what they are called."""
    stored = "fp32" if rate == "hf32" else rate
    if view.buffer.dtype.name != stored:
        raise ProgramError(
            "an operand of another type than the cube reads",
            where=view.buffer.name,
            got=view.buffer.dtype.name,
            limit=stored,
        )


def _matrix(view: View) -> tuple[int, int]:
    """Rows and columns of an operand.

    Raises:
        ProgramError: it is no matrix.
    """
    if len(view.shape) != 2:  # a matrix has two axes
        raise ProgramError("an operand of the cube that is no matrix", where=view.buffer.name, got=view.shape)
    return view.shape[0], view.shape[1]
