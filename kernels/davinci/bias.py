"""The gradient of the bias: dy summed over images and positions, on vector cores, in fp32."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import NamedTuple

from kernels.davinci.moving import AddingMove
from kernels.davinci.space import kind_with
from kernels.davinci.split import share, used
from kernels.davinci.tiles import pieces
from simulator.cube import Fill, Move, Vector
from simulator.instructions import Instruction
from simulator.kernel import Core, Space
from simulator.memory.memories import Buffer
from simulator.tiles import Loop, Step, walk
from simulator.values.numerics import dtype
from targets.schema import Target

ELEMENTS = 16384
"""Elements of dy in UB at a time, unless the tiling says how many positions."""


class Strip(NamedTuple):
    """Positions [first, first + length) of one plane of one image."""

    n: int
    d: int
    first: int
    length: int


class Column(NamedTuple):
    """A block of channels, and the strips that a core sums for it."""

    block: int
    strips: tuple[Strip, ...]


class ReduceSum:
    """db [blocks x C0] in fp32, added to what is there, from dy [N, D, blocks, H, W, C0]."""

    name = "reduce_sum"
    kind = "vector"
    axes: tuple[str, ...] = ("c", "n", "d", "p")

    def __init__(self, target: Target, dy: Buffer, db: Buffer, k: int) -> None:
        """Sum `k` positions at a time."""
        self.dy = dy
        self.db = db
        self.k = k
        self.core_kinds = (kind_with(target, "vector"),)

    def columns(self, rank: int, count: int) -> list[Column]:
        """What a core sums: a run of all strips, block by block."""
        n, d, blocks, h, w, _ = self.dy.shape
        strips = [Strip(i, j, *cut) for i in range(n) for j in range(d) for cut in pieces(h * w, self.k)]
        total = blocks * len(strips)
        mine = share(total, used(total, count), rank)
        found: dict[int, list[Strip]] = {}
        for number in mine:
            block, strip = divmod(number, len(strips))
            found.setdefault(block, []).append(strips[strip])
        return [Column(block, tuple(listed)) for block, listed in found.items()]

    def core_class(self, rank: int, count: int) -> Hashable | None:
        """Cores with strips of the same lengths."""
        return tuple(tuple(s.length for s in c.strips) for c in self.columns(rank, count)) or None

    def origins(self, rank: int, count: int) -> list[tuple[int, ...]]:
        """(c, n, d, p) of each strip, and of each block."""
        columns = self.columns(rank, count)
        whole: list[tuple[int, ...]] = [(c.block, -1, -1, -1) for c in columns]
        return whole + [(c.block, s.n, s.d, s.first) for c in columns for s in c.strips]

    def setup(self, space: Space) -> None:
        """Two strips, their sum and the total."""
        c0, (_, _, _, h, w, _) = self.dy.shape[-1], self.dy.shape
        size = max(1, min(self.k, h * w)) * c0
        space.ring("strip", "ub", size, self.dy.dtype, depth=2, remedy="lower db.k")
        space.ring("part", "ub", c0, dtype("fp32"), depth=2)
        space.ring("total", "ub", c0, dtype("fp32"), depth=2)

    def program(self, core: Core) -> Iterator[Instruction]:
        """Blocks outside, strips inside."""
        stages = _Stages(self, core)
        loops = (
            Loop(
                lambda _: self.columns(core.rank, core.count),
                enter=stages.begin,
                store=stages.add_up,
                ahead=0,
            ),
            Loop(lambda up: up.tile.strips if up else (), load=stages.load),
        )
        yield from walk(loops, stages.add)

    def values(self, core: Core) -> Iterator[Instruction]:
        """The same."""
        return self.program(core)


class _Stages:
    """What one core does for a block of channels, and for the strips below it."""

    def __init__(self, kernel: ReduceSum, core: Core) -> None:
        self.kernel = kernel
        self.core = core
        self.c0 = kernel.dy.shape[-1]

    def begin(self, step: Step) -> Iterator[Instruction]:
        """The total starts at zero."""
        total = self.core.rings["total"][step.ordinal].dense((self.c0,))
        yield Fill(total, coords=(step.tile.block, -1, -1, -1))

    def load(self, step: Step) -> Iterator[Instruction]:
        """Positions of dy."""
        column, strip, dy = _column(step), step.tile, self.kernel.dy
        n, d, blocks, h, w, c0 = dy.shape
        start, size = (strip.n, strip.d, column.block, strip.first, 0), (1, 1, 1, strip.length, c0)
        local = self.core.rings["strip"][step.ordinal].dense(size)
        place = dy.box(start, size, frame=(n, d, blocks, h * w, c0))
        yield Move(local, place, coords=self._coords(step), name="load_dy")

    def add(self, step: Step) -> Iterator[Instruction]:
        """Their sum, onto the total."""
        assert step.up is not None  # noqa: S101  # the loops lie in each other
        given = self.core.rings["strip"][step.ordinal].dense((step.tile.length, self.c0))
        part = self.core.rings["part"][step.ordinal].dense((self.c0,))
        total = self.core.rings["total"][step.up.ordinal].dense((self.c0,))
        yield Vector("sum_rows", part, given, coords=self._coords(step))
        yield Vector("add", total, total, part, coords=self._coords(step))

    def add_up(self, step: Step) -> Iterator[Instruction]:
        """The total is added to db."""
        total = self.core.rings["total"][step.ordinal].dense((self.c0,))
        place = self.kernel.db.box((step.tile.block * self.c0,), (self.c0,))
        yield AddingMove(place, total, coords=(step.tile.block, -1, -1, -1), name="store_add")

    def _coords(self, step: Step) -> tuple[int, ...]:
        return _column(step).block, step.tile.n, step.tile.d, step.tile.first


def _column(step: Step) -> Column:
    """The block of channels of a strip."""
    assert step.up is not None  # noqa: S101  # the loops lie in each other
    column: Column = step.up.tile
    return column
