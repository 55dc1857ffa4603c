"""Launches on vector cores: fill with zeros (MemSet), change the type (Cast), and the pieces they work in."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from math import prod

from kernels.davinci.space import kind_with
from kernels.davinci.split import share, used
from kernels.davinci.tiles import pieces
from simulator.cube import Fill, Move, Vector
from simulator.instructions import Instruction
from simulator.kernel import Core, Space
from simulator.memory.memories import Buffer
from simulator.tiles import Loop, Step, walk
from simulator.values.numerics import DType
from targets.schema import Target

PIECE = 8192
"""Elements that a vector core works on at a time: two pieces of 32 KB and their results fit every UB."""


class Flat:
    """A launch over the elements of one tensor, in pieces that the vector cores share."""

    name = "flat"
    kind = "vector"
    axes: tuple[str, ...] = ("i",)

    def __init__(self, target: Target, out: Buffer) -> None:
        """Write `out`."""
        self.out = out
        self.size = prod(out.shape)
        self.core_kinds = (kind_with(target, "vector"),)

    def pieces(self, rank: int, count: int) -> list[tuple[int, int]]:
        """(first, length) of what a core does."""
        every = pieces(self.size, PIECE)
        return [every[i] for i in share(len(every), used(len(every), count), rank)]

    def core_class(self, rank: int, count: int) -> Hashable | None:
        """Cores with pieces of the same lengths."""
        return tuple(length for _, length in self.pieces(rank, count)) or None

    def origins(self, rank: int, count: int) -> list[tuple[int, ...]]:
        """The first element of each piece."""
        return [(first,) for first, _ in self.pieces(rank, count)]


class MemSet(Flat):
    """Zeros in a tensor: one UB of them, written again and again."""

    name = "mem_set"
    kind = "mem_set"

    def setup(self, space: Space) -> None:
        """One piece of zeros."""
        space.ring("zeros", "ub", min(PIECE, max(1, self.size)), self.out.dtype)

    def program(self, core: Core) -> Iterator[Instruction]:
        """Fill once, then write."""
        mine = self.pieces(core.rank, core.count)
        ring = core.rings["zeros"][0]
        if mine:
            longest = max(length for _, length in mine)
            yield Fill(ring.dense((longest,)), coords=(mine[0][0],))
        for first, length in mine:
            place = self.out.box((first,), (length,), frame=(self.size,))
            yield Move(place, ring.dense((length,)), coords=(first,), name="store")

    def values(self, core: Core) -> Iterator[Instruction]:
        """The same."""
        return self.program(core)


class CastAll(Flat):
    """Every element of one tensor rounded to the type of another of the same size."""

    name = "cast"
    kind = "cast"

    def __init__(self, target: Target, out: Buffer, source: Buffer) -> None:
        """Round `source` to `out`."""
        super().__init__(target, out)
        self.source = source

    def setup(self, space: Space) -> None:
        """Two pieces of each."""
        size = min(PIECE, max(1, self.size))
        space.ring("given", "ub", size, self.source.dtype, depth=2)
        space.ring("made", "ub", size, self.out.dtype, depth=2)

    def program(self, core: Core) -> Iterator[Instruction]:
        """Load, cast, store."""
        loops = (
            Loop(lambda _: self.pieces(core.rank, core.count), load=lambda step: self._load(core, step)),
        )
        yield from walk(loops, lambda step: self._cast(core, step))

    def values(self, core: Core) -> Iterator[Instruction]:
        """The same."""
        return self.program(core)

    def _load(self, core: Core, step: Step) -> Iterator[Instruction]:
        first, length = step.tile
        place = self.source.box((first,), (length,), frame=(self.size,))
        yield Move(core.rings["given"][step.ordinal].dense((length,)), place, coords=(first,), name="load")

    def _cast(self, core: Core, step: Step) -> Iterator[Instruction]:
        first, length = step.tile
        made = core.rings["made"][step.ordinal].dense((length,))
        yield Vector("cast", made, core.rings["given"][step.ordinal].dense((length,)), coords=(first,))
        place = self.out.box((first,), (length,), frame=(self.size,))
        yield Move(place, made, coords=(first,), name="store")


def cast_or_same(target: Target, out: Buffer, source: Buffer) -> CastAll | None:
    """The launch that rounds a tensor, None where the types are the same."""
    return None if out.dtype is source.dtype else CastAll(target, out, source)


__all__ = ["PIECE", "CastAll", "DType", "Flat", "MemSet", "cast_or_same"]
