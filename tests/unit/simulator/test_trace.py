"""Traces: columns, files, hashes, selections."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from simulator.results.files import RunFileError
from simulator.results.trace import COLUMNS, Trace
from targets.errors import TilesimError
from tests.unit.simulator.made import TWO_TILES, made_trace

AXES = ("n", "h")
TILES = tuple((*row, tile, 7) for tile, row in enumerate(TWO_TILES))
GOLDEN_HASH = "22bacb1caad33493b0fa5938f3a2032843f5c84c65bc7d3e9a61171e679c1128"


def test_timeline_is_ordered_by_start_engine_and_end() -> None:
    """A core's timeline has its rows by start, then the engines' order, whatever the program's order was."""
    later_first = (
        (0, 1, "DMA1", "load", 0, 5, 9, 64, "ddr", "am", -1, "none"),
        (0, 1, "VPU", "product", 0, 5, 8, 0, "", "", -1, "none"),
        (0, 1, "DMA0", "load", 0, 2, 9, 64, "ddr", "am", -1, "none"),
        (0, 2, "DMA0", "load", 0, 0, 1, 64, "ddr", "am", -1, "none"),
    )
    assert made_trace(later_first).timeline(1) == [
        (2, 9, "DMA0", "load"),
        (5, 8, "VPU", "product"),
        (5, 9, "DMA1", "load"),
    ]


def test_columns_are_compact() -> None:
    """Every column has the type that the class promises, however wide the given arrays were."""
    wide = {name: column.astype(np.int64) for name, column in made_trace(TILES, AXES).columns().items()}
    trace = Trace(wide, **made_trace(TILES, AXES).lists())
    assert {name: trace[name].dtype.str for name in COLUMNS} == dict(COLUMNS)
    assert trace["n"].dtype == np.int32


def test_columns_cannot_be_written_to() -> None:
    """A trace that was returned cannot change under its hash."""
    with pytest.raises(ValueError, match="read-only"):
        made_trace(TWO_TILES)["start"][0] = 1


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"end": None}, "lacks columns: got end"),
        ({"depth": np.zeros(6)}, "unknown columns: got depth"),
        ({"end": np.zeros(5, dtype=np.int64)}, "differ in length"),
        ({"core": np.full(6, 40_000)}, "do not fit a trace's column: where core"),
        ({"start": np.full(6, 0.5)}, "do not fit a trace's column: where start"),
        ({"engine": np.full(6, 4)}, "out of range: where engine"),
        ({"source": np.full(6, -2)}, "out of range: where source"),
        ({"waited_row": np.full(6, 6)}, "out of range: where waited_row"),
        ({"start": np.zeros((6, 1))}, "has one axis: where start"),
    ],
)
def test_wrong_columns_are_refused(changes: dict[str, Any], message: str) -> None:
    """A missing, unknown, short, overflowing or out of range column is named in the error."""
    trace = made_trace(TWO_TILES)
    columns = {name: column for name, column in {**trace.columns(), **changes}.items() if column is not None}
    with pytest.raises(TilesimError, match=message):
        Trace(columns, **trace.lists())


def test_file_round_trip(tmp_path: Path) -> None:
    """A trace read back from its file is equal, to the hash, and nothing else is left in the folder."""
    trace = made_trace(TILES, AXES)
    trace.write(tmp_path / "trace.parquet")
    again = Trace.read(tmp_path / "trace.parquet")
    assert again == trace
    assert again.hash() == trace.hash()
    assert [path.name for path in tmp_path.iterdir()] == ["trace.parquet"]


def test_empty_trace_round_trip(tmp_path: Path) -> None:
    """A trace without rows can be written, read and asked."""
    trace = made_trace(())
    trace.write(tmp_path / "t.parquet")
    assert Trace.read(tmp_path / "t.parquet") == trace
    assert (len(trace), trace.cores(), trace.timeline(), len(trace.to_pandas())) == (0, [], [], 0)


def test_file_is_compressed(tmp_path: Path) -> None:
    """The file's columns are compressed with zstd."""
    made_trace(TWO_TILES).write(tmp_path / "t.parquet")
    group = pq.ParquetFile(tmp_path / "t.parquet").metadata.row_group(0)
    assert {group.column(i).compression for i in range(group.num_columns)} == {"ZSTD"}


def test_file_is_small(tmp_path: Path) -> None:
    """A regular trace of 40,000 rows takes less than four bytes a row."""
    part = made_trace(TWO_TILES)
    parts = [
        part.replaced(start=part["start"] + 90 * i, end=part["end"] + 90 * i) for i in range(40_000 // 6)
    ]
    Trace.concat(parts).write(tmp_path / "t.parquet")
    assert (tmp_path / "t.parquet").stat().st_size < 4 * 40_000


def test_foreign_files_are_refused(tmp_path: Path) -> None:
    """A missing file, one that is not Parquet and a Parquet file of others are told apart."""
    (tmp_path / "text.parquet").write_text("no")
    pq.write_table(pa.table({"a": [1]}), tmp_path / "other.parquet")
    for name, message in (
        ("none", "there is no trace"),
        ("text", "not a readable"),
        ("other", "not a trace"),
    ):
        with pytest.raises(RunFileError, match=message):
            Trace.read(tmp_path / f"{name}.parquet")


def test_newer_files_are_refused(tmp_path: Path) -> None:
    """A file of a later format says so instead of being misread."""
    table = made_trace(TWO_TILES).to_arrow()
    newer = {
        key: value.replace(b'"version": 1', b'"version": 2') for key, value in table.schema.metadata.items()
    }
    pq.write_table(table.replace_schema_metadata(newer), tmp_path / "t.parquet")
    with pytest.raises(RunFileError, match=r"newer tilesim.*got format 2, limit format 1"):
        Trace.read(tmp_path / "t.parquet")


def test_failed_write_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """When writing fails half way the earlier file stays whole, and no temporary one remains."""
    path = tmp_path / "t.parquet"
    made_trace(TILES, AXES).write(path)

    def fail(table: object, where: Path, **_: object) -> None:
        where.write_text("half")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(pq, "write_table", fail)
    with pytest.raises(RunFileError, match="No space left"):
        made_trace(()).write(path)
    assert Trace.read(path) == made_trace(TILES, AXES)
    assert [found.name for found in tmp_path.iterdir()] == ["t.parquet"]


def test_hash_is_the_same_in_other_processes() -> None:
    """The hash is a golden number, here and in processes with other seeds of Python's own hashes."""
    code = "from tests.unit.simulator.test_trace import *; print(made_trace(TILES, AXES).hash())"
    for seed in ("1", "99"):
        environment = {**os.environ, "PYTHONHASHSEED": seed, "PYTHONPATH": os.pathsep.join(sys.path)}
        done = subprocess.run(
            [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
        )
        assert done.stdout.strip() == GOLDEN_HASH
    assert made_trace(TILES, AXES).hash() == GOLDEN_HASH


def test_hash_depends_on_columns_and_lists() -> None:
    """One cycle, one coordinate or one name more gives another hash."""
    trace = made_trace(TILES, AXES)
    later = trace.replaced(end=trace["end"] + (np.arange(len(trace)) == 5))
    moved = trace.replaced(h=trace["h"] + 1)
    named = Trace(trace.columns(), **{**trace.lists(), "names": ("barrier", "load", "product", "save")})
    assert len({trace.hash(), later.hash(), moved.hash(), named.hash()}) == 4
    assert trace not in (later, moved, named)


def test_pandas_has_names() -> None:
    """The frame shows names instead of codes, and nothing where there is no memory."""
    frame = made_trace(TILES, AXES).to_pandas()
    columns = ["engine", "name", "source", "destination", "waited_reason", "n"]
    assert frame[columns].astype(object).where(frame[columns].notna(), None).values.tolist()[1:3] == [
        ["DMA1", "load", "ddr", "am", "none", 1],
        ["VPU", "product", None, None, "dependency", 2],
    ]


def test_select_moves_the_rows_waited_for() -> None:
    """Rows waited for keep pointing at the same instruction, or at none when that was left out."""
    trace = made_trace(TWO_TILES)
    chosen = trace.select(np.array([False, True, True, True, True, False]))
    assert chosen["waited_row"].tolist() == [-1, -1, 0, 2]
    assert chosen["start"].tolist() == [12, 40, 70, 90]


def test_concat_joins_lists_and_rows() -> None:
    """Codes, rows waited for and axes of the second trace are those of the joined one."""
    first, other = made_trace(TWO_TILES), made_trace(TILES, AXES)
    swapped = {**other.lists(), "engines": ("VPU", "SCALAR", "DMA0", "DMA7")}
    codes = np.array([1, 0, 2, 3])[other["engine"]]
    joined = Trace.concat([first, Trace({**other.columns(), "engine": codes}, **swapped)])
    assert joined.engines == ("SCALAR", "VPU", "DMA0", "DMA1", "DMA7")
    assert [joined.engines[code] for code in joined["engine"][[7, 8]]] == ["DMA7", "VPU"]
    assert joined["waited_row"].tolist() == [-1, -1, 0, 1, 3, -1, -1, -1, 6, 7, 9, -1]
    assert joined["n"].tolist() == [-1] * 6 + [0, 1, 2, 3, 4, 5]


def test_concat_of_nothing_is_refused() -> None:
    """There is no trace without lists."""
    with pytest.raises(TilesimError, match="no trace to join"):
        Trace.concat([])


def test_arrow_is_not_imported_for_simulation() -> None:
    """A process that makes a trace and its hash does not load Arrow, which would take longer than the run."""
    code = (
        "import sys; from tests.unit.simulator.made import *; made_run().summary(); "
        "print('pyarrow' in sys.modules, 'pandas' in sys.modules, 'matplotlib' in sys.modules)"
    )
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["False", "False", "False"]
