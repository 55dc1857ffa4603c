"""Work on processes: what comes back, and what a failure costs."""

from __future__ import annotations

import os
import pickle
import signal
import subprocess
import sys
import time
from math import factorial, isqrt
from operator import neg

import pytest

from kernels.errors import ShapeError
from kernels.shape.text import parse_shape
from tilesim.workers.pool import Done, Lost, Piece, Pool, Ready
from tilesim.workers.process import Worker, WorkerDiedError, WorkError


def test_each_piece_comes_back_with_its_number() -> None:
    """Those that are ready need no worker; the others' arguments are made when it is their turn."""
    pieces = [Piece(number, lambda number=number: number) for number in range(4)]  # type: ignore[misc]
    with Pool(neg, [*pieces, Piece(4, lambda: Ready("there"))], 2) as pool:
        found = {event.number: event.result for event in pool.events() if isinstance(event, Done)}
    assert found == {0: 0, 1: -1, 2: -2, 3: -3, 4: "there"}


def test_what_the_work_raises_is_raised_here() -> None:
    """A refusal as it is, anything else with the worker's traceback as a note; the worker serves on."""
    worker = Worker()
    try:
        with pytest.raises(WorkError, match=r"^ValueError: ") as caught:
            worker.ask(isqrt, -1)
        assert "Traceback" in caught.value.__notes__[0]
        with pytest.raises(ShapeError, match="a shape must be text") as refused:
            worker.ask(parse_shape, 1)
        assert refused.value.argument == "shape"
        assert worker.ask(factorial, 5) == 120
    finally:
        worker.close()
    with Pool(isqrt, [Piece(0, lambda: -1)], 1) as pool, pytest.raises(WorkError):
        list(pool.events())


def test_a_worker_that_died_is_told_by_its_signal() -> None:
    """A piece that kills two workers is lost, and the others are done."""
    worker = Worker()
    try:
        with pytest.raises(WorkerDiedError, match="signal SIGKILL"):
            worker.ask(exec, f"import os; os.kill(os.getpid(), {int(signal.SIGKILL)})")
    finally:
        worker.close()
    with Pool(os._exit, [Piece(0, lambda: 3), Piece(1, lambda: Ready(1))], 1) as pool:
        events = [event for event in pool.events() if isinstance(event, Done | Lost)]
    assert events == [Lost(0, "exit status 3"), Done(1, 1)]


def test_a_worker_whose_parent_is_gone_says_nothing() -> None:
    """Its answer has no reader any more: it ends without a traceback."""
    program = [sys.executable, "-m", "tilesim.workers.program"]
    pipe = subprocess.PIPE
    with subprocess.Popen(program, stdin=pipe, stdout=pipe, stderr=pipe) as worker:
        assert worker.stdin is not None
        assert worker.stdout is not None
        assert worker.stderr is not None
        worker.stdout.close()
        worker.stdin.write(pickle.dumps((time.sleep, 0.01)))
        worker.stdin.close()
        assert worker.stderr.read() == b""
        assert worker.wait() == 1
