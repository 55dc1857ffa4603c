"""Accesses of a vector core's own threads to places anywhere in main memory: gathering loads and atomic additions.

The places are data, so that the bursts and the lines of a cache that they touch are those of the run. Threads issue
them as they go: they cost the scalar unit one vector instruction, and not the commands of a transfer.
"""

from __future__ import annotations

from collections.abc import Hashable

from simulator.cube.fractals import table_of
from simulator.cube.move import Move
from simulator.instructions import Coords, Cost
from simulator.memory.memories import View
from simulator.memory.views import ScatteredView
from targets.schema import PathSpec, Target


class Gather(Move):
    """Runs that lie anywhere, into UB: a burst that several runs touch is loaded once."""

    __slots__ = ("source",)

    def __init__(self, dst: View, src: ScatteredView, *, coords: Coords = (), name: str = "gather") -> None:
        """Load the runs of `src`, packed, to `dst`.

        Raises:
            ProgramError: sizes or types differ.
        """
        super().__init__(dst, src, coords=coords, name=name)
        self.source = src

    def signature(self) -> Hashable:
        """Memories and the places themselves, on which the bursts depend."""
        return ("gather", self.src.buffer.memory, self.dst.buffer.memory, self.source.runs)

    def cost(self, target: Target) -> Cost:
        """The bursts on the link; the threads of a wave wait once for the memory, as long as its shortest transfer.

        Raises:
            ProgramError: the target has no such path.
        """
        key, path = _path(target, self.src, self.dst)
        burst = target.link[path.link].burst_bytes
        charged = self.source.runs.bursts(burst) * burst
        return Cost(
            target.issue.vector_cycles, path.start_cycles, key, charged, path.floor_cycles, path.overlap
        )


class ScatterAdd(Move):
    """Runs of UB added in the memory to runs that lie anywhere: every run and burst is an access of its own."""

    __slots__ = ("destination",)
    atomic = True

    def __init__(self, dst: ScatteredView, src: View, *, coords: Coords = (), name: str = "add") -> None:
        """Add `src`, packed, to the runs of `dst`.

        Raises:
            ProgramError: sizes or types differ.
        """
        super().__init__(dst, src, coords=coords, name=name)
        self.reads = (src, dst)
        self.destination = dst

    def signature(self) -> Hashable:
        """Memories and the places themselves, on which the bursts depend."""
        return ("scatter", self.src.buffer.memory, self.dst.buffer.memory, self.destination.runs)

    def cost(self, target: Target) -> Cost:
        """The bursts of each run on the link; nobody waits for an addition, so that it has no start-up.

        Raises:
            ProgramError: the target has no such path.
        """
        key, path = _path(target, self.src, self.dst)
        burst = target.link[path.link].burst_bytes
        charged = self.destination.runs.bursts_apart(burst) * burst
        return Cost(target.issue.vector_cycles, 0, key, charged, 0, path.overlap)

    def execute(self) -> None:
        """Add run by run, in order."""
        self.destination.add(self.src.array())


def _path(target: Target, src: View, dst: View) -> tuple[str, PathSpec]:
    key = f"{src.buffer.memory}->{dst.buffer.memory}"
    return key, table_of(target.path, "path", key, target.name)
