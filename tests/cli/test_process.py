"""The command as a process of its own: exit statuses, clean streams, no traceback."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from reports.sweeps.table import SweepTable

ROOT = Path(__file__).resolve().parents[2]
LAYER = ["--shape", "n=1,cin=16,h=8,w=8,cout=16,kh=3,kw=3,stride=1,pad=1", "--dtype", "fp16", "--grads", "dx"]
RUN = ["run", "conv_backward", "--target", "mt7004", *LAYER, "--cores", "2"]


def tilesim(*arguments: str) -> subprocess.CompletedProcess[str]:
    """Run `python -m tilesim` of this checkout."""
    return subprocess.run(
        [sys.executable, "-m", "tilesim", *arguments], cwd=ROOT, capture_output=True, text=True, check=False
    )


def test_targets_prints_one_object() -> None:
    """What a script reads from stdout is JSON and nothing else."""
    done = tilesim("targets", "mt7004", "--json")
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout)["name"] == "mt7004"


@pytest.mark.parametrize(
    "arguments", [[], ["rum"], ["targets", "mt704"], [*RUN, "--set", "memory.am=1"], [*RUN, "--grads", "dy"]]
)
def test_a_refusal_is_one_line_and_status_2(arguments: list[str]) -> None:
    """No box, no traceback, nothing on stdout."""
    done = tilesim(*arguments)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert done.stderr.startswith("tilesim: ")


def test_a_run_computes_checks_and_reports(tmp_path: Path) -> None:
    """The real operator: the record on stdout, the same record and a report in the directory."""
    out = tmp_path / "run"
    done = tilesim(*RUN, "--json", "--out", str(out), "--report")
    assert (done.returncode, done.stderr) == (0, "")
    record = json.loads(done.stdout)
    assert record["cycles"] > 0
    assert record["max_error"]["dx"] <= record["tolerance"]["dx"]
    assert (out / "run.json").is_file()
    assert (out / "report.md").is_file()


def test_two_processes_print_the_same() -> None:
    """The same call gives the same numbers."""
    first, second = tilesim(*RUN, "--json"), tilesim(*RUN, "--json")
    assert first.returncode == 0
    assert first.stdout == second.stdout


def test_all_gradients_are_computed_and_checked() -> None:
    """Three gradients in one run, each with its error; a field of dw's tiling by its prefix."""
    call = [*RUN[:-4], *RUN[-2:], "--grads", "dx,dw,db", "--tile", "dw.k=8", "--json"]
    done = tilesim(*call)
    assert (done.returncode, done.stderr) == (0, "")
    record = json.loads(done.stdout)
    assert list(record["max_error"]) == ["dx", "dw", "db"]
    assert all(record["max_error"][name] <= record["tolerance"][name] for name in ("dx", "dw", "db"))
    assert record["tiling"]["dw.k"] == 8
    assert record["useful_macs"] == 2 * 8 * 8 * 16 * 16 * 9
    assert tilesim(*RUN, "--tile", "dw.k=8").returncode == 2


SLOW_KERNEL = """
import sys, time
from kernels.registry import Call, operator

@operator(shape=str)
def slow(call: Call):
    with open("begun", "w"):
        time.sleep(300)
"""

LAYERS = "layer,N,Cin,H,W,Cout,Kh,Kw\na,1,16,9,9,16,3,3\nb,1,16,8,8,16,3,3\nc,1,16,7,7,16,3,3\n"


def interrupted(
    folder: Path, begun: Callable[[subprocess.Popen[str]], bool], *arguments: str
) -> tuple[int, str, str]:
    """Status, stdout and stderr of a command to whose whole process group Ctrl-C comes when it has begun."""
    heard = signal.signal(
        signal.SIGINT, signal.SIG_DFL
    )  # a shell's background jobs, and what they start, ignore it
    try:
        process = subprocess.Popen(
            [sys.executable, "-m", "tilesim", *arguments],
            cwd=folder,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            process_group=0,
        )
    finally:
        signal.signal(signal.SIGINT, heard)
    with process:
        while process.poll() is None and not begun(process):
            time.sleep(0.01)
        os.killpg(process.pid, signal.SIGINT)
        stdout, stderr = process.communicate()
    return process.returncode, stdout, stderr


def workers(process: subprocess.Popen[str]) -> int:
    """How many processes this one has started."""
    lists = Path(f"/proc/{process.pid}/task").glob("*/children")
    return sum(len(file.read_text(encoding="utf-8").split()) for file in lists)


def test_an_interrupted_run_says_so_in_one_line(tmp_path: Path) -> None:
    """Nothing is written."""
    (tmp_path / "slow.py").write_text(SLOW_KERNEL, encoding="utf-8")
    call = ["run", "slow.py:slow", "--target", "mt7004", "--shape", "x", "--timing-only", "--out", "out"]
    done = interrupted(tmp_path, lambda _: (tmp_path / "begun").exists(), *call)
    assert done == (130, "", "tilesim: interrupted\n")
    assert not (tmp_path / "out").exists()


def test_an_interrupted_network_says_so_in_one_line(tmp_path: Path) -> None:
    """Its processes end without a word, even while they start, and nothing is written."""
    (tmp_path / "layers.csv").write_text(LAYERS, encoding="utf-8")
    call = ["network", "layers.csv", "--target", "mt7004", "--jobs", "2", "--out", "out"]
    done = interrupted(tmp_path, lambda process: workers(process) == 2, *call)
    assert done == (130, "", "tilesim: interrupted\n")
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("count", ["1", "2"])
def test_an_interrupted_sweep_keeps_what_was_done(tmp_path: Path, count: str) -> None:
    """The line says that it goes on from its file, which is whole; no journal is left."""
    out = tmp_path / "a.parquet"
    call = ["sweep", "gemm", "--target", "mt7004", "--shape", "m=64,n=64,k=64", "--out", out.name]
    vary = ["--vary", "link.ddr.gigabytes_per_second=10:90:2000", "--workers", count]
    journal = tmp_path / "a.parquet.journal"
    begun = lambda _: journal.exists() and journal.read_bytes().count(b"\n") > 2  # noqa: E731
    line = (
        "tilesim: interrupted; a.parquet has the points that were done: the same command goes on from there\n"
    )
    assert interrupted(tmp_path, begun, *call, *vary) == (130, "", line)
    assert [path.name for path in tmp_path.iterdir()] == [out.name]
    assert 2 <= len(SweepTable.read(out)) < 2000
