"""CSV files: a header, rows of cells by column, and numbers in them, each refusal with its line."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from pathlib import Path

from kernels.shape.shapes import ConvShape
from tilesim.networks.layers import NetworkError, said_at

_WHOLE = re.compile(r"[+-]?[0-9]{1,18}")


@dataclass(frozen=True)
class Row:
    """One row: its place (file:line) and its cells by column, stripped; cells that the row lacks are empty."""

    where: str
    cells: Mapping[str, str]

    def text(self, column: str) -> str:
        """The cell, empty where the table has no such column."""
        return self.cells.get(column, "")

    def number(self, column: str, default: int | None = None) -> int:
        """The whole number in a column; an empty cell is the default.

        Raises:
            NetworkError: it is none, or it is empty and has no default.
        """
        text = self.text(column)
        if not text and default is not None:
            return default
        if not _WHOLE.fullmatch(text):
            what = (
                "no whole number in"
                if text
                else "an empty cell in"
                if column in self.cells
                else "there is no"
            )
            remedy = "or say --batch" if column == "N" else ""
            raise NetworkError(f"{what} column {column}", where=self.where, got=text, remedy=remedy)
        return int(text)


def read_lines(path: Path) -> list[tuple[int, list[str]]]:
    """Lines with their numbers, cells stripped, empty lines and those of empty cells left out.

    Raises:
        NetworkError: it is no text, no CSV, or empty.
    """
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            reader = csv.reader(file, strict=True)
            stripped = ((reader.line_num, [cell.strip() for cell in row]) for row in reader)
            lines = [(number, row) for number, row in stripped if any(row)]
    except (UnicodeDecodeError, csv.Error) as error:
        raise NetworkError("not a CSV table in UTF-8", where=str(path), got=str(error)) from error
    except OSError as error:
        raise NetworkError("cannot read", where=str(path), got=error.strerror or str(error)) from error
    if len(lines) < 2:
        raise NetworkError(
            "a table without layers", where=str(path), got=f"{len(lines)} lines that are not empty"
        )
    return lines


def check_columns(
    where: str, columns: Sequence[str], known: Collection[str], required: Collection[str]
) -> None:
    """Refuse a header with a column that is unknown, comes twice, or is missing.

    Raises:
        NetworkError: names the column.
    """
    for column in columns:
        if column and column not in known:
            close = get_close_matches(column, known, n=1)
            remedy = f"did you mean {close[0]}?" if close else f"known: {', '.join(known)}"
            raise NetworkError("unknown column", where=where, got=column, remedy=remedy)
        if column and columns.count(column) > 1:
            raise NetworkError("a column comes twice", where=where, got=column)
    missing = [column for column in required if column not in columns]
    if missing:
        raise NetworkError(f"no column {missing[0]}", where=where, got=", ".join(filter(None, columns)))


def rows(path: Path, columns: Sequence[str], lines: Sequence[tuple[int, list[str]]]) -> Iterator[Row]:
    """The rows by column; what begins with # behind the last column is a remark.

    Raises:
        NetworkError: a cell stands under no column.
    """
    for number, cells in lines:
        where = f"{path.name}:{number}"
        for place, cell in enumerate(cells):
            if cell and (place >= len(columns) or not columns[place]):
                if cell.startswith("#"):
                    break
                raise NetworkError(f"cell {place + 1} stands under no column", where=where, got=cell)
        yield Row(where, {c: cell for c, cell in zip(columns, cells, strict=False) if c})


def shapes(
    found: Iterable[Row], texts: Collection[str], shape_of: Callable[[Row], ConvShape]
) -> Iterator[tuple[Row, ConvShape]]:
    """Rows with their geometries; rows that differ in the `texts` columns only share one.

    Raises:
        NetworkError: a geometry cannot be.
    """
    made: dict[tuple[str, ...], ConvShape] = {}
    for row in found:
        key = tuple(cell for column, cell in row.cells.items() if column not in texts)
        if key not in made:
            with said_at(row.where):
                made[key] = shape_of(row)
        yield row, made[key]
