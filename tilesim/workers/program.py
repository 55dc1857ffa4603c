"""A worker: reads calls on stdin (a function and its argument, pickled), and writes an answer to each."""

from __future__ import annotations

import os
import pickle
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterator
from typing import Any, BinaryIO

from targets.errors import TilesimError

LOOK_SECONDS = 1.0
"""How often a worker looks whether its parent is still there: a long piece of work must not outlive it by much."""


def main() -> None:
    """Serve until the process that started this one closes the pipe, or is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's to handle
    threading.Thread(target=_end_with, args=(os.getppid(),), daemon=True).start()
    try:
        _serve()
    except BrokenPipeError:
        os._exit(1)  # the parent is gone: nobody is left to be told, and streams cannot be closed in order


def _serve() -> None:
    # Answers go to a stream of their own: what anybody prints must not be taken for one.
    with os.fdopen(os.dup(1), "wb") as answers:
        os.dup2(2, 1)
        for function, argument in _calls(sys.stdin.buffer):
            answers.write(_answer(function, argument))
            answers.flush()


def _calls(stream: BinaryIO) -> Iterator[tuple[Callable[[Any], object], object]]:
    """Functions with their arguments, until the stream ends."""
    while True:
        try:
            yield pickle.load(stream)  # noqa: S301 - the parent wrote it, into a pipe
        except EOFError:
            return


def _answer(function: Callable[[Any], object], argument: object) -> bytes:
    """Whether it went well, and the result, the refusal or the traceback, pickled."""
    try:
        return pickle.dumps((True, function(argument)))
    except TilesimError as error:
        return pickle.dumps((False, error))
    except Exception:  # the parent raises it
        return pickle.dumps((False, traceback.format_exc()))


def _end_with(parent: int) -> None:
    """End this process when the one with that number is no longer its parent: it was killed."""
    while os.getppid() == parent:
        time.sleep(LOOK_SECONDS)
    os._exit(1)


if __name__ == "__main__":
    main()
