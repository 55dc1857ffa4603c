"""Weights from [Cout, Cin / groups, taps] to [groups, taps, Cin / groups, Cout / groups]: a launch of its own."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

from kernels.dsp.dx.geometry import Geometry, pieces
from kernels.dsp.dx.reorder import BUFFER_BYTES, Box, Piece, Reorder
from simulator.instructions import Instruction
from simulator.kernel import Core
from simulator.vector import Permute

TOGETHER = 64
"""Output channels of a piece, at most: rows of the result that are long enough for DDR's bursts."""


class ReorderForward(Reorder):
    """Each core transposes a contiguous piece of the output channels, a group at a time."""

    order = (2, 1, 0)

    @staticmethod
    def needed(geometry: Geometry) -> bool:
        """Whether the two layouts differ in memory, and somebody reads the weights."""
        g = geometry
        return g.n > 0 < g.cout and sum(size > 1 for size in (g.cog, g.cig, g.taps)) > 1

    def tiles(self, rank: int, count: int) -> Sequence[Piece]:
        """The pieces of a core: some output channels of a group, and as many input channels, or taps of one, as fit."""
        g, item = self.geometry, self.source.dtype.size_bytes
        cuts = pieces(g.cout, -(-g.cout // count))
        if rank >= len(cuts):
            return ()
        first, end = cuts[rank][0], sum(cuts[rank])
        edges = [first, *range((first // g.cog + 1) * g.cog, end, g.cog), end]
        outs = [(a + k, kb) for a, b in pairwise(edges) for k, kb in pieces(b - a, TOGETHER)]
        return [
            (k, kb, c, cb, t, tb)
            for k, kb in outs
            for c, cb in pieces(g.cig, max(1, BUFFER_BYTES // (kb * g.taps * item)))
            for t, tb in pieces(g.taps, BUFFER_BYTES // (kb * item))
        ]

    def made(self, piece: Piece) -> Box:
        """Where a piece goes in the result."""
        k, kb, c, cb, t, tb = piece
        group, place = divmod(k, self.geometry.cog)
        return (group, t, c, place), (1, tb, cb, kb)

    def values(self, core: Core) -> Iterator[Instruction]:
        """The pieces straight from source to result."""
        for piece in self.tiles(core.rank, core.count):
            start, size = self.made(piece)
            yield Permute(
                self.result.box(start, size, shape=size[1:]), self.source.box(*self.given(piece)), self.order
            )
