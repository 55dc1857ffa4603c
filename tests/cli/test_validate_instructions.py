"""`tilesim validate --suite instructions`: classes of micro-benchmarks, their errors, and what is left out."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from targets.loader import load_target
from tilesim.validation.instruction_rows import INSTRUCTIONS, InstructionRow, read_instruction_rows
from tilesim.validation.instruction_scores import error_of, score_instructions

if TYPE_CHECKING:
    from pathlib import Path

    from tests.cli.conftest import Cli

HEAD = INSTRUCTIONS.read_text(encoding="utf-8").splitlines()[0]


def test_every_class_is_within_five_percent(cli: Cli) -> None:
    """The median of each class on each series, and no row is left out."""
    shown = json.loads(cli("validate", "--suite", "instructions", "--json").stdout)
    assert max(each["median"] for each in shown["classes"]) <= 0.05
    assert len(shown["left_out"]) <= 0.05 * len(shown["rows"])
    assert {each["chip"] for each in shown["classes"]} == {"910B", "950"}
    assert sum(each["rows"] for each in shown["classes"]) == len(shown["rows"])


def test_out_keeps_the_picture(cli: Cli, tmp_path: Path) -> None:
    """A row that is scored is drawn."""
    path = tmp_path / "mine.csv"
    path.write_text(f"{HEAD}\nx3,ascend910b1,VEC VADD_FP16_FP16_FP16,repeat=8,,,1850,16,\n", encoding="utf-8")
    assert (
        cli("validate", "--suite", "instructions", "--measured", str(path), "--out", str(tmp_path)).exit_code
        == 0
    )
    assert (tmp_path / "validation.png").read_bytes()[:4] == b"\x89PNG"


def test_the_table_shows_classes_and_the_rows_left_out(cli: Cli, tmp_path: Path) -> None:
    """A row without cycles, one of a path that the chip lacks, and one that is scored."""
    path = tmp_path / "mine.csv"
    lines = (
        "x1,ascend910b1,MOV L1_TO_UB,1024,,back-to-back,1850,10,",
        "x2,ascend910b1,VEC VADD_FP16_FP16_FP16,repeats 1..9,,,,,",
        "x3,ascend910b1,VEC VADD_FP16_FP16_FP16,repeat=8,,,1850,16,",
        "x4,ascend910b1,HOP GM_TO_UB,1024,,,1850,16,",
    )
    path.write_text("\n".join((HEAD, *lines)) + "\n", encoding="utf-8")
    shown = cli("validate", "--suite", "instructions", "--measured", str(path)).stdout
    assert "Left out: 3 of 4 rows" in " ".join(shown.split())
    assert "no cycles were recorded" in shown
    assert "no such path" in shown
    assert "nothing stands for" in shown


@pytest.mark.parametrize(
    ("line", "part"),
    [
        (
            "x1,ascend910b1,MOV L1_TO_UB,1024,,sideways,1850,10,",
            "column mode, got sideways, limit isolated, back-to-back",
        ),
        ("x1,ascend910b1,MMAD,many,,,1850,10,", "column size, got many, limit whole numbers from 1: k, m, n"),
        ("x1,ascend910b1,MMAD,1024,,,1850,10,", "column size, got 1024"),
        ("x1,ascend910b1,MOV L1_TO_UB,0,,,1850,10,", "column size, got 0"),
        (
            "x1,ascend910b1,MOV L1_TO_UB,1024,,,1850,nan,",
            "column cycles, got nan, limit a finite number above 0",
        ),
        ("x1,ascend910b1,MOV L1_TO_UB,1024,,,1850,-2,", "column cycles, got -2"),
        ("x1,ascend910b1,MOV L1_TO_UB,1024,,,0,10,", "column clock_mhz, got 0"),
        ("x1,OTHER,MOV L1_TO_UB,1024,,,1850,10,", "column target, got OTHER, limit ascend310b1, "),
    ],
)
def test_unusable_rows_are_refused(cli: Cli, tmp_path: Path, line: str, part: str) -> None:
    """File, line and column are named, with what may stand there."""
    path = tmp_path / "mine.csv"
    path.write_text(f"{HEAD}\n{line}\n", encoding="utf-8")
    said = cli.refuse("validate", "--suite", "instructions", "--measured", str(path))
    assert "mine.csv, line 2, column " in said
    assert part in said


def test_no_row_that_is_predicted_ends_with_the_reasons_and_status_2(cli: Cli, tmp_path: Path) -> None:
    """A vector operation without a type is left out by name, not a fault."""
    path = tmp_path / "mine.csv"
    path.write_text(f"{HEAD}\nx1,ascend910b1,VEC VADD,repeat=8,,,1850,16,\n", encoding="utf-8")
    result = cli("validate", "--suite", "instructions", "--measured", str(path))
    assert result.exit_code == 2
    assert "Left out: 1 of 1 rows" in " ".join(result.stdout.split())
    assert "no row could be compared" in result.stderr


def test_instructions_have_no_kinds(cli: Cli) -> None:
    """An option of the other suite is not swallowed."""
    assert "--kind" in cli.refuse("validate", "--suite", "instructions", "--kind", "gemm")


ROW = InstructionRow("x", "ascend910b1", "MOV GM_TO_UB", {"bytes": 8192}, "", "isolated", 1850, 300.0)


def test_two_clocks_compare_bandwidth() -> None:
    """A row of half the clock in half the cycles has the same bandwidth."""
    target = load_target("ascend910b1")
    assert error_of(ROW, 330, target) == pytest.approx(0.1)
    assert error_of(replace(ROW, clock_mhz=925.0, cycles=150.0), 300, target) == pytest.approx(0)


def test_left_out_rows_say_why() -> None:
    """The message of the refusal."""
    target = load_target("ascend910b1")
    _, (left,) = score_instructions([replace(ROW, instruction="MOV UB_TO_L1")], {"ascend910b1": target})
    assert "ub->l1" in left.reason


def test_all_rows_of_the_file_are_read() -> None:
    """One a line, all with cycles."""
    rows = read_instruction_rows()
    assert len(rows) == 1370
    assert all(row.cycles for row in rows)
