"""A worker: reads tasks as lines of JSON on stdin, and writes an outcome a line on stdout, until stdin ends."""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time

from tilesim.sweeps.work import outcome

LOOK_SECONDS = 1.0
"""How often a worker looks whether the sweep is still there: a long point must not outlive it by much."""


def main() -> None:
    """Serve until the sweep that started this process closes the pipe, or is gone."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the sweep's to handle
    threading.Thread(target=_end_with, args=(os.getppid(),), daemon=True).start()
    # Answers go to a stream of their own: what anybody prints must not be taken for one.
    with os.fdopen(os.dup(1), "w", encoding="utf-8") as answers:
        os.dup2(2, 1)
        for line in sys.stdin:
            answers.write(json.dumps(outcome(json.loads(line)), allow_nan=False) + "\n")
            answers.flush()


def _end_with(sweep: int) -> None:
    """End this process when the one with that number is no longer its parent: it was killed."""
    while os.getppid() == sweep:
        time.sleep(LOOK_SECONDS)
    os._exit(1)


if __name__ == "__main__":
    main()
