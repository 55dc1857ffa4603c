"""Where the rows of a sweep are kept, so that a stopped one goes on without losing or repeating a point.

A Parquet file cannot be appended to. So each finished point becomes a line of a journal beside it (`FILE.journal`:
JSON, one write a line), and the Parquet file is written anew from all rows, aside and then moved, every
`FOLD_SECONDS`, at the end, and when the sweep stops by itself; then the journal is emptied, and at the end removed.

What is in the journal when the process is killed is read at the next start, so a finished point is never lost by a
kill: at most the points that were being run are run again. (The Parquet file is flushed to the disk before the journal
is emptied; lines are not, one by one: a loss of power can cost those of the last seconds.) A line cut short by a kill
or a full disk is dropped. A kill between the move of the Parquet file and the emptying of the journal leaves rows
twice; they are read once, by their keys. The journal is locked while a sweep uses it.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from reports.sweeps.table import FORMAT, FORMAT_VERSION, SweepTable
from simulator.results.files import RunFileError
from tilesim.sweeps.call import SweptCall
from tilesim.sweeps.errors import SweepError
from tilesim.sweeps.points import Point
from tilesim.sweeps.work import LOST, Row

FOLD_SECONDS = 30.0
"""How often the Parquet file is brought up to date while a sweep runs."""


class Store:
    """The rows of a sweep, in memory and, with a path, in a file.

    Use it in a `with` block: its end brings the file up to date, whatever happened inside.

    Raises:
        SweepError: the file, or the journal beside it, holds another sweep, or points that this one does not have.
        RunFileError: it cannot be read or written.
    """

    def __init__(self, call: SweptCall, points: Sequence[Point], path: Path | None) -> None:
        self.call, self.points, self.path = call, points, path
        self.rows: dict[str, Row] = {}
        self._journal = Journal(path, self._head()) if path else None
        self._folded = time.monotonic()
        self._stale = False

    def __enter__(self) -> Self:
        if self.path and self._journal:
            self._load(self.path, self._journal)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: object, trace: TracebackType | None) -> None:
        if self._journal is None:
            return
        with self._journal:
            if kind is None:
                self.fold(final=True)
            else:
                # What stopped the sweep is to be told, not that the file could not be brought up to date: the
                # journal has the rows.
                with contextlib.suppress(RunFileError):
                    self.fold(final=True)

    @property
    def todo(self) -> list[tuple[int, Point]]:
        """The points without a row, with their numbers; those whose workers died are run again."""
        return [(number, point) for number, point in enumerate(self.points) if point.key not in self.rows]

    @property
    def table(self) -> SweepTable:
        """The rows so far, in the order of the points."""
        rows = [
            self.rows[point.key] | {"point": n}
            for n, point in enumerate(self.points)
            if point.key in self.rows
        ]
        return SweepTable(self.call.record(), self.call.identity, self._varied, tuple(rows))

    def add(self, number: int, figures: Row) -> Row:
        """Keep the row of a point.

        Raises:
            RunFileError: it cannot be written; all rows before are kept.
        """
        point = self.points[number]
        row = {"point": number, "key": point.key, **dict(point.values), **figures}
        if self._journal:
            self._journal.append(row)
        self.rows[point.key] = row
        self._stale = True
        if time.monotonic() - self._folded > FOLD_SECONDS:
            self.fold()
        return row

    def fold(self, *, final: bool = False) -> None:
        """Write the Parquet file anew from all rows, then empty the journal; `final` removes it.

        Raises:
            RunFileError: the operating system refused; then the journal stays as it is.
        """
        if self.path is None or self._journal is None:
            return
        if self._stale:
            self.table.write(self.path)
            with self.path.open("rb") as file:
                os.fsync(file.fileno())
            self._stale = False
        self._folded = time.monotonic()
        if final:
            self._journal.remove()
        else:
            self._journal.empty()

    @property
    def _varied(self) -> tuple[str, ...]:
        return tuple(name for name, _ in self.points[0].values)

    def _head(self) -> dict[str, Any]:
        return {"format": FORMAT, "format_version": FORMAT_VERSION, "identity": self.call.identity}

    def _load(self, path: Path, journal: Journal) -> None:
        try:
            stored = self._stored(path)
            waiting = list(journal.lines())
            self._take(path, [*stored, *waiting])
            self._stale = bool(waiting)
        except BaseException:
            journal.close()
            raise

    def _stored(self, path: Path) -> tuple[Mapping[str, Any], ...]:
        if not path.exists():
            return ()
        table = SweepTable.read(path)
        if table.identity != self.call.identity or set(table.varied) != set(self._varied):
            raise other_sweep(path)
        return table.rows

    def _take(self, path: Path, rows: Sequence[Mapping[str, Any]]) -> None:
        known = {point.key for point in self.points}
        strange = {row["key"] for row in rows} - known
        if strange:
            raise SweepError(
                "the file has points that this sweep does not have",
                where=f"--out {path}",
                got=f"{len(strange)} of {len(rows)}",
                remedy="give another file, or all the values that it was made with",
            )
        # Values are the points' own: in the file, whole numbers beside broken ones have become broken ones.
        kept = {row["key"]: row for row in rows if row["status"] != LOST}
        values = {point.key: dict(point.values) for point in self.points}
        self.rows = {key: {**row, **values[key]} for key, row in kept.items()}


def other_sweep(path: Path) -> SweepError:
    """The refusal of a file that another call, another target or another version of tilesim made."""
    return SweepError(
        "the file holds another sweep",
        where=f"--out {path}",
        limit="the same call, target, varied fields and version of tilesim",
        remedy="give another file",
    )


class Journal:
    """A file of JSON lines beside the Parquet file: a head that says which sweep it is, then a row a line.

    Raises:
        RunFileError: it cannot be written.
        SweepError: it is another sweep's, or another process uses it.
    """

    def __init__(self, beside: Path, head: Mapping[str, Any]) -> None:
        self.path = beside.with_name(beside.name + ".journal")
        self._beside, self._head = beside, _line(head)
        try:
            self._file = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o666)
        except OSError as error:
            raise _refused(self.path, error) from error
        try:
            self._lock()
            self._begin()
        except BaseException:
            os.close(self._file)
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file; one without a row is removed."""
        with contextlib.suppress(OSError):
            if os.fstat(self._file).st_size <= len(self._head):
                self.remove()
        os.close(self._file)

    def lines(self) -> Iterator[Row]:
        """The rows in it; a last line that was cut short is dropped.

        Raises:
            RunFileError: a line is no JSON.
        """
        for line in self._content().split(b"\n")[1:-1]:
            try:
                yield json.loads(line)
            except ValueError as error:
                remedy = f"remove {self.path}: its points are run again"
                raise RunFileError(
                    "a damaged journal", where=str(self.path), got=error, remedy=remedy
                ) from error

    def append(self, row: Mapping[str, Any]) -> None:
        """Write one row.

        Raises:
            RunFileError: the operating system refused; nothing of the row stays.
        """
        self._write(_line(row))

    def empty(self) -> None:
        """Leave the head only."""
        os.ftruncate(self._file, len(self._head))

    def remove(self) -> None:
        """Take it away."""
        self.path.unlink(missing_ok=True)

    def _write(self, text: bytes) -> None:
        size = os.fstat(self._file).st_size
        try:
            written = os.write(self._file, text)
            while written < len(text):
                written += os.write(self._file, text[written:])
        except OSError as error:
            os.ftruncate(self._file, size)
            raise _refused(self.path, error) from error

    def _content(self) -> bytes:
        with open(self._file, "rb", closefd=False) as file:
            file.seek(0)
            return file.read()

    def _lock(self) -> None:
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            remedy = "wait for it, or give another file"
            raise SweepError(
                "another process runs this sweep", where=f"--out {self._beside}", remedy=remedy
            ) from error

    def _begin(self) -> None:
        """Write the head of a new journal; of one that is there, check it, and cut off a line that is not whole."""
        content = self._content()
        whole = content[: content.rfind(b"\n") + 1]
        if whole and not whole.startswith(self._head):
            raise other_sweep(self._beside)
        os.ftruncate(self._file, len(whole))
        if not whole:
            try:
                self._write(self._head)
            except RunFileError:
                self.remove()
                raise


def _line(record: Mapping[str, Any]) -> bytes:
    return json.dumps(record, allow_nan=False).encode() + b"\n"


def _refused(path: Path, error: OSError) -> RunFileError:
    remedy = (
        "give another --out" if error.errno != 28 else "make room and run it again: it goes on from there"
    )
    return RunFileError("cannot write", where=str(path), got=error.strerror or error, remedy=remedy)
