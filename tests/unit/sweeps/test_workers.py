"""Points on worker processes: the same table, and nothing lost when one dies."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

import tilesim as ts
from reports.sweeps.table import SweepTable
from tilesim.sweeps import local
from tilesim.sweeps.call import SweptCall
from tilesim.sweeps.events import Job, Notice
from tilesim.workers.pool import Done

ROOT = Path(__file__).resolve().parents[3]
GEMM: dict[str, Any] = {"target": "mt7004", "shape": "m=64,n=64,k=64"}
DDR = "link.ddr.gigabytes_per_second"


def without_seconds(table: SweepTable) -> list[Mapping[str, Any]]:
    """The rows, but for what depends on this computer."""
    return [{name: value for name, value in row.items() if name != "seconds"} for row in table.rows]


def test_workers_give_the_same_table() -> None:
    """Processes of their own, in any order."""
    vary: dict[str, Any] = {"cores": [1, 2, 5], DDR: [10, 20]}
    done: list[int] = []
    here = ts.sweep("gemm", **GEMM, vary=vary)
    there = ts.sweep("gemm", **GEMM, vary=vary, workers=2, on_row=lambda count, *_: done.append(count))
    assert without_seconds(there) == without_seconds(here)
    assert done == list(range(1, 7))


def children() -> list[int]:
    """The processes that this one started."""
    lists = Path(f"/proc/{os.getpid()}/task").glob("*/children")
    return [int(word) for file in lists for word in file.read_text(encoding="utf-8").split()]


def task() -> dict[str, Any]:
    """A small point."""
    return SweptCall("gemm", "mt7004", "m=8,n=8,k=8", cores=1).task({})


def test_a_worker_that_is_killed_loses_no_point() -> None:
    """Its point is run again by another, and that is told."""

    def kill_then_make() -> dict[str, Any]:
        for process in set(children()) - before:
            os.kill(process, signal.SIGKILL)
        return task()

    before = set(children())
    events = list(local.run_local([Job(0, task), Job(1, kill_then_make), Job(2, task)], 1))
    done = [event for event in events if isinstance(event, Done)]
    assert [(event.number, event.result["status"]) for event in done] == [(0, "ok"), (1, "ok"), (2, "ok")]
    assert [event.text for event in events if isinstance(event, Notice)] == [
        "a worker died in point 1 (signal SIGKILL): it is run again by another"
    ]
    assert set(children()) == before


def test_a_point_that_kills_its_workers_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    """After two of them it is given up; the sweep ends."""
    monkeypatch.setattr(sys, "executable", "/bin/false")
    told: list[str] = []
    table = ts.sweep("gemm", **GEMM, vary={"cores": [1, 2]}, workers=2, on_notice=told.append)
    assert [row["status"] for row in table.rows] == ["lost", "lost"]
    assert "exit status 1" in table.rows[0]["error"]
    assert len(told) == 2


def test_a_sweep_that_is_interrupted_ends_its_workers(tmp_path: Path) -> None:
    """What was done is in the file; no process is left."""

    def interrupt(done: int, *_: object) -> None:
        if done == 2:
            raise KeyboardInterrupt

    before = set(children())
    path = tmp_path / "a.parquet"
    vary: dict[str, Any] = {"cores": [1, 2, 3, 4], "dtype": ["fp16", "fp32"]}
    with pytest.raises(KeyboardInterrupt):
        ts.sweep("gemm", **GEMM, vary=vary, workers=2, out=path, on_row=interrupt)
    assert set(children()) == before
    assert len(SweepTable.read(path)) == 2
    assert list(tmp_path.iterdir()) == [path]


SWEEP = """
from tilesim.workers.process import Worker

Worker().ask(exec, "import sys, time; sys.stderr.write('at it\\\\n'); time.sleep(300)")
"""


def test_a_worker_does_not_outlive_a_sweep_that_is_killed(tmp_path: Path) -> None:
    """It ends within seconds, in the middle of a point that takes minutes, and says nothing."""
    (tmp_path / "sweep.py").write_text(SWEEP, encoding="utf-8")
    paths = {**os.environ, "PYTHONPATH": str(ROOT)}
    with subprocess.Popen(
        [sys.executable, "sweep.py"], cwd=tmp_path, env=paths, stderr=subprocess.PIPE, text=True
    ) as sweep:
        assert sweep.stderr is not None
        assert sweep.stderr.readline() == "at it\n"
        sweep.kill()
        assert sweep.stderr.read() == ""  # the stream ends when the last process that has it does: the worker
