"""Loops over tiles in three stages, load, compute and store, with look-ahead.

A kernel describes a nest of loops. For each loop: the tiles below a parent, what loads a tile's data, and
what stores its
results; the innermost loop computes. Loads run `ahead` steps of their own loop before the computation that needs them,
across the ends of the loops outside: that is how DMA and a blocking vector unit overlap.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, cast

from simulator.instructions import Instruction


class Step:
    """One turn of one loop.

    Attributes:
        tile: what the kernel made of it.
        ordinal: how many turns this loop has had before, over all turns of the loops outside; it picks the
        buffer of a ring.
        up: the step of the loop outside, None for the outermost.
        last: whether it is the last below its parent.
    """

    __slots__ = ("last", "ordinal", "tile", "up")

    def __init__(self, tile: Any, ordinal: int, up: Step | None, last: bool) -> None:
        """One turn."""
        self.tile = tile
        self.ordinal = ordinal
        self.up = up
        self.last = last


Stage = Callable[[Step], Iterable[Instruction]]

NEVER = 1 << 62
"""An ordinal that no loop reaches."""


def nothing(_: Step) -> Iterable[Instruction]:
    """A stage that does nothing."""
    return ()


@dataclass(frozen=True)
class Loop:
    """One loop of a nest.

    Attributes:
        tiles: the tiles below a parent step (None for the outermost loop), as a sequence.
        load: brings in a step's data, `ahead` steps early.
        store: takes out a step's results, when all below it is computed.
        enter: runs when a step begins, after its own load.
        fence: nothing inside is loaded before `enter` has run, so that a barrier can stand there.
    """

    tiles: Callable[[Step | None], Sequence[Any]]
    load: Stage = nothing
    store: Stage = nothing
    enter: Stage = nothing
    fence: bool = False
    ahead: int = 1


def walk(loops: Sequence[Loop], compute: Stage) -> Iterator[Instruction]:
    """The instructions of a nest: loads ahead of computation, stores behind it."""
    cursors = [_Cursor(loops, depth) for depth in range(len(loops))]
    fences = [depth for depth, loop in enumerate(loops) if loop.fence]
    inner = len(loops) - 1
    path: list[Step | None] = [None] * len(loops)
    for leaf in _steps(loops, inner):
        first = _follow(path, leaf)
        steps = cast("list[Step]", path)
        for depth in range(first, inner + 1):
            step = steps[depth]
            if cursors[depth].upcoming <= step.ordinal:
                yield from cursors[depth].load_to(step.ordinal, None, 0)
            if loops[depth].enter is not nothing:
                yield from loops[depth].enter(step)
        for depth in range(first, inner + 1):
            ordinal = steps[depth].ordinal + loops[depth].ahead
            if cursors[depth].upcoming <= ordinal:
                fence = max((f for f in fences if f < depth), default=None) if fences else None
                yield from cursors[depth].load_to(
                    ordinal, fence, 0 if fence is None else steps[fence].ordinal
                )
        yield from compute(leaf)
        for depth in range(inner, -1, -1):
            if loops[depth].store is not nothing:
                yield from loops[depth].store(steps[depth])
            if not steps[depth].last:
                break


def _follow(path: list[Step | None], leaf: Step) -> int:
    """Put a leaf and the steps outside it into the path; returns the outermost loop whose step is new."""
    depth = len(path) - 1
    step: Step | None = leaf
    while True:
        path[depth] = step
        up = step.up if step is not None else None
        if depth == 0 or up is path[depth - 1]:
            return depth
        depth, step = depth - 1, up


class _Cursor:
    """How far the loads of one loop have come: `upcoming` is the ordinal of the next step to load."""

    __slots__ = ("_load", "_next", "_steps", "upcoming")

    def __init__(self, loops: Sequence[Loop], depth: int) -> None:
        """Nothing is loaded yet."""
        self._steps = iter(()) if loops[depth].load is nothing else _steps(loops, depth)
        self._load = loops[depth].load
        self._advance()

    def _advance(self) -> None:
        self._next = next(self._steps, None)
        self.upcoming = NEVER if self._next is None else self._next.ordinal

    def load_to(self, ordinal: int, fence: int | None, limit: int) -> Iterator[Instruction]:
        """Loads up to step `ordinal`, but none whose step of loop `fence` comes after `limit`."""
        while self._next is not None and self.upcoming <= ordinal:
            step = self._next
            if fence is not None and _path(step)[fence].ordinal > limit:
                return
            self._advance()
            yield from self._load(step)


def _steps(loops: Sequence[Loop], depth: int) -> Iterator[Step]:
    """All steps of one loop, in order."""
    ordinal = 0
    parents: Iterable[Step | None] = (None,) if depth == 0 else _steps(loops, depth - 1)
    for parent in parents:
        tiles = loops[depth].tiles(parent)
        final = len(tiles) - 1
        for index, tile in enumerate(tiles):
            yield Step(tile, ordinal, parent, index == final)
            ordinal += 1


def _path(step: Step) -> list[Step]:
    """The steps of all loops outside, outermost first, and the step itself."""
    path = [step]
    while path[-1].up is not None:
        path.append(path[-1].up)
    path.reverse()
    return path
