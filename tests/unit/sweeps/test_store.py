"""Rows are kept in a journal and a Parquet file: nothing finished is lost or run again, nothing half written stays."""

from __future__ import annotations

import contextlib
import json
import os
from pathlib import Path
from typing import Any

import pytest

from reports.sweeps.table import SweepTable
from simulator.results.files import RunFileError
from tilesim.sweeps.call import SweptCall
from tilesim.sweeps.errors import SweepError
from tilesim.sweeps.points import Point, points_of
from tilesim.sweeps.store import Store
from tilesim.sweeps.work import LOST, ended

CALL = SweptCall("gemm", "mt7004", "m=8,n=8,k=8")
POINTS = points_of({"cores": (1, 2, 3), "dtype": ("fp16", "fp32")})


class KilledError(Exception):
    """Stands for what ends a process at once."""


def row_of(number: int) -> dict[str, Any]:
    """Some figures of a point."""
    return ended("ok") | {"cycles": 100 * number, "time_ms": number / 7, "seconds": 0.25}


def killed_after(count: int, path: Path, points: tuple[Point, ...] = POINTS) -> None:
    """Keep so many rows, then vanish as a killed process does: no end of the block, no file but the journal."""
    store = Store(CALL, points, path).__enter__()
    for number, _ in store.todo[:count]:
        store.add(number, row_of(number))
    assert store._journal is not None
    os.close(store._journal._file)


def finished(path: Path, points: tuple[Point, ...] = POINTS) -> list[int]:
    """Run the rest; returns what was run."""
    with Store(CALL, points, path) as store:
        todo = [number for number, _ in store.todo]
        for number in todo:
            store.add(number, row_of(number))
    return todo


def test_what_a_killed_sweep_finished_is_there(tmp_path: Path) -> None:
    """The table is that of a sweep that nobody killed; only the rest is run; one file is left."""
    path, whole = tmp_path / "a.parquet", tmp_path / "b.parquet"
    killed_after(2, path)
    assert not path.exists()
    killed_after(1, path)
    assert finished(path) == [3, 4, 5]
    assert finished(whole) == list(range(6))
    assert SweepTable.read(path).rows == SweepTable.read(whole).rows
    assert sorted(tmp_path.iterdir()) == [path, whole]


def test_a_line_cut_short_is_dropped(tmp_path: Path) -> None:
    """Its point is run again, and the next line does not stick to it."""
    path = tmp_path / "a.parquet"
    killed_after(3, path)
    journal = tmp_path / "a.parquet.journal"
    journal.write_bytes(journal.read_bytes()[:-9])
    killed_after(1, path)
    assert finished(path) == [3, 4, 5]


def test_rows_in_both_files_are_one(tmp_path: Path) -> None:
    """A kill between the Parquet file and the emptying of the journal repeats nothing."""
    path = tmp_path / "a.parquet"
    killed_after(2, path)
    journal = tmp_path / "a.parquet.journal"
    before = journal.read_bytes()
    with Store(CALL, POINTS, path) as store:
        store.fold()
        assert len(SweepTable.read(path)) == 2
    journal.write_bytes(before)
    assert finished(path) == [2, 3, 4, 5]
    assert len(SweepTable.read(path)) == 6


def test_the_file_is_brought_up_to_date_while_the_sweep_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Then the journal has its head only, and a kill loses nothing."""
    monkeypatch.setattr("tilesim.sweeps.store.FOLD_SECONDS", -1)
    path = tmp_path / "a.parquet"
    killed_after(2, path)
    assert SweepTable.read(path).column("point") == [0, 1]
    assert len((tmp_path / "a.parquet.journal").read_text(encoding="utf-8").splitlines()) == 1
    assert finished(path) == [2, 3, 4, 5]


def test_a_damaged_journal_is_refused(tmp_path: Path) -> None:
    """A line that is not JSON in the middle of it is nobody's kill."""
    path, journal = tmp_path / "a.parquet", tmp_path / "a.parquet.journal"
    killed_after(2, path)
    journal.write_text(journal.read_text(encoding="utf-8").replace('"point": 0', "point"), encoding="utf-8")
    with pytest.raises(RunFileError, match="damaged journal"), Store(CALL, POINTS, path):
        pass
    assert list(tmp_path.iterdir()) == [journal]


def test_an_error_leaves_what_is_done(tmp_path: Path) -> None:
    """Whatever ends the block, the Parquet file has the rows and the journal is gone."""
    path = tmp_path / "a.parquet"
    with contextlib.suppress(KilledError), Store(CALL, POINTS, path) as store:
        store.add(4, row_of(4))
        raise KilledError
    assert SweepTable.read(path).column("point") == [4]
    assert list(tmp_path.iterdir()) == [path]


def test_a_sweep_that_does_nothing_leaves_nothing(tmp_path: Path) -> None:
    """No empty file, no journal."""
    with pytest.raises(KilledError), Store(CALL, POINTS, tmp_path / "a.parquet"):
        raise KilledError
    assert not list(tmp_path.iterdir())


def test_a_point_whose_workers_died_is_run_again(tmp_path: Path) -> None:
    """It has a row until then."""
    path = tmp_path / "a.parquet"
    with Store(CALL, POINTS, path) as store:
        for number in range(6):
            store.add(number, row_of(number) if number != 3 else ended(LOST, "killed") | {"seconds": 0.0})
    assert [row["point"] for row in SweepTable.read(path).failed] == [3]
    assert finished(path) == [3]
    assert not SweepTable.read(path).failed


def test_more_values_keep_what_is_stored(tmp_path: Path) -> None:
    """A grid that grows runs what is new, and its rows are in the new order."""
    path = tmp_path / "a.parquet"
    finished(path)
    more = points_of({"cores": (1, 2, 3, 4), "dtype": ("bf16", "fp16", "fp32")})
    assert finished(path, more) == [0, 3, 6, 9, 10, 11]
    assert SweepTable.read(path).column("point") == list(range(12))


def test_a_value_keeps_its_type_through_the_file(tmp_path: Path) -> None:
    """1 beside 2.5 is 1.0 in the file, but its row is still that of the point."""
    path, points = tmp_path / "a.parquet", points_of({"cores": (1, 2.5, "x")})
    with contextlib.suppress(KilledError), Store(CALL, points, path) as store:
        for number in (0, 1):
            store.add(number, row_of(number))
        raise KilledError
    assert SweepTable.read(path).column("cores") == [1.0, 2.5]
    assert finished(path, points) == [2]
    assert SweepTable.read(path).column("cores") == ["1", "2.5", "x"]


def test_another_sweep_is_refused(tmp_path: Path) -> None:
    """Another call, another target, other fields, fewer points: the file stays as it is."""
    path = tmp_path / "a.parquet"
    finished(path)
    before = path.read_bytes()
    others = [
        (SweptCall("gemm", "mt7004", "m=8,n=8,k=9"), POINTS, "another sweep"),
        (SweptCall("gemm", "mt7004", "m=8,n=8,k=8", overrides={"groups": 3}), POINTS, "another sweep"),
        (CALL, points_of({"cores": (1, 2, 3)}), "another sweep"),
        (CALL, POINTS[1:], "points that this sweep does not have"),
    ]
    for call, points, match in others:
        with pytest.raises(SweepError, match=match), Store(call, points, path):
            pass
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


def test_a_journal_of_another_sweep_is_refused(tmp_path: Path) -> None:
    """Also where the process was killed before its first Parquet file."""
    path = tmp_path / "a.parquet"
    killed_after(2, path)
    before = {file: file.read_bytes() for file in tmp_path.iterdir()}
    with pytest.raises(SweepError, match="another sweep"):
        Store(SweptCall("gemm", "mt7004", "m=8,n=8,k=9"), POINTS, path)
    assert {file: file.read_bytes() for file in tmp_path.iterdir()} == before


def test_two_sweeps_do_not_share_a_file(tmp_path: Path) -> None:
    """The second is refused while the first is open."""
    path = tmp_path / "a.parquet"
    with Store(CALL, POINTS, path), pytest.raises(SweepError, match="another process"):
        Store(CALL, POINTS, path)


@pytest.mark.parametrize("content", [b"", b"text", b"PAR1 and no more"])
def test_a_file_of_something_else_is_refused(tmp_path: Path, content: bytes) -> None:
    """It stays as it is."""
    path = tmp_path / "a.parquet"
    path.write_bytes(content)
    with pytest.raises(RunFileError, match=str(path)), Store(CALL, POINTS, path):
        pass
    assert path.read_bytes() == content
    assert list(tmp_path.iterdir()) == [path]


def test_a_journal_line_is_json(tmp_path: Path) -> None:
    """Anybody can look at what a killed sweep had done."""
    killed_after(1, tmp_path / "a.parquet")
    head, row = (tmp_path / "a.parquet.journal").read_text(encoding="utf-8").splitlines()
    assert json.loads(head)["format"] == "tilesim-sweep"
    assert json.loads(row) == {"point": 0, "key": POINTS[0].key, "cores": 1, "dtype": "fp16"} | row_of(0)
