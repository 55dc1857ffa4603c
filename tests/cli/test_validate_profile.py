"""`tilesim validate --measured` of an Ascend profile: predicted beside measured, the rest counted and named."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from targets.loader import load_target
from tilesim.validation.ascend_rows import PUBLISHED, read_ascend_rows
from tilesim.validation.profile_rows import profile_rows

if TYPE_CHECKING:
    from tests.cli.conftest import Cli

PIPES = ("mac", "scalar", "mte1", "mte2", "fixpipe")
HEAD = (
    *("Device_id", "Model ID", "Task ID", "Stream ID", "Op Name", "OP Type", "OP State", "Task Type"),
    *(
        "Task Start Time(us)",
        "Task Duration(us)",
        "Task Wait Time(us)",
        "Block Dim",
        "Mix Block Dim",
        "HF32 Eligible",
    ),
    *(
        "Input Shapes",
        "Input Data Types",
        "Input Formats",
        "Output Shapes",
        "Output Data Types",
        "Output Formats",
    ),
    *("Context ID", "aicore_time(us)", "aic_total_cycles"),
    *(f"aic_{pipe}_{what}" for pipe in PIPES for what in ("time(us)", "ratio")),
    *("aic_icache_miss_rate", "aiv_time(us)", "aiv_total_cycles"),
)
"""The columns of msprof with the metrics PipeUtilization."""

DX = {
    "Op Name": "layer3_dx", "OP Type": "Conv2DBackpropInputD", "Task Duration(us)": "109.592", "HF32 Eligible": "YES",
    "Input Shapes": '"216,24,16,8;32,48,13,13,8"', "Input Formats": "FRACTAL_Z;NC1HWC0",
    "Input Data Types": "FLOAT;FLOAT",
    "Output Shapes": '"32,24,13,13,8"', "Output Data Types": "FLOAT", "Output Formats": "NC1HWC0",
    "aicore_time(us)": "107.367", "aic_mac_time(us)": "55.694", "aic_scalar_time(us)": "82.449",
    "aic_mte1_time(us)": "92.163", "aic_mte2_time(us)": "27.186", "aic_fixpipe_time(us)": "4.726",
}  # fmt: skip
"""The published row conv007 in the profiler's own words."""

SMALL = {
    "Op Name": "small", "OP Type": "MatMulV2", "Task Duration(us)": "9", "Input Shapes": '"64,32;32,96"',
    "Input Data Types": "DT_BF16;DT_BF16", "Input Formats": "ND;ND", "Output Shapes": '"64,96"',
    "Output Data Types": "DT_BF16", "Output Formats": "ND",
}  # fmt: skip
RELU = {"Op Name": "relu", "OP Type": "Relu", "Task Duration(us)": "5", "Input Shapes": '"4,16,5,5"'}
AMBIGUOUS = {
    **SMALL, "Op Name": "odd", "OP Type": "Conv2D",
    "Input Shapes": '"8,16,5,5;16,16,3,3"', "Input Formats": "NCHW;NCHW",
    "Output Shapes": '"8,16,2,2"', "Output Formats": "NCHW",
}  # fmt: skip


@pytest.fixture
def profile(tmp_path: Path) -> Path:
    """A table with two tasks to predict and others."""
    return written(tmp_path / "op_summary_0_1.csv", DX, SMALL, RELU, RELU, AMBIGUOUS)


def written(path: Path, *rows: dict[str, str]) -> Path:
    """A table in the form of msprof."""
    with path.open("w", encoding="utf-8", newline="") as file:
        table = csv.DictWriter(file, HEAD, restval="N/A")
        table.writeheader()
        table.writerows(rows)
    return path


def test_a_profile_beside_the_model(cli: Cli, profile: Path, tmp_path: Path) -> None:
    """Every task is a row or is left out with its reason; a picture is made."""
    result = cli(
        "validate",
        "--measured",
        str(profile),
        "--target",
        "ascend910b2",
        "--json",
        "--out",
        str(tmp_path / "out"),
    )
    assert result.exit_code == 0, result.stderr
    shown = json.loads(result.stdout)
    assert [(row["name"], row["tasks"]) for row in shown["rows"]] == [("layer3_dx", 1), ("small", 1)]
    assert shown["rows"][0]["label"] == "dx 32x192x13x13 -> 384, 3x3 stride 1x1 pad 1x1, hf32"
    assert set(shown["rows"][0]["measured_us"]) == {
        "duration",
        "core",
        "mac",
        "mte1",
        "mte2",
        "fixpipe",
        "scalar",
    }
    assert [(each["type"], each["tasks"]) for each in shown["left_out"]] == [("Conv2D", 1), ("Relu", 2)]
    assert shown["duration_us"] == pytest.approx(109.592 + 9 + 9 + 10)
    assert {"dx", "gemm", "all"} == {group["group"] for group in shown["groups"]}
    assert (tmp_path / "out" / "validation.png").stat().st_size > 1000


def test_a_published_row_in_the_words_of_the_profiler(tmp_path: Path) -> None:
    """It is the same problem with the same figures as in our own table."""
    row = next(row for row in read_ascend_rows(PUBLISHED["conv"]) if row.name == "conv007")
    (found,), left = profile_rows(written(tmp_path / "p.csv", DX), row.target)
    assert not left
    assert (found.row.problem, found.row.op, found.row.dtype) == (row.problem, row.op, row.dtype)
    assert found.row.measured == row.measured


def test_the_tables(cli: Cli, profile: Path) -> None:
    """Times beside each other, and what is left out with how much of the time is predicted."""
    call = ("validate", "--measured", str(profile), "--target", "ascend910b2", "--kind")
    text = " ".join(cli(*call, "gemm").stdout.split())
    assert "gemm 64x96x32 NN, bf16" in text
    assert "layer3_dx" not in text
    assert "Left out: 0 tasks; predicted are 100 % of the time" in text
    text = " ".join(cli(*call, "forward").stdout.split())
    assert "ambiguous: strides 2, 3, 4 lead to the output" in text
    assert "Left out: 1 tasks; predicted are 0 % of the time" in text


def test_what_tasks_find_in_the_cache(cli: Cli, tmp_path: Path) -> None:
    """Operands that were just written are read faster."""
    path = written(tmp_path / "p.csv", SMALL)
    call = ("validate", "--measured", str(path), "--target", "ascend910b2", "--json", "--l2")
    cold, warm = (
        json.loads(cli(*call, l2).stdout)["rows"][0]["predicted_us"]["duration"] for l2 in ("cold", "warm")
    )
    assert warm < cold


def test_what_the_target_refuses_is_left_out(cli: Cli, tmp_path: Path) -> None:
    """A type that the chip does not compute is a reason, not an end."""
    path = written(
        tmp_path / "p.csv", SMALL, {**SMALL, "Op Name": "half", "Input Data Types": "FLOAT16;FLOAT16"}
    )
    shown = json.loads(cli("validate", "--measured", str(path), "--target", "ascend310p3", "--json").stdout)
    assert "bf16" not in load_target("ascend310p3").cube
    assert [row["name"] for row in shown["rows"]] == ["half"]
    assert [each["type"] for each in shown["left_out"]] == ["MatMulV2"]
    assert "bf16" in shown["left_out"][0]["reason"]


def test_refusals(cli: Cli, profile: Path) -> None:
    """No target, one of another family, and a kind that is none."""
    call = ("validate", "--measured", str(profile))
    assert "does not say which target" in cli.refuse(*call)
    assert "got dsp, limit davinci" in cli.refuse(*call, "--target", "mt7004")
    assert "limit forward, dx, dw, gemm" in cli.refuse(*call, "--target", "ascend910b2", "--kind", "relu")
    assert "cannot be read" in cli.refuse("validate", "--measured", "nothing.csv", "--target", "ascend910b2")


CALL = ("validate", "--target", "ascend910b2", "--measured")


@pytest.mark.parametrize("bad", ["nan", "inf", "-7", "0", "soon"])
def test_a_bad_duration_is_left_out_and_named(cli: Cli, tmp_path: Path, bad: str) -> None:
    """It is not in the median, and no fault."""
    path = written(tmp_path / "p.csv", SMALL, {**SMALL, "Task Duration(us)": bad}, SMALL)
    shown = json.loads(cli(*CALL, str(path), "--json").stdout)
    assert [(row["tasks"], row["measured_us"]["duration"]) for row in shown["rows"]] == [(2, 9.0)]
    (left,) = shown["left_out"]
    assert (left["type"], left["tasks"], left["duration_us"]) == ("MatMulV2", 1, 0.0)
    assert left["reason"] == f"Task Duration(us) {bad}: not a finite number above 0"


def test_a_bad_time_of_a_pipe_is_left_out_and_named(tmp_path: Path) -> None:
    """Its duration counts; a pipe that was idle is no fault."""
    path = written(tmp_path / "p.csv", {**DX, "aic_mac_time(us)": "-1"}, {**DX, "aic_mac_time(us)": "0"})
    (row,), (left,) = profile_rows(path, "ascend910b2")
    assert (row.tasks, row.row.measured["mac"]) == (1, 0.0)
    assert (left.duration_us, left.reason) == (109.592, "aic_mac_time(us) -1: not a finite number from 0")


def test_a_shape_with_a_size_below_1_is_left_out(tmp_path: Path) -> None:
    """Sizes that were not known when the profile was taken are -1."""
    path = written(tmp_path / "p.csv", {**SMALL, "Input Shapes": '"-1,32;32,96"', "Output Shapes": '"-1,96"'})
    rows, (left,) = profile_rows(path, "ascend910b2")
    assert (rows, left.reason) == ([], "a shape with a size below 1")


@pytest.mark.parametrize("options", [(), ("--json",)])
def test_a_profile_without_a_task_to_predict_ends_with_status_2(
    cli: Cli, tmp_path: Path, options: tuple[str, ...]
) -> None:
    """After what was left out, one line."""
    result = cli(*CALL, str(written(tmp_path / "p.csv", RELU, AMBIGUOUS)), *options)
    assert result.exit_code == 2
    assert "ambiguous: strides 2, 3, 4" in " ".join(result.stdout.split())
    assert "no row could be compared" in result.stderr
    assert "2 tasks were left out" in result.stderr
    assert result.stderr.count("\n") == 1


def test_a_profile_without_rows_or_columns(cli: Cli, tmp_path: Path) -> None:
    """It is not taken for a file of another kind: what is missing is named."""
    path = written(tmp_path / "p.csv")
    assert "without rows" in cli.refuse(*CALL, str(path))
    path.write_text(",".join(name for name in HEAD if name != "Task Duration(us)") + "\n1,2\n")
    said = cli.refuse("validate", "--measured", str(path))
    assert "a profile without some columns" in said
    assert "got Task Duration(us) or Duration(us), limit" in said
    path.write_text("Name,Type,Input Shapes,Output Shapes\nx,Relu,,\n")
    assert "got Task Duration(us) or Duration(us), limit" in cli.refuse("validate", "--measured", str(path))
    path.write_text("Duration(us),Input Shapes\n3,\n")
    assert "got Op Name or Name, OP Type or" in cli.refuse("validate", "--measured", str(path))
    path.write_text("")
    assert "an empty file" in cli.refuse("validate", "--measured", str(path))
