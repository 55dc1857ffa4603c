"""Transfers between memories: plain, or making fractals of rows on the way."""

from __future__ import annotations

from collections.abc import Hashable
from math import ceil, prod

from simulator.cube.fractals import table_of
from simulator.errors import ProgramError
from simulator.instructions import Coords, Copy, Cost, Instruction, path_bytes
from simulator.memory.memories import View
from targets.schema import PathSpec, Target


class Move(Copy):
    """A transfer over a path of the target, on the path's engine.

    The bytes on the path's link are charged row by row in whole bursts of the link, so that a row shorter than a burst
    costs as much as a whole one. `nd2nz` makes fractals of plain rows. `count` instructions do it, each of which pays
    its start and its issue.
    """

    __slots__ = ("count", "nd2nz")

    def __init__(
        self,
        dst: View,
        src: View,
        *,
        nd2nz: bool = False,
        count: int = 1,
        coords: Coords = (),
        name: str = "move",
    ) -> None:
        """Move src to dst, the same elements in the same order; both may be boxes of any number of levels.

        Raises:
            ProgramError: sizes or types differ.
        """
        if prod(dst.shape) != prod(src.shape) or dst.buffer.dtype is not src.buffer.dtype:
            raise ProgramError(
                "a move between unlike ranges",
                where=f"{src.buffer.name} -> {dst.buffer.name}",
                got=f"{src.shape} {src.buffer.dtype.name} -> {dst.shape} {dst.buffer.dtype.name}",
            )
        Instruction.__init__(self, (src,), (dst,), coords)
        self.dst = dst
        self.src = src
        self.moved = prod(dst.shape) * dst.buffer.dtype.size_bytes
        self.name = name
        self.nd2nz = nd2nz
        self.count = count

    def signature(self) -> Hashable:
        """Memories, rows on both sides, and how it goes."""
        s, d = self.src.pieces, self.dst.pieces
        memories = (self.src.buffer.memory, self.dst.buffer.memory)
        return ("move", *memories, *s[1:], *d[1:], self.nd2nz, self.count)

    def cost(self, target: Target) -> Cost:
        """Issue, start-up of each command, whole bursts on the link, and the slower rate of special transfers.

        Raises:
            ProgramError: the target has no such path.
        """
        key = f"{self.src.buffer.memory}->{self.dst.buffer.memory}"
        path = table_of(target.path, "path", key, target.name)
        side = (self.src if path.direction == "read" else self.dst).pieces
        charged = path_bytes(target, path, side)
        commands = commands_of(path, self.moved, self.count)
        start = commands * path.start_cycles
        slow = self._slow_rate(path, side.rows)
        held = start + ceil(charged / slow) if slow else 0
        return Cost(
            self.count * target.issue.copy_cycles,
            start,
            key,
            charged,
            max(commands * path.floor_cycles, held),
            path.overlap,
            path.idle_cycles or 0,
        )

    def _slow_rate(self, path: PathSpec, rows: int) -> float:
        """The rate below the port's that holds for this transfer; 0 for none."""
        rates = (
            path.blocked_bytes_per_cycle if self.nd2nz else None,
            path.single_row_bytes_per_cycle if rows == 1 else None,
        )
        return min((rate for rate in rates if rate), default=0)

    def execute(self) -> None:
        """Move the numbers."""
        self.dst.put(self.src.array())


def commands_of(path: PathSpec, moved: int, count: int) -> int:
    """Commands of a transfer: as many as instructions, more where one would be too long."""
    return max(count, ceil(moved / path.command_bytes)) if path.command_bytes else count
