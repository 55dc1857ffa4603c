"""Layout conversions on vector cores, tile by tile through UB: plain tensors to and from the cube's layouts.

    for each tile:  plain box (GM to UB), zeros beside it, its axes in another order (vector), the other box (UB to GM)

A conversion is a list of `Turn`s; which sizes they have is the caller's tiling.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from itertools import product
from math import prod
from typing import NamedTuple

from kernels.davinci.sides import FRACTAL, Side, Sides
from kernels.davinci.space import kind_with
from kernels.davinci.split import share, used
from kernels.davinci.tiles import ceil_to, pieces
from simulator.cube import Fill, Move, Vector
from simulator.instructions import Instruction
from simulator.kernel import Core, Space
from simulator.memory.memories import Buffer, View
from simulator.tiles import Loop, Step, walk
from simulator.values.numerics import DType
from targets.schema import Target

Sizes = tuple[int, ...]


class Box(NamedTuple):
    """[start, start + size) of a tensor in main memory that is seen as a packed array of shape `frame`."""

    start: Sizes
    size: Sizes
    frame: Sizes


class Turn(NamedTuple):
    """One tile.

    Attributes:
        source, target: where it comes from and goes to in main memory.
        held: what its source is in UB; larger than the source's size where channels are padded with zeros.
        form, axes: the order in which the held elements are written.
        kept: of the result in UB, the part that the target takes, in the result's shape.
    """

    source: Box
    target: Box
    held: Sizes
    form: Sizes
    axes: Sizes
    kept: Sizes

    @property
    def turned(self) -> Sizes:
        """The result's shape in UB."""
        return tuple(self.form[axis] for axis in self.axes)


def blocked_turns(sides: Sides, side: Side, tile: Sizes) -> list[Turn]:
    """[N, C, H, W] to NDC1HWC0 by tiles (n, c, h, w), c in whole blocks; one group, one plane."""
    c0, (_, height, width) = sides.c0, side.size
    frames = ((sides.n, side.channels, height, width), (sides.n, 1, side.blocks, height, width, c0))
    found = []
    for (n, tn), (c, tc), (h, th), (w, tw) in _tiles(frames[0], (tile[0], ceil_to(tile[1], c0), *tile[2:])):
        blocks = -(-tc // c0)
        plain = Box((n, c, h, w), (tn, tc, th, tw), frames[0])
        there = Box((n, 0, c // c0, h, w, 0), (tn, 1, blocks, th, tw, c0), frames[1])
        form, turned = (tn, blocks, c0, th, tw), (tn, blocks, th, tw, c0)
        found.append(Turn(plain, there, (tn, blocks * c0, th, tw), form, (0, 1, 3, 4, 2), turned))
    return found


def plain_turns(sides: Sides, side: Side, tile: Sizes) -> list[Turn]:
    """NDC1HWC0 to [N, C, H, W]: the way back of `blocked_turns`."""
    found = []
    for turn in blocked_turns(sides, side, tile):
        tn, tc, th, tw = turn.source.size
        blocks, c0 = turn.target.size[2], sides.c0
        form = (tn, blocks, th, tw, c0)
        found.append(Turn(turn.target, turn.source, form, form, (0, 1, 4, 2, 3), (tn, tc, th, tw)))
    return found


def fractal_turns(sides: Sides, tile: Sizes) -> list[Turn]:
    """Weights [Cout, Cin, Kh, Kw] to FRACTAL_Z by tiles (cout, cin, kh, kw), channels in whole blocks; one group."""
    _, _, blocks, _, wide, sixteen, c0 = sides.weight_shape
    kh, kw = sides.kernel[1:]
    plain = (sides.cs, sides.cl, kh, kw)
    frame = (blocks, kh, kw, wide * sixteen, c0)
    found = []
    steps = (ceil_to(tile[0], FRACTAL), ceil_to(tile[1], c0), *tile[2:])
    for (o, to), (c, tc), (h, th), (w, tw) in _tiles(plain, steps):
        rows, count = ceil_to(to, FRACTAL), -(-tc // c0)
        there = Box((c // c0, h, w, o, 0), (count, th, tw, rows, c0), frame)
        held, form = (rows, count * c0, th, tw), (rows, count, c0, th, tw)
        turned = (count, th, tw, rows, c0)
        source = Box((o, c, h, w), (to, tc, th, tw), plain)
        found.append(Turn(source, there, held, form, (1, 3, 4, 0, 2), turned))
    return found


def _tiles(sizes: Sizes, steps: Sizes) -> Iterator[tuple[tuple[int, int], ...]]:
    """(first, size) on each axis of every tile."""
    return product(*(pieces(size, step) for size, step in zip(sizes, steps, strict=True)))


class Convert:
    """The kernel of one launch."""

    kind = "vector"  # a part of a compiled program, not a call of the TransData operator
    axes: tuple[str, ...] = ("tile",)

    def __init__(
        self, name: str, source: Buffer, target: Buffer, turns: Sequence[Turn], chip: Target, remedy: str
    ) -> None:
        """Turn tiles of `source` into tiles of `target`; `remedy` says what to lower where UB is too small."""
        self.name = name
        self.source = source
        self.target = target
        self.turns = turns
        self.remedy = remedy
        self.core_kinds = (kind_with(chip, "vector"),)
        self._room = chip.memory["ub"].size_bytes

    def _share(self, rank: int, count: int) -> range:
        parts = used(len(self.turns), count)
        return share(len(self.turns), parts, rank) if rank < parts else range(0)

    def core_class(self, rank: int, count: int) -> Hashable | None:
        """Tiles of equal sizes on both sides, in the same order."""
        mine = (self.turns[number] for number in self._share(rank, count))
        return tuple((turn.source.size, turn.held, turn.target.size) for turn in mine) or None

    def origins(self, rank: int, count: int) -> list[tuple[int, ...]]:
        """The numbers of a core's tiles."""
        return [(number,) for number in self._share(rank, count)]

    def setup(self, space: Space) -> None:
        """Two buffers of each in UB where they fit, else one."""
        size = max(prod(turn.held) for turn in self.turns)
        kind: DType = self.source.dtype
        self._depth = 2 if 4 * size * kind.size_bytes <= self._room else 1
        for name in ("plain", "turned"):
            space.ring(name, "ub", size, kind, depth=self._depth, remedy=self.remedy)

    def program(self, core: Core) -> Iterator[Instruction]:
        """In, turn, out."""
        numbers = self._share(core.rank, core.count)

        def load(step: Step) -> Iterator[Instruction]:
            turn = self.turns[step.tile]
            local = core.rings["plain"][step.ordinal]
            if prod(turn.source.size) != prod(turn.held):
                yield Fill(local.dense(turn.held), coords=(step.tile,))
            yield Move(_held(local, turn), _box(self.source, turn.source), coords=(step.tile,), name="load")

        def compute(step: Step) -> Iterator[Instruction]:
            turn = self.turns[step.tile]
            out, local = (core.rings[name][step.ordinal] for name in ("turned", "plain"))
            yield Vector(
                "transpose",
                out.dense(turn.turned),
                local.dense(turn.form),
                axes=turn.axes,
                coords=(step.tile,),
            )

        def store(step: Step) -> Iterator[Instruction]:
            turn = self.turns[step.tile]
            local = _kept(core.rings["turned"][step.ordinal], turn)
            yield Move(_box(self.target, turn.target), local, coords=(step.tile,), name="store")

        yield from walk((Loop(lambda _: numbers, load=load, store=store, ahead=self._depth - 1),), compute)


def _box(buffer: Buffer, box: Box) -> View:
    return buffer.box(box.start, box.size, frame=box.frame)


def _held(local: Buffer, turn: Turn) -> View:
    """The source's part of what is held: the first elements on each axis."""
    if prod(turn.source.size) == prod(turn.held):
        return local.dense(turn.held)
    return local.box((0,) * len(turn.held), turn.source.size, frame=turn.held)


def _kept(local: Buffer, turn: Turn) -> View:
    """What the target takes of the result."""
    if prod(turn.kept) == prod(turn.turned):
        return local.dense(turn.turned)
    n, blocks, c0, height, width = turn.turned
    return local.box((0, 0, 0, 0), turn.kept, frame=(n, blocks * c0, height, width))
