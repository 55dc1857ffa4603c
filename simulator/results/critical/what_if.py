"""What a run would take if a number of the chip were better: an estimate from its waits, without simulating again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from pydantic import BaseModel

from simulator.results.critical.replay import replayed_cycles
from simulator.results.trace import Trace
from targets.errors import TilesimError
from targets.schema import Target

if TYPE_CHECKING:
    from simulator.results.run import LaunchRecord

Numbers = TypeVar("Numbers", bound=BaseModel)

CLOCK, SETUP, LAUNCH, LINK = "clock", "start-up", "launch", "link."


@dataclass(frozen=True)
class Change:
    """A number of a chip made another.

    Attributes:
        what: "clock", "start-up" (of every path), "launch" (the cost of every kind), or "link.NAME" (its rate).
        factor: what the number is multiplied by.
    """

    what: str
    factor: float

    def __str__(self) -> str:
        percent = f"{100 * abs(self.factor - 1):.0f} %"
        if self.what in (SETUP, LAUNCH):
            return f"{self.what} cost {percent} {'less' if self.factor < 1 else 'more'}"
        return f"{self.what.removeprefix(LINK)} {percent} {'faster' if self.factor > 1 else 'slower'}"

    def on(self, target: Target) -> Target:
        """The changed chip; whole cycles are rounded.

        Raises:
            TilesimError: the target has no such link, or the change is none that is known.
        """
        if self.what == CLOCK:
            return target.model_copy(update={"clock_mhz": target.clock_mhz * self.factor})
        if self.what == SETUP:
            paths = {key: self._times(path, ("start_cycles",)) for key, path in target.path.items()}
            return target.model_copy(update={"path": paths})
        if self.what == LAUNCH:
            kinds = {
                key: self._times(kind, ("cycles", "cycles_per_core")) for key, kind in target.launch.items()
            }
            return target.model_copy(update={"launch": kinds})
        link = self.what.removeprefix(LINK)
        if not self.what.startswith(LINK) or link not in target.link:
            known = ", ".join((CLOCK, SETUP, LAUNCH, *(LINK + name for name in target.link)))
            raise TilesimError("no such change of a chip", where=target.name, got=self.what, limit=known)
        rates = ("bytes_per_cycle", "gigabytes_per_second", "bytes_per_cycle_per_core")
        return target.model_copy(
            update={"link": {**target.link, link: self._times(target.link[link], rates)}}
        )

    def _times(self, table: Numbers, fields: Sequence[str]) -> Numbers:
        """A table with some of its numbers multiplied; those that are absent stay so."""
        values: Mapping[str, float | int | None] = {name: getattr(table, name) for name in fields}
        made = {name: value * self.factor for name, value in values.items() if value is not None}
        whole = {name: round(made[name]) for name in made if isinstance(values[name], int)}
        return table.model_copy(update={**made, **whole})


@dataclass(frozen=True)
class Estimate:
    """What a change makes of a run's time, in microseconds.

    Attributes:
        change: what was changed.
        before_us, after_us: the run's time, and what it would be.
    """

    change: Change
    before_us: float
    after_us: float

    @property
    def saved(self) -> float:
        """The share of the run's time that is saved; negative where it becomes slower."""
        return 1 - self.after_us / self.before_us if self.before_us else 0.0


def what_if(
    trace: Trace, target: Target, launches: Sequence[LaunchRecord], cycles: int, change: Change
) -> Estimate:
    """Estimate what a change saves of a run of so many cycles.

    Raises:
        TilesimError: the trace does not say what its instructions cost, or the target cannot be changed so.
    """
    changed = change.on(target)
    after = replayed_cycles(trace, target, changed, launches)
    return Estimate(change, target.us(cycles), after / changed.clock_mhz)


def shared_rates(target: Target) -> list[str]:
    """The links that lead to a memory of the chip, as changes name them."""
    ends = {path.link for key, path in target.path.items() if _of_the_chip(target, key)}
    ends |= {cache.link for cache in target.cache.values()}
    return [LINK + name for name in target.link if name in ends]


def _of_the_chip(target: Target, key: str) -> bool:
    return any(target.memory[memory].scope == "chip" for memory in key.split("->"))


def usual_changes(target: Target, share: float = 0.2) -> list[Change]:
    """Each link, the clock, start-ups and launches better by a share."""
    better = [Change(what, 1 + share) for what in (*shared_rates(target), CLOCK)]
    return [*better, Change(SETUP, 1 - share), Change(LAUNCH, 1 - share)]
