"""The sum of what the cores summed each by itself: partial results in core order, rounded once."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from math import prod

from kernels.dsp.dw.shares import mine
from kernels.dsp.dx.geometry import pieces
from simulator.instructions import Copy, Instruction
from simulator.kernel import Core, Space
from simulator.memory.boxes import load_box, store_box
from simulator.memory.memories import Buffer
from simulator.tiles import Loop, Step, walk
from simulator.values.numerics import dtype
from simulator.vector import Accumulate, Cast

PIECE = 8192
"""Elements of a piece at most."""

LOAD_FIRST, LOAD_NEXT, STORE = 1, 2, 3
"""DMA channels."""

ALL = (((slice(None),), (slice(None),)),)


class Reduce:
    """result = partial[0] + partial[1] + .., each core a contiguous piece of the elements."""

    kind = "reduce"
    axes: tuple[str, ...] = ("e",)

    def __init__(self, name: str, partial: Buffer, result: Buffer) -> None:
        """From `partial` [cores, *result's shape] in fp32."""
        self.name = name
        self.partial = partial
        self.result = result
        self.total = prod(result.shape)
        self.addends = partial.shape[0]

    def tiles(self, rank: int, count: int) -> list[tuple[int, int]]:
        """(first, number) of the elements of a core, piece by piece."""
        own = mine(self.total, rank, count) if self.total else None
        return [(own[0] + first, size) for first, size in pieces(own[1], PIECE)] if own else []

    def core_class(self, rank: int, count: int) -> Hashable | None:
        """Cores with pieces of the same sizes."""
        return tuple(size for _, size in self.tiles(rank, count)) or None

    def origins(self, rank: int, count: int) -> list[tuple[int, ...]]:
        """The first element of each piece."""
        return [(first,) for first, _ in self.tiles(rank, count)]

    def setup(self, space: Space) -> None:
        """Sums, what is added to them, and what they are rounded to."""
        most = max((size for c in space.cores for _, size in self.tiles(c.rank, c.count)), default=1)
        for name in ("sum", "addend"):
            space.ring(name, "array", most, dtype("fp32"), depth=2)
        if self.result.dtype is not self.partial.dtype:
            space.ring("sum_out", "array", most, self.result.dtype, depth=2)

    def program(self, core: Core) -> Iterator[Instruction]:
        """The first addend is loaded, the others are added, in order."""
        stages = _Stages(self, core)
        loops = (
            Loop(
                lambda _: self.tiles(core.rank, core.count), load=stages.load_first, store=stages.store_result
            ),
            Loop(lambda _: range(1, self.addends), load=stages.load_next),
        )
        yield from walk(loops, stages.add)


class _Stages:
    """What one core does for a piece, and for each addend of it."""

    def __init__(self, kernel: Reduce, core: Core) -> None:
        self.kernel = kernel
        self.rings = core.rings

    def _load(self, local: Buffer, piece: tuple[int, int], addend: int, channel: int) -> list[Copy]:
        first, size = piece
        source, frame = self.kernel.partial, (self.kernel.addends, self.kernel.total)
        return load_box(
            local,
            source,
            (addend, first),
            (1, size),
            channel=channel,
            coords=(first,),
            name="load_partial",
            frame=frame,
        )

    def load_first(self, step: Step) -> list[Copy]:
        """The first core's sums."""
        return self._load(self.rings["sum"][step.ordinal], step.tile, 0, LOAD_FIRST)

    def load_next(self, step: Step) -> list[Copy]:
        """Another core's sums."""
        piece = _outside(step).tile
        return self._load(self.rings["addend"][step.ordinal], piece, step.tile, LOAD_NEXT)

    def add(self, step: Step) -> Iterator[Instruction]:
        """One addend onto the sum."""
        up = _outside(step)
        first, size = up.tile
        total = self.rings["sum"][up.ordinal].dense((size,))
        term = self.rings["addend"][step.ordinal].dense((size,))
        wide = size * self.kernel.partial.dtype.size_bytes
        yield Accumulate(total, term, ALL, runs=1, pieces=1, piece_bytes=wide, coords=(first,))

    def store_result(self, step: Step) -> Iterator[Instruction]:
        """The complete sum, rounded once."""
        first, size = step.tile
        local = self.rings["sum"][step.ordinal]
        if "sum_out" in self.rings:
            source, local = local.dense((size,)), self.rings["sum_out"][step.ordinal]
            yield Cast(local.dense((size,)), source, coords=(first,))
        yield from store_box(
            self.kernel.result,
            (first,),
            (size,),
            local,
            channel=STORE,
            coords=(first,),
            name="store_sum",
            frame=(self.kernel.total,),
        )


def _outside(step: Step) -> Step:
    """The step of the loop outside."""
    assert step.up is not None  # noqa: S101  # the loops lie in each other
    return step.up
