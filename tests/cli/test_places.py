"""Empty paths, and a stdout that cannot be written to."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.cli.conftest import Cli

SHAPE = "n=1,cin=4,h=6,w=6,cout=4,kh=3,kw=3,pad=1"
CALL = ("conv_backward", "--target", "mt7004", "--shape", SHAPE)


@pytest.mark.parametrize(
    "words",
    [
        ("run", *CALL),
        ("sweep", *CALL, "--vary", "cores=1,2"),
        ("compare", "conv_backward", "--targets", "mt7004", "--shape", SHAPE),
        ("network", "net.csv", "--target", "mt7004"),
        ("sweep-report", "sweep.parquet"),
        ("validate",),
        ("calibrate",),
    ],
    ids=lambda words: words[0],
)
@pytest.mark.parametrize("empty", [("--out", ""), ("--out=",)])
def test_an_empty_path_is_refused(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], empty: tuple[str, ...]
) -> None:
    """Everywhere, before anything is run or written into the current directory."""
    monkeypatch.chdir(tmp_path)
    line = cli.refuse(*words, *empty)
    assert "an empty path" in line
    assert "--out" in line
    assert not list(tmp_path.iterdir())


def test_the_current_directory_is_a_path(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where it is asked for by its name."""
    monkeypatch.chdir(tmp_path)
    assert cli("run", *CALL, "--timing-only", "--out", ".").exit_code == 0
    assert (tmp_path / "run.json").is_file()


def test_an_empty_sweep_report_is_refused(cli: Cli) -> None:
    """The other option of a directory."""
    assert "--report" in cli.refuse("sweep", *CALL, "--vary", "cores=1,2", "--report", "")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="the device of a full disk is Linux's")
@pytest.mark.parametrize("words", [("targets",), ("targets", "--json"), ("--help",)])
@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_a_full_disk_is_no_fault_of_tilesim(words: tuple[str, ...], unbuffered: str) -> None:
    """One line says what cannot be written to, whether the write or the last flush fails."""
    with Path("/dev/full").open("w") as full:
        ended = subprocess.run(
            [sys.executable, "-m", "tilesim", *words],
            stdout=full,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, "PYTHONUNBUFFERED": unbuffered},
            check=False,
        )
    assert ended.returncode == 1
    assert ended.stderr == "tilesim: cannot write to stdout: No space left on device\n"


def test_a_closed_stdout_is_no_fault_of_tilesim() -> None:
    """As a shell closes it: >&-."""
    line = f'"{sys.executable}" -m tilesim targets >&-'
    ended = subprocess.run(["/bin/sh", "-c", line], stderr=subprocess.PIPE, text=True, check=False)
    assert ended.returncode == 1
    assert ended.stderr == "tilesim: cannot write to stdout: it is closed\n"
