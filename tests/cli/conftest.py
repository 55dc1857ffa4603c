"""A stand-in for the operators: what the command line asks for, and what it makes of the answer."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner, Result

import tilesim.cli.run
from simulator.results.run import FORMAT
from tilesim.cli.main import app

RECORD: dict[str, Any] = {
    "operator": "conv_backward",
    "cycles": 12345,
    "bound": "VPU is busy 86 % of the time",
}


@dataclass
class StandInRun:
    """What the command line uses of a run."""

    record: dict[str, Any]
    max_error: dict[str, float] | None = field(default_factory=lambda: {"dx": 0.001})
    tolerance: dict[str, float] | None = field(default_factory=lambda: {"dx": 0.01})

    def to_dict(self) -> dict[str, Any]:
        """The object of `--json`."""
        return self.record

    def summary(self) -> str:
        """What a person reads."""
        return str(self.record["bound"])

    def save(self, directory: Path) -> None:
        """Write what a report would look for."""
        directory.mkdir(parents=True, exist_ok=True)
        record = {"format": FORMAT, **self.record}
        (directory / "run.json").write_text(json.dumps(record), encoding="utf-8")


@dataclass
class StandIn:
    """Takes the place of `run_operator`: keeps what it was asked for, then answers or fails."""

    asked: dict[str, Any] = field(default_factory=dict)
    run: StandInRun = field(default_factory=lambda: StandInRun(RECORD))
    error: Exception | None = None

    def __call__(self, name: str, **asked: Any) -> StandInRun:
        """Answer one call of the command."""
        self.asked = {"name": name, **asked}
        if self.error is not None:
            raise self.error
        return self.run


@pytest.fixture
def operator(monkeypatch: pytest.MonkeyPatch) -> StandIn:
    """Put a stand-in in the place of `run_operator` for one test."""
    stand_in = StandIn()
    monkeypatch.setattr(tilesim.cli.run, "run_operator", stand_in)
    return stand_in


@pytest.fixture
def cli() -> Cli:
    """The command line in this process."""
    return Cli()


class Cli:
    """Calls of `tilesim` in this process."""

    layer = ("--shape", "n=1,cin=16,h=8,w=8,cout=16,kh=3,kw=3,stride=1,pad=1")

    def __call__(self, *arguments: str) -> Result:
        """Run `tilesim` with these arguments."""
        return CliRunner().invoke(app, list(arguments), prog_name="tilesim")

    def run(self, *arguments: str) -> Result:
        """Run `tilesim run conv_backward` of a small layer on MT7004 with these further arguments."""
        return self("run", "conv_backward", "--target", "mt7004", *self.layer, *arguments)

    def refuse(self, *arguments: str) -> str:
        """Run `tilesim`, see that it refuses with one line and status 2, and return the line."""
        return refusal(self(*arguments))

    def refuse_run(self, *arguments: str) -> str:
        """Run `tilesim run` of the small layer, see that it refuses, and return the line."""
        return refusal(self.run(*arguments))


def refusal(result: Result) -> str:
    """Return the one line of a refusal, having seen that it is one."""
    assert result.exit_code == 2, result.output
    assert result.stdout == ""
    assert result.stderr.startswith("tilesim: ")
    assert result.stderr.count("\n") == 1
    return result.stderr.rstrip("\n")
