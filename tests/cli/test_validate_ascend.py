"""`tilesim validate --suite conv` and `--suite gemm`: published rows, their figures, and what is refused."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from targets.errors import TilesimError
from targets.loader import load_target
from tilesim.validation.ascend_constants import fitted_constants
from tilesim.validation.ascend_rows import FIGURES, PUBLISHED, Product, read_ascend_rows
from tilesim.validation.ascend_scores import (
    AscendScore,
    duration_facts,
    figure_summaries,
    score_ascend,
)

if TYPE_CHECKING:
    from tests.cli.conftest import Cli

CONV = {row.name: row for row in read_ascend_rows(PUBLISHED["conv"])}
GEMM = {row.name: row for row in read_ascend_rows(PUBLISHED["gemm"])}


def test_every_row_is_read() -> None:
    """Geometries, types and figures of the published rows."""
    assert (len(CONV), len(GEMM)) == (27, 35)
    first = CONV["conv001"]
    assert (first.op, first.dtype, first.problem.useful_macs) == ("dw", "hf32", 32 * 64 * 55 * 55 * 3 * 121)
    assert set(first.measured) == set(FIGURES)
    assert CONV["conv037"].whole
    assert CONV["conv026"].dtype == "fp16"
    assert GEMM["gemm013"].problem == Product(6144, 1024, 4096, True, False)
    assert (GEMM["gemm005"].l2, GEMM["gemm014"].l2, GEMM["gemm003"].overrides) == (
        "warm",
        "cold",
        {"clock_mhz": "1650"},
    )
    assert [name for name, row in GEMM.items() if row.framework][:1] == ["gemm064"]


@pytest.mark.parametrize(
    ("name", "limits"),
    [
        ("conv008", {"core": 0.1, "mac": 0.05, "mte1": 0.1, "mte2": 0.15}),
        ("conv010", {"core": 0.1, "mac": 0.05, "mte1": 0.05, "mte2": 0.2, "scalar": 0.1}),
        ("gemm005", {"core": 0.08, "duration": 0.12}),
        ("gemm010", {"core": 0.08, "duration": 0.12}),
    ],
)
def test_profiles_are_met(name: str, limits: dict[str, float]) -> None:
    """Busy times of pipes and the cores' time of four profiled kernels."""
    (score,) = score_ascend([{**CONV, **GEMM}[name]])
    errors = {figure: score.error(figure) for figure in limits}
    assert all(error is not None and abs(error) < limits[figure] for figure, error in errors.items()), errors
    assert score.roofline < score.row.measured["duration"]
    groups = {group.figure: group for group in figure_summaries([score]) if group.group == "all"}
    assert groups["core"].median == groups["core"].worst == abs(score.error("core") or 0)


def test_fitted_constants_are_those_of_the_profiles() -> None:
    """Each constant once: numbers of one meaning together, equal ones of another meaning apart."""
    target = load_target("ascend910b1")
    fitted = fitted_constants(target)
    paths = [path for each in fitted for path in each.paths]
    assert len(paths) == len(set(paths))
    assert len(fitted) <= 12
    (start,) = (each for each in fitted if "load3d.l0a.start_cycles" in each.paths)
    assert "load2d.l0b.transposed_start_cycles" in start.paths
    assert start.on_convolutions
    assert not start.rate
    assert not any(path.startswith("cube.") for path in paths)


def test_equal_numbers_of_two_meanings_are_two_constants() -> None:
    """Cycles to issue a product and rate of the write-out do not become one when they are equal."""
    marks = load_target("ascend910b1").provenance
    target = load_target("ascend910b1", {"fixpipe.split.bytes_per_cycle": 19})
    same = target.model_copy(update={"provenance": marks})
    assert [each.paths for each in fitted_constants(same) if each.number == 19] == [
        ("fixpipe.nd.elements_per_cycle",),
        ("fixpipe.split.bytes_per_cycle",),
    ]


def test_longest_pipes_and_durations() -> None:
    """Two pipes within a tenth are as long as each other; rows that stand out are named."""
    row = CONV["conv009"]  # mac 60.8, scalar 58.1, mte1 57.1, mte2 49.6 us
    found = {
        "mac": 50.0,
        "mte1": 60.0,
        "mte2": 40.0,
        "fixpipe": 1.0,
        "scalar": 50.0,
        "duration": 89.962 * 1.4,
    }
    near = AscendScore(row, found, 89.962)
    far = AscendScore(row, {**found, "mte2": 61.0, "duration": 89.962}, 1.0)
    assert (near.pipes, near.same_pipe) == (("mac", "mte1"), True)
    assert (far.pipes, far.same_pipe) == (("mac", "mte2"), False)
    assert AscendScore(CONV["conv031"], found, 1.0).same_pipe is None
    facts = duration_facts([near])
    assert facts is not None
    assert (facts.far, facts.below_roofline) == (("conv009",), ("conv009",))
    facts = duration_facts([far])
    assert facts is not None
    assert (facts.median, facts.far, facts.below_roofline) == (0.0, (), ())
    assert duration_facts([]) is None


def test_own_rows(cli: Cli, tmp_path: Path) -> None:
    """A file of one's own: one object with rows, groups and constants; a table with the row's name."""
    lines = PUBLISHED["gemm"].read_text(encoding="utf-8").splitlines()
    path = tmp_path / "mine.csv"
    path.write_text("\n".join([lines[0], next(line for line in lines if line.startswith("gemm045"))]) + "\n")
    shown = json.loads(cli("validate", "--suite", "gemm", "--measured", str(path), "--json").stdout)
    assert [row["name"] for row in shown["rows"]] == ["gemm045"]
    assert {group["figure"] for group in shown["groups"]} == {"duration", "roofline"}
    assert "gemm045" in cli("validate", "--suite", "gemm", "--measured", str(path)).stdout


@pytest.mark.parametrize(
    ("change", "part"),
    [(("N", "X"), "without some columns"), (("4096", "many"), "not usable: where .*line 2")],
)
def test_files_that_make_no_sense(tmp_path: Path, change: tuple[str, str], part: str) -> None:
    """A column that is missing, and a number that is none."""
    head, row, *_ = PUBLISHED["gemm"].read_text(encoding="utf-8").splitlines()
    lines = [head.replace(",n,", ",x,"), row] if change[0] == "N" else [head, row.replace(*change, 1)]
    path = tmp_path / "mine.csv"
    path.write_text("\n".join(lines) + "\n")
    with pytest.raises(TilesimError, match=part):
        read_ascend_rows(path)


CASES = [
    ("conv", "op", "dq", "forward, dx, dw"),
    *(("conv", "duration_us", bad, "a finite number above 0") for bad in ("nan", "inf", "-3", "0", "")),
    ("conv", "mac_us", "-1", "a finite number from 0"),
    ("conv", "N", "0", "a whole number from 1"),
    ("conv", "stride", "1x0x1", "a whole number from 1"),
    ("conv", "pad_low", "1x1", "three whole numbers"),
    ("conv", "target", "OTHER", "ascend310b1, "),
    ("conv", "target", "ft_m7032", "ascend310b1, "),
    ("conv", "set", "clock_mhz", "key=value"),
    ("conv", "set", "clocks=3", "keys and values of the target"),
    ("gemm", "duration_us", "nan", "a finite number above 0"),
    ("gemm", "k", "-4", "a whole number from 1"),
    ("gemm", "trans_b", "X", "N, T"),
    ("gemm", "dtype", "", "fp16, bf16, "),
]


@pytest.mark.parametrize(("suite", "column", "got", "limit"), CASES)
def test_cells_that_are_refused(
    cli: Cli, tmp_path: Path, suite: str, column: str, got: str, limit: str
) -> None:
    """File, line and column are named, with what may stand there."""
    with PUBLISHED[suite].open(encoding="utf-8", newline="") as file:
        row = next(csv.DictReader(file))
    path = tmp_path / "mine.csv"
    with path.open("w", encoding="utf-8", newline="") as file:
        table = csv.DictWriter(file, row)
        table.writeheader()
        table.writerow({**row, column: got})
    said = cli.refuse("validate", "--suite", suite, "--measured", str(path), "--json")
    assert f"mine.csv, line 2, column {column}, got {got or 'nothing'}, limit {limit}" in said
