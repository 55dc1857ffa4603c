"""Instructions of the vector unit: fill, cast, accumulate, permute."""

from __future__ import annotations

from collections.abc import Hashable
from math import ceil

import numpy as np

from simulator.instructions import Coords, Cost, Instruction, Parts, add_parts
from simulator.memory.memories import View
from targets.schema import Target


class VectorOp(Instruction):
    """An operation of the vector unit over `pieces` packed pieces of `piece_bytes`, `moves` register moves a register.

    The pieces lie in `runs` loops, each of which costs its fixed time.
    """

    __slots__ = ("moves", "piece_bytes", "pieces", "runs")
    engine = "vpu"
    name = "vector"

    def __init__(
        self,
        reads: tuple[View, ...],
        writes: tuple[View, ...],
        *,
        runs: int,
        pieces: int,
        piece_bytes: int,
        moves: int,
        coords: Coords,
    ) -> None:
        """Describe the loads and stores; subclasses give the numbers."""
        super().__init__(reads, writes, coords)
        self.runs = runs
        self.pieces = pieces
        self.piece_bytes = piece_bytes
        self.moves = moves

    def signature(self) -> Hashable:
        """Runs, pieces, bytes and moves."""
        return (self.name, self.runs, self.pieces, self.piece_bytes, self.moves)

    def cost(self, target: Target) -> Cost:
        """Register moves at the load and store rate, a fixed time for each run and for the call."""
        spec = target.vector_unit
        registers = self.pieces * ceil(self.piece_bytes / spec.register_bytes)
        cycles = (
            ceil(registers * self.moves / spec.moves_per_cycle)
            + self.runs * spec.run_cycles
            + spec.call_cycles
        )
        return Cost(target.issue.vector_cycles, cycles)


class Fill(VectorOp):
    """Set a packed view to zero."""

    __slots__ = ()
    name = "fill"

    def __init__(self, out: View, *, coords: Coords = ()) -> None:
        """One store a register."""
        super().__init__((), (out,), runs=1, pieces=1, piece_bytes=out.range.bytes, moves=1, coords=coords)

    def execute(self) -> None:
        """Zeros."""
        self.writes[0].array()[...] = 0


class Spread(VectorOp):
    """Set every row of a packed view [rows, columns] to one row [columns]."""

    __slots__ = ()
    name = "spread"

    def __init__(self, out: View, row: View, *, coords: Coords = ()) -> None:
        """One store a register; the row itself is loaded once."""
        rows, columns = out.shape
        wide = columns * out.buffer.dtype.size_bytes
        super().__init__((row,), (out,), runs=1, pieces=rows + 1, piece_bytes=wide, moves=1, coords=coords)

    def execute(self) -> None:
        """Copy the row."""
        self.writes[0].array()[...] = self.reads[0].array()


class Cast(VectorOp):
    """Round a view to the type of another: nearest even, overflow to infinity by sign."""

    __slots__ = ()
    name = "cast"

    def __init__(self, out: View, source: View, *, coords: Coords = ()) -> None:
        """One load and one store a register of the wider side, row by row of the side with more rows."""
        rows = max(out.range.rows, source.range.rows)
        wide = -(-max(out.range.bytes, source.range.bytes) // max(1, rows))
        super().__init__((source,), (out,), runs=1, pieces=rows, piece_bytes=wide, moves=2, coords=coords)

    def execute(self) -> None:
        """Round once."""
        out = self.writes[0].array()
        with np.errstate(over="ignore"):
            out[...] = self.reads[0].array().astype(out.dtype)


class Accumulate(VectorOp):
    """Add parts of one packed view onto (strided) parts of another: two loads and a store a register.

    `parts` are pairs of numpy indices (into out, into source); `axes` reorders a part of the source before it is added.
    """

    __slots__ = ("axes", "parts")
    name = "accumulate"

    def __init__(
        self,
        out: View,
        source: View,
        parts: Parts,
        *,
        axes: tuple[int, ...] | None = None,
        runs: int,
        pieces: int,
        piece_bytes: int,
        coords: Coords = (),
    ) -> None:
        """Add `pieces` packed pieces in `runs` loops."""
        super().__init__(
            (source, out), (out,), runs=runs, pieces=pieces, piece_bytes=piece_bytes, moves=3, coords=coords
        )
        self.parts = parts
        self.axes = axes

    def execute(self) -> None:
        """Add part by part, in order."""
        add_parts(self.writes[0].array(), self.reads[0].array(), self.parts, self.axes)


class Permute(VectorOp):
    """Write a packed view with its axes in another order, an element at a time."""

    __slots__ = ("axes",)
    name = "permute"

    def __init__(self, out: View, source: View, axes: tuple[int, ...], *, coords: Coords = ()) -> None:
        """A gathering load and a store for each register of the result."""
        super().__init__(
            (source,), (out,), runs=1, pieces=1, piece_bytes=source.range.bytes, moves=2, coords=coords
        )
        self.axes = axes

    def execute(self) -> None:
        """Transpose."""
        out = self.writes[0].array()
        out[...] = self.reads[0].array().transpose(self.axes).reshape(out.shape)


Terms = tuple[tuple[tuple[slice | int, ...], tuple[slice | int, ...], int], ...]
"""Indices into a result and into what is multiplied, and the row of factors that multiplies it."""


class MultiplyAdd(VectorOp):
    """Parts of a result += parts of a source times one row of factors each, channel by channel, summed in fp32.

    Both sides end in packed channels; a row of factors has as many. For each position of a part the unit loads the
    source and the result and stores the result; the row of factors is loaded once a run and stays in its registers.
    These moves bound it: a multiply-add unit takes a register a cycle, and the three moves of it take longer.
    """

    __slots__ = ("macs", "source_bytes", "terms")
    name = "multiply_add"

    def __init__(
        self,
        out: View,
        source: View,
        factors: View,
        terms: Terms,
        *,
        runs: int,
        positions: int,
        coords: Coords = (),
    ) -> None:
        """`out` [.., channels] in the type of the sums, `source` [.., channels], `factors` [rows, channels]."""
        channels, item = out.shape[-1], source.buffer.dtype.size_bytes
        super().__init__(
            (source, factors, out),
            (out,),
            runs=runs,
            pieces=positions,
            piece_bytes=channels * out.buffer.dtype.size_bytes,
            moves=2,
            coords=coords,
        )
        self.source_bytes = channels * item
        self.terms = terms
        self.macs = positions * channels

    def signature(self) -> Hashable:
        """Runs, positions and the bytes of both sides."""
        return (self.name, self.runs, self.pieces, self.piece_bytes, self.source_bytes)

    def cost(self, target: Target) -> Cost:
        """Moves of both sides and of the factors at the load and store rate, a fixed time a run and for the call."""
        spec = target.vector_unit
        source = ceil(self.source_bytes / spec.register_bytes)
        registers = self.pieces * (source + 2 * ceil(self.piece_bytes / spec.register_bytes))
        moves = ceil((registers + self.runs * source) / spec.moves_per_cycle)
        return Cost(target.issue.vector_cycles, moves + self.runs * spec.run_cycles + spec.call_cycles)

    def execute(self) -> None:
        """Multiply and add term by term, in order; products of 16-bit operands are exact."""
        source, factors = (view.array() for view in self.reads[:2])
        out = self.writes[0].array()
        with np.errstate(over="ignore", invalid="ignore"):
            for target, origin, row in self.terms:
                place = out[target]
                term = source[origin].astype(out.dtype) * factors[row].astype(out.dtype)
                np.add(place, term, out=place)
