"""Who does the work on a network: this process, or several."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from reports.networks.times import LayerTime
from tilesim.networks.plans import Plan, Task
from tilesim.workers.pool import TRIES, Done, Lost, Piece, Pool
from tilesim.workers.process import WorkerDiedError

Told = Callable[[int, int], None]
"""Is told how many pieces of work are done, and of how many."""


def times_of(plans: Sequence[Plan], jobs: int, on_layer: Told | None) -> list[list[LayerTime]]:
    """The times of each plan's tasks, in their order."""
    tasks = [(number, task) for number, plan in enumerate(plans) for task in plan.tasks()]
    count = _Count(sum(len(task.works) for _, task in tasks), on_layer)
    results: list[list[LayerTime]] = [[] for _ in tasks]
    for place, found in _results([task for _, task in tasks], jobs, count):
        results[place] = found
    gathered: list[list[LayerTime]] = [[] for _ in plans]
    for (number, _), found in zip(tasks, results, strict=True):
        gathered[number] += found
    return gathered


class _Count:
    """How many layers are done."""

    def __init__(self, total: int, on_layer: Told | None) -> None:
        self._total, self._on_layer, self._done = total, on_layer, 0

    def add(self, layers: int = 1) -> None:
        """So many more are."""
        self._done += layers
        if self._on_layer is not None:
            self._on_layer(self._done, self._total)


def _results(tasks: Sequence[Task], jobs: int, count: _Count) -> Iterator[tuple[int, list[LayerTime]]]:
    """Each task's place and result as it comes, the largest first where several processes share them.

    Raises:
        WorkerDiedError: the processes that tried one died.
        WorkError: one raised.
    """
    if min(jobs, len(tasks)) <= 1:
        for place, task in enumerate(tasks):
            found = task.run(count.add)
            if not task.layers:
                count.add()
            yield place, found
        return
    order = sorted(range(len(tasks)), key=lambda place: -tasks[place].size)
    with Pool(Task.run, [_piece(place, tasks[place]) for place in order], jobs) as workers:
        for event in workers.events():
            if isinstance(event, Lost):
                raise WorkerDiedError(
                    f"{TRIES} processes died at the same work, the last with {event.reason}"
                )
            if isinstance(event, Done):
                count.add(len(event.result))
                yield event.number, event.result


def _piece(place: int, task: Task) -> Piece:
    return Piece(place, lambda: task)
