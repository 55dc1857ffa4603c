"""The shape of the code base: who may import whom, how long things are, what is public."""

from __future__ import annotations

import ast
import importlib
import importlib.util
import re
import subprocess
import sys
import types
from collections.abc import Iterator
from pathlib import Path

import pytest

import tilesim

ROOT = Path(__file__).resolve().parents[2]
PACKAGES = ("targets", "simulator", "kernels", "reports", "tilesim")
ALLOWED = {
    "targets": frozenset[str](),
    "simulator": frozenset({"targets"}),
    "kernels": frozenset({"simulator", "targets"}),
    "reports": frozenset({"simulator", "targets"}),
    "tilesim": frozenset({"targets", "simulator", "kernels", "reports"}),
}
ROOMS = {
    "kernels": {
        "shape": frozenset[str](),
        "dsp": frozenset({"shape"}),
        "davinci": frozenset({"shape"}),
        "reference": frozenset({"shape", "davinci"}),
        "search": frozenset({"shape", "dsp", "davinci"}),
    },
    "reports": {"networks": frozenset[str](), "sweeps": frozenset[str](), "page": frozenset[str]()},
    "tilesim": {
        "workers": frozenset[str](),
        "calibration": frozenset[str](),
        "validation": frozenset[str](),
        "sweeps": frozenset({"workers"}),
        "networks": frozenset({"workers"}),
    },
}
"""Folders of a package, and which of its other folders each may import: nothing below knows the command line."""

MOST_LINES_OF_A_FILE = 400
MOST_LINES_OF_A_FUNCTION = 60
CONVOLUTION = re.compile(r"conv(?!e)", re.IGNORECASE)  # convert, convention and converge are plain English

Function = ast.FunctionDef | ast.AsyncFunctionDef


def sources(package: str) -> list[Path]:
    """The Python files of a package of this checkout."""
    return sorted((ROOT / package).rglob("*.py"))


def parsed(path: Path) -> ast.Module:
    """The syntax tree of a file."""
    return ast.parse(path.read_text(encoding="utf-8"), str(path))


def modules(tree: ast.AST, package: str) -> set[str]:
    """Dotted names of all modules that the tree imports, relative ones resolved within the package."""
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            module = "." * node.level + (node.module or "")
            inside = "" if module.endswith(".") else "."
            names.update(f"{module}{inside}{alias.name}" for alias in node.names)
    return {importlib.util.resolve_name(name, package) for name in names}


def imported(tree: ast.AST, package: str) -> set[str]:
    """Top-level names of all modules that the tree imports."""
    return {name.partition(".")[0] for name in modules(tree, package)}


def identifiers(tree: ast.AST) -> Iterator[str]:
    """Every name that the tree defines, takes, reads or imports; texts and comments are free."""
    for node in ast.walk(tree):
        for field in ("id", "attr", "name", "arg", "asname", "module"):
            value = getattr(node, field, None)
            if isinstance(value, str):
                yield value


def functions(tree: ast.AST) -> Iterator[tuple[Function, int]]:
    """Every function of the tree with its length in lines."""
    for node in ast.walk(tree):
        if isinstance(node, Function):
            yield node, (node.end_lineno or node.lineno) - node.lineno + 1


@pytest.mark.parametrize("package", PACKAGES)
def test_a_package_imports_only_those_below_it(package: str) -> None:
    """The arrows between the packages point one way."""
    ours = set(PACKAGES) - {package}
    files = sources(package)
    assert files
    wrong = {
        f"{path.relative_to(ROOT)}: {name}"
        for path in files
        for name in (imported(parsed(path), package) & ours) - ALLOWED[package]
    }
    assert not wrong


@pytest.mark.parametrize(
    ("package", "room"), [(package, room) for package, rooms in ROOMS.items() for room in rooms]
)
def test_a_folder_imports_only_those_below_it(package: str, room: str) -> None:
    """The arrows between the folders of a package point one way too."""
    folders = {path.name for path in (ROOT / package).iterdir() if path.is_dir()} - {room}
    files = sources(f"{package}/{room}")
    assert files
    wrong = {
        f"{path.relative_to(ROOT)}: {name}"
        for path in files
        for name in modules(parsed(path), f"{package}.{room}")
        if name.split(".")[0] == package and name.split(".")[1] in folders - ROOMS[package][room]
    }
    assert not wrong


@pytest.mark.parametrize("package", ["kernels", "reports", "targets", "tilesim"])
def test_only_the_simulator_knows_simpy(package: str) -> None:
    """A kernel issues instructions and never sees the event loop; nor does anybody else."""
    assert not [path for path in sources(package) if "simpy" in imported(parsed(path), package)]


def test_the_simulator_knows_no_convolution() -> None:
    """Names in the simulator speak of machines and instructions only."""
    wrong = {
        f"{path.relative_to(ROOT)}: {name}"
        for path in sources("simulator")
        for name in identifiers(parsed(path))
        if CONVOLUTION.search(name)
    }
    assert not wrong


def test_the_checks_see_what_they_forbid() -> None:
    """Imports inside functions, relative imports, parameters and attributes do not escape the checks."""
    tree = ast.parse(
        "from ..kernels import x\ndef f(conv_shape):\n    import simpy.events\n    return a.conv2d"
    )
    assert imported(tree, "simulator.deep") == {"simulator", "simpy"}
    assert modules(tree, "simulator.deep") == {"simulator.kernels.x", "simpy.events"}
    assert [name for name in identifiers(tree) if CONVOLUTION.search(name)] == ["conv_shape", "conv2d"]
    assert not CONVOLUTION.search("convert")
    assert [length for _, length in functions(tree)] == [3]


@pytest.mark.parametrize("package", PACKAGES)
def test_a_package_comes_from_this_checkout(package: str) -> None:
    """The generic names are not taken by another project of the environment."""
    module = importlib.import_module(package)
    assert module.__file__ is not None
    assert Path(module.__file__).resolve().is_relative_to(ROOT / package)


def test_all_lists_the_public_names_of_tilesim() -> None:
    """`__all__` is the public API: every public name, sorted, and no other."""
    public = sorted(
        name
        for name, value in vars(tilesim).items()
        if not name.startswith("_") and not isinstance(value, types.ModuleType)
    )
    assert sorted(tilesim.__all__) == public


def test_importing_tilesim_loads_no_heavy_library() -> None:
    """Pictures, tables and the command line are loaded by those who use them."""
    heavy = "{'matplotlib', 'pandas', 'pyarrow', 'rich', 'typer'}"
    program = f"import sys, tilesim; print(sorted({heavy} & sys.modules.keys()))"
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout == "[]\n"


@pytest.mark.parametrize("package", PACKAGES)
def test_files_and_functions_are_short(package: str) -> None:
    """A file holds one idea, a function fits on a screen."""
    too_long = []
    for path in sources(package):
        lines = len(path.read_text(encoding="utf-8").splitlines())
        if lines > MOST_LINES_OF_A_FILE:
            too_long.append(f"{path.relative_to(ROOT)}: {lines} lines")
        for function, length in functions(parsed(path)):
            if length > MOST_LINES_OF_A_FUNCTION:
                too_long.append(f"{path.relative_to(ROOT)}: {function.name} has {length} lines")
    assert not too_long
