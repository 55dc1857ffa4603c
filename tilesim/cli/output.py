"""What the command line prints: results to stdout, progress to stderr and only to a terminal."""

from __future__ import annotations

import contextlib
import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)
from rich.table import Table
from rich.text import Text

_PLAIN_WIDTH = 120

Counted = Callable[[int, int], None]
"""Is told how many pieces of work are done, and of how many."""


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


@contextlib.contextmanager
def counted(text: str) -> Iterator[Counted | None]:
    """A bar on stderr with how much of the text's work is done and the time left, if a person looks at a terminal.

    Gives what is to be told that so many pieces are done, of how many; None without a terminal.
    """
    if not sys.stderr.isatty():
        yield None
        return
    columns = (
        *(TextColumn(text, markup=False), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn()),
        *(TextColumn("time left"), TimeRemainingColumn(elapsed_when_finished=False)),
    )
    with Progress(*columns, console=Console(stderr=True)) as bar:
        yield _shown(bar)


def _shown(bar: Progress) -> Counted:
    task = bar.add_task("pieces", total=None)
    begun = False

    def told(done: int, total: int) -> None:
        nonlocal begun
        if not begun:  # what was done before took no time: only the pieces of now say how long the rest takes
            bar.reset(task, total=total, completed=done - 1)
            begun = True
        bar.update(task, completed=done)

    return told


def print_json(record: Mapping[str, Any]) -> None:
    """Print one JSON object of plain, finite values."""
    sys.stdout.write(json_text(record))


def json_text(record: Mapping[str, Any]) -> str:
    """Return one JSON object of plain, finite values as text."""
    return json.dumps(record, indent=2, allow_nan=False) + "\n"


def write_lines(text: str) -> None:
    """Write lines as they are, however wide."""
    sys.stdout.write(text + "\n")


def print_table(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print rows of text below a title and column heads."""
    table = Table(title=Text(title), title_justify="left", box=None, pad_edge=False)
    for column in columns:
        table.add_column(column, overflow="fold")
    for row in rows:
        table.add_row(*(Text(text) for text in row))  # a bracket in a text is no style
    console().print(table)


def page_of(files: Sequence[Path]) -> Path:
    """Return the page among the files of a report, which leads to all the others."""
    return next(file for file in files if file.suffix == ".md")
