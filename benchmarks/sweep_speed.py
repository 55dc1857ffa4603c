"""How much faster a sweep is on two workers than on one: at least 1.7 times, with points of at least 0.2 s.

Both are worker processes, so that what a worker costs to start and to talk to is in both. Run on a machine with two
idle processors or more:

    python -m benchmarks.sweep_speed [--points 60]
"""

from __future__ import annotations

import argparse
import os
import time
from functools import partial

from tilesim.sweeps.call import SweptCall
from tilesim.sweeps.events import Job
from tilesim.sweeps.local import run_local
from tilesim.sweeps.points import points_of
from tilesim.workers.pool import Done

WANTED = 1.7
LEAST_SECONDS = 0.2
CALL = SweptCall(
    "conv_backward", "mt7004", "n=32,cin=64,h=56,w=56,cout=64,kh=3,kw=3,pad=1", grads=("dx", "dw")
)


def jobs(count: int) -> list[Job]:
    """So many points, all different."""
    points = points_of({"memory.am.size_bytes": tuple(786432 + 4096 * i for i in range(count))})
    return [Job(number, partial(CALL.task, dict(point.values))) for number, point in enumerate(points)]


def measure(count: int, workers: int) -> tuple[float, float]:
    """Seconds of a sweep, and the mean of its points."""
    begin = time.perf_counter()
    rows = [event.result for event in run_local(jobs(count), workers) if isinstance(event, Done)]
    assert all(row["status"] == "ok" for row in rows)
    return time.perf_counter() - begin, sum(row["seconds"] for row in rows) / count


def main() -> int:
    """Time both and print them; the exit status is 1 where the speed-up is too small."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--points", type=int, default=60)
    count = parser.parse_args().points
    (one, point), (two, contended) = measure(count, 1), measure(count, 2)
    print(
        f"{count} points of {point:.2f} s on {len(os.sched_getaffinity(0))} processors: 1 worker {one:.1f} s,",
        end=" ",
    )
    print(
        f"2 workers {two:.1f} s ({contended:.2f} s a point): {one / two:.2f} times as fast (at least {WANTED} wanted)"
    )
    if point < LEAST_SECONDS:
        print(f"the points are shorter than {LEAST_SECONDS} s: the figure says little")
    return int(one / two < WANTED or point < LEAST_SECONDS)


if __name__ == "__main__":
    raise SystemExit(main())
