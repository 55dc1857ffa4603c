"""Points on worker processes of this computer: one point at a time each; a worker that dies takes no other with it.

Workers are programs of their own (`tilesim/sweeps/worker.py`) and not forks, so that a caller needs no
`__main__` guard, and a worker that is killed costs the one point that it was at.
"""

from __future__ import annotations

import contextlib
import json
import os
import queue
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

import tilesim
from tilesim.sweeps.events import Done, Event, Job, Notice
from tilesim.sweeps.work import LOST, Row, ended

TRIES = 2
"""How often a point is run before it counts as one that kills its workers."""


class WorkerDiedError(Exception):
    """A worker ended in the middle of a point."""


class Worker:
    """A process that runs one point at a time."""

    def __init__(self) -> None:
        root = str(Path(tilesim.__file__).parents[1])
        path = os.pathsep.join([root, *filter(None, [os.environ.get("PYTHONPATH")])])
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", "tilesim.sweeps.worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            encoding="utf-8",
            env={**os.environ, "PYTHONPATH": path},
        )

    def ask(self, task: dict[str, object]) -> Row:
        """The outcome of a task.

        Raises:
            WorkerDiedError: the process is gone; how it ended is the text.
        """
        assert self._process.stdin is not None  # noqa: S101 - both are pipes
        assert self._process.stdout is not None  # noqa: S101
        line = ""
        try:
            self._process.stdin.write(json.dumps(task) + "\n")
            self._process.stdin.flush()
            line = self._process.stdout.readline()
        except (BrokenPipeError, ValueError):
            pass  # it is gone, or was stopped
        if not line.endswith("\n"):
            raise WorkerDiedError(_ending(self._process.wait()))
        row: Row = json.loads(line)
        return row

    def kill(self) -> None:
        """End it at once."""
        self._process.kill()

    def close(self) -> None:
        """End it and give back what it holds."""
        self._process.kill()
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                with contextlib.suppress(BrokenPipeError):  # a task that it never read
                    stream.close()


def _ending(status: int) -> str:
    return f"signal {signal.Signals(-status).name}" if status < 0 else f"exit status {status}"


class Pool:
    """So many workers, each served by a thread."""

    def __init__(self, jobs: Sequence[Job], count: int) -> None:
        self._todo: queue.SimpleQueue[Job] = queue.SimpleQueue()
        for job in jobs:
            self._todo.put(job)
        self._events: queue.SimpleQueue[Event | BaseException] = queue.SimpleQueue()
        self._left = len(jobs)
        self._stopped = threading.Event()
        self._workers: set[Worker] = set()
        self._threads = [threading.Thread(target=self._serve, daemon=True) for _ in range(count)]

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stopped.set()
        for worker in list(self._workers):
            worker.kill()
        for thread in self._threads:
            thread.join()

    def events(self) -> Iterator[Event]:
        """What happens, until all points are done."""
        while self._left:
            event = self._events.get()
            if isinstance(event, BaseException):
                raise event
            self._left -= isinstance(event, Done)
            yield event

    def _serve(self) -> None:
        server = _Server(self._workers)
        try:
            while not self._stopped.is_set():
                for event in server.run(self._todo.get_nowait(), self._stopped):
                    self._events.put(event)
        except queue.Empty:
            pass
        except BaseException as error:
            self._events.put(error)
        finally:
            server.close()


class _Server:
    """One worker after another, in one thread."""

    def __init__(self, alive: set[Worker]) -> None:
        self._alive = alive
        self._worker: Worker | None = None

    def run(self, job: Job, stopped: threading.Event) -> Iterator[Event]:
        """The events of one point."""
        task = job.task()
        if isinstance(task, Done):
            yield task
            return
        for turn in range(1, TRIES + 1):
            worker = self._ready()
            if stopped.is_set():  # looked at after the worker is known to those who stop
                return
            try:
                yield Done(job.number, worker.ask(task))
                return
            except WorkerDiedError as error:
                self.close()
                if stopped.is_set():
                    return
                if turn < TRIES:
                    yield Notice(f"a worker died in point {job.number} ({error}): it is run again by another")
                else:
                    text = f"its workers died, {TRIES} times, the last with {error}"
                    yield Done(job.number, ended(LOST, text) | {"seconds": 0.0})

    def close(self) -> None:
        """End the worker."""
        if self._worker is not None:
            self._alive.discard(self._worker)
            self._worker.close()
            self._worker = None

    def _ready(self) -> Worker:
        if self._worker is None:
            self._worker = Worker()
            self._alive.add(self._worker)
        return self._worker


def run_local(jobs: Sequence[Job], count: int) -> Iterator[Event]:
    """Run points on so many workers of this computer."""
    with Pool(jobs, min(count, len(jobs))) as pool:
        yield from pool.events()
