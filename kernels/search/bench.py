"""The runs of a search: each tiling once, within a budget, and what was left out before a run."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from kernels.search.subject import Fields, Given, Subject
from targets.errors import TilesimError

DOUBT = 1.25
"""A tiling whose estimate is this much beyond the best tiling's is not run: estimates are seldom 20 % off."""

Key = tuple[tuple[str, object], ...]


class SpentError(Exception):
    """The budget is spent: the search ends with what it has."""


@dataclass
class Bench:
    """Runs of a subject.

    Attributes:
        budget: runs at most.
        cycles: of every tiling that was run, None of those that the run refused.
        best, least: the best tiling, and its cycles.
        legal: distinct tilings that the kernel's checks allow, as far as they were looked at.
        refused: given fields that they refuse.
        pruned: tilings whose bound is beyond the best.
        simulated: runs.
    """

    subject: Subject
    budget: int
    cycles: dict[Key, int | None] = field(default_factory=dict)
    best: Fields = field(default_factory=dict)
    least: int = 0
    legal: int = 0
    refused: int = 0
    pruned: int = 0
    simulated: int = 0
    _planned: dict[Key, Fields | None] = field(default_factory=dict)
    _seen: set[Key] = field(default_factory=set)
    _waiting: dict[Key, float] = field(default_factory=dict)
    _best_estimate: float = 0.0

    def tiling(self, given: Given) -> Fields | None:
        """All fields that given ones lead to, None where they are refused; without a plan, the given ones."""
        key = key_of(given)
        if key not in self._planned:
            self._planned[key] = self._plan(given)
        return self._planned[key]

    def _plan(self, given: Given) -> Fields | None:
        if self.subject.plan is None:
            return dict(given)
        try:
            tiling = self.subject.plan(given)
        except TilesimError:
            self.refused += 1
            return None
        if key_of(tiling) not in self._seen:
            self._seen.add(key_of(tiling))
            self.legal += 1
        return tiling

    def start(self, given: Given) -> int:
        """Run the tiling that the kernel's rule makes of the given fields, whatever it costs; returns its cycles.

        Raises:
            TilesimError: the kernel refuses the call.
        """
        tiling = dict(given) if self.subject.plan is None else self.subject.plan(given)
        whole, cycles = self.subject.time(tiling)
        self.simulated, self.legal = 1, 1
        for key in (key_of(tiling), key_of(whole)):
            self.cycles[key] = cycles
            self._seen.add(key)
        self._keep(whole, cycles)
        return cycles

    def _keep(self, whole: Fields, cycles: int) -> None:
        """A tiling that may be the best."""
        if not self.best or cycles < self.least:
            self.best, self.least = whole, cycles
            self._best_estimate = self.subject.estimate(whole)

    def run(self, given: Given, *, sure: bool = False) -> int | None:
        """Cycles with some fields given; None where they are refused, or cannot be the best (unless `sure`).

        Raises:
            SpentError: a run more than the budget.
        """
        tiling = self.tiling(given)
        if tiling is None:
            return None
        key = key_of(tiling)
        if key in self.cycles:
            return self.cycles[key]
        if not sure and self._put_aside(tiling, key):
            return None
        if self.simulated >= self.budget:
            raise SpentError
        return self._run(tiling, key)

    def _put_aside(self, tiling: Fields, key: Key) -> bool:
        """Whether a tiling cannot be better than the best one, or waits because of its estimate."""
        if key in self._waiting:
            return True
        if self.subject.bound(tiling) >= self.least:
            self.pruned += 1
            self.cycles[key] = None
            return True
        estimate = self.subject.estimate(tiling) if self._best_estimate else 0.0
        if estimate > DOUBT * self._best_estimate:
            self._waiting[key] = estimate
            return True
        return False

    @property
    def waiting(self) -> int:
        """Tilings that were not run because of their estimate."""
        return len(self._waiting)

    def run_waiting(self) -> bool:
        """Run the tiling with the least estimate of those that wait; returns whether there was one.

        Raises:
            SpentError: a run more than the budget.
        """
        if not self._waiting:
            return False
        if self.simulated >= self.budget:
            raise SpentError
        key = min(self._waiting, key=lambda each: (self._waiting[each], each))
        del self._waiting[key]
        self._run(dict(key), key)
        return True

    def _run(self, tiling: Fields, key: Key) -> int | None:
        self.simulated += 1
        try:
            whole, cycles = self.subject.time(tiling)
        except TilesimError:
            self.simulated -= 1
            self.refused += 1
            self.cycles[key] = None
            return None
        if self.subject.plan is None:
            self.legal += 1
        self.cycles[key] = self.cycles[key_of(whole)] = cycles
        self._keep(whole, cycles)
        return cycles


def key_of(fields: Mapping[str, object]) -> Key:
    """Fields in an order that does not depend on how they were written."""
    return tuple(sorted(fields.items()))
