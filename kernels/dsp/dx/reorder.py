"""Weights from [Cout, Cin / groups, taps] to tap-major [Cout, taps, Cin / groups], and back: a launch of its own."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence

from kernels.dsp.dx.geometry import Geometry, pieces
from simulator.instructions import Instruction
from simulator.kernel import Core, Space
from simulator.memory.boxes import load_box, store_box
from simulator.memory.memories import Buffer
from simulator.tiles import Loop, Step, walk
from simulator.vector import Permute

BUFFER_BYTES = 65536
"""Bytes of a piece, at most."""

Box = tuple[tuple[int, ...], tuple[int, ...]]
"""Start and size on every axis."""

Piece = tuple[int, int, int, int, int, int]
"""First and number of the output channels, of the input channels, and of the taps."""


class Reorder:
    """Each core transposes a contiguous piece of the output channels."""

    name = "reorder_weights"
    kind = "reorder"
    axes: tuple[str, ...] = ("k", "c")
    tensor = "w"
    order = (0, 2, 1)

    def __init__(self, geometry: Geometry, source: Buffer, result: Buffer) -> None:
        """From `source` [Cout, Cin / groups, taps] to `result` [Cout, taps, Cin / groups]."""
        self.geometry = geometry
        self.source = source
        self.result = result

    @staticmethod
    def needed(geometry: Geometry) -> bool:
        """Whether the two layouts differ in memory, and somebody reads the weights."""
        return geometry.taps > 1 and geometry.cig > 1 and geometry.cout > 0 and geometry.n > 0

    def key(self) -> Hashable:
        """Geometry, type, memories and direction."""
        places = (self.source.memory, self.result.memory)
        return (type(self), self.geometry, self.source.dtype.name, places)

    def tiles(self, rank: int, count: int) -> Sequence[Piece]:
        """The pieces of a core: whole output channels, or of a long one some input channels, or taps of one."""
        g = self.geometry
        cuts = pieces(g.cout, -(-g.cout // count))
        if rank >= len(cuts):
            return ()
        most = BUFFER_BYTES // self.source.dtype.size_bytes
        many, part = max(1, most // (g.taps * g.cig)), min(g.cig, max(1, most // g.taps))
        first, number = cuts[rank]
        return [
            (first + k, kb, c, cb, t, tb)
            for k, kb in pieces(number, many)
            for c, cb in pieces(g.cig, part)
            for t, tb in pieces(g.taps, most)
        ]

    def core_class(self, rank: int, count: int) -> Hashable | None:
        """Cores with pieces of the same sizes."""
        mine = self.tiles(rank, count)
        return tuple((kb, cb, tb) for _, kb, _, cb, _, tb in mine) if mine else None

    def origins(self, rank: int, count: int) -> list[tuple[int, ...]]:
        """(output channel, input channel) at which a core's pieces begin."""
        return [(k, c) for k, _, c, *_ in self.tiles(rank, count)]

    def setup(self, space: Space) -> None:
        """Two buffers in and two out."""
        every = [tile for core in space.cores for tile in self.tiles(core.rank, core.count)]
        size = max((kb * cb * tb for _, kb, _, cb, _, tb in every), default=1)
        for name in ("reorder_in", "reorder_out"):
            space.ring(name, "array", size, self.source.dtype, depth=2)

    def given(self, piece: Piece) -> Box:
        """Where a piece lies in the source: [Cout, Cin / groups, taps]."""
        k, kb, c, cb, t, tb = piece
        return (k, c, t), (kb, cb, tb)

    def made(self, piece: Piece) -> Box:
        """Where it goes in the result."""
        k, kb, c, cb, t, tb = piece
        return (k, t, c), (kb, tb, cb)

    def program(self, core: Core) -> Iterator[Instruction]:
        """Load, transpose, store."""

        def load(step: Step) -> Iterator[Instruction]:
            local, coords = core.rings["reorder_in"][step.ordinal], (step.tile[0], step.tile[2])
            name = f"load_{self.tensor}"
            yield from load_box(
                local, self.source, *self.given(step.tile), channel=1, coords=coords, name=name
            )

        def compute(step: Step) -> Iterator[Instruction]:
            coords, size = (step.tile[0], step.tile[2]), self.given(step.tile)[1]
            source, result = core.rings["reorder_in"][step.ordinal], core.rings["reorder_out"][step.ordinal]
            turned = tuple(size[axis] for axis in self.order)
            yield Permute(result.dense(turned), source.dense(size), self.order, coords=coords)
            name = f"store_{self.tensor}"
            yield from store_box(
                self.result, *self.made(step.tile), result, channel=3, coords=coords, name=name
            )

        yield from walk((Loop(lambda _: self.tiles(core.rank, core.count), load=load),), compute)

    def values(self, core: Core) -> Iterator[Instruction]:
        """All pieces of a core as one step."""
        mine = self.tiles(core.rank, core.count)
        first, last = mine[0][0], mine[-1][0] + mine[-1][1]
        boxes = [b.box((first, 0, 0), (last - first, *b.shape[1:])) for b in (self.result, self.source)]
        yield Permute(boxes[0], boxes[1], (0, 2, 1))


class Restore(Reorder):
    """The other way: from tap-major `source` to `result` [Cout, Cin / groups, taps]."""

    name = "restore_weights"
    tensor = "dw"

    def given(self, piece: Piece) -> Box:
        """Where a piece lies in the tap-major source."""
        return super().made(piece)

    def made(self, piece: Piece) -> Box:
        """Where it goes in the result."""
        return super().given(piece)
