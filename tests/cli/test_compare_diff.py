"""`tilesim compare` and `tilesim diff`, with small runs of the simulator."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import tilesim
from kernels.operators import OPERATORS
from kernels.shape.shapes import ConvShape

if TYPE_CHECKING:
    from tests.cli.conftest import Cli

SHAPE = "n=1,cin=16,h=8,w=8,cout=16,kh=3,kw=3,stride=1,pad=1"
TARGETS = ("--targets", "mt7004,ft_m7032", "--shape", SHAPE)


def test_compare_prints_a_line_a_target(cli: Cli) -> None:
    """Each target's best type by default, and the figures of its run."""
    result = cli("compare", "conv_backward", *TARGETS, "--grads", "dx")
    assert (result.exit_code, result.stderr) == (0, "")
    lines = result.stdout.splitlines()
    assert [line.split()[:2] for line in lines[1:]] == [["mt7004", "fp16"], ["ft_m7032", "fp16"]]


def test_compare_gives_the_figures_of_the_runs(cli: Cli, tmp_path: Path) -> None:
    """JSON, and the files of --out, have what the runs themselves say."""
    options = ("--dtype", "fp32", "--cores", "2", "--tile", "rows=4", "--grads", "dx", "--timing-only")
    result = cli("compare", "conv_backward", *TARGETS, *options, "--json", "--out", str(tmp_path / "new"))
    record = json.loads(result.stdout)
    shape = ConvShape(n=1, cin=16, size=(8, 8), cout=16, kernel=(3, 3), padding=1)
    for row in record["runs"]:
        run = tilesim.conv_backward(
            shape=shape,
            dtype="fp32",
            cores=2,
            tiling={"rows": 4},
            grads=("dx",),
            target=row["target"],
            numerics=False,
        )
        assert (row["cycles"], row["dtype"], row["cores"]) == (run.cycles, "fp32", 2)
        assert row["achieved_gflops"] == pytest.approx(run.achieved_gflops)
    assert [row["target"] for row in record["runs"]] == ["mt7004", "ft_m7032"]
    assert json.loads((tmp_path / "new" / "comparison.json").read_text()) == record
    assert (tmp_path / "new" / "comparison.png").read_bytes()[:4] == b"\x89PNG"


def test_compare_goes_on_without_a_target_that_refuses(cli: Cli) -> None:
    """MT7004 has no fp64: it is named with the reason, and the other is shown."""
    call = ("compare", "gemm", "--targets", "mt7004,ft_m7032", "--shape", "m=48,n=48,k=48")
    result = cli(*call, "--dtype", "fp64", "--json")
    record = json.loads(result.stdout)
    assert [row["target"] for row in record["runs"]] == ["ft_m7032"]
    assert "does not compute" in record["refused"]["mt7004"]
    assert result.stderr.startswith("tilesim: mt7004 is left out: ")
    assert cli.refuse(*call, "--dtype", "fp8").count("fp8") >= 1


def test_compare_names_a_family_that_the_operator_does_not_run_on(
    cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its target is left out like any other that refuses."""
    only_dsp = dataclasses.replace(OPERATORS["gemm"], families=("dsp",))
    monkeypatch.setitem(OPERATORS, "gemm", only_dsp)
    result = cli("compare", "gemm", "--targets", "mt7004,ascend910b1", "--shape", "m=48,n=48,k=48", "--json")
    assert "does not run on this family" in json.loads(result.stdout)["refused"]["ascend910b1"]


@pytest.mark.parametrize("targets", ["mt7004,", "mt7004,mt7004", "mt7004,nosuch", ""])
def test_compare_refuses_what_is_no_list_of_targets(cli: Cli, targets: str) -> None:
    """Empty names, the same twice, and targets that are not there."""
    cli.refuse("compare", "gemm", "--targets", targets, "--shape", "m=48,n=48,k=48")


def save(cli: Cli, out: Path, *options: str) -> Path:
    """A saved run of the small layer on MT7004."""
    assert cli.run("--grads", "dx", "--timing-only", "--out", str(out), *options).exit_code == 0
    return out


def test_diff_of_equal_runs(cli: Cli, tmp_path: Path) -> None:
    """The same call twice is the same."""
    a, b = save(cli, tmp_path / "a"), save(cli, tmp_path / "b")
    result = cli("diff", str(a), str(b))
    assert (result.exit_code, result.stdout) == (0, "no difference\n")


def test_diff_of_a_changed_target(cli: Cli, tmp_path: Path) -> None:
    """A slower DDR is named with its effect; the status is 3 unless the threshold allows it."""
    a = save(cli, tmp_path / "a")
    b = save(cli, tmp_path / "b", "--set", "link.ddr.gigabytes_per_second=2")
    result = cli("diff", str(a), str(b))
    assert result.exit_code == 3
    assert "longer" in result.stdout.splitlines()[0]
    assert "link.ddr.gigabytes_per_second" in result.stdout
    assert result.stderr == ""
    tolerant = cli("diff", str(a), str(b), "--threshold", "100", "--json")
    assert tolerant.exit_code == 0
    record = json.loads(tolerant.stdout)
    assert record["changed"] is False
    assert record["time_change"] > 0.01
    named = {(c["part"], c["name"]) for c in record["changes"]}
    assert {("target", "link.ddr.gigabytes_per_second"), ("time", "cycles"), ("launch", "conv_dx")} <= named


def test_diff_refuses_what_is_no_run(cli: Cli, tmp_path: Path) -> None:
    """Either directory may be the wrong one."""
    a = save(cli, tmp_path / "a")
    assert "DIR_B" in cli.refuse("diff", str(a), str(tmp_path / "none"))
    assert "DIR_A" in cli.refuse("diff", str(tmp_path), str(a))
    cli.refuse("diff", str(a), str(a), "--threshold", "-1")
