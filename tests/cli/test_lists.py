"""`tilesim targets`, `operators`, `report` and the program's own options."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import tilesim
from kernels.operators import OPERATORS, VENDOR_CALLS
from tilesim.cli.targets import facts, unit_of

if TYPE_CHECKING:
    from tests.cli.conftest import Cli


def test_version(cli: Cli) -> None:
    """The version is that of the installed package."""
    assert cli("--version").stdout == f"tilesim {tilesim.__version__}\n"


def test_no_command_and_an_unknown_one_are_refused(cli: Cli) -> None:
    """One line that points to the help."""
    assert cli.refuse().endswith("see 'tilesim --help'")
    assert "Did you mean 'run'?" in cli.refuse("rum")


def test_help_names_the_commands(cli: Cli) -> None:
    """Help is no error."""
    result = cli("--help")
    assert result.exit_code == 0
    for command in ("run", "targets", "operators", "report"):
        assert command in result.stdout


def test_targets_lists_every_target(cli: Cli) -> None:
    """The table and the object have one entry a target."""
    names = tilesim.available_targets()
    table = cli("targets").stdout
    assert all(name in table for name in names)
    listed = json.loads(cli("targets", "--json").stdout)["targets"]
    assert [target["name"] for target in listed] == names


def test_every_number_of_a_target_has_mark_and_source(cli: Cli) -> None:
    """A number is shown with where it comes from."""
    shown = json.loads(cli("targets", "mt7004", "--json").stdout)
    assert (shown["name"], shown["family"]) == ("mt7004", "dsp")
    numbers = [fact for fact in shown["values"] if isinstance(fact["value"], int | float | list)]
    marked = [fact for fact in numbers if fact["mark"] and fact["source"]]
    assert [fact for fact in numbers if fact not in marked and not isinstance(fact["value"], bool)] == []
    assert len(marked) > 30
    table = cli("targets", "mt7004").stdout
    assert "memory.am.size_bytes" in table
    assert "assumed" in table


def test_a_target_file_and_an_override_show_up(cli: Cli) -> None:
    """Facts of a target with an override carry the override's mark."""
    target = tilesim.load_target("mt7004", {"memory.am.size_bytes": "4096"})
    fact = next(fact for fact in facts(target) if fact.key == "memory.am.size_bytes")
    assert (fact.value, fact.unit, fact.mark) == (4096, "B", "override")
    assert "did you mean mt7004?" in cli.refuse("targets", "mt704")


def test_a_list_of_names_is_shown_as_one(cli: Cli) -> None:
    """An engine that two kinds of cores have."""
    assert "aic, aiv" in cli("targets", "ascend910b1").stdout


@pytest.mark.parametrize(
    ("key", "unit"),
    [
        ("memory.am.size_bytes", "B"),
        ("link.ddr.bytes_per_cycle", "B/cycle"),
        ("link.ddr.bytes_per_cycle_per_core", "B/cycle a core"),
        ("link.ddr.gigabytes_per_second", "GB/s"),
        ("launch.default.cycles_per_core", "cycles a core"),
        ("path.ddr->am.start_cycles", "cycles"),
        ("clock_mhz", "MHz"),
        ("cube.fp16.macs_per_cycle", "MAC/cycle"),
        ("fixpipe.nd.elements_per_cycle", "elements/cycle"),
        ("vector_class.unary.cycles_16bit", "cycles a repeat"),
        ("groups", ""),
    ],
)
def test_the_end_of_a_key_is_its_unit(key: str, unit: str) -> None:
    """Units are part of the names, so that no file can be misread."""
    assert unit_of(key) == unit


def test_operators_lists_and_explains(cli: Cli) -> None:
    """Every operator has a line in the table and a page of its own."""
    table = cli("operators").stdout
    every = {**OPERATORS, **VENDOR_CALLS}
    assert all(name in table for name in every)
    for operator in every.values():
        page = cli("operators", operator.name).stdout
        assert page.startswith(f"{operator.name}: {operator.summary}")
        assert operator.text.strip() in page
        assert json.loads(cli("operators", operator.name, "--json").stdout)["text"] == operator.text
    assert "did you mean gemm?" in cli.refuse("operators", "gem")


@pytest.mark.parametrize("name", VENDOR_CALLS)
def test_vendor_calls_are_refused_on_the_command_line(cli: Cli, name: str) -> None:
    """Their page says how they are called."""
    assert f"tilesim operators {name} says how" in cli.refuse(
        "run", name, "--target", "ascend910b1", "--shape", "m=2,n=2,k=2"
    )


def test_report_refuses_what_is_no_run(cli: Cli, tmp_path: Path) -> None:
    """A directory without a record, and a window without cycles."""
    assert "no saved run" in cli.refuse("report", str(tmp_path))
    (tmp_path / "run.json").write_text("{}", encoding="utf-8")
    assert "no cycles between" in cli.refuse("report", str(tmp_path), "--from", "9", "--to", "9")


def test_report_passes_the_window_and_ends_with_the_page(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The files are listed, the page last."""
    asked: list[tuple[Path, int | None, int | None, bool | None]] = []

    def stand_in(
        directory: Path, start: int | None = None, end: int | None = None, perfetto: bool | None = None
    ) -> list[Path]:
        asked.append((directory, start, end, perfetto))
        return [directory / "report.md", directory / "timeline.png"]

    (tmp_path / "run.json").write_text("{}", encoding="utf-8")
    monkeypatch.setattr(tilesim, "report", stand_in)
    result = cli("report", str(tmp_path), "--from", "100", "--to", "200")
    cli("report", str(tmp_path), "--no-perfetto")
    assert asked == [(tmp_path, 100, 200, None), (tmp_path, None, None, False)]
    assert result.stdout.splitlines() == [str(tmp_path / "timeline.png"), str(tmp_path / "report.md")]
