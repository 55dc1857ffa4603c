"""What those who run points tell the sweep: a point is done, or something went wrong that did not end it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from targets.errors import TilesimError
from tilesim.sweeps.work import FAULT, REFUSED, ended, outcome
from tilesim.workers.pool import Done, Ready


@dataclass(frozen=True)
class Notice:
    """A sentence to be told: a worker died and its point is run again."""

    text: str


Event = Done | Notice
"""The result of a point is its figures, a `Row`."""


@dataclass(frozen=True)
class Job:
    """A point to be run.

    Attributes:
        number: of the point.
        make: gives its task, or raises what refuses it.
    """

    number: int
    make: Callable[[], dict[str, object]]

    def task(self) -> dict[str, object] | Ready:
        """The task, or, where the point is refused before it runs, its row."""
        try:
            return self.make()
        except TilesimError as error:
            row = ended(REFUSED, str(error))
        except Exception as error:  # one point's fault is no reason to lose the others
            row = ended(FAULT, f"{type(error).__name__}: {error}")
        return Ready(row | {"seconds": 0.0})


def run_here(jobs: list[Job]) -> Iterator[Event]:
    """Run points one after another in this process."""
    for job in jobs:
        task = job.task()
        yield Done(job.number, task.result if isinstance(task, Ready) else outcome(task))
