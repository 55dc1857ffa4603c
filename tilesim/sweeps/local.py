"""Points on worker processes of this computer: a worker that dies takes no point with it but the one that it was at."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tilesim.sweeps.events import Event, Job, Notice
from tilesim.sweeps.work import LOST, ended, outcome
from tilesim.workers import pool
from tilesim.workers.pool import TRIES, Again, Done, Lost, Piece, Pool


def run_local(jobs: Sequence[Job], count: int) -> Iterator[Event]:
    """Run points on so many workers of this computer."""
    with Pool(outcome, [Piece(job.number, job.task) for job in jobs], count) as workers:
        for event in workers.events():
            yield _told(event)


def _told(event: pool.Event) -> Event:
    """What happened to a piece, as a sweep says it."""
    if isinstance(event, Again):
        return Notice(f"a worker died in point {event.number} ({event.reason}): it is run again by another")
    if isinstance(event, Lost):
        text = f"its workers died, {TRIES} times, the last with {event.reason}"
        return Done(event.number, ended(LOST, text) | {"seconds": 0.0})
    return event
