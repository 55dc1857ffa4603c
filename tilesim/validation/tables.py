"""CSV files of measurements: read in one way, with errors that name file and line."""

from __future__ import annotations

import csv
from collections.abc import Callable, Collection
from pathlib import Path
from typing import TypeVar

from targets.errors import TilesimError

Record = dict[str, str]
"""The cells of a line by column, without blanks around them; empty where the line is too short."""

T = TypeVar("T")


def read_table(path: Path, columns: Collection[str], row: Callable[[Record], T]) -> list[T]:
    """What `row` makes of each line of a file.

    Args:
        path: the file: UTF-8, with or without a byte order mark, and a line of column names.
        columns: those that it must have.
        row: makes one line; a ValueError from it says what is not usable.

    Raises:
        TilesimError: the file cannot be read, a column is missing, or a line is not usable.
    """
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            reader = csv.DictReader(file)
            reader.fieldnames = [name.strip() for name in reader.fieldnames or ()]
            missing = [name for name in columns if name not in reader.fieldnames]
            if missing:
                what = "a file of measurements without some columns"
                raise TilesimError(what, where=str(path), got=", ".join(missing), limit=", ".join(columns))
            return [_made(row, record, f"{path}, line {reader.line_num}") for record in reader]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise TilesimError("measurements that cannot be read", where=str(path), got=str(error)) from None


def head_of(path: Path) -> list[str]:
    """The names of a file's columns.

    Raises:
        TilesimError: it cannot be read.
    """
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            return [name.strip() for name in next(csv.reader(file), [])]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise TilesimError("measurements that cannot be read", where=str(path), got=str(error)) from None


def _made(row: Callable[[Record], T], record: dict[str | None, str | list[str] | None], where: str) -> T:
    """One line; what is beyond the last column is left out."""
    cells = {
        name: (cell or "").strip() for name, cell in record.items() if name and not isinstance(cell, list)
    }
    try:
        return row(cells)
    except ValueError as error:
        raise TilesimError("a measurement that is not usable", where=where, got=str(error)) from None
