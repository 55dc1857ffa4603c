"""Ways between main memory and the cube: boxes to L1, weights straight to L0B, sums out of L0C."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from typing import Literal, NamedTuple

import numpy as np

from kernels.davinci.space import Rings
from kernels.davinci.tiles import Positions
from simulator.cube import Fixpipe, Move, Vector
from simulator.instructions import Coords, Cost, Instruction
from simulator.kernel import Core
from simulator.memory.memories import View
from targets.schema import Target


class StepMove(Move):
    """A move for one K step, in an unrolled run of them: its addresses are as cheap as those of a load to L0."""

    __slots__ = ()

    def __init__(self, dst: View, src: View, *, coords: Coords, name: str) -> None:
        """Move src to dst."""
        super().__init__(dst, src, coords=coords, name=name)

    def signature(self) -> Hashable:
        """As a move, under its own name."""
        return ("step", super().signature())

    def cost(self, target: Target) -> Cost:
        """That of a move, but for its issue."""
        return super().cost(target)._replace(issue_cycles=target.issue.load2d_cycles or 0)


class StraightLoad(StepMove):
    """Weights [taps, n, C0] of main memory to [taps x C0, n] in L0B: fractals as they lie."""

    __slots__ = ()

    def execute(self) -> None:
        """Rows of fractals become columns of the operand."""
        self.dst.put(self.src.array().transpose(0, 2, 1))


class AddingMove(Move):
    """A move that adds to what is at its destination."""

    __slots__ = ()
    atomic = True

    def __init__(self, dst: View, src: View, *, coords: Coords, name: str) -> None:
        """Add src to dst."""
        super().__init__(dst, src, coords=coords, name=name)
        self.reads = (src, dst)

    def execute(self) -> None:
        """Add element by element, in the type of both."""
        self.dst.put(np.add(self.dst.array(), self.src.array().reshape(self.dst.shape)))


class Out(NamedTuple):
    """How sums are seen on their way out: in the shape `form`, of it a `part`, the axes in the order `axes`."""

    form: tuple[int, ...]
    part: tuple[slice, ...]
    axes: tuple[int, ...]
    layout: Literal["nd", "nz", "nc1hwc0", "split"]
    instructions: int = 1


def store(
    core: Core,
    rings: Rings,
    place: View,
    sums: View,
    out: Out,
    coords: Coords,
    *,
    atomic: bool = False,
    added: View | None = None,
) -> Iterator[Instruction]:
    """Sums to their place in main memory: by the write-out unit, or by way of UB where the chip has no other.

    `added` is in UB, in fp32, and spreads over the sums in place's shape: they are rounded after it.
    """
    if not rings.through_ub:
        yield Fixpipe(
            place, sums, layout=out.layout, atomic=atomic, count=out.instructions,
            form=out.form, part=out.part, axes=out.axes, coords=coords,
        )  # fmt: skip
        return
    local = core.rings["out"][0].dense(place.shape)
    summed = local if added is None else core.rings["summed"][0].dense(place.shape)
    yield Fixpipe(
        summed, sums, layout=out.layout, count=out.instructions,
        form=out.form, part=out.part, axes=out.axes, coords=coords,
    )  # fmt: skip
    if added is not None:
        yield Vector("add", summed, summed, added, coords=coords)
        yield Vector("cast", local, summed, coords=coords)
    if atomic:
        yield AddingMove(place, local, coords=coords, name="store_add")
    else:
        yield Move(place, local, coords=coords, name="store")


def image_out(tile: Positions, blocks: int, across: int, c0: int) -> Out:
    """Sums [positions, channels] as blocks of channels [blocks, positions, C0]; what pads rows stays behind."""
    top, bottom = tile.rows
    low, high = tile.columns
    rows = bottom - top + 1 if tile.padded else 1
    wide, there = (tile.executed // rows, high - low + 1) if tile.padded else (tile.length, tile.length)
    return Out(
        (rows, wide, across // c0, c0),
        (slice(None), slice(there), slice(blocks), slice(None)),
        (2, 0, 1, 3),
        "split" if c0 < 16 else "nc1hwc0",  # the cube makes blocks of 16 channels
        rows,
    )
