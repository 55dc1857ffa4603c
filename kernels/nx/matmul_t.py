"""nx_f32_matmul_t: out [m, n] = a [m, k] times the transpose of b [n, k], by workers that are forked.

The parent forks the workers one after another and waits for all of them. Each computes its share of the rows of `out`,
rows m x i / workers up to m x (i + 1) / workers, and ends.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from functools import partial

import numpy as np

from kernels.nx.arithmetic import Floats, matmul_t
from kernels.nx.operands import Operand
from kernels.nx.steps import LINES, lines, numbers
from kernels.nx.work import Counter
from simulator.host import Fork, HostLoop
from simulator.instructions import Barrier, Instruction
from simulator.kernel import Core, Space

TILES = 16
"""Loops that a worker's share is shown as, at most: they follow each other without cost."""


def share(m: int, rank: int, count: int) -> tuple[int, int]:
    """The rows of a worker, from and up to."""
    return m * rank // count, m * (rank + 1) // count


class ForkedProduct:
    """The launch of one product; more workers than rows are not forked."""

    kind = "fork"
    axes: tuple[str, ...] = ("row",)

    def __init__(
        self,
        name: str,
        count: Counter,
        out: Operand,
        a: Operand | None,
        b: Operand | None,
        sizes: tuple[int, int, int],
        *,
        fresh: bool,
    ) -> None:
        """A product of `sizes` (m, k, n); operands may be None where k is 0; `fresh` says that out is a new mapping."""
        self.name = name
        self._count = count
        self._out, self._a, self._b = out, a, b
        self._m, self._k, self._n = sizes
        self._fresh = fresh
        self.useful_macs = self._m * self._k * self._n
        self._turned: Floats | None = None

    def core_class(self, rank: int, count: int) -> Hashable | None:
        """Every worker begins at a time of its own."""
        return rank if rank < min(self._m, count) else None

    def setup(self, space: Space) -> None:
        """A line in each cache."""
        lines(space)

    def program(self, core: Core) -> Iterator[Instruction]:
        """Fork, the rows, join."""
        workers = min(self._m, core.count)
        low, high = share(self._m, core.rank, workers)
        line = core.rings["lines"][0].dense((LINES,))
        yield Fork(core.rank + 1)
        step = -(-(high - low) // TILES)
        for first in range(low, high, step):
            rows = min(step, high - first)
            out = self._out.view((rows, self._n), first * self._n)
            reads = [] if self._a is None else [self._a.view((rows, self._k), first * self._k)]
            reads += [] if self._b is None else [self._b.view((self._n, self._k))]
            yield HostLoop(
                self.name,
                self._count.product(rows, high - low, self._n, self._k, fresh=self._fresh),
                tuple(reads) or (out,),
                (line, out),
                partial(self._rows, first, rows),
                workers=workers,
                coords=(first,),
            )
        yield Barrier()

    def _rows(self, first: int, rows: int) -> None:
        """The numbers of some rows."""
        out = numbers(self._out.view((rows, self._n), first * self._n))
        if self._a is None or self._b is None:
            out[...] = 0
            return
        if self._turned is None:
            self._turned = np.ascontiguousarray(numbers(self._b.view((self._n, self._k))).T)
        out[...] = matmul_t(numbers(self._a.view((rows, self._k), first * self._k)), self._turned)
