"""`tilesim calibrate`: a target out of measurements, and what happens to files that are there."""

from __future__ import annotations

import json
from datetime import date
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import tilesim.cli.calibrate
from targets.errors import TilesimError
from targets.loader import load_target
from tilesim.calibration.compiler import compiler, output
from tilesim.calibration.measure import NAMES, Computer, parsed
from tilesim.calibration.target_file import LEAST_PART, target_text

if TYPE_CHECKING:
    from tests.cli.conftest import Cli

COMPUTER = Computer(4, 2000.0, 1 << 20, 4096, 1 << 33, 0.5)
NS = {
    "multiply_add": 30.0,
    "add": 10.0,
    "move": 1.0,
    "scatter": 3.0,
    "tap": 4.0,
    "page": 500.0,
    "line": 8.0,
    "byte": 0.1,
    "byte_together": 0.04,
    "fork": 50_000.0,
    "join": 60_000.0,
    "reap": 2_000.0,
    "crowded": 1.25,
}


@pytest.fixture
def measured(monkeypatch: pytest.MonkeyPatch) -> dict[str, float]:
    """Put numbers in the place of a measurement; a test may change them."""
    ns = dict(NS)
    monkeypatch.setattr(tilesim.cli.calibrate, "this_computer", lambda: COMPUTER)
    monkeypatch.setattr(tilesim.cli.calibrate, "measured", lambda *_: ns)
    return ns


def test_the_file_is_a_target_with_the_numbers(cli: Cli, measured: dict[str, float], tmp_path: Path) -> None:
    """Nanoseconds become cycles of the computer's clock; what was not measured is nx_host's."""
    out = tmp_path / "here.toml"
    assert "here.toml" in cli("calibrate", "nx_host", "--out", str(out)).stdout
    target, base = load_target(out), load_target("nx_host")
    assert (target.name, target.groups, target.clock_mhz) == ("here", 4, 2000)
    assert target.memory["cache"].size_bytes == 1 << 20
    assert target.memory["ddr"].size_bytes == 1 << 33
    assert (target.link["ddr"].gigabytes_per_second, target.port["load"].gigabytes_per_second) == (25, 10)
    spec = target.host_core
    assert (spec.multiply_cycles, spec.add_cycles, spec.move_cycles, spec.tap_cycles) == (40, 20, 2, 6)
    assert spec.scatter_cycles == 6
    assert (spec.line_cycles, spec.page_cycles, spec.fork_cycles, spec.crowded_factor) == (
        16,
        1000,
        100_000,
        1.25,
    )
    assert (target.sync.barrier_latency_cycles, target.sync.barrier_cycles_per_core) == (120_000, 4_000)
    assert target.issue == base.issue
    marks = {mark.mark for key, mark in target.provenance.items() if key.startswith("host.")}
    assert marks == {"derived"}
    assert "load 0.5 on 4 cores" in target.provenance["host.add_cycles"].source


def test_a_file_that_is_there_stays_unless_forced(
    cli: Cli, measured: dict[str, float], tmp_path: Path
) -> None:
    """Refused with one line; --force replaces it; nothing else is left in the directory."""
    out = tmp_path / "here.toml"
    out.write_text("mine", encoding="utf-8")
    assert "the file is there already" in cli.refuse("calibrate", "nx_host", "--out", str(out))
    assert out.read_text(encoding="utf-8") == "mine"
    record = json.loads(cli("calibrate", "nx_host", "--out", str(out), "--force", "--json").stdout)
    assert record == {"file": str(out), "load": 0.5, "nanoseconds": NS}
    assert load_target(out).name == "here"
    assert list(tmp_path.iterdir()) == [out]


def test_places_and_targets_that_cannot_be(cli: Cli, measured: dict[str, float], tmp_path: Path) -> None:
    """A directory, another ending, a directory that is not there, a chip that is no host."""
    (tmp_path / "dir.toml").mkdir()
    for place, told in (
        ("dir.toml", "there already"),
        ("a.txt", "ends in .toml"),
        ("no/a.toml", "no such directory"),
    ):
        assert told in cli.refuse("calibrate", "nx_host", "--out", str(tmp_path / place))
        assert told in cli.refuse("calibrate", "nx_host", "--force", "--out", str(tmp_path / place))
    assert "only a host" in cli.refuse("calibrate", "mt7004", "--out", str(tmp_path / "a.toml"))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["dir.toml"]


def test_noise_makes_no_number_that_a_target_refuses(tmp_path: Path) -> None:
    """An add as slow as a multiply-add, and workers that are faster together."""
    noisy = {**NS, "add": 31.0, "crowded": 0.9}
    unknown = Computer(1, None, None, 4096, 1 << 33, 7.0)
    path = tmp_path / "noisy.toml"
    path.write_text(
        target_text(load_target("nx_host"), "noisy", unknown, noisy, date(2026, 1, 2)), encoding="utf-8"
    )
    target, base = load_target(path), load_target("nx_host")
    assert target.clock_mhz == base.clock_mhz
    assert target.memory["cache"] == base.memory["cache"]
    assert target.host_core.crowded_factor == 1
    assert target.host_core.multiply_cycles == pytest.approx(LEAST_PART * 30 * 2.6)
    assert "2026-01-02" in target.provenance["groups"].source


def test_what_the_program_says_is_checked() -> None:
    """A line that is missing, a number that is none, or 0."""
    text = "".join(f"{name} {value}\n" for name, value in NS.items())
    assert parsed(text) == NS
    assert set(NS) == set(NAMES)
    for broken in (text.replace("fork 50000.0\n", ""), text.replace("fork 50000.0", "fork 0"), ""):
        with pytest.raises(TilesimError, match=r"without a result: where probe, got .*fork"):
            parsed(broken)


def test_no_compiler_and_a_program_that_fails_are_told(monkeypatch: pytest.MonkeyPatch) -> None:
    """With what to do, and with the program's last line."""
    monkeypatch.setenv("CC", "no-such-compiler")
    with pytest.raises(TilesimError, match=r"no C compiler: where PATH, got no-such-compiler; install gcc"):
        compiler()
    with pytest.raises(TilesimError, match="a program failed: where sh, got 3: broken"):
        output(["/bin/sh", "-c", "echo broken >&2; exit 3"])
