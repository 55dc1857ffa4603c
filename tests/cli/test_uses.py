"""docs/uses.md: every command and program of the page runs as it stands, in order, in one folder."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.cli.conftest import Cli

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "uses.md").read_text(encoding="utf-8")
COMMANDS = re.findall(r"^\$ tilesim (.*)$", PAGE, re.MULTILINE)
(PROGRAM,) = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)

CHANGED = 3
"""The status of `diff` where a time changed by more than its threshold."""


def test_the_commands_of_the_page_run(cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each ends with status 0, `diff` with 3 because the link was changed; the page's uses all have one."""
    monkeypatch.chdir(tmp_path)
    ended = {command: cli(*shlex.split(command)) for command in COMMANDS}
    failed = {
        command: result.stderr
        for command, result in ended.items()
        if result.exit_code != (CHANGED if command.startswith("diff") else 0) or not result.stdout
    }
    assert not failed
    used = {command.partition(" ")[0] for command in COMMANDS}
    assert used >= {"run", "compare", "targets", "validate", "report", "critical", "diff"}
    assert (tmp_path / "out" / "layer" / "report.html").exists()


def test_every_command_of_a_block_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """No line of a console block is left out by the test."""
    monkeypatch.chdir(ROOT)
    blocks = re.findall(r"```console\n(.*?)```", PAGE, re.DOTALL)
    lines = [line for block in blocks for line in block.splitlines() if line]
    assert [line.removeprefix("$ tilesim ") for line in lines] == COMMANDS


def test_the_program_of_the_page_runs(tmp_path: Path) -> None:
    """In a process of its own."""
    program = f"import sys; sys.path.insert(0, {str(ROOT)!r})\n{PROGRAM}"
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.stderr == ""
    assert re.match(r"1\.\d\d times as fast\n", done.stdout)
