"""Programs that were compiled before: calls that repeat, as the layers of a network do, compile once.

A program has no addresses and no numbers, so it serves any call of the same kernel, geometry and tiling on one target.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable

from simulator.timing.program import Program
from targets.schema import Target

MOST_ENTRIES = 200_000
"""Entries of all programs that are kept, about 0.1 GB; the one used longest ago goes first."""


class Library:
    """Keeps the programs used last."""

    def __init__(self, most_entries: int = MOST_ENTRIES) -> None:
        """An empty library."""
        self._held: OrderedDict[Hashable, tuple[Target, Program]] = OrderedDict()
        self._most = most_entries
        self._entries = 0

    def program(self, target: Target, key: Hashable, make: Callable[[], Program]) -> Program:
        """The program under a key for this very target, made if it is not there."""
        whole = (id(target), key)
        found = self._held.get(whole)
        if found is not None and found[0] is target:
            self._held.move_to_end(whole)
            return found[1]
        program = make()
        if len(program) <= self._most:
            self._held[whole] = (target, program)
            self._entries += len(program)
        while self._entries > self._most:
            self._entries -= len(self._held.popitem(last=False)[1][1])
        return program

    def clear(self) -> None:
        """Forget every program."""
        self._held.clear()
        self._entries = 0


LIBRARY = Library()
"""The programs of this process."""
