"""The command as a process of its own: exit statuses, clean streams, no traceback."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

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
