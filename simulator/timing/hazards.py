"""Dependencies inside one core, derived from the byte ranges that its instructions read and write.

An instruction waits for every earlier instruction of its core with a conflicting access (read after write, write after
read, write after write) to an overlapping range of any memory. Engines work in order, so that the latest conflict on
each other engine says it all; a flag pair that was already awaited is not awaited again. All of this follows from the
order of the program alone, never from time.
"""

from __future__ import annotations

from simulator.errors import ProgramError
from simulator.memory.memories import Buffer, View
from simulator.memory.ranges import Range, overlaps

Seen = dict[int, dict[Range, int]]
"""lane -> range -> the latest number of an instruction of that lane; dictionaries keep the order of the numbers."""

Need = dict[int, int]
"""lane -> number of its instruction that has to end first."""


class _Accesses:
    """What a program did to one buffer so far."""

    __slots__ = ("readers", "writers")

    def __init__(self) -> None:
        self.writers: Seen = {}
        self.readers: Seen = {}


class HazardTracker:
    """The accesses of one core's program so far."""

    def __init__(self, lanes: int, dropped: frozenset[tuple[str, str]] = frozenset()) -> None:
        """Start a program on a core with `lanes` engines.

        Args:
            lanes: engines of the core.
            dropped: (memory, kind) pairs to overlook, kind "raw", "war" or "waw": a fault on purpose, for tests.
        """
        self._held: dict[Buffer, _Accesses] = {}
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
                accesses = self._accesses(view.buffer)
                writers = accesses.writers
                if writers and (len(writers) > 1 or lane not in writers):
                    self._find(writers, view, lane, need, awaited, "raw")
                _enter(accesses.readers, view.range, lane, number)
        for view in writes:
            if view.buffer.constant:
                raise ProgramError("a write to an input", where=f"{view.buffer.name} in {view.buffer.memory}")
            accesses = self._accesses(view.buffer)
            writers, readers = accesses.writers, accesses.readers
            if writers and (len(writers) > 1 or lane not in writers):
                self._find(writers, view, lane, need, awaited, "waw")
            if readers and (len(readers) > 1 or lane not in readers):
                self._find(readers, view, lane, need, awaited, "war")
            _enter(accesses.writers, view.range, lane, number)
        if need:
            awaited.update(need)
        return need

    def _accesses(self, buffer: Buffer) -> _Accesses:
        found = self._held.get(buffer)
        if found is None:
            found = self._held[buffer] = _Accesses()
        return found

    def _find(self, seen: Seen, view: View, lane: int, need: Need, awaited: Need, kind: str) -> None:
        """Raise need[other lane] to its latest conflicting number; an engine never waits for itself."""
        if self._dropped and (view.buffer.memory, kind) in self._dropped:
            return
        span = view.range
        for other, ranges in seen.items():
            if other == lane:
                continue
            known, waited = need.get(other, -1), awaited.get(other, -1)
            known = max(known, waited)
            for held, number in reversed(ranges.items()):
                if number <= known:
                    break
                if overlaps(held, span):
                    need[other] = number
                    break

    def forget_shared(self) -> None:
        """After a barrier, what the core did to shared memory has ended."""
        for buffer in [b for b in self._held if b.shared]:
            del self._held[buffer]


def _enter(seen: Seen, span: Range, lane: int, number: int) -> None:
    """Note an access, as the newest of its lane."""
    ranges = seen.get(lane)
    if ranges is None:
        seen[lane] = {span: number}
        return
    ranges.pop(span, None)
    ranges[span] = number
