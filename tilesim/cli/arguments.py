"""What people type, turned into values: shapes, lists, `key=value` pairs, core masks and directories."""

from __future__ import annotations

import difflib
import json
import os
from collections.abc import Collection, Iterable
from pathlib import Path

from kernels.files import names_a_file
from kernels.operators import OPERATORS, VENDOR_CALLS, Operator, Problem, operator_named
from simulator.results.run import FORMAT
from tilesim.cli.errors import ArgumentError

RUN_FILES = frozenset(
    {
        *("run.json", "trace.parquet", "report.md", "report.html", "trace.pftrace"),
        *("timeline.png", "utilisation.png", "traffic.png", "roofline.png"),
    }
)
"""The files of a saved run and its report; a directory with any other is not overwritten."""

_WORDS = {"true": True, "false": False}


def nearest(name: str, known: Collection[str]) -> str:
    """Return the remedy for an unknown name: the nearest known one, or all of them."""
    close = difflib.get_close_matches(name, known, n=1)
    return f"did you mean {close[0]}?" if close else f"known: {', '.join(sorted(known))}"


def find_operator(name: str) -> Operator:
    """Return the operator of that name; of `my_kernel.py:name` that of the file, which is executed.

    Raises:
        ArgumentError: there is none; the nearest name is in the remedy.
        KernelFileError: the file cannot be used.
    """
    if names_a_file(name):
        return operator_named(name)
    if name in VENDOR_CALLS:
        remedy = f"tilesim operators {name} says how"
        raise ArgumentError(
            what="an operator that is called from Python only", where="OPERATOR", got=name, remedy=remedy
        )
    if name not in OPERATORS:
        raise ArgumentError(
            what="unknown operator", where="OPERATOR", got=name, remedy=nearest(name, OPERATORS)
        )
    return OPERATORS[name]


def shape_of(operator: str, text: str) -> Problem:
    """Return the problem that the text describes: (m, n, k) for gemm, for most others the geometry of a convolution."""
    problem: Problem = operator_named(operator).shape(text)
    return problem


def parse_grads(operator: Operator, text: str | None) -> tuple[str, ...] | None:
    """Return the gradients of a text such as `dx,dw`; None (the operator's default) if there is no text.

    Raises:
        ArgumentError: the operator does not compute one of them.
    """
    if text is None:
        return None
    names = tuple(name.strip() for name in text.split(","))
    for name in names:
        if name not in operator.gradients:
            raise ArgumentError(
                what=f"{operator.name} has no such gradient",
                where="--grads",
                got=name or "an empty name",
                limit=", ".join(operator.gradients) or "no gradients",
            )
    return names


def names_of(text: str) -> list[str]:
    """Return the targets of a text such as `mt7004,ascend910b1`.

    Raises:
        ArgumentError: a name is empty, or comes twice.
    """
    names = [name.strip() for name in text.split(",")]
    if not all(names) or len(set(names)) != len(names):
        raise ArgumentError(
            what="not a list of different targets",
            where="--targets",
            got=text,
            remedy="--targets mt7004,ft_m7032",
        )
    return names


def parse_core_mask(text: str | None) -> int | None:
    """Return the mask of a text such as `0b1111` or `0xf`; None if there is no text.

    Raises:
        ArgumentError: it is no number, or it names no core.
    """
    if text is None:
        return None
    try:
        mask = int(text, 0) if text[:2].lower() in ("0b", "0x") else 0  # 11 could be meant as bits
    except ValueError:
        mask = 0
    if mask <= 0:
        raise ArgumentError(
            what="not a core mask", where="--core-mask", got=text, remedy="write it as 0b1111 or 0xf"
        )
    return mask


def parse_pairs(option: str, texts: Iterable[str]) -> dict[str, str]:
    """Return the pairs of an option that is given as `key=value` any number of times.

    Raises:
        ArgumentError: a text is no pair, or a key comes twice.
    """
    pairs: dict[str, str] = {}
    for text in texts:
        key, sign, value = (part.strip() for part in text.partition("="))
        if not (key and sign and value):
            raise ArgumentError(what="not a pair", where=option, got=text, remedy=f"{option} key=value")
        if key in pairs:
            raise ArgumentError(what="key given twice", where=option, got=key)
        pairs[key] = value
    return pairs


def parse_value(text: str) -> int | bool | str:
    """Return the text as an int (also 0x10, 0b11) or a bool (`true`, `false`) where it is one."""
    if text.lower() in _WORDS:
        return _WORDS[text.lower()]
    try:
        return int(text, 0)
    except ValueError:
        return text


def parse_tiling(texts: Iterable[str], budget: int | None) -> tuple[bool, dict[str, object]]:
    """Return whether `auto` is among the texts of --tile, and the fields of the others.

    Raises:
        ArgumentError: a text is no pair, a key comes twice, or there is a budget for no search.
    """
    listed = list(texts)
    auto = "auto" in listed
    if budget is not None and not auto:
        raise ArgumentError(
            what="a budget without a search",
            where="--search-budget",
            got=budget,
            remedy="give --tile auto too",
        )
    pairs = parse_pairs("--tile", (text for text in listed if text != "auto"))
    return auto, {key: parse_value(text) for key, text in pairs.items()}


def check_core_choice(cores: int | None, core_mask: str | None) -> None:
    """Refuse a call that says both how many cores and which.

    Raises:
        ArgumentError: both are given.
    """
    if cores is not None and core_mask is not None:
        raise ArgumentError(
            what="two choices of cores", where="--cores and --core-mask", remedy="give one of them"
        )


def check_directory(directory: Path) -> None:
    """Refuse a directory that a run cannot be written to, or that holds anything else than a saved run.

    Raises:
        ArgumentError: it is a file, it is not writable, or it holds a file that is not a run's.
    """
    if directory.is_dir():
        _check_holds_a_run(directory)
    check_writable(directory)


def check_writable(directory: Path, option: str = "--out") -> None:
    """Refuse, before anything is simulated, a place where no directory can be made or written to.

    Raises:
        ArgumentError: it is a file, lies below one, or is not writable.
    """
    standing = next(path for path in (directory, *directory.absolute().parents) if path.exists())
    if not standing.is_dir():
        raise ArgumentError(what="not a directory", where=option, got=str(standing))
    if not os.access(standing, os.W_OK):
        raise ArgumentError(what="cannot write", where=option, got=str(standing))


def _check_holds_a_run(directory: Path) -> None:
    names = {path.name for path in directory.iterdir()}
    if "run.json" in names and not is_run(directory):
        raise ArgumentError(
            what="a run.json that tilesim did not write",
            where="--out",
            got=str(directory),
            remedy="give a new or an empty directory",
        )
    strangers = sorted(names - RUN_FILES)
    if strangers or (names and "run.json" not in names):
        raise ArgumentError(
            what="the directory holds something other than a tilesim run",
            where="--out",
            got=f"{directory} with {(strangers or sorted(names))[0]}",
            remedy="give a new or an empty directory",
        )


def is_run(directory: Path) -> bool:
    """Whether the directory's run.json is one that tilesim wrote."""
    try:
        record = json.loads((directory / "run.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return False
    return isinstance(record, dict) and record.get("format") == FORMAT


def remove_report(directory: Path) -> None:
    """Remove the report of the run that stood here before: it would be taken for that of the new one."""
    for name in RUN_FILES - {"run.json", "trace.parquet"}:
        (directory / name).unlink(missing_ok=True)
