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
    costs as much as a whole one. `nd2nz` makes fractals of plain rows, `transpose` exchanges the last two axes on the
    way. `count` instructions do it, each of which pays its start and its issue.
    """

    __slots__ = ("count", "nd2nz", "transpose")

    def __init__(
        self,
        dst: View,
        src: View,
        *,
        nd2nz: bool = False,
        transpose: bool = False,
        count: int = 1,
        coords: Coords = (),
        name: str = "move",
    ) -> None:
        """Move src to dst, the same elements (in the same order); both may be boxes of any number of levels.

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
        self.transpose = transpose
        self.count = count

    def signature(self) -> Hashable:
        """Memories, rows on both sides, and how it goes."""
        s, d = self.src.pieces, self.dst.pieces
        memories = (self.src.buffer.memory, self.dst.buffer.memory)
        return ("move", *memories, *s[1:], *d[1:], self.nd2nz, self.transpose, self.count)

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
        return Cost(
            self.count * target.issue.copy_cycles,
            commands * path.start_cycles,
            key,
            charged,
            max(commands * path.floor_cycles, self._held(path, charged, side.rows)),
            path.overlap,
            path.idle_cycles or 0,
        )

    def _held(self, path: PathSpec, charged: int, rows: int) -> int:
        """What a special transfer takes at least: blocked, transposing, or of one row."""
        held = 0
        if self.nd2nz and path.blocked_bytes_per_cycle:
            held = self.count * path.start_cycles + ceil(charged / path.blocked_bytes_per_cycle)
        if self.transpose and path.transposed_run_cycles:
            start = self.count * (path.transposed_start_cycles or 0)
            held = max(held, start + transposed_runs(self.moved) * path.transposed_run_cycles)
        if rows == 1 and path.single_row_bytes_per_cycle:
            start = self.count * (path.single_row_start_cycles or 0)
            held = max(held, start + ceil(charged / path.single_row_bytes_per_cycle))
        return held

    def execute(self) -> None:
        """Move the numbers."""
        values = self.src.array()
        self.dst.put(values.swapaxes(-1, -2) if self.transpose else values)


def commands_of(path: PathSpec, moved: int, count: int) -> int:
    """Commands of a transfer: as many as instructions, more where one would be too long."""
    return max(count, ceil(moved / path.command_bytes)) if path.command_bytes else count


RUN_BYTES = 16384
"""What a transposing transfer counts its runs in."""


def transposed_runs(moved: int) -> int:
    """Runs of a transposing transfer: powers of two of 16 KB that make up its size, and one for what is left."""
    whole, rest = divmod(moved, RUN_BYTES)
    return whole.bit_count() + bool(rest)
