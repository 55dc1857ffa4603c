"""The launch between channel-first and channel-last tensors: the last two axes exchanged, piece by piece."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from itertools import product

from kernels.davinci.space import kind_with
from kernels.davinci.split import share, used
from kernels.davinci.tiles import pieces
from simulator.cube import Move, Vector
from simulator.instructions import Instruction
from simulator.kernel import Core, Space
from simulator.memory.memories import Buffer
from simulator.tiles import Loop, Step, walk
from targets.schema import Target

ROWS = 64
"""Rows of a piece at most: runs of 128 bytes and more on both sides."""

ELEMENTS = 8192
"""Elements of a piece at most, as of the other conversions."""


class Transpose:
    """out [images, B, A] from source [images, A, B], on all vector cores."""

    kind = "trans_data"
    axes: tuple[str, ...] = ("i",)

    def __init__(
        self, name: str, target: Target, out: Buffer, source: Buffer, frame: tuple[int, int, int]
    ) -> None:
        """Take source as `frame`, images x A x B."""
        self.name = name
        self.out = out
        self.source = source
        self.frame = frame
        images, a, b = frame
        rows = min(ROWS, a)
        cut = product(range(images), pieces(a, rows), pieces(b, max(1, ELEMENTS // rows)))
        self.listed = [(image, *first, *second) for image, first, second in cut]
        self.core_kinds = (kind_with(target, "vector"),)

    def mine(self, rank: int, count: int) -> range:
        """The numbers of a core's pieces."""
        return share(len(self.listed), used(len(self.listed), count), rank)

    def core_class(self, rank: int, count: int) -> Hashable | None:
        """Cores with pieces of the same sizes."""
        return tuple((self.listed[i][2], self.listed[i][4]) for i in self.mine(rank, count)) or None

    def origins(self, rank: int, count: int) -> list[tuple[int, ...]]:
        """The number of each piece."""
        return [(number,) for number in self.mine(rank, count)]

    def setup(self, space: Space) -> None:
        """Two pieces on each side."""
        most = max((a * b for _, _, a, _, b in self.listed), default=1)
        for name in ("given", "made"):
            space.ring(name, "ub", most, self.source.dtype, depth=2)

    def program(self, core: Core) -> Iterator[Instruction]:
        """Load, turn, store."""
        loops = (Loop(lambda _: self.mine(core.rank, core.count), load=lambda step: self._load(core, step)),)
        yield from walk(loops, lambda step: self._turn(core, step))

    def values(self, core: Core) -> Iterator[Instruction]:
        """The same."""
        return self.program(core)

    def _load(self, core: Core, step: Step) -> Iterator[Instruction]:
        image, a, rows, b, columns = self.listed[step.tile]
        place = self.source.box((image, a, b), (1, rows, columns), frame=self.frame)
        local = core.rings["given"][step.ordinal].dense((1, rows, columns))
        yield Move(local, place, coords=(step.tile,), name="load")

    def _turn(self, core: Core, step: Step) -> Iterator[Instruction]:
        image, a, rows, b, columns = self.listed[step.tile]
        images, high, wide = self.frame
        given, made = core.rings["given"][step.ordinal], core.rings["made"][step.ordinal]
        yield Vector(
            "transpose",
            made.dense((columns, rows)),
            given.dense((rows, columns)),
            axes=(1, 0),
            coords=(step.tile,),
        )
        place = self.out.box((image, b, a), (1, columns, rows), frame=(images, wide, high))
        yield Move(place, made.dense((1, columns, rows)), coords=(step.tile,), name="store")
