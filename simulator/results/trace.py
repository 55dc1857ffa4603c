"""The trace of a run: columns, one row an instruction."""

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simulator.results.files import RunFileError, write_aside
from targets.errors import TilesimError

REASONS = ("none", "issue", "dependency", "engine", "barrier", "flag")
"""What an instruction waited for last: nothing; the scalar unit's issue; a result, whose row is `waited_row`;
its own engine, busy with the previous instruction; the release of a barrier or of a flag."""

COLUMNS: Mapping[str, str] = {
    "launch": "<i2",
    "core": "<i2",
    "engine": "<i2",
    "name": "<i2",
    "issued": "<i8",
    "ready": "<i8",
    "start": "<i8",
    "flow": "<i8",
    "end": "<i8",
    "bytes": "<i8",
    "source": "|i1",
    "destination": "|i1",
    "waited_row": "<i8",
    "waited_reason": "|i1",
}
"""The columns every trace has, in order, with their types; an int32 column for each axis follows."""

CACHE_COLUMNS: Mapping[str, str] = {"hit": "<i8", "fetched": "<i8", "evicted": "<i8"}
"""Columns of a chip with a cache: bytes of the copy that were resident (all that it writes), bytes fetched for
it from the cached memory in whole lines, and bytes written back to make room."""

COST_COLUMNS: Mapping[str, str] = {
    "issue": "<i4",
    "signal": "<i4",
    "setup": "<i4",
    "floor": "<i8",
    "charged": "<i8",
    "needed_row": "<i8",
}
"""Columns of a simulated run that say what an instruction costs by itself, in cycles: the scalar unit's time to issue
it, with the waits for flags before it, and to set the flags after it; a copy's start-up (what a start after a pause
adds is not in it) and the shortest time that its path allows; the bytes that it puts on its link, in whole bursts;
and the row of the result that it needed and that came last, whether or not it waited for something else longer."""

ROW_COLUMNS = frozenset({"waited_row", "needed_row"})
"""Columns that point to rows."""

OPTIONAL = (CACHE_COLUMNS, COST_COLUMNS)
"""Groups of columns that a trace has all of or none of."""

_AXIS_TYPE = "<i4"
_LISTS = ("engines", "names", "memories", "reasons", "axes")
# column -> (list its codes point into, least code)
_CODES = {
    "engine": ("engines", 0),
    "name": ("names", 0),
    "source": ("memories", -1),
    "destination": ("memories", -1),
    "waited_reason": ("reasons", 0),
}
_METADATA_KEY = b"tilesim.trace"
_FORMAT_VERSION = 1


class Trace:
    """What every engine of every core did: one row an instruction, in order (launch, core, program index).

    A row's id is its position. The columns are those of `COLUMNS`, all times in cycles: `issued` is when the
    instruction entered its engine's queue, `ready` when its dependencies had ended, `start` to `end` its time
    on the engine (with overlapped start-ups: from the start of its own). `flow` is when a copy's bytes begin
    to flow, behind its start-up and the copy before it; without such a column, and for all else, it is `start`.
    `bytes` is 0 when it is not a copy.
    A chip with a cache also has the columns of `CACHE_COLUMNS`, a simulated run those of `COST_COLUMNS`.
    `engine`, `name`, `source`, `destination` and `waited_reason` are codes into the lists `engines`, `names`,
    `memories` and `reasons`; -1 is no memory, no row waited for, no such tile coordinate.

    Args:
        columns: the arrays of `COLUMNS` and one per axis, all of one length.
        engines: names of the lanes ("SCALAR", "VPU", "DMA0").
        names: names of the instructions.
        memories: names of the memories.
        reasons: what `waited_reason` may be.
        axes: names of the tile's coordinates.

    Raises:
        TilesimError: a column is missing, unknown, of another length, or has a value outside its range.
    """

    def __init__(
        self,
        columns: Mapping[str, NDArray[Any]],
        *,
        engines: Sequence[str],
        names: Sequence[str],
        memories: Sequence[str],
        reasons: Sequence[str] = REASONS,
        axes: Sequence[str] = (),
    ):
        self.engines, self.names, self.memories = tuple(engines), tuple(names), tuple(memories)
        self.reasons, self.axes = tuple(reasons), tuple(axes)
        more = {
            name: kind for group in OPTIONAL if group.keys() & columns.keys() for name, kind in group.items()
        }
        types = {**COLUMNS, **more, **dict.fromkeys(self.axes, _AXIS_TYPE)}
        if "flow" not in columns and "start" in columns:
            columns = {**columns, "flow": columns["start"]}
        _check_names(columns, types)
        self._columns = {name: _compact(name, columns[name], dtype) for name, dtype in types.items()}
        _check_lengths(self._columns)
        self._check_lists()
        self._check_codes()

    def _check_lists(self) -> None:
        for name, values in self.lists().items():
            if len(set(values)) != len(values):
                raise TilesimError(f"a name occurs twice in the trace's {name}", got=", ".join(values))

    def _check_codes(self) -> None:
        limits = {name: (least, len(self.lists()[of]) - 1) for name, (of, least) in _CODES.items()}
        rows = dict.fromkeys(sorted(ROW_COLUMNS & self._columns.keys()), (-1, len(self) - 1))
        for name, (least, most) in {**limits, **rows}.items():
            column = self._columns[name]
            if column.size and (column.min() < least or column.max() > most):
                got = f"values from {column.min()} to {column.max()}"
                raise TilesimError(
                    "a code of the trace is out of range", where=name, got=got, limit=f"{least} to {most}"
                )

    def lists(self) -> dict[str, tuple[str, ...]]:
        """The lists that codes point into, and the axes, by name."""
        return {name: getattr(self, name) for name in _LISTS}

    def columns(self) -> dict[str, NDArray[Any]]:
        """All columns by name, in the order of `COLUMNS`, then of the axes; the arrays are read-only."""
        return dict(self._columns)

    def __len__(self) -> int:
        return len(self._columns["start"])

    def __getitem__(self, column: str) -> NDArray[Any]:
        return self._columns[column]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Trace):
            return NotImplemented
        if self.lists() != other.lists():
            return False
        return all(np.array_equal(self[name], other[name]) for name in self._columns)

    __hash__ = None  # type: ignore[assignment]  # `hash()` is of the contents, and costs a pass over them

    def __repr__(self) -> str:
        return f"Trace({len(self)} instructions, {len(self.cores())} cores)"

    def cores(self) -> list[int]:
        """The cores that have rows, in order."""
        return [int(core) for core in np.unique(self["core"])]

    def timeline(self, core: int = 0) -> list[tuple[int, int, str, str]]:
        """A core's instructions as (start, end, engine, name), by start, then order of engines, then end."""
        rows = np.flatnonzero(self["core"] == core)
        rows = rows[np.lexsort((self["end"][rows], self["engine"][rows], self["start"][rows]))]
        columns = [self[name][rows].tolist() for name in ("start", "end", "engine", "name")]
        return [
            (s, e, self.engines[engine], self.names[name])
            for s, e, engine, name in zip(*columns, strict=True)
        ]

    def hash(self) -> str:
        """The SHA-256 of all columns and lists, in hexadecimal: the same in any process."""
        digest = hashlib.sha256(json.dumps([len(self), self.lists()]).encode())
        for name, column in self._columns.items():
            digest.update(f"{name}:{column.dtype.str}:".encode())
            digest.update(np.ascontiguousarray(column).data)
        return digest.hexdigest()

    def select(self, mask: NDArray[Any]) -> "Trace":
        """The rows where a mask (bool, one a row) is true; a row waited for that is left out becomes -1."""
        keep = np.flatnonzero(np.asarray(mask, dtype=bool))
        new_id = np.full(len(self) + 1, -1, dtype=np.int64)  # the last entry serves waited_row == -1
        new_id[keep] = np.arange(len(keep))
        columns = {name: column[keep] for name, column in self._columns.items()}
        for name in ROW_COLUMNS & columns.keys():
            columns[name] = new_id[columns[name]]
        return Trace(columns, **self.lists())

    def replaced(self, **columns: NDArray[Any]) -> "Trace":
        """The same trace with some columns exchanged."""
        return Trace({**self._columns, **columns}, **self.lists())

    @staticmethod
    def concat(traces: Iterable["Trace"]) -> "Trace":
        """One trace of the rows of several, one after the other; lists are joined in order of appearance.

        Raises:
            TilesimError: there is no trace to join.
        """
        parts = list(traces)
        if not parts:
            raise TilesimError("no trace to join", remedy="give Trace.concat at least one")
        lists = {of: tuple(dict.fromkeys(v for part in parts for v in part.lists()[of])) for of in _LISTS}
        first_rows = np.cumsum([0, *(len(part) for part in parts)])
        optional = (name for group in OPTIONAL for name in group)
        more = tuple(name for name in optional if any(name in part.columns() for part in parts))
        moved = [
            _recoded(part, lists, int(first), more) for part, first in zip(parts, first_rows, strict=False)
        ]
        return Trace({name: np.concatenate([part[name] for part in moved]) for name in moved[0]}, **lists)

    def to_arrow(self) -> Any:
        """A `pyarrow.Table` of the columns as they are; the lists are JSON in the metadata of its schema."""
        import pyarrow as pa  # noqa: PLC0415  (takes longer to import than the rest together)

        description = json.dumps({"version": _FORMAT_VERSION, **self.lists()})
        return pa.table(self._columns).replace_schema_metadata({_METADATA_KEY: description.encode()})

    def to_pandas(self) -> Any:
        """A `pandas.DataFrame`, codes decoded to categoricals; no memory is a missing value.

        Raises:
            TilesimError: pandas is not installed.
        """
        try:
            import pandas as pd  # noqa: PLC0415  (an optional dependency)
        except ImportError as error:
            raise TilesimError(
                "pandas is not installed", remedy="pip install pandas, or use to_arrow()"
            ) from error
        lists = self.lists()
        decoded = {
            name: pd.Categorical.from_codes(self[name], categories=list(lists[of]))
            for name, (of, _) in _CODES.items()
        }
        return pd.DataFrame({**self._columns, **decoded})

    def write(self, path: str | PathLike[str]) -> None:
        """Write a Parquet file (zstd), aside and then moved into place.

        Raises:
            RunFileError: the operating system refused.
        """
        write_aside({Path(path): self.write_in_place})

    def write_in_place(self, path: Path) -> None:
        """Write the Parquet file straight to a path, for who moves it into place later."""
        import pyarrow.parquet as pq  # noqa: PLC0415

        # Times grow slowly along a core and codes are few: differences and dictionaries are small.
        wide = {
            name: "DELTA_BINARY_PACKED"
            for name, column in self._columns.items()
            if column.dtype.itemsize >= 4
        }
        coded = [name for name in self._columns if name not in wide]
        pq.write_table(self.to_arrow(), path, compression="zstd", use_dictionary=coded, column_encoding=wide)

    @staticmethod
    def read(path: str | PathLike[str]) -> "Trace":
        """Read a file that `write` wrote.

        Raises:
            RunFileError: there is none, it is not a trace, or a newer version wrote it.
        """
        import pyarrow as pa  # noqa: PLC0415
        import pyarrow.parquet as pq  # noqa: PLC0415

        try:
            table = pq.ParquetFile(
                path
            ).read()  # no dataset machinery: one file, no partitions from its folders
        except FileNotFoundError as error:
            raise RunFileError("there is no trace", where=str(path), remedy="save the run again") from error
        except (pa.ArrowException, OSError) as error:
            raise RunFileError("not a readable Parquet file", where=str(path), got=str(error)) from error
        lists = _described(table.schema.metadata or {}, path)
        try:
            return Trace({name: table[name].to_numpy() for name in table.column_names}, **lists)
        except TilesimError as error:
            raise RunFileError("the trace is damaged", where=str(path), got=str(error)) from error


def _check_names(columns: Mapping[str, object], types: Mapping[str, str]) -> None:
    missing, unknown = types.keys() - columns.keys(), columns.keys() - types.keys()
    if missing:
        raise TilesimError("a trace lacks columns", got=", ".join(sorted(missing)))
    if unknown:
        raise TilesimError(
            "a trace has unknown columns",
            got=", ".join(sorted(unknown)),
            remedy="name a tile's coordinates in axes",
        )


def _compact(name: str, values: NDArray[Any], dtype: str) -> NDArray[Any]:
    given = np.asarray(values)
    if given.ndim != 1:
        raise TilesimError("a column of a trace has one axis", where=name, got=f"{given.ndim} axes")
    column = given.astype(dtype)
    if given.dtype != column.dtype and not np.array_equal(given, column):
        raise TilesimError(
            "values do not fit a trace's column", where=name, got=given.dtype, limit=column.dtype
        )
    column.flags.writeable = False
    return column


def _check_lengths(columns: Mapping[str, NDArray[Any]]) -> None:
    lengths = {name: len(column) for name, column in columns.items()}
    if len(set(lengths.values())) > 1:
        raise TilesimError("the columns of a trace differ in length", got=lengths)


def _recoded(
    trace: Trace, lists: Mapping[str, tuple[str, ...]], first_row: int, more: Sequence[str]
) -> dict[str, NDArray[Any]]:
    """Columns of a trace with the codes of other lists, as the rows from `first_row` on."""
    columns = trace.columns()
    for name, (of, _) in _CODES.items():
        # one entry more, which -1 picks
        codes = np.array([*(lists[of].index(value) for value in trace.lists()[of]), -1], dtype=np.int64)
        columns[name] = codes[columns[name]]
    for name in ROW_COLUMNS & columns.keys():
        columns[name] = np.where(columns[name] < 0, -1, columns[name] + first_row)
    absent = np.full(len(trace), -1, dtype=np.int32)
    nothing = np.zeros(len(trace), dtype=np.int64)
    found = {name: columns.get(name, absent if name in ROW_COLUMNS else nothing) for name in more}
    return {**{name: columns.get(name, absent) for name in (*COLUMNS, *lists["axes"])}, **found}


def _described(metadata: Mapping[bytes, bytes], path: str | PathLike[str]) -> dict[str, tuple[str, ...]]:
    """The lists that a file's metadata holds."""
    if _METADATA_KEY not in metadata:
        raise RunFileError("not a trace of tilesim", where=str(path), remedy="name a file that tilesim wrote")
    description = json.loads(metadata[_METADATA_KEY])
    if description["version"] > _FORMAT_VERSION:
        raise RunFileError(
            "the trace was written by a newer tilesim",
            where=str(path),
            got=f"format {description['version']}",
            limit=f"format {_FORMAT_VERSION}",
            remedy="update tilesim",
        )
    return {name: tuple(description[name]) for name in _LISTS}
