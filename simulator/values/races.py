"""The race check between cores: who touched which bytes of a shared memory, and what orders them.

Every engine of every core is a thread with a clock. A barrier orders all that its cores did to shared
memory before it; a
flag orders what its engine did before it; inside a core the derived hazards order engines. Two accesses of different
cores to overlapping bytes, one of them a write, with neither ordered before the other, are a race; but not two
additions in the memory.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from typing import NamedTuple

from simulator.errors import RaceError
from simulator.instructions import Barrier, FlagSet, FlagWait, Instruction
from simulator.memory.memories import Buffer, View
from simulator.memory.ranges import Range, overlaps
from simulator.values.completion import Timing

Clock = dict[tuple[int, int], int]
"""(core, lane) -> number of the latest instruction of that lane known to have ended."""


class _Access(NamedTuple):
    core: int
    lane: int
    number: int
    entry: int
    name: str
    span: Range
    writes: bool
    adds: bool


class RaceCheck:
    """Sees the instructions of a launch as they complete."""

    def __init__(self, timings: Mapping[int, Timing], lanes: int) -> None:
        """Watch these cores, with `lanes` engines each."""
        self._timings = timings
        self._lanes: dict[tuple[int, int], Clock] = {
            (core, lane): {} for core in timings for lane in range(lanes)
        }
        self._after: dict[int, Clock] = {core: {} for core in timings}
        self._clocks: dict[tuple[int, int], Clock] = {}
        self._barriers: dict[tuple[Hashable, int], Clock] = {}
        self._flags: dict[Hashable, list[Clock]] = {}
        self._turn: dict[tuple[Hashable, int], int] = {}
        self._history: dict[Buffer, list[_Access]] = {}

    def observe(self, core: int, entry: int, instruction: Instruction) -> None:
        """An instruction completes.

        Raises:
            RaceError: it races with an earlier one.
        """
        program = self._timings[core].program
        lane, number = program.lane[entry], program.number[entry]
        if isinstance(instruction, Barrier):
            self._barrier(core, instruction)
            return
        clock = dict(self._after[core])
        _join(clock, self._lanes[core, lane])
        for other, needed in program.need[entry].items():
            _join(clock, self._clocks.get((core, program.by_lane[other][needed]), {}))
        if isinstance(instruction, FlagWait):
            _join(clock, self._flags[instruction.flag].pop(0))
        for view, writes in [(v, False) for v in instruction.reads] + [(v, True) for v in instruction.writes]:
            if view.buffer.shared and not view.buffer.constant:
                access = _Access(
                    core, lane, number, entry, instruction.name, view.range, writes, instruction.atomic
                )
                self._touch(access, view, clock)
        clock[core, lane] = number
        self._lanes[core, lane] = self._clocks[core, entry] = clock
        if isinstance(instruction, FlagSet) and not isinstance(instruction, FlagWait):
            self._flags.setdefault(instruction.flag, []).append(dict(clock))

    def _barrier(self, core: int, barrier: Barrier) -> None:
        """All that the barrier's cores did before is known after; equal turns of a barrier belong together."""
        which = (barrier.key, barrier.cores)
        turn = self._turn[which, core] = self._turn.get((which, core), -1) + 1
        meeting = self._barriers.get((which, turn))
        if meeting is None:
            meeting = self._barriers[which, turn] = {}
            if barrier.cores is None:
                self._history.clear()  # what every core has done lies before whatever comes now
            for member in barrier.cores if barrier.cores is not None else tuple(self._timings):
                _join(meeting, self._after[member])
                for (owner, _), clock in self._lanes.items():
                    if owner == member:
                        _join(meeting, clock)
        _join(self._after[core], meeting)

    def _touch(self, access: _Access, view: View, clock: Clock) -> None:
        history = self._history.setdefault(view.buffer, [])
        for held in history:
            if held.core == access.core or not (held.writes or access.writes):
                continue
            if held.adds and access.adds:
                continue
            if clock.get((held.core, held.lane), -1) < held.number and overlaps(held.span, access.span):
                raise self._race(view.buffer, held, access)
        history.append(access)

    def _race(self, buffer: Buffer, first: _Access, second: _Access) -> RaceError:
        sides = [
            f"core {a.core} {'writes' if a.writes else 'reads'} {a.span.base:#x}+{a.span.end - a.span.base}"
            f" with {a.name} (entry {a.entry}, cycles {self._timings[a.core].start[a.entry]} to"
            f" {self._timings[a.core].end[a.entry]})"
            for a in (first, second)
        ]
        return RaceError(
            "a race between cores",
            where=f"{buffer.name} in {buffer.memory}",
            got=" and ".join(sides),
            remedy="put a barrier, or a flag, between them",
        )


def _join(clock: Clock, other: Clock) -> None:
    for thread, number in other.items():
        if clock.get(thread, -1) < number:
            clock[thread] = number
