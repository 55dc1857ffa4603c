"""CSV files of measurements: read in one way, with errors that name file, line and column."""

from __future__ import annotations

import csv
from collections.abc import Callable, Collection, Iterator
from itertools import zip_longest
from pathlib import Path
from typing import TypeVar

from targets.errors import TilesimError
from tilesim.validation.cells import CellError, Record

UNUSABLE = "a measurement that is not usable"

T = TypeVar("T")


def read_table(path: Path, columns: Collection[str], row: Callable[[Record], T]) -> list[T]:
    """What `row` makes of each line of a file; lines without any text are none.

    Args:
        path: the file: UTF-8, with or without a byte order mark, and a line of column names.
        columns: those that it must have.
        row: makes one line; a CellError, another ValueError or a TilesimError from it says what is not usable.

    Raises:
        TilesimError: the file cannot be read or is empty, a column is missing, a line is not usable, or there is none.
    """
    lines = _lines(path)
    _, head = lines[0]
    missing = [name for name in columns if name not in head]
    if missing:
        what = "a file of measurements without some columns"
        raise TilesimError(what, where=str(path), got=", ".join(missing), limit=", ".join(columns))
    if len(lines) == 1:
        what, limit = "a file of measurements without rows", "one or more below the names of the columns"
        raise TilesimError(what, where=str(path), limit=limit)
    return [_made(row, head, cells, f"{path}, line {number}") for number, cells in lines[1:]]


def head_of(path: Path) -> list[str]:
    """The names of a file's columns.

    Raises:
        TilesimError: it cannot be read or is empty.
    """
    return _lines(path, most=1)[0][1]


def _lines(path: Path, most: int | None = None) -> list[tuple[int, list[str]]]:
    """The lines with text, with their numbers, up to `most`; there is one at least.

    Raises:
        TilesimError: it cannot be read or is empty.
    """
    found = []
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            for line in _with_text(file):
                found.append(line)
                if len(found) == most:
                    break
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise TilesimError("measurements that cannot be read", where=str(path), got=str(error)) from None
    if not found:
        raise TilesimError("an empty file", where=str(path), limit="names of columns, and rows below them")
    return found


def _with_text(file: Iterator[str]) -> Iterator[tuple[int, list[str]]]:
    reader = csv.reader(file)
    for line in reader:
        cells = [cell.strip() for cell in line]
        if any(cells):
            yield reader.line_num, cells


def _made(row: Callable[[Record], T], head: list[str], cells: list[str], where: str) -> T:
    """One line; what is beyond the last column is left out."""
    record = dict(zip_longest(head, cells[: len(head)], fillvalue=""))
    try:
        return row(record)
    except CellError as error:
        where = f"{where}, column {error.column}"
        raise TilesimError(UNUSABLE, where=where, got=error.got, limit=error.limit) from None
    except (ValueError, TilesimError) as error:
        raise TilesimError(UNUSABLE, where=where, got=str(error)) from None
