"""TransData: tensors between plain layouts and those of the cube, piece by piece on vector cores.

Images: C0 rows of channels become positions of C0 channels. Weights: pieces of 16 channels of the strided side. What
pads channels is zero: in an image it is written with each piece, in weights by a MemSet before.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from itertools import product
from typing import NamedTuple

from kernels.davinci.sides import FRACTAL, Side, Sides
from kernels.davinci.space import kind_with
from kernels.davinci.split import share, used
from kernels.davinci.tiles import pieces
from simulator.cube import Fill, Move, Vector
from simulator.instructions import Instruction
from simulator.kernel import Core, Space
from simulator.memory.memories import Buffer, View
from simulator.tiles import Loop, Step, walk
from targets.schema import Target

ELEMENTS = 8192
"""Elements of a piece at most."""


class Box(NamedTuple):
    """A box of a tensor that is seen in a frame."""

    start: tuple[int, ...]
    size: tuple[int, ...]
    frame: tuple[int, ...]

    def of(self, tensor: Buffer) -> View:
        """The view of a tensor."""
        return tensor.box(self.start, self.size, frame=self.frame)


class Piece(NamedTuple):
    """What is moved at once.

    Attributes:
        plain, blocked: where it lies in both layouts.
        rows: its shape in the plain layout, with what pads it; `axes` is the order of the blocked one.
        there: elements of the first axis that are no padding.
    """

    plain: Box
    blocked: Box
    rows: tuple[int, ...]
    axes: tuple[int, ...]
    there: int


def image_pieces(sides: Sides, side: Side) -> list[Piece]:
    """The pieces of an image: blocks of channels of parts of planes."""
    n, d, blocks, h, w, c0 = sides.image_shape(side)
    total = sides.single * (side.channels // sides.merged)
    found = []
    for image, plane, block, (first, count) in product(
        range(n), range(d), range(blocks), pieces(h * w, max(1, ELEMENTS // c0))
    ):
        group, inner = divmod(block, side.blocks)
        channel = group * side.channels + inner * c0
        there = min(c0, side.channels - inner * c0, total - channel)
        if there > 0:
            plain = Box((image, channel, plane, first), (1, there, 1, count), (n, total, d, h * w))
            blocked = Box((image, plane, block, first, 0), (1, 1, 1, count, c0), (n, d, blocks, h * w, c0))
            found.append(Piece(plain, blocked, (c0, count), (1, 0), there))
    return found


def weight_pieces(sides: Sides) -> list[Piece]:
    """The pieces of weights: up to 16 channels of the strided side, a block of the other, some taps."""
    g, kd, blocks, taps, wide, sixteen, c0 = sides.weight_shape
    frame = (g, kd, blocks, taps, wide * sixteen, c0)
    whole = (sides.single, sides.cs, sides.cl, kd, taps)
    found = []
    for group, depth, (row, rows), (tap, count) in product(
        range(sides.single),
        range(kd),
        pieces(sides.cs, FRACTAL),
        pieces(taps, max(1, ELEMENTS // (FRACTAL * c0))),
    ):
        where, slot = divmod(group, sides.merged)
        for block, offset, channel, channels in _within_blocks(slot * sides.cl, sides.cl, c0):
            plain = Box((group, row, channel, depth, tap), (1, rows, channels, 1, count), whole)
            start = (where, depth, block, tap, slot * sides.cs + row, offset)
            blocked = Box(start, (1, 1, 1, count, rows, channels), frame)
            found.append(Piece(plain, blocked, (rows, channels, count), (2, 0, 1), rows))
    return found


def _within_blocks(first: int, count: int, c0: int) -> list[tuple[int, int, int, int]]:
    """(block, offset in it, channel, channels) of each block that [first, first + count) has a part of."""
    found, done = [], 0
    while done < count:
        block, offset = divmod(first + done, c0)
        taken = min(count - done, c0 - offset)
        found.append((block, offset, done, taken))
        done += taken
    return found


class TransData:
    """The kernel of one launch: a plain tensor to its blocked one, or back."""

    name = "trans_data"
    kind = "trans_data"
    axes: tuple[str, ...] = ("i",)

    def __init__(
        self, target: Target, listed: list[Piece], plain: Buffer, blocked: Buffer, *, back: bool
    ) -> None:
        """Convert `plain` to `blocked`, or `back`."""
        self.listed = listed
        self.plain = plain
        self.blocked = blocked
        self.back = back
        self.core_kinds = (kind_with(target, "vector"),)

    def mine(self, rank: int, count: int) -> range:
        """The numbers of a core's pieces."""
        return share(len(self.listed), used(len(self.listed), count), rank)

    def core_class(self, rank: int, count: int) -> Hashable | None:
        """Cores with pieces of the same shapes."""
        return tuple((self.listed[i].rows, self.listed[i].there) for i in self.mine(rank, count)) or None

    def origins(self, rank: int, count: int) -> list[tuple[int, ...]]:
        """The number of each piece."""
        return [(number,) for number in self.mine(rank, count)]

    def setup(self, space: Space) -> None:
        """Two pieces in each layout."""
        most = max((_size(piece.rows) for piece in self.listed), default=1)
        space.ring("given", "ub", most, self.plain.dtype, depth=2)
        space.ring("made", "ub", most, self.plain.dtype, depth=2)

    def program(self, core: Core) -> Iterator[Instruction]:
        """Load, turn, store."""
        loops = (Loop(lambda _: self.mine(core.rank, core.count), load=lambda step: self._load(core, step)),)
        yield from walk(loops, lambda step: self._turn(core, step))

    def values(self, core: Core) -> Iterator[Instruction]:
        """The same."""
        return self.program(core)

    def _load(self, core: Core, step: Step) -> Iterator[Instruction]:
        """A piece, and zeros where it is padded."""
        piece, coords = self.listed[step.tile], (step.tile,)
        ring = core.rings["given"][step.ordinal]
        if self.back:
            yield Move(
                ring.dense(piece.blocked.size), piece.blocked.of(self.blocked), coords=coords, name="load"
            )
            return
        if piece.there < piece.rows[0]:
            yield Fill(ring.dense(piece.rows), coords=coords)
        yield Move(ring.dense(piece.plain.size), piece.plain.of(self.plain), coords=coords, name="load")

    def _turn(self, core: Core, step: Step) -> Iterator[Instruction]:
        """Its other layout, and out."""
        piece, coords = self.listed[step.tile], (step.tile,)
        turned = tuple(piece.rows[axis] for axis in piece.axes)
        given, made = core.rings["given"][step.ordinal], core.rings["made"][step.ordinal]
        if self.back:
            axes = tuple(piece.axes.index(axis) for axis in range(len(piece.axes)))
            yield Vector("transpose", made.dense(piece.rows), given.dense(turned), axes=axes, coords=coords)
            place, size = piece.plain.of(self.plain), piece.plain.size
        else:
            yield Vector(
                "transpose", made.dense(turned), given.dense(piece.rows), axes=piece.axes, coords=coords
            )
            place, size = piece.blocked.of(self.blocked), piece.blocked.size
        yield Move(place, made.dense(size), coords=coords, name="store")


def _size(rows: tuple[int, ...]) -> int:
    size = 1
    for extent in rows:
        size *= extent
    return size
