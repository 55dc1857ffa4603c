"""A sweep whose whole process group is killed goes on: the same table as one that nobody disturbed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

import tilesim as ts
from reports.sweeps.table import SweepTable

ROOT = Path(__file__).resolve().parents[2]
LAYER = "n=1,cin=32,h=14,w=14,cout=32,kh=3,kw=3,pad=1"
SMALL = ("cores=1:4:4", "link.ddr.gigabytes_per_second=12.8:102.4:2", "dtype=fp16,fp32")
LARGE = (
    "cores=1:4:4",
    "link.ddr.gigabytes_per_second=12.8:102.4:5",
    "memory.am.size_bytes=393216:1966080:5",
    "dtype=fp16,fp32",
)


def command(path: Path, vary: tuple[str, ...]) -> list[str]:
    """The sweep with two workers."""
    call = [
        "sweep",
        "conv_backward",
        "--target",
        "mt7004",
        "--shape",
        LAYER,
        "--grads",
        "dx",
        "--workers",
        "2",
    ]
    fields = [word for text in vary for word in ("--vary", text)]
    return [sys.executable, "-m", "tilesim", *call, *fields, "--out", str(path)]


def run(path: Path, vary: tuple[str, ...]) -> None:
    """Run it to its end, in this process."""
    fields = dict(text.split("=", 1) for text in vary)
    ts.sweep("conv_backward", target="mt7004", shape=LAYER, grads=("dx",), vary=fields, out=path)


def journalled(path: Path) -> list[dict[str, Any]]:
    """The whole lines of the journal, behind its head."""
    journal = path.with_name(path.name + ".journal")
    text = journal.read_text(encoding="utf-8") if journal.exists() else ""
    return [json.loads(line) for line in text.split("\n")[1:-1]]


def run_and_kill(path: Path, vary: tuple[str, ...], after: int) -> list[dict[str, Any]]:
    """Run it until it has so many rows more, kill its process group, and return what is stored."""
    before = len(journalled(path))
    process = subprocess.Popen(
        command(path, vary), cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True
    )
    with process:
        until = time.monotonic() + 100
        while len(journalled(path)) < before + after and time.monotonic() < until:
            time.sleep(0.01)
        os.killpg(process.pid, signal.SIGKILL)
    assert process.returncode == -signal.SIGKILL
    return journalled(path)


def without_seconds(path: Path) -> list[dict[str, Any]]:
    """The rows, but for what depends on this computer."""
    return [{n: v for n, v in row.items() if n != "seconds"} for row in SweepTable.read(path).rows]


def check(folder: Path, vary: tuple[str, ...], points: int, kills: tuple[int, ...]) -> None:
    """Kill a sweep again and again, let it end, and compare it with one that ran through."""
    path, whole = folder / "killed.parquet", folder / "whole.parquet"
    kept: list[dict[str, Any]] = []
    for count in kills:
        now = run_and_kill(path, vary, count)
        assert now[: len(kept)] == kept
        assert len(kept) + count <= len(now) < points
        kept = now
    run(path, vary)
    run(whole, vary)
    assert without_seconds(path) == without_seconds(whole)
    table = SweepTable.read(path)
    assert len(table) == len({row["key"] for row in table.rows}) == points
    # A point that was run twice would have taken other seconds.
    seconds = {row["key"]: row["seconds"] for row in table.rows}
    assert all(seconds[row["key"]] == row["seconds"] for row in kept)
    assert sorted(folder.iterdir()) == [path, whole]


def test_a_killed_sweep_goes_on(tmp_path: Path) -> None:
    """16 points, killed after three."""
    check(tmp_path, SMALL, 16, (3,))


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_killed_sweep_of_200_points_goes_on(tmp_path: Path) -> None:
    """Cores x DDR x AM x type of one layer of MT7004, killed three times."""
    check(tmp_path, LARGE, 200, (100, 1, 30))
