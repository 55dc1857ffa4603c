"""`tilesim run`: what it asks of an operator, what it prints and keeps, and what it refuses."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import tilesim
from kernels.errors import TilingError

if TYPE_CHECKING:
    from tests.cli.conftest import Cli, StandIn


def test_defaults_leave_the_choice_to_the_operator(cli: Cli, operator: StandIn) -> None:
    """What is not given is None; values are computed and compared with the reference."""
    assert cli.run().exit_code == 0
    asked = dict(operator.asked)
    assert asked.pop("target") == tilesim.load_target("mt7004")
    assert asked.pop("shape").cin == 16
    assert asked == {
        "name": "conv_backward",
        "dtype": None,
        "grads": None,
        "cores": None,
        "core_mask": None,
        "tiling": {},
        "numerics": True,
        "seed": 0,
        "integers": False,
        "check": True,
    }


def test_options_reach_the_operator_as_values(cli: Cli, operator: StandIn) -> None:
    """Texts become tuples, masks, numbers and truth values."""
    given = "--dtype fp16 --grads dx --core-mask 0b1011 --seed 7 --integers --no-check"
    tiles = "--tile column=blocks --tile budget_bytes=0x1000 --tile ahead=false"
    assert cli.run(*given.split(), *tiles.split()).exit_code == 0
    asked = operator.asked
    assert (asked["dtype"], asked["grads"], asked["core_mask"], asked["seed"]) == ("fp16", ("dx",), 0b1011, 7)
    assert (asked["integers"], asked["check"], asked["numerics"]) == (True, False, True)
    assert asked["tiling"] == {"column": "blocks", "budget_bytes": 4096, "ahead": False}


def test_timing_only_computes_and_checks_nothing(cli: Cli, operator: StandIn) -> None:
    """There are no values to compare."""
    cli.run("--timing-only", "--cores", "2")
    assert (operator.asked["numerics"], operator.asked["check"], operator.asked["cores"]) == (False, False, 2)


def test_set_changes_a_number_of_the_target(cli: Cli, operator: StandIn) -> None:
    """The operator gets the target with the override."""
    cli.run("--set", "memory.am.size_bytes=4096")
    assert operator.asked["target"].memory["am"].size_bytes == 4096


def test_gemm_takes_three_sizes(cli: Cli, operator: StandIn) -> None:
    """The shape of gemm is (m, n, k)."""
    assert cli("run", "gemm", "--target", "mt7004", "--shape", "m=96,n=64,k=32").exit_code == 0
    assert operator.asked["shape"] == (96, 64, 32)


def test_json_is_the_only_thing_on_stdout(cli: Cli, operator: StandIn) -> None:
    """One object on stdout, nothing on stderr."""
    result = cli.run("--json")
    assert json.loads(result.stdout) == operator.run.record
    assert result.stderr == ""


def test_a_person_gets_the_summary(cli: Cli, operator: StandIn) -> None:
    """Without --json the run's summary is all that is printed."""
    result = cli.run()
    assert result.stdout == f"{operator.run.summary()}\n"
    assert result.stderr == ""


def test_a_run_that_was_not_checked_is_no_fault(cli: Cli, operator: StandIn) -> None:
    """No error and no tolerance end with status 0."""
    operator.run.max_error = operator.run.tolerance = None
    assert cli.run("--timing-only").exit_code == 0


@pytest.mark.parametrize("error", [0.02, float("nan")])
def test_a_wrong_result_is_a_fault_of_ours(cli: Cli, operator: StandIn, error: float) -> None:
    """An error above the tolerance, or no number at all, ends with status 1 after the result is printed."""
    operator.run.max_error = {"dx": error}
    result = cli.run("--json")
    assert result.exit_code == 1
    assert json.loads(result.stdout)["cycles"] == 12345
    assert result.stderr.startswith("tilesim: dx is off by ")


def test_out_keeps_the_run_and_may_be_used_again(cli: Cli, operator: StandIn, tmp_path: Path) -> None:
    """A directory that holds a run, and nothing else, is written again."""
    out = tmp_path / "new" / "run"
    assert cli.run("--out", str(out)).exit_code == 0
    assert json.loads((out / "run.json").read_text(encoding="utf-8")).items() >= operator.run.record.items()
    (out / "report.md").write_text("of the run before", encoding="utf-8")
    assert cli.run("--out", str(out)).exit_code == 0
    assert not (out / "report.md").exists()


@pytest.mark.usefixtures("operator")
def test_out_refuses_a_record_that_is_not_ours(cli: Cli, tmp_path: Path) -> None:
    """A run.json of another program is left alone."""
    (tmp_path / "run.json").write_text('{"mine": 1}', encoding="utf-8")
    line = cli.refuse_run("--out", str(tmp_path))
    assert "did not write" in line
    assert json.loads((tmp_path / "run.json").read_text(encoding="utf-8")) == {"mine": 1}


@pytest.mark.usefixtures("operator")
def test_report_ends_with_the_path_of_its_page(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The last line is for copying."""
    monkeypatch.setattr(tilesim, "report", lambda out: [out / "report.md", out / "timeline.png"])
    result = cli.run("--out", str(tmp_path), "--report")
    assert result.stdout.splitlines()[-1] == str(tmp_path / "report.md")


@pytest.mark.parametrize("name", ["thesis.txt", "trace.parquet"])
def test_out_refuses_a_directory_of_something_else(
    cli: Cli, operator: StandIn, tmp_path: Path, name: str
) -> None:
    """A foreign file, or a run's files without its record, is left alone and nothing is run."""
    (tmp_path / name).write_text("mine", encoding="utf-8")
    line = cli.refuse_run("--out", str(tmp_path))
    assert name in line
    assert operator.asked == {}


@pytest.mark.usefixtures("operator")
def test_out_refuses_a_file(cli: Cli, tmp_path: Path) -> None:
    """A file is no directory, and neither is anything below it."""
    file = tmp_path / "file"
    file.write_text("mine", encoding="utf-8")
    assert "not a directory" in cli.refuse_run("--out", str(file))
    assert "not a directory" in cli.refuse_run("--out", str(file / "below"))


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--cores", "0"], "--cores"),
        (["--cores", "many"], "--cores"),
        (["--cores", "2", "--core-mask", "0b11"], "give one of them"),
        (["--core-mask", "0b0"], "--core-mask"),
        (["--core-mask", "cores"], "write it as 0b1111"),
        (["--grads", "dy"], "dx"),
        (["--grads", "dx,"], "an empty name"),
        (["--tile", "column"], "--tile key=value"),
        (["--tile", "ahead=1", "--tile", "ahead=2"], "key given twice"),
        (["--set", "=3"], "--set key=value"),
        (["--set", "memory.an.size_bytes=3"], "did you mean memory.am.size_bytes?"),
        (["--report"], "--out"),
        (["--shapes", "n=1"], "--shape"),
    ],
)
def test_a_bad_argument_is_refused_before_anything_runs(
    cli: Cli, operator: StandIn, arguments: list[str], words: str
) -> None:
    """One line that names the option and the remedy."""
    assert words in cli.refuse_run(*arguments)
    assert operator.asked == {}


def test_bad_names_and_shapes_are_refused(cli: Cli, operator: StandIn) -> None:
    """The nearest name is offered; a shape's error is the kernels' own."""
    layer = cli.layer
    unknown = cli.refuse("run", "conv_backwards", "--target", "mt7004", *layer)
    assert "did you mean conv_backward?" in unknown
    assert "did you mean mt7004?" in cli.refuse("run", "conv_backward", "--target", "mt704", *layer)
    assert "--shape" in cli.refuse("run", "conv_backward", "--target", "mt7004")
    assert "cni" in cli.refuse(
        "run", "conv_backward", "--target", "mt7004", "--shape", layer[1].replace("cin", "cni")
    )
    assert operator.asked == {}


def test_an_error_of_the_operator_is_one_line(cli: Cli, operator: StandIn) -> None:
    """A tiling that cannot be is a refused argument."""
    operator.error = TilingError("tile too large", field="rows", got="512", limit="128", remedy="lower rows")
    assert cli.refuse_run() == "tilesim: tile too large: got 512, limit 128; lower rows"


def test_a_fault_of_ours_is_one_line_with_a_hint(cli: Cli, operator: StandIn) -> None:
    """Any other exception is status 1; its text stays on one line."""
    operator.error = RuntimeError("two\nlines")
    result = cli.run()
    assert (result.exit_code, result.stdout) == (1, "")
    assert result.stderr == "tilesim: RuntimeError: two lines; --debug shows the traceback\n"


@pytest.mark.parametrize("place", ["first", "last"])
def test_debug_shows_the_traceback(cli: Cli, operator: StandIn, place: str) -> None:
    """`--debug` is taken before and after the sub-command."""
    operator.error = RuntimeError("broken")
    words = ["run", "conv_backward", "--target", "mt7004", *cli.layer]
    result = cli("--debug", *words) if place == "first" else cli(*words, "--debug")
    assert result.exit_code == 1
    assert result.stderr.startswith("Traceback")
    assert result.stderr.endswith("tilesim: RuntimeError: broken\n")


def test_the_stand_in_has_what_the_command_uses(operator: StandIn) -> None:
    """A run has every attribute of its stand-in, so that these tests speak of the real thing."""
    mine = {field.name for field in dataclasses.fields(operator.run)} - {"record"} | {
        "to_dict",
        "summary",
        "save",
    }
    theirs = {field.name for field in dataclasses.fields(tilesim.Run)} | vars(tilesim.Run).keys()
    assert mine <= theirs


def test_a_convolution_without_outputs_is_told(cli: Cli) -> None:
    """It is run all the same: its gradients are zero."""
    shape = "n=1,cin=4,h=8,w=8,cout=4,kh=13,kw=3"
    result = cli("run", "conv_backward", "--target", "mt7004", "--timing-only", "--shape", shape)
    assert result.exit_code == 0
    assert "no outputs (0x6): the kernel is larger than the padded input" in result.stderr
