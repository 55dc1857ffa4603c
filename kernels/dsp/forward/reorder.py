"""Weights from [Cout, Cin / groups, taps] to [groups, taps, Cin / groups, Cout / groups]: a launch of its own."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from kernels.dsp.dx.geometry import Geometry
from kernels.dsp.dx.reorder import Piece, Reorder
from simulator.instructions import Instruction
from simulator.kernel import Core
from simulator.memory.boxes import load_box, store_box
from simulator.tiles import Loop, Step, walk
from simulator.vector import Permute


class ReorderForward(Reorder):
    """Each core transposes a contiguous piece of the output channels, a group at a time."""

    @staticmethod
    def needed(geometry: Geometry) -> bool:
        """Whether the two layouts differ in memory, and somebody reads the weights."""
        g = geometry
        many = sum(size > 1 for size in (g.cog, g.cig, g.taps))
        return many > 1 and g.cog > 1 and g.cout > 0 and g.n > 0

    def tiles(self, rank: int, count: int) -> Sequence[Piece]:
        """The pieces of a core, cut where a group ends."""
        cog, found = self.geometry.cog, []
        for k, kb, c, cb in super().tiles(rank, count):
            edges = [k, *range((k // cog + 1) * cog, k + kb, cog), k + kb]
            found += [(a, b - a, c, cb) for a, b in zip(edges, edges[1:], strict=False)]
        return found

    def program(self, core: Core) -> Iterator[Instruction]:
        """Load, transpose, store."""
        taps, cog = self.geometry.taps, self.geometry.cog

        def load(step: Step) -> Iterator[Instruction]:
            k, kb, c, cb = step.tile
            local = core.rings["reorder_in"][step.ordinal]
            yield from load_box(
                local, self.source, (k, c, 0), (kb, cb, taps), channel=1, coords=(k, c), name="load_w"
            )

        def compute(step: Step) -> Iterator[Instruction]:
            k, kb, c, cb = step.tile
            source = core.rings["reorder_in"][step.ordinal].dense((kb, cb, taps))
            result = core.rings["reorder_out"][step.ordinal]
            yield Permute(result.dense((taps, cb, kb)), source, (2, 1, 0), coords=(k, c))
            place, size = (k // cog, 0, c, k % cog), (1, taps, cb, kb)
            yield from store_box(
                self.result, place, size, result, channel=3, coords=(k, c), name="store_w"
            )

        yield from walk((Loop(lambda _: self.tiles(core.rank, core.count), load=load),), compute)

    def values(self, core: Core) -> Iterator[Instruction]:
        """A piece as one step."""
        taps, cog = self.geometry.taps, self.geometry.cog
        for k, kb, c, cb in self.tiles(core.rank, core.count):
            there = self.result.box((k // cog, 0, c, k % cog), (1, taps, cb, kb), shape=(taps, cb, kb))
            yield Permute(there, self.source.box((k, c, 0), (kb, cb, taps)), (2, 1, 0))
