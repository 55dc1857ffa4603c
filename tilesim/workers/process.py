"""One worker process, and what it is asked.

Workers are programs of their own (`tilesim/workers/program.py`) and not forks, so that a caller needs no `__main__`
guard and its threads do not matter. They are a process group of their own: Ctrl-C reaches the parent only, which
ends them.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from targets.errors import TilesimError


class WorkerDiedError(Exception):
    """A worker ended in the middle of a piece of work; how is the text."""


class WorkError(Exception):
    """The work of a worker raised; the text is the exception's last line, a note has its traceback."""


class Worker:
    """A process that makes one call at a time."""

    def __init__(self) -> None:
        root = str(Path(__file__).parents[2])
        path = os.pathsep.join([root, *filter(None, [os.environ.get("PYTHONPATH")])])
        self._process = subprocess.Popen(
            [sys.executable, "-P", "-m", "tilesim.workers.program"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": path},
            process_group=0,
        )

    def ask(self, function: Callable[[Any], object], argument: object) -> Any:
        """What a function of a module gives for an argument; both, and the result, can be pickled.

        Raises:
            WorkerDiedError: the process is gone.
            TilesimError: the function refused the argument.
            WorkError: it raised anything else.
        """
        call = pickle.dumps((function, argument))
        assert self._process.stdin is not None  # noqa: S101 - both are pipes
        assert self._process.stdout is not None  # noqa: S101
        try:
            self._process.stdin.write(call)
            self._process.stdin.flush()
            well, result = pickle.load(self._process.stdout)  # noqa: S301 - the worker wrote it, into a pipe
        except (BrokenPipeError, EOFError, ValueError, pickle.UnpicklingError):  # it is gone, or was stopped
            raise WorkerDiedError(_ending(self._process.wait())) from None
        if isinstance(result, TilesimError) and not well:
            raise result
        if not well:
            error = WorkError(result.strip().rpartition("\n")[2])
            error.add_note(result)
            raise error
        return result

    def kill(self) -> None:
        """End it at once."""
        self._process.kill()

    def close(self) -> None:
        """End it and give back what it holds."""
        self._process.kill()
        self._process.wait()
        for stream in (self._process.stdin, self._process.stdout):
            if stream is not None:
                with contextlib.suppress(BrokenPipeError):  # a call that it never read
                    stream.close()


def _ending(status: int) -> str:
    return f"signal {signal.Signals(-status).name}" if status < 0 else f"exit status {status}"
