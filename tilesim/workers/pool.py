"""Pieces of work on worker processes, and what happens to each."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from types import TracebackType
from typing import Any, Self

from tilesim.workers.process import Worker, WorkerDiedError

TRIES = 2
"""How often a piece is tried before it counts as one that kills its workers."""


@dataclass(frozen=True)
class Ready:
    """A result for which no worker is needed."""

    result: Any


@dataclass(frozen=True)
class Piece:
    """A piece of work.

    Attributes:
        number: its own.
        make: gives the argument of the pool's function, when a worker is free, or a `Ready` result.
    """

    number: int
    make: Callable[[], object]


@dataclass(frozen=True)
class Done:
    """A piece is done: what the function gave."""

    number: int
    result: Any


@dataclass(frozen=True)
class Again:
    """The worker of a piece died, for this reason: another one tries it."""

    number: int
    reason: str


@dataclass(frozen=True)
class Lost:
    """All workers that tried a piece died, the last for this reason; nobody tries it again."""

    number: int
    reason: str


Event = Done | Again | Lost


class Pool:
    """So many workers, each served by a thread; use it in a `with` block, whose end ends them."""

    def __init__(self, function: Callable[[Any], object], pieces: Sequence[Piece], count: int) -> None:
        self._function = function
        self._todo: queue.SimpleQueue[Piece] = queue.SimpleQueue()
        for piece in pieces:
            self._todo.put(piece)
        self._events: queue.SimpleQueue[Event | BaseException] = queue.SimpleQueue()
        self._left = len(pieces)
        self._stopped = threading.Event()
        self._workers: set[Worker] = set()
        count = min(count, len(pieces))
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
        """What happens, until all pieces are done or lost; the pieces begin in their order.

        Raises:
            TilesimError: the function refused an argument.
            WorkError: it raised anything else.
        """
        while self._left:
            event = self._events.get()
            if isinstance(event, BaseException):
                raise event
            self._left -= not isinstance(event, Again)
            yield event

    def _serve(self) -> None:
        server = _Server(self._function, self._workers)
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

    def __init__(self, function: Callable[[Any], object], alive: set[Worker]) -> None:
        self._function, self._alive = function, alive
        self._worker: Worker | None = None

    def run(self, piece: Piece, stopped: threading.Event) -> Iterator[Event]:
        """The events of one piece."""
        argument = piece.make()
        if isinstance(argument, Ready):
            yield Done(piece.number, argument.result)
            return
        for turn in range(1, TRIES + 1):
            worker = self._ready()
            if stopped.is_set():  # looked at after the worker is known to those who stop
                return
            try:
                yield Done(piece.number, worker.ask(self._function, argument))
                return
            except WorkerDiedError as error:
                self.close()
                if stopped.is_set():
                    return
                yield (Again if turn < TRIES else Lost)(piece.number, str(error))

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
