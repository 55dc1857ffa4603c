"""`tilesim run --tile auto`: the search, what it says, and what it refuses."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.cli.conftest import Cli

GEMM = ("run", "gemm", "--target", "mt7004", "--shape", "m=64,n=96,k=48", "--timing-only")


def test_the_run_has_the_tiling_that_was_found(cli: Cli, tmp_path: Path) -> None:
    """The object of the run tells the search, and fields that are given stay."""
    result = cli(
        *GEMM, "--tile", "auto", "--tile", "M_S=12", "--search-budget", "10", "--json", "--out", str(tmp_path)
    )
    assert result.exit_code == 0, result.stderr
    shown = json.loads(result.stdout)
    (part,) = shown["search"]["parts"]
    assert shown["tiling"]["M_S"] == part["best"]["M_S"] == 12
    assert shown["cycles"] == part["cycles"] <= part["default_cycles"]
    assert part["simulated"] <= 10
    assert json.loads((tmp_path / "run.json").read_text(encoding="utf-8"))["tiling"] == shown["tiling"]


def test_the_summary_ends_with_the_search(cli: Cli) -> None:
    """One line a kernel: the cycles found, how far the rule is from them, and what it took."""
    text = cli(*GEMM, "--tile", "auto", "--search-budget", "5").stdout
    line = text.splitlines()[-1]
    assert line.startswith("  search     c: ")
    assert "the default rule takes" in line
    assert "% more" in line
    assert "search" not in cli(*GEMM).stdout


def test_a_budget_needs_a_search(cli: Cli) -> None:
    """And a search a budget; other texts are fields."""
    assert "give --tile auto too" in cli.refuse(*GEMM, "--search-budget", "5")
    assert "greater than or equal to 1" in cli.refuse(*GEMM, "--tile", "auto", "--search-budget", "0")
    assert "not a pair" in cli.refuse(*GEMM, "--tile", "automatic")
    assert "M_X" in cli.refuse(*GEMM, "--tile", "auto", "--tile", "M_X=3")
