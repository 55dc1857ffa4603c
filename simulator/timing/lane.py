"""One in-order engine of one core while time passes: queue, start-up, stream."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from simulator.instructions import FLAG_SET, OPERATION
from simulator.timing.events import ENDS, Alarm

if TYPE_CHECKING:
    from simulator.timing.engines import CoreState


class Lane:
    """One in-order engine of one core.

    Attributes:
        queue: issued, not yet started. `used` counts its slots.
        front: a copy in its start-up (or through it, `front_up`, and waiting for the stream before it).
        back: the instruction on the engine, or the copy that streams.
        done: instructions that have ended.
        free_since, previous: when the engine could last take the next one, and after which entry.
        worked: when the last operation left the engine, -1 before the first.
    """

    __slots__ = (
        "alarm",
        "back",
        "blocking",
        "core",
        "depth",
        "done",
        "free_since",
        "front",
        "front_alarm",
        "front_up",
        "index",
        "previous",
        "queue",
        "used",
        "worked",
    )

    def __init__(self, core: CoreState, index: int, depth: int, blocking: bool) -> None:
        """An idle engine."""
        env = core.model.env
        self.core = core
        self.index = index
        self.depth = depth
        self.blocking = blocking
        self.queue: deque[int] = deque()
        self.used = 0
        self.front = self.back = self.previous = self.worked = -1
        self.front_up = False
        self.done = 0
        self.free_since = 0
        self.alarm = Alarm(env, self._over, ENDS)
        self.front_alarm = Alarm(env, self._front_is_up, ENDS)

    def start(self, entry: int, now: int, at: int) -> None:
        """Put an entry on the engine, at cycle `at`."""
        cost = self.core.program.cost[entry]
        cycles = at - now + cost.cycles
        if cost.idle_cycles and self.back < 0 and self.worked < at:
            cycles += cost.idle_cycles
        if cost.path:
            self.front = entry
            self.front_up = False
            self.front_alarm.set(cycles)
            return
        self.back = entry
        plain = self.core.program.kind[entry] == OPERATION
        self.alarm.set(cycles if plain else self._flag(entry, now))

    def _flag(self, entry: int, now: int) -> int:
        """Cycles that a flag instruction holds the engine."""
        program, flags = self.core.program, self.core.model.flags
        if program.kind[entry] == FLAG_SET:
            return 0
        return max(0, flags[program.key[entry]].popleft()[0] + program.cost[entry].cycles - now)

    def _front_is_up(self, now: int) -> None:
        self.front_up = True
        if self.back < 0:
            self._stream(now)

    def _stream(self, now: int) -> None:
        """The start-up is over and the stream before it too: the copy's bytes begin to flow."""
        core = self.core
        entry = self.back = self.front
        self.front = -1
        core.flow[entry] = now
        self.previous, self.free_since = entry, now
        cost = core.program.cost[entry]
        if cost.charged_bytes:
            core.model.traffic.flow(self, entry, cost, now)
        else:
            self.flowed(now)
        if self.queue:
            core.start_what_can(now)

    def flowed(self, now: int) -> None:
        """The last byte has arrived; the floor of the path may hold the copy longer."""
        entry = self.back
        self.alarm.set(max(0, self.core.start[entry] + self.core.program.cost[entry].floor_cycles - now))

    def _over(self, now: int) -> None:
        """The entry on the engine ends."""
        entry, self.back = self.back, -1
        self.done += 1
        self.core.end[entry] = (
            now  # what needs it may start with the stream behind it, and looks when it ended
        )
        self.previous, self.free_since = entry, now
        if self.core.program.kind[entry] == OPERATION:
            self.worked = now
        if self.front >= 0 and self.front_up:
            self._stream(now)
        self.core.ended(entry, now)
