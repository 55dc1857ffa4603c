"""A dask cluster of this computer: a scheduler and workers as processes of their own."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from distributed import Client

ROOT = Path(__file__).resolve().parents[2]


@dataclass
class Cluster:
    """Its address and its workers."""

    address: str
    workers: list[subprocess.Popen[bytes]]


def _start(folder: Path, program: str, *arguments: str) -> subprocess.Popen[bytes]:
    with (folder / f"{program}.log").open("ab") as log:
        return subprocess.Popen(
            [sys.executable, "-m", f"distributed.cli.dask_{program}", *arguments, "--no-dashboard"],
            cwd=folder,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            stdout=log,
            stderr=log,
        )


@contextlib.contextmanager
def cluster(folder: Path, workers: int) -> Iterator[Cluster]:
    """A scheduler with so many workers of one thread each, all of them there; their files lie in a folder."""
    file = folder / "scheduler.json"
    started = [
        _start(folder, "scheduler", "--host", "127.0.0.1", "--port", "0", "--scheduler-file", str(file))
    ]
    try:
        address = _address(file)
        started += [
            _start(folder, "worker", address, "--no-nanny", "--nthreads", "1") for _ in range(workers)
        ]
        with Client(address, set_as_default=False) as client:  # type: ignore[no-untyped-call]
            client.wait_for_workers(workers, timeout=60)
        yield Cluster(address, started[1:])
    finally:
        for process in started:
            process.kill()
            process.wait()


def _address(file: Path) -> str:
    until = time.monotonic() + 60
    while time.monotonic() < until:
        with contextlib.suppress(OSError, ValueError):  # not there, or not whole yet
            return str(json.loads(file.read_text(encoding="utf-8"))["address"])
        time.sleep(0.05)
    raise TimeoutError("the scheduler does not start")
