"""The steps of the page that one process does alone, each a launch of its own."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np

from kernels.nx.arithmetic import Floats, col2im_row, im2col_row, row_sums
from kernels.nx.elements import ELEMENT
from kernels.nx.geometry import Geometry
from kernels.nx.operands import Operand
from kernels.nx.work import Counter
from simulator.host import HostLoop, Work
from simulator.instructions import Instruction
from simulator.kernel import Core, Space
from simulator.memory.memories import View

LINES = 8
"""Elements of a line: what a loop's bytes are seen to go to."""


def lines(space: Space) -> None:
    """The line of a core's cache that its loops bring data to."""
    space.ring("lines", "cache", LINES, ELEMENT)


def numbers(view: View) -> Floats:
    """The numbers of a packed view, to read and to write."""
    return np.asarray(view.array(), np.float32)


@dataclass(frozen=True)
class Loop:
    """One loop of a step: its work, what it reads and writes, and its numbers."""

    work: Work
    reads: tuple[View, ...]
    writes: tuple[View, ...]
    values: Callable[[], None]


class Step:
    """A step of one process: loops, one after another, on the first core."""

    kind = "default"
    axes: tuple[str, ...] = ("row",)

    def __init__(self, name: str, loops: Callable[[], Iterator[Loop]], useful_macs: int = 0) -> None:
        """A step whose loops are made anew whenever they are asked for."""
        self.name = name
        self.useful_macs = useful_macs
        self._loops = loops

    def core_class(self, rank: int, count: int) -> Hashable | None:  # noqa: ARG002  # the machine's protocol
        """Only the parent works."""
        return 0 if rank == 0 else None

    def origins(self, rank: int, count: int) -> Sequence[tuple[int, ...]]:  # noqa: ARG002  # the machine's protocol
        """The rows."""
        return [(row,) for row, _ in enumerate(self._loops())]

    def setup(self, space: Space) -> None:
        """A line in the cache."""
        lines(space)

    def program(self, core: Core) -> Iterator[Instruction]:
        """The loops."""
        line = core.rings["lines"][0].dense((LINES,))
        for row, loop in enumerate(self._loops()):
            yield HostLoop(
                self.name,
                loop.work,
                loop.reads or loop.writes,
                (line, *loop.writes),
                loop.values,
                coords=(row,),
            )


def transpose(name: str, count: Counter, out: Operand, source: Operand, rows: int, columns: int) -> Step:
    """Out [columns, rows] = source [rows, columns], turned."""

    def loops() -> Iterator[Loop]:
        to, given = out.view((columns, rows)), source.view((rows, columns))

        def values() -> None:
            numbers(to)[...] = numbers(given).T

        yield Loop(count.transpose(rows, columns), (given,), (to,), values)

    return Step(name, loops)


def im2col(g: Geometry, count: Counter, out: Operand, source: Operand | None) -> Step:
    """ColT [K, M] from the input [C_in, H, W], one row of outputs a loop; without an input, every tap is 0."""
    shape = (g.c_in, g.kh, g.kw, g.oh, g.ow)
    columns = out.view((g.k, g.m))
    given = None if source is None else source.view((g.c_in, g.h, g.w))

    def values(oh: int) -> None:
        if given is not None:
            im2col_row(g, numbers(columns).reshape(shape), numbers(given), oh)

    def loops() -> Iterator[Loop]:
        for oh in range(g.oh):
            reads = () if given is None else (given,)
            yield Loop(count.im2col(g, oh), reads, (columns,), partial(values, oh))

    return Step("im2col", loops)


def bias(count: Counter, out: Operand, dout: Operand, rows: int, m: int) -> Step:
    """Dbias [rows] = the sums of dout [rows, m]."""

    def loops() -> Iterator[Loop]:
        to, given = out.view((rows,)), dout.view((rows, m))

        def values() -> None:
            numbers(to)[...] = row_sums(numbers(given))

        yield Loop(count.bias(rows, m), (given,), (to,), values)

    return Step("bias", loops)


def add(count: Counter, total: Operand, part: Operand) -> Step:
    """Total += part, an element at a time."""

    def loops() -> Iterator[Loop]:
        to, given = total.view((total.count,)), part.view((part.count,))

        def values() -> None:
            with np.errstate(over="ignore", invalid="ignore"):
                np.add(numbers(to), numbers(given), out=numbers(to))

        yield Loop(count.accumulate(total.count), (given, to), (to,), values)

    return Step("accumulate", loops)


def zero(name: str, count: Counter, outs: Sequence[Operand]) -> Step:
    """Every element of some operands is 0."""

    def loops() -> Iterator[Loop]:
        for out in outs:
            yield _zero(count, out.view((out.count,)))

    return Step(name, loops)


def _zero(count: Counter, view: View) -> Loop:
    def values() -> None:
        numbers(view)[...] = 0

    return Loop(count.zero(view.shape[0]), (), (view,), values)


def col2im(g: Geometry, count: Counter, out: Operand, dcol: Operand) -> Step:
    """Dinput [C_in, H, W] += dcol [M, K] where taps lie inside, one row of outputs a loop."""
    shape = (g.oh, g.ow, g.c_in, g.kh, g.kw)
    total, given = out.view((g.c_in, g.h, g.w)), dcol.view((g.m, g.k))

    def values(oh: int) -> None:
        col2im_row(g, numbers(total), numbers(given).reshape(shape), oh)

    def loops() -> Iterator[Loop]:
        for oh in range(g.oh):
            yield Loop(count.col2im(g, oh), (given, total), (total,), partial(values, oh))

    return Step("col2im", loops)
