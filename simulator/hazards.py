"""Dependencies inside one core, derived from the byte ranges that its instructions read and write.

An instruction waits for every earlier instruction of its core with a conflicting access (read after write, write after
read, write after write) to an overlapping range of any memory. Engines work in order, so that the latest conflict on
each other engine says it all; a flag pair that was already awaited is not awaited again. All of this follows from the
order of the program alone, never from time.
"""

from __future__ import annotations

from simulator.errors import ProgramError
from simulator.memories import Buffer, View
from simulator.ranges import Range, overlaps

Seen = dict[int, dict[Range, int]]
"""lane -> range -> the latest number of an instruction of that lane; dictionaries keep the order of the numbers."""

Need = dict[int, int]
"""lane -> number of its instruction that has to end first."""


class HazardTracker:
    """The accesses of one core's program so far."""

    def __init__(self, lanes: int, dropped: frozenset[tuple[str, str]] = frozenset()) -> None:
        """Start a program on a core with `lanes` engines.

        Args:
            lanes: engines of the core.
            dropped: (memory, kind) pairs to overlook, kind "raw", "war" or "waw": a fault on purpose, for tests.
        """
        self._writers: dict[Buffer, Seen] = {}
        self._readers: dict[Buffer, Seen] = {}
        self._awaited: list[Need] = [{} for _ in range(lanes)]
        self._dropped = dropped

    def add(self, lane: int, number: int, reads: tuple[View, ...], writes: tuple[View, ...]) -> Need:
        """Enter instruction `number` of a lane; returns what it has to wait for and has not waited for yet.

        Raises:
            ProgramError: it writes a constant buffer.
        """
        need: Need = {}
        awaited = self._awaited[lane]
        for view in reads:
            if not view.buffer.constant:
                self._find(self._writers, view, lane, need, awaited, "raw")
        for view in writes:
            if view.buffer.constant:
                raise ProgramError("a write to an input", where=f"{view.buffer.name} in {view.buffer.memory}")
            self._find(self._writers, view, lane, need, awaited, "waw")
            self._find(self._readers, view, lane, need, awaited, "war")
        for view in reads:
            if not view.buffer.constant:
                _enter(self._readers, view, lane, number)
        for view in writes:
            _enter(self._writers, view, lane, number)
        if need:
            awaited.update(need)
        return need

    def _find(self, table: dict[Buffer, Seen], view: View, lane: int, need: Need, awaited: Need, kind: str) -> None:
        """Raise need[other lane] to its latest conflicting number."""
        seen = table.get(view.buffer)
        if seen is None or (self._dropped and (view.buffer.memory, kind) in self._dropped):
            return
        span = view.range
        for other, ranges in seen.items():
            if other == lane:
                continue
            known = max(need.get(other, -1), awaited.get(other, -1))
            for held, number in reversed(ranges.items()):
                if number <= known:
                    break
                if overlaps(held, span):
                    need[other] = number
                    break

    def forget_shared(self) -> None:
        """After a barrier, what the core did to shared memory has ended."""
        for table in (self._writers, self._readers):
            for buffer in [b for b in table if b.shared]:
                del table[buffer]


def _enter(table: dict[Buffer, Seen], view: View, lane: int, number: int) -> None:
    """Note an access, as the newest of its lane."""
    ranges = table.setdefault(view.buffer, {}).setdefault(lane, {})
    ranges.pop(view.range, None)
    ranges[view.range] = number
