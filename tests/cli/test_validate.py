"""`tilesim validate`: rows of measurements, their scores, and what is refused."""

from __future__ import annotations

import json
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from kernels.dsp.product.tiling import GemmTiling
from targets.loader import load_target
from tilesim.validation.ascend_rows import PUBLISHED as ASCEND
from tilesim.validation.blocking import planned, tiling_of
from tilesim.validation.instruction_rows import INSTRUCTIONS
from tilesim.validation.rows import BLOCKING, PUBLISHED, Row, read_rows
from tilesim.validation.scores import Predictor, Score, score_rows, summaries
from tilesim.validation.steady import Sizes

if TYPE_CHECKING:
    from tests.cli.conftest import Cli

HEAD = PUBLISHED.read_text(encoding="utf-8").splitlines()[0]
SMALL = "x1,,FT-M7032,1800,2,fp64,gemm,NN,96,96,256,96,128,48,128,48,24,100,,"


def file_of(folder: Path, *lines: str) -> Path:
    """A file of measurements with these rows."""
    path = folder / "mine.csv"
    path.write_text("\n".join((HEAD, *lines)) + "\n", encoding="utf-8")
    return path


def test_the_table_has_a_row_a_measurement(cli: Cli) -> None:
    """Micro-kernels with a measured rate, those of which only the formula was published, and their groups."""
    result = cli("validate", "--kind", "microkernel", "--json")
    shown = json.loads(result.stdout)
    groups = {group["group"]: group for group in shown["groups"]}
    assert [row["name"] for row in shown["rows"]] == [f"ft{number:03}" for number in range(1, 12)]
    assert {name: group["rows"] for name, group in groups.items()} == {
        "microkernel": 8,
        "microkernel, formula": 3,
    }
    assert all(abs(row["error"]) < 0.03 for row in shown["rows"])
    assert groups["microkernel, formula"]["mean"] == 0
    table = cli("validate", "--kind", "microkernel").stdout
    assert "ft001" in table
    assert "median %" in table


def test_own_rows_are_scored(cli: Cli, tmp_path: Path) -> None:
    """A file of one's own, on the target of one's choice; the object has rows and groups."""
    path = file_of(tmp_path, SMALL)
    shown = json.loads(cli("validate", "--measured", str(path), "--json").stdout)
    (row,), groups = shown["rows"], shown["groups"]
    assert [group["group"] for group in groups] == ["blocked NN", "all products"]
    assert row["error"] == pytest.approx(row["predicted"] / 100 - 1)
    assert 0 < row["predicted"] < row["roofline"]


def test_out_keeps_the_picture(cli: Cli, tmp_path: Path) -> None:
    """The rows are drawn into the directory, which is made."""
    path = file_of(tmp_path, SMALL)
    assert cli("validate", "--measured", str(path), "--out", str(tmp_path / "new")).exit_code == 0
    assert (tmp_path / "new" / "validation.png").read_bytes()[:4] == b"\x89PNG"
    assert "no such kind" in cli.refuse("validate", "--kind", "nothing", "--out", str(tmp_path / "other"))
    assert not (tmp_path / "other").exists()


@pytest.mark.parametrize(
    ("line", "part"),
    [
        (SMALL.replace(",NN,", ",XN,"), "column mode, got XN, limit NN, NT, TN, TT, NT-merged"),
        (SMALL.replace(",2,fp64", ",two,fp64"), "column cores, got two, limit a whole number from 1 to 8"),
        (SMALL.replace(",2,fp64", ",99,fp64"), "column cores, got 99, limit a whole number from 1 to 8"),
        (SMALL.replace(",fp64", ",int8"), "column dtype, got int8, limit fp32, fp16, fp64"),
        (SMALL.replace(",gemm,", ",zzz,"), "column kind, got zzz, limit microkernel, gemm, "),
        (SMALL.replace("FT-M7032", "OTHER"), "column chip, got OTHER, limit "),
        (SMALL.replace(",NN,96", ",NN,0"), "column M, got 0, limit a whole number from 1"),
        (SMALL.replace(",256,96", ",2.5,96"), "column K, got 2.5, limit a whole number from 1"),
        (SMALL.replace(",48,128,48,24,", ",48,,48,24,"), "column K_A, got nothing"),
        *(
            (SMALL.replace(",100,", f",{bad},"), f"gflops_per_core, got {bad}, limit a finite number above 0")
            for bad in ("0", "-5", "nan", "inf", "fast")
        ),
    ],
)
def test_unusable_rows_are_refused(cli: Cli, tmp_path: Path, line: str, part: str) -> None:
    """File, line and column are named, with what may stand there."""
    said = cli.refuse("validate", "--measured", str(file_of(tmp_path, line)))
    assert "mine.csv, line 2, column " in said
    assert part in said


def test_blank_lines_are_no_rows_and_lines_are_counted_as_an_editor_does(cli: Cli, tmp_path: Path) -> None:
    """A line of commas alone says nothing; the bad row is the fourth line."""
    path = file_of(tmp_path, "", ",,,,", SMALL.replace(",100,", ",0,"))
    assert "line 4, column gflops_per_core" in cli.refuse("validate", "--measured", str(path))


@pytest.mark.parametrize(("suite", "kind"), [("products", "nope"), ("conv", "gemm"), ("gemm", "dx")])
def test_kinds_that_are_none(cli: Cli, suite: str, kind: str) -> None:
    """Each suite has its own."""
    assert f"where --kind, got {kind}, limit" in cli.refuse("validate", "--suite", suite, "--kind", kind)


def test_nothing_to_compare_is_refused(cli: Cli, tmp_path: Path) -> None:
    """A kind without a row, rows without a rate, no rows, and an empty file."""
    call = ("validate", "--measured", str(file_of(tmp_path, SMALL)))
    assert "no row of the kind microkernel could be compared" in cli.refuse(*call, "--kind", "microkernel")
    file_of(tmp_path, SMALL.replace(",100,", ",,"))
    assert "limit rows with a rate or cycles" in cli.refuse(*call)
    for suite in ("products", "instructions", "conv", "gemm"):
        folder = tmp_path / suite
        folder.mkdir()
        heads = {"instructions": INSTRUCTIONS, **ASCEND}.get(suite, PUBLISHED).read_text(encoding="utf-8")
        (folder / "head.csv").write_text(heads.splitlines()[0] + "\n", encoding="utf-8")
        (folder / "none.csv").write_text("\n", encoding="utf-8")
        own = ("validate", "--suite", suite, "--measured")
        assert "without rows: where" in cli.refuse(*own, str(folder / "head.csv"))
        assert "an empty file: where" in cli.refuse(*own, str(folder / "none.csv"))


def test_products_want_a_dsp(cli: Cli) -> None:
    """The other family has suites of its own."""
    assert "got ascend910b2 (davinci), limit dsp" in cli.refuse("validate", "--target", "ascend910b2")


def test_unusable_files_are_refused(cli: Cli, tmp_path: Path) -> None:
    """A file that is not there, and one without the columns."""
    assert "cannot be read" in cli.refuse("validate", "--measured", str(tmp_path / "none.csv"))
    (tmp_path / "other.csv").write_text("id,M\n1,2\n", encoding="utf-8")
    assert "without some columns" in cli.refuse("validate", "--measured", str(tmp_path / "other.csv"))


def test_every_published_row_has_a_tiling() -> None:
    """A published blocking is kept as it is; the others follow the rule of their class."""
    target = load_target("ft_m7032")
    rows = [row for row in read_rows() if row.kind != "microkernel"]
    assert len(rows) == 49
    for row in rows:
        tiling = tiling_of(row, target, {"fp32": 4, "fp64": 8}[row.dtype])
        assert {**tiling, **row.blocking} == tiling
        assert set(BLOCKING) - {"M_A"} <= set(tiling)


def test_rows_of_each_class_are_near_their_measurements() -> None:
    """A quick selection of the published rows: each within 10 %, where the roofline is 4 to 220 % off."""
    chosen = ("ft028", "ft033", "ft041", "ft045", "ft053", "ft057", "ft059", "ft060")
    scores = score_rows((row for row in read_rows() if row.name in chosen), load_target("ft_m7032"))
    assert [score.name for score in scores] == list(chosen)
    assert {score.name: score.error for score in scores if abs(score.error) > 0.1} == {}
    assert all(abs(score.error) < abs(score.roofline_error) for score in scores)


@pytest.mark.parametrize("kind", ["gemm-irregular", "gemm-skinny"])
@pytest.mark.parametrize("cores", [1, 8])
def test_products_of_any_size_have_a_tiling(kind: str, cores: int) -> None:
    """Where the rule of a class does not fit, it is gemm's own."""
    target = load_target("ft_m7032")
    sizes = [(m, n, k) for m in (6, 200, 2000, 40000) for n in (16, 192, 2000) for k in (8, 97, 4096, 20480)]
    for (m, n, k), mode, dtype in product(sizes, ("NN", "NT", "TN", "TT"), ("fp16", "fp32", "fp64")):
        row = Row("x", "chip", cores, dtype, kind, mode, m, n, k, {}, 1.0, None)
        problem, tiling = planned(row, target)
        assert (problem.swapped, problem.m * problem.n) == (tiling.swap, m * n)


def test_a_micro_kernel_that_the_target_lacks_is_refused(cli: Cli, tmp_path: Path) -> None:
    """Its table is named."""
    line = SMALL.replace(",gemm,NN", ",microkernel,TT")
    assert "fp64 TT" in cli.refuse("validate", "--measured", str(file_of(tmp_path, line)))


def test_products_that_are_alike_are_simulated_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The same products come up in rows that differ in their length only."""
    found: list[Sizes] = []

    def simulated(_: Predictor, __: Row, ___: GemmTiling, sizes: Sizes) -> int:
        found.append(sizes)
        return 10**6

    monkeypatch.setattr(Predictor, "_simulated", simulated)
    chosen = ("ft029", "ft030", "ft031", "ft032")
    scores = score_rows((row for row in read_rows() if row.name in chosen), load_target("ft_m7032"))
    assert len(scores) == 4
    assert len(found) == len(set(found)) == 8


def test_summaries_are_of_absolute_errors() -> None:
    """Median, mean and nine of ten of 1, 2, ... 10 %, of both signs."""
    scores = [Score(str(i), "gemm", "", 100.0, 100.0 + i * (-1) ** i, 100.0 + 10 * i) for i in range(1, 11)]
    group, everything = summaries(scores)
    assert (group.rows, group.group, everything.group) == (10, "gemm", "all products")
    assert (group.median, group.mean, group.within_90) == pytest.approx((0.055, 0.055, 0.09))
    assert group.roofline_within_90 == pytest.approx(0.9)
