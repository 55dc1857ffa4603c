"""`tilesim run my_kernel.py:name`: the file of docs/add-a-kernel.md, and files that cannot be used."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import tilesim as ts
from kernels.errors import OperandError, TilingError
from kernels.operators import run_again

if TYPE_CHECKING:
    from tests.cli.conftest import Cli

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "add-a-kernel.md").read_text(encoding="utf-8").partition("## A kernel of your own")[2]
EXAMPLE, FROM_PYTHON = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
COMMANDS = re.findall(r"^\$ tilesim (.*)$", PAGE, re.MULTILINE)

CALL = ("--target", "mt7004", "--shape", "rows=3,columns=40")

PLAIN = """
from tilesim import Call, operator, sizes

@operator(shape=sizes("rows", "columns"))
def plain(call):
    '''Nothing.'''
    return call.finished(call.machine(), shape=call.shape, tiling=call.tiled(rows=4, order="first"))

def bare(call):
    return None
"""


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder to stand in, with the page's example."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "relu_backward.py").write_text(EXAMPLE, encoding="utf-8")
    return tmp_path


@pytest.fixture
def refused(cli: Cli, folder: Path) -> Callable[[str], str]:
    """Run the operator `f` of a file with this code, and return the line of its refusal."""

    def line(code: str, name: str = "f") -> str:
        (folder / "mine.py").write_text(code, encoding="utf-8")
        return cli.refuse("run", f"mine.py:{name}", *CALL)

    return line


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_of_the_page_runs(cli: Cli, command: str) -> None:
    """What the page tells to type works as it stands; runs are checked and say that the file was executed."""
    result = cli(*shlex.split(command))
    assert result.exit_code == 0, result.stderr
    assert ("relu_backward.py was executed" in result.stderr) == command.startswith("run ")
    if "--timing-only" not in command and command.startswith("run "):
        assert "error      dx 0 (tolerance 0)" in result.stdout


def test_the_python_of_the_page_runs(folder: Path) -> None:
    """In a process of its own, with nothing imported before."""
    done = subprocess.run(
        [sys.executable, "-c", f"import sys; sys.path.insert(0, {str(ROOT)!r})\n{FROM_PYTHON}"],
        cwd=folder, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.stderr == ""
    assert done.stdout.startswith("(512000,) ")
    assert done.stdout.endswith("{'dx': 0.0}\n")


def test_fewer_elements_at_a_time_take_longer(cli: Cli) -> None:
    """The kernel's own tiling is obeyed, and time is that of the target, overrides included."""
    name = ("run", "relu_backward.py:relu_backward", *CALL[:3], "rows=64,columns=1000", "--json")
    plain, small, slow = (
        json.loads(cli(*name, *more).stdout)["cycles"]
        for more in ((), ("--tile", "elements=100"), ("--set", "link.ddr.bytes_per_cycle=2"))
    )
    assert small > 1.2 * plain
    assert slow > 2 * plain


def test_values_do_not_change_the_time() -> None:
    """As of every kernel; integers come out exactly."""
    call: dict[str, Any] = {
        "shape": {"rows": 7, "columns": 100},
        "target": ts.load_target("mt7004"),
        "cores": 3,
    }
    name = "relu_backward.py:relu_backward"
    timed, made = (ts.run_operator(name, **call, numerics=on, integers=True) for on in (False, True))
    assert timed.trace.hash() == made.trace.hash()
    assert made.dx is not None
    assert np.count_nonzero(made.dx) > 100


def test_a_changed_file_is_executed_again(cli: Cli, folder: Path) -> None:
    """The operator is that of the file as it stands."""
    (folder / "mine.py").write_text(PLAIN, encoding="utf-8")
    assert "rows=4" in cli("run", "mine.py:plain", *CALL).stdout
    (folder / "mine.py").write_text(PLAIN.replace("rows=4", "rows=44"), encoding="utf-8")
    assert "rows=44" in cli("run", "mine.py:plain", *CALL).stdout


def test_a_file_imports_what_lies_beside_it(cli: Cli, folder: Path) -> None:
    """As a program does."""
    (folder / "beside.py").write_text("SIZE = 77\n", encoding="utf-8")
    code = PLAIN.replace("rows=4", "rows=SIZE").replace("\n@", "\nfrom beside import SIZE\n\n@")
    (folder / "mine.py").write_text(code, encoding="utf-8")
    assert "rows=77" in cli("run", "mine.py:plain", *CALL).stdout
    assert str(folder) not in sys.path


def test_files_and_names_that_are_not_there(cli: Cli, refused: Callable[[str, str], str]) -> None:
    """The line names the file, and what it has."""
    assert "no such kernel file: where else.py" in cli.refuse("run", "else.py:f", *CALL)
    assert "limit plain; mine.py:NAME" in refused(PLAIN, "f")
    assert "a kernel file without an operator's name" in cli.refuse("run", "mine.py", *CALL)
    assert "not registered: where mine.py, got bare" in refused(PLAIN, "bare")


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("x = 1\nraise ValueError('so it is')\n", "where mine.py:2, got ValueError: so it is"),
        ("def f(:\n", "where mine.py:1, got SyntaxError"),
        ("import sys\n\nsys.exit(3)\n", "where mine.py:3, got SystemExit: 3"),
        ("import tilesim as ts\n@ts.operator()\ndef f(): pass\n", "takes_one"),
        ("import tilesim as ts\n@ts.operator(families=('vax',))\ndef f(call): pass\n", "got 'vax'"),
        ("import tilesim as ts\n@ts.operator(shape=ts.sizes('rows', 'columns'))\ndef f(call):\n    1 / 0\n",
         "where mine.py:4, got ZeroDivisionError"),
        ("import tilesim as ts\n@ts.operator(shape=ts.sizes('rows', 'columns'))\ndef f(call): pass\n",
         "did not return a Run: where mine.py:f, got None"),
    ],
)  # fmt: skip
def test_what_the_code_does_wrong_is_a_line(refused: Callable[[str], str], code: str, said: str) -> None:
    """An exception is told with the file's own line, and nothing is a fault of tilesim."""
    assert said.replace("takes_one", "an operator is a function of one argument") in refused(code)


def test_fields_of_the_tiling_are_checked(cli: Cli, folder: Path) -> None:
    """Unknown ones, other types and numbers below 1 are refused with the field."""
    (folder / "mine.py").write_text(PLAIN, encoding="utf-8")
    for field in ("columns=3", "rows=x", "rows=0", "order=3", "rows=true"):
        line = cli.refuse("run", "mine.py:plain", *CALL, "--tile", field)
        assert f"where {field.partition('=')[0]}," in line


def test_the_families_of_the_operator_are_obeyed(cli: Cli) -> None:
    """A kernel for one family is refused on another before it runs."""
    name = "relu_backward.py:relu_backward"
    line = cli.refuse("run", name, "--target", "ascend910b1", "--shape", CALL[3])
    assert "does not run on this family of targets: where ascend910b1" in line
    assert "rows is missing" in cli.refuse("run", name, "--target", "mt7004", "--shape", "columns=4")


def test_a_saved_run_is_not_called_again(folder: Path) -> None:
    """Reading a directory executes nothing."""
    call: dict[str, Any] = {"shape": {"rows": 7, "columns": 100}, "target": ts.load_target("mt7004")}
    run = ts.run_operator("relu_backward.py:relu_backward", **call)
    run.save(folder / "out")
    record = json.loads((folder / "out" / "run.json").read_text(encoding="utf-8"))
    with pytest.raises(OperandError, match="not of an operator of tilesim"):
        run_again(record, run.target)


def test_a_call_from_python_is_refused_by_fields() -> None:
    """Programs read the parts of the error."""
    call: dict[str, Any] = {"shape": {"rows": 7, "columns": 100}, "target": ts.load_target("mt7004")}
    with pytest.raises(TilingError) as caught:
        ts.run_operator("relu_backward.py:relu_backward", **call, tiling={"element": 3})
    assert caught.value.field == "element"
    with pytest.raises(OperandError, match="unknown operator"):
        ts.run_operator("relu", **call)


SWEPT = (
    "--target",
    "mt7004",
    "--shape",
    "rows=3,columns=40",
    "--workers",
    "1",
    "--out",
    "s.parquet",
    "--json",
)
VARY = ("--vary", "cores=1,2", "--vary", "shape.columns=40,80", "--vary", "tile.elements=64,128")


def printed(cli: Cli, *vary: str) -> Any:
    """What a sweep of the page's kernel prints."""
    result = cli("sweep", "relu_backward.py:relu_backward", *SWEPT, *vary)
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def test_a_sweep_varies_cores_shape_and_tiling(cli: Cli) -> None:
    """The points are those of single runs; the sweep goes on from its file."""
    made = printed(cli, *VARY)
    assert [row["status"] for row in made["rows"]] == ["ok"] * 8
    for row in made["rows"]:
        run = ts.run_operator(
            "relu_backward.py:relu_backward",
            shape={"rows": 3, "columns": row["shape.columns"]},
            target="mt7004",
            cores=row["cores"],
            tiling={"elements": row["tile.elements"]},
            numerics=False,
        )
        assert row["cycles"] == run.cycles
    again = printed(cli, *VARY)
    assert again["rows"] == made["rows"]


def test_results_of_another_kernel_are_not_gone_on_with(cli: Cli, folder: Path) -> None:
    """The file of results knows what was in the kernel file."""
    printed(cli, "--vary", "cores=1,2")
    with (folder / "relu_backward.py").open("a", encoding="utf-8") as file:
        file.write("\n# another\n")
    line = cli.refuse("sweep", "relu_backward.py:relu_backward", *SWEPT, "--vary", "cores=1,2")
    assert "s.parquet" in line


@pytest.mark.parametrize(
    ("vary", "line"),
    [
        (
            "shape.column=1,2",
            "unknown field: where --vary, got shape.column, limit shape.rows, shape.columns",
        ),
        ("tile.element=1,2", "unknown field: where --vary, got tile.element"),
        ("core=1,2", "unknown field: where --vary, got core"),
    ],
)
def test_a_sweep_over_what_the_kernel_does_not_have(cli: Cli, vary: str, line: str) -> None:
    """Before anything runs, with the fields that it has."""
    assert line in cli.refuse("sweep", "relu_backward.py:relu_backward", *SWEPT, "--vary", vary)


def test_a_sweep_of_a_file_that_is_not_there(cli: Cli) -> None:
    """As in a run."""
    assert "no such kernel file" in cli.refuse("sweep", "none.py:f", *SWEPT, "--vary", "cores=1,2")
