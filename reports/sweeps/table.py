"""The table of a sweep: a row a point, saved as one Parquet file."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from simulator.results.files import RunFileError, write_aside
from simulator.results.summary import duration

if TYPE_CHECKING:
    import pandas as pd
    import pyarrow as pa

FORMAT = "tilesim-sweep"
FORMAT_VERSION = 1

TYPES = {
    "point": "int64",
    "key": "string",
    "status": "string",
    "error": "string",
    "cycles": "int64",
    "time_ms": "double",
    "gflops": "double",
    "peak_gflops": "double",
    "share_of_peak": "double",
    "bound": "string",
    "bound_text": "string",
    "seconds": "double",
}
"""Columns of every table and their types; varied fields stand behind `key`, bytes and costs before `seconds`."""

OK = "ok"


@dataclass(frozen=True, eq=False)
class SweepTable:
    """The points of a sweep with their figures: `len`, `rows`, `str` (a text), `to_arrow`, `to_pandas`, `write`.

    Attributes:
        call: what all points share; plain values.
        identity: a hash of that and of the target's numbers; tables of one identity have one meaning.
        varied: the varied fields.
        rows: one a point, in the order of the sweep: the columns of `TYPES`, the varied fields, `bytes.LINK`
            (bytes that copies moved over each shared link), `cost.NAME` (see docs/sweeps.md). A failed point
            has no figures.
    """

    call: Mapping[str, Any]
    identity: str
    varied: tuple[str, ...]
    rows: tuple[Mapping[str, Any], ...]

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def done(self) -> list[Mapping[str, Any]]:
        """The rows with figures."""
        return [row for row in self.rows if row["status"] == OK]

    @property
    def failed(self) -> list[Mapping[str, Any]]:
        """The rows with an error."""
        return [row for row in self.rows if row["status"] != OK]

    @property
    def columns(self) -> list[str]:
        """Names of the columns, in order."""
        first, last = [*TYPES][:2], [*TYPES][2:-1]
        more = {name for row in self.rows for name in row} - TYPES.keys() - set(self.varied)
        return [*first, *self.varied, *last, *sorted(more), "seconds"]

    def column(self, name: str) -> list[Any]:
        """The values of a column, None where a row has none."""
        return [row.get(name) for row in self.rows]

    def __str__(self) -> str:
        return as_text(self.varied, self.rows)

    def to_arrow(self) -> pa.Table:
        """A `pyarrow.Table`; what the sweep is stands in the metadata of its schema."""
        import pyarrow as pa  # noqa: PLC0415 - takes longer to import than the rest together

        arrays = {name: _array(pa, name, self.column(name)) for name in self.columns}
        about = {"format_version": FORMAT_VERSION, "call": self.call, "varied": self.varied}
        text = json.dumps({**about, "identity": self.identity}, allow_nan=False)
        return pa.table(arrays).replace_schema_metadata({FORMAT: text})

    def to_pandas(self) -> pd.DataFrame:
        """A `pandas.DataFrame`."""
        found: pd.DataFrame = self.to_arrow().to_pandas()
        return found

    def write(self, path: Path | str) -> None:
        """Write one Parquet file, aside and then moved into place.

        Raises:
            RunFileError: the operating system refused.
        """
        import pyarrow.parquet as pq  # noqa: PLC0415

        table = self.to_arrow()
        write_aside({Path(path): lambda file: pq.write_table(table, file)})

    @classmethod
    def read(cls, path: Path | str) -> SweepTable:
        """Read a file that `write` wrote.

        Raises:
            RunFileError: it cannot be read, or is no table of a sweep, or a newer tilesim wrote it.
        """
        table, about = _read(Path(path))
        if about["format_version"] > FORMAT_VERSION:
            got, limit = f"format {about['format_version']}", f"format {FORMAT_VERSION}"
            raise RunFileError("a newer tilesim wrote the sweep", where=str(path), got=got, limit=limit)
        rows = [
            {name: value for name, value in row.items() if _kept(name, value)} for row in table.to_pylist()
        ]
        return cls(about["call"], about["identity"], tuple(about["varied"]), tuple(rows))


def _kept(name: str, value: object) -> bool:
    """An absent figure is no entry of a row; the columns that every row has stay."""
    return value is not None or name == "error"


def _read(path: Path) -> tuple[Any, dict[str, Any]]:
    import pyarrow as pa  # noqa: PLC0415
    import pyarrow.parquet as pq  # noqa: PLC0415

    try:
        # Without the machinery of data sets: its threads can still be at work when a short program ends.
        table = pq.ParquetFile(pa.BufferReader(path.read_bytes())).read(use_threads=False)
    except (FileNotFoundError, NotADirectoryError) as error:
        raise RunFileError(
            "there is no saved sweep", where=str(path), remedy="name a sweep's file"
        ) from error
    except pa.ArrowInvalid as error:
        raise RunFileError("not a file of Parquet", where=str(path), remedy="name a sweep's file") from error
    except OSError as error:
        raise RunFileError("cannot read", where=str(path), got=error.strerror or error) from error
    text = (table.schema.metadata or {}).get(FORMAT.encode())
    if text is None:
        raise RunFileError("not a sweep of tilesim", where=str(path), remedy="name a sweep's file")
    return table, json.loads(text)


def _array(pa: Any, name: str, values: Sequence[Any]) -> Any:
    """A column of the type that its values have: one of whole and broken numbers is broken, one of others is text."""
    if name in TYPES:
        return pa.array(values, pa.type_for_alias(TYPES[name]))
    kinds = {type(value) for value in values if value is not None}
    if kinds == {int, float}:
        return pa.array([None if value is None else float(value) for value in values], pa.float64())
    if len(kinds) > 1:
        return pa.array([None if value is None else str(value) for value in values], pa.string())
    return pa.array(values)


def as_text(varied: Sequence[str], rows: Sequence[Mapping[str, Any]]) -> str:
    """Rows as lines of text: the varied values, time, rate, share of the peak, what bounds, or the error."""
    heads = [*varied, "time", "GFLOP/s", "of peak", "bound"]
    table = [heads, *([_cell(row.get(name)) for name in varied] + _figures(row) for row in rows)]
    widths = [max(len(line[i]) for line in table) for i in range(len(heads))]
    lines = ("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)) for line in table)
    return "\n".join(line.rstrip() for line in lines)


def _figures(row: Mapping[str, Any]) -> list[str]:
    if row["status"] != OK:
        return [row["status"], "", "", row["error"] or ""]
    share = row.get("share_of_peak")
    peak = "" if share is None else f"{100 * share:.1f} %"
    return [duration(1e3 * row["time_ms"]), f"{row['gflops']:,.1f}", peak, row.get("bound") or ""]


def _cell(value: object) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)
