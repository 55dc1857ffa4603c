"""The event core: SimPy, with alarms that are set again and again, and the order of things inside a cycle.

Inside one cycle all ends come first, then what the scalar units issue, then starts in (core, engine) order.
"""

from __future__ import annotations

from collections.abc import Callable

import simpy
from simpy.events import Event, EventPriority

ENDS = EventPriority(0)
ISSUES = EventPriority(1)
STARTS = EventPriority(2)


class Alarm(Event):
    """An event that calls `action` with the cycle each time it was set; at most one setting may be pending.

    SimPy hands an event's callbacks over once; giving them back makes the event new, which spares an object for each
    instruction of a long run.
    """

    def __init__(
        self, env: simpy.Environment, action: Callable[[int], None], priority: EventPriority
    ) -> None:
        """An alarm that is not set."""
        super().__init__(env)
        self._ok = True
        self._value = None
        self._calls: list[Callable[[Event], None]] = [lambda _: action(int(env.now))]
        self._priority = priority

    def set(self, delay: int) -> None:
        """Call the action `delay` cycles from now."""
        self.callbacks = self._calls
        self.env.schedule(self, self._priority, delay)
