"""`tilesim critical`, with a small run of the simulator."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import tilesim
from kernels.shape.shapes import ConvShape

if TYPE_CHECKING:
    from tests.cli.conftest import Cli

SHAPE = "n=1,cin=16,h=8,w=8,cout=16,kh=3,kw=3,stride=1,pad=1"


@pytest.fixture
def saved(cli: Cli, tmp_path: Path) -> Path:
    """A directory with a run of 2 cores."""
    call = ("run", "conv_backward", "--target", "mt7004", "--shape", SHAPE, "--grads", "dx", "--cores", "2")
    assert cli(*call, "--timing-only", "--out", str(tmp_path / "run")).exit_code == 0
    return tmp_path / "run"


def test_the_path_adds_up_to_the_run(cli: Cli, saved: Path) -> None:
    """In JSON: cycles by engine and reason, and an estimate for each change."""
    record = json.loads(cli("critical", str(saved), "--json").stdout)
    cycles = json.loads((saved / "run.json").read_text())["cycles"]
    assert sum(part["cycles"] for part in record["critical_path"]) == record["cycles"] == cycles
    changes = [each["change"] for each in record["what_if"]]
    assert changes == ["link.ddr", "link.gsm", "clock", "start-up", "launch"]


def test_verify_runs_the_call_again(cli: Cli, saved: Path) -> None:
    """The launch cost 50 % less saves exactly what the run on that chip saves."""
    record = json.loads(cli("critical", str(saved), "--verify", "--by", "50", "--json").stdout)
    launch = next(each for each in record["what_if"] if each["change"] == "launch")
    assert launch["saved"] == pytest.approx(launch["saved_run_again"], abs=1e-9)
    assert launch["saved"] > 0.1


def test_a_person_gets_a_table_and_a_line_a_change(cli: Cli, saved: Path) -> None:
    """The table is by engine and reason; lines say both shares where the call was run again."""
    lines = cli("critical", str(saved), "--verify").stdout.splitlines()
    assert lines[0].startswith("critical path of")
    assert any(line.startswith("ddr 20 % faster would save about") and "run again" in line for line in lines)


def test_a_run_of_unknown_call_cannot_be_verified(cli: Cli, tmp_path: Path) -> None:
    """One that was saved from Python: its path is shown, but not how it was called."""
    shape = ConvShape(n=1, cin=16, size=(8, 8), cout=16, kernel=(3, 3), padding=1)
    run = tilesim.conv_backward(shape=shape, dtype="fp32", grads=("dx",), target="mt7004", numerics=False)
    run.save(tmp_path / "run")
    assert cli("critical", str(tmp_path / "run")).exit_code == 0
    refused = cli("critical", str(tmp_path / "run"), "--verify")
    assert refused.exit_code == 2
    assert "does not say how it was called" in refused.stderr


def test_no_run_is_refused(cli: Cli, tmp_path: Path) -> None:
    """One line and status 2."""
    assert cli("critical", str(tmp_path)).exit_code == 2


@pytest.mark.parametrize(
    "call",
    [
        ("conv2d_backward_fast", "--target", "nx_host"),
        ("conv2d_backprop_input", "--target", "mt7004"),
        ("conv2d_backprop_input", "--target", "mt7004", "--tile", "buffer_size_=8192"),
    ],
)
def test_vendor_calls_run_again(cli: Cli, tmp_path: Path, call: tuple[str, ...]) -> None:
    """With the tiling and the geometry that their records have; a shorter launch saves what it is said to."""
    shape = ("--shape", "n=1,cin=4,h=6,w=6,cout=4,kh=3,kw=3,stride=1,pad=1")
    out = ("--out", str(tmp_path / "run"))
    assert cli("run", *call, *shape, "--timing-only", *out).exit_code == 0
    record = json.loads(cli("critical", str(tmp_path / "run"), "--verify", "--json").stdout)
    launch = next(each for each in record["what_if"] if each["change"] == "launch")
    assert launch["saved"] == pytest.approx(launch["saved_run_again"], abs=1e-3)
