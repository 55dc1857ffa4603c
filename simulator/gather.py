"""A list of DMA transfers from places anywhere in a memory: what a core queues once it has computed the places."""

from __future__ import annotations

from collections.abc import Hashable

from simulator.errors import ProgramError
from simulator.instructions import Coords, Copy, Cost, Instruction
from simulator.memory.memories import View
from simulator.memory.views import ScatteredView
from targets.schema import Target


class GatherRuns(Copy):
    """Runs that lie anywhere, brought in by transfers of one or more runs each, one transfer behind the other.

    The places are data, so that the bursts on the link are those of the run; nothing is loaded only once that two runs
    share.
    """

    __slots__ = ("source", "transfers")

    def __init__(
        self,
        dst: View,
        src: ScatteredView,
        transfers: int,
        *,
        channel: int = 0,
        coords: Coords = (),
        name: str = "gather",
    ) -> None:
        """Bring the runs of `src`, packed, to `dst`, by so many transfers.

        Raises:
            ProgramError: sizes or types differ.
        """
        if dst.shape != src.shape or dst.buffer.dtype is not src.buffer.dtype:
            raise ProgramError(
                "a gather between unlike ranges",
                where=f"{src.buffer.name} -> {dst.buffer.name}",
                got=f"{src.shape} {src.buffer.dtype.name} -> {dst.shape} {dst.buffer.dtype.name}",
            )
        Instruction.__init__(self, (src,), (dst,), coords, channel)
        self.dst = dst
        self.src = src
        self.moved = dst.range.bytes
        self.name = name
        self.source = src
        self.transfers = transfers

    def signature(self) -> Hashable:
        """Memories, transfers, and the places themselves, on which the bursts depend."""
        memories = (self.src.buffer.memory, self.dst.buffer.memory)
        return ("gather_runs", *memories, self.transfers, self.source.runs)

    def cost(self, target: Target) -> Cost:
        """The issue of every transfer, and every burst of every run.

        Start-ups that run during the stream of the transfer before are hidden but for the first.

        Raises:
            ProgramError: the target has no such path.
        """
        key = f"{self.src.buffer.memory}->{self.dst.buffer.memory}"
        path = target.path.get(key)
        if path is None:
            known = ", ".join(sorted(target.path))
            raise ProgramError("no such path", where=target.name, got=key, limit=known)
        runs, charged = self.source.runs, self.moved
        if path.link:
            link = target.link[path.link]
            charged = runs.bursts_apart(link.burst_bytes) * link.burst_bytes
            charged += len(runs.places) * link.row_overhead_bytes
        starts = 1 if path.overlap else self.transfers
        issue = self.transfers * target.issue.copy_cycles
        return Cost(issue, starts * path.start_cycles, key, charged, path.floor_cycles, path.overlap)
