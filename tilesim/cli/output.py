"""What the command line prints: results to stdout, progress to stderr and only to a terminal."""

from __future__ import annotations

import contextlib
import json
import math
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

_PLAIN_WIDTH = 120


def console() -> Console:
    """Return a console on stdout: as wide as the terminal, or of a fixed width in a pipe or a file."""
    if sys.stdout.isatty():
        return Console()
    return Console(file=sys.stdout, width=_PLAIN_WIDTH)


@contextlib.contextmanager
def progress(text: str) -> Iterator[None]:
    """Show on stderr that the text's work goes on, if a person looks at a terminal."""
    if not sys.stderr.isatty():
        yield
        return
    with Console(stderr=True).status(text):
        yield


def print_json(record: Mapping[str, Any]) -> None:
    """Print one JSON object; a number that JSON does not know (nan, inf) becomes null."""
    sys.stdout.write(json.dumps(_finite(record), indent=2, allow_nan=False) + "\n")


def print_table(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print rows of text below a title and column heads."""
    table = Table(title=title, title_justify="left", box=None, pad_edge=False)
    for column in columns:
        table.add_column(column, overflow="fold")
    for row in rows:
        table.add_row(*(_literal(text) for text in row))
    console().print(table)


def print_run(record: Mapping[str, Any]) -> None:
    """Print the summary of a run, given as the object of `Run.to_dict`."""
    title = f"{record['operator']} on {record['target']}, cores: {record['cores']}"
    print_table(title, ("", ""), [*_cost(record), *_use(record), *_launches(record), *_accuracy(record)])


def page_of(files: Sequence[Path]) -> Path:
    """Return the page among the files of a report, which leads to all the others."""
    return next(file for file in files if file.suffix == ".md")


def _cost(record: Mapping[str, Any]) -> list[tuple[str, str]]:
    achieved, peak = record["achieved_gflops"], record["peak_gflops"]
    return [
        ("time", f"{record['cycles']:,} cycles, {record['time_us']:,.2f} us"),
        ("work", f"{record['useful_macs']:,} useful of {record['macs']:,} executed multiply-adds"),
        ("speed", f"{achieved:,.1f} of {peak:,.1f} GFLOP/s ({achieved / peak:.1%})"),
        ("bound", str(record["bound"])),
    ]


def _use(record: Mapping[str, Any]) -> list[tuple[str, str]]:
    traffic = [
        f"{memory} {_bytes(moved['read'])} read, {_bytes(moved['write'])} written"
        for memory, moved in record["traffic_bytes"].items()
    ]
    return [
        ("cores active", str(record["cores_active"])),
        ("busy", _shares(record["utilisation"])),
        ("stalls", _shares(record["stalls"]) or "none"),
        ("traffic", "\n".join(traffic) or "none"),
    ]


def _launches(record: Mapping[str, Any]) -> list[tuple[str, str]]:
    lines = [f"{launch['name']} {launch['cycles']:,} cycles" for launch in record["launches"]]
    return [("launches", "\n".join(lines))]


def _accuracy(record: Mapping[str, Any]) -> list[tuple[str, str]]:
    errors, tolerance = record.get("max_error"), record.get("tolerance") or {}
    if not errors:
        return [("largest error", "not checked")]
    lines = [f"{name} {error:.3g} (tolerance {tolerance[name]:.3g})" for name, error in errors.items()]
    return [("largest error", "\n".join(lines))]


def _shares(shares: Mapping[str, float]) -> str:
    return ", ".join(f"{name} {share:.1%}" for name, share in shares.items())


def _bytes(count: float) -> str:
    for unit in ("B", "KiB", "MiB"):
        if count < 1024:
            return f"{count:.4g} {unit}"
        count /= 1024
    return f"{count:,.1f} GiB"


def _literal(text: str) -> str:
    """Return the text so that rich takes no bracket in it for a style."""
    return text.replace("[", r"\[")


def _finite(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
