"""`tilesim sweep` and `tilesim sweep-report`, with small products of the simulator."""

from __future__ import annotations

import contextlib
import io
import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from rich.console import Console
from rich.progress import Progress

import tilesim
from reports.sweeps.table import SweepTable
from tilesim.cli.output import _shown

if TYPE_CHECKING:
    from tests.cli.conftest import Cli

GEMM = ("sweep", "gemm", "--target", "mt7004", "--shape", "m=64,n=64,k=64", "--workers", "1")
DDR = "link.ddr.gigabytes_per_second"
GRID = ("--vary", "cores=1,2,4", "--vary", f"{DDR}=10:20:2", "--vary", "dtype=fp16,fp32")


def rows_of(path: Path) -> list[dict[str, Any]]:
    """The rows of a file, but for the seconds."""
    return [{n: v for n, v in row.items() if n != "seconds"} for row in SweepTable.read(path).rows]


def test_a_sweep_prints_its_points_and_writes_one_file(cli: Cli, tmp_path: Path) -> None:
    """A line a point, and the same in the file."""
    path = tmp_path / "a.parquet"
    result = cli(*GEMM, *GRID, "--out", str(path))
    assert (result.exit_code, result.stderr) == (0, "")
    lines = result.stdout.splitlines()
    assert lines[0].split() == ["cores", DDR, "dtype", "time", "GFLOP/s", "of", "peak", "bound"]
    assert len(lines) == 14
    assert lines[-1] == f"12 points, 0 failed: {path}"
    assert list(tmp_path.iterdir()) == [path]
    assert len(rows_of(path)) == 12


def test_json_is_one_object(cli: Cli) -> None:
    """The call, the counts, and the rows with what failed."""
    record = json.loads(cli(*GEMM, "--vary", "cores=1,5", "--json").stdout)
    assert (record["operator"], record["target"], record["varied"]) == ("gemm", "mt7004", ["cores"])
    assert (record["points"], record["failed"], record["file"]) == (2, 1, None)
    assert [row["status"] for row in record["rows"]] == ["ok", "refused"]
    assert record["rows"][0]["cycles"] > 0


def test_failed_points_are_told_and_the_rest_goes_on(cli: Cli) -> None:
    """On stderr, once a reason."""
    result = cli(*GEMM, "--vary", "cores=1,5", "--vary", "dtype=fp16,fp32")
    assert result.exit_code == 0
    assert "2 points refused: a number of cores that the target does not have" in result.stderr
    assert result.stderr.count("\n") == 1
    assert "4 points, 2 failed" in result.stdout


def test_a_sweep_without_a_good_point_is_refused(cli: Cli) -> None:
    """Status 2, with the first reason."""
    result = cli(*GEMM, "--vary", "cores=5,6")
    assert result.exit_code == 2
    assert "every point was refused: where --vary, got a number of cores" in result.stderr


def test_points_of_a_file(cli: Cli, tmp_path: Path) -> None:
    """Each line is a point."""
    file = tmp_path / "points.csv"
    file.write_text("cores,dtype\n1,fp32\n4,fp16\n", encoding="utf-8")
    record = json.loads(cli(*GEMM, "--points", str(file), "--json").stdout)
    assert [(row["cores"], row["dtype"]) for row in record["rows"]] == [(1, "fp32"), (4, "fp16")]


def test_a_sample_is_the_same_again(cli: Cli, tmp_path: Path) -> None:
    """An interval is sampled; the file of the same seed is gone on with, that of another refused."""
    path = str(tmp_path / "a.parquet")
    call = (*GEMM, "--vary", f"{DDR}=10:40", "--vary", "cores=1:4", "--sample", "5", "--out", path)
    assert cli(*call).exit_code == 0
    rows = SweepTable.read(path).rows
    assert len({row[DDR] for row in rows}) == 5
    assert cli(*call).exit_code == 0
    assert SweepTable.read(path).rows == rows
    assert "points that this sweep does not have" in cli.refuse(*call, "--seed", "1")


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        ((), "nothing is varied"),
        (("--vary", "corse=1"), "unknown field: where --vary, got corse; did you mean cores?"),
        (("--vary", "memory.am.size=1"), "memory.am.size_bytes"),
        (("--vary", "cores"), "not a pair"),
        (("--vary", "cores=1", "--vary", "cores=2"), "key given twice"),
        (("--vary", "cores=4:1:2"), "a range from high to low"),
        (("--vary", "cores=1:4"), "an interval without values"),
        (("--vary", "cores=1", "--cores", "2"), "both fixed and varied"),
        (("--vary", "cores=1", "--points", "none.csv"), "cannot read the points"),
        (("--vary", "cores=1", "--workers", "2", "--scheduler", "tcp://a:1"), "two who run"),
        (("--vary", "cores=1", "--tile", "zz=1"), "every point was refused"),
        (("--vary", "tile.M_B=1"), "did you mean tile.M_"),
    ],
)
def test_bad_arguments_are_refused(cli: Cli, tmp_path: Path, arguments: tuple[str, ...], match: str) -> None:
    """Status 2; with an --out, no file."""
    base = GEMM[:-2] if "--scheduler" in arguments else GEMM
    result = cli(*base, *arguments, "--out", str(tmp_path / "a.parquet"))
    assert result.exit_code == 2
    assert match in result.stderr.splitlines()[-1]
    if "every point" not in match:
        assert result.stderr.count("\n") == 1
        assert not list(tmp_path.iterdir())


def test_a_scheduler_that_does_not_answer_is_refused(cli: Cli, tmp_path: Path) -> None:
    """At once, where nobody listens, and for what is no address."""
    call = (*GEMM[:-2], "--vary", "cores=1", "--out", str(tmp_path / "a.parquet"), "--scheduler")
    for address in ("tcp://127.0.0.1:1", "nonsense"):
        assert f"no scheduler answers: where --scheduler, got {address}" in cli.refuse(*call, address)
    assert not list(tmp_path.iterdir())


def test_a_path_below_a_file_is_refused(cli: Cli, tmp_path: Path) -> None:
    """The file stays as it is."""
    file = tmp_path / "file"
    file.write_text("text", encoding="utf-8")
    assert str(file) in cli.refuse(*GEMM, *GRID, "--out", str(file / "a.parquet"))
    assert "cannot read" in cli.refuse(*GEMM, *GRID, "--out", str(tmp_path))
    assert (file.read_text(encoding="utf-8"), list(tmp_path.iterdir())) == ("text", [file])


@contextlib.contextmanager
def mounted(folder: Path, options: str) -> Iterator[Path]:
    """A file system of its own in a folder."""
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(folder)]
    try:
        done = subprocess.run(mount, capture_output=True, text=True, check=False)
    except FileNotFoundError:
        pytest.skip("this computer has no mount")
    if done.returncode:
        pytest.skip(f"not permitted to mount: {done.stderr.strip()}")
    try:
        yield folder
    finally:
        subprocess.run(["umount", str(folder)], check=True)  # noqa: S607


def test_a_directory_that_cannot_be_written_to_is_refused(cli: Cli, tmp_path: Path) -> None:
    """Before anything runs."""
    with mounted(tmp_path / "disk", "ro") as disk:
        for path in (disk / "a.parquet", disk / "deep" / "a.parquet"):
            line = cli.refuse(*GEMM, *GRID, "--out", str(path))
            assert "cannot" in line
            assert "Read-only file system" in line


def fill(disk: Path, left: int) -> Path:
    """Fill a small file system but for so many bytes; returns the file that does it."""
    filler = disk / "filler"
    free = os.statvfs(disk)
    filler.write_bytes(bytes(free.f_bavail * free.f_frsize - left))
    return filler


def test_a_full_disk_stops_a_sweep_that_goes_on_later(cli: Cli, tmp_path: Path) -> None:
    """What was done is kept and not run again; nothing half written is left."""
    whole = tmp_path / "whole.parquet"
    assert cli(*GEMM, *GRID, "--out", str(whole)).exit_code == 0
    with mounted(tmp_path / "disk", "size=256k") as disk:
        path, filler = disk / "a.parquet", fill(disk, 4096)
        line = cli.refuse(*GEMM, *GRID, "--out", str(path))
        assert "No space left on device" in line
        assert "make room" in line
        journal = disk / "a.parquet.journal"
        assert sorted(disk.iterdir()) == [journal, filler]
        kept = [json.loads(text) for text in journal.read_text(encoding="utf-8").splitlines()[1:]]
        assert 0 < len(kept) < 12
        filler.unlink()
        assert cli(*GEMM, *GRID, "--out", str(path)).exit_code == 0
        assert list(disk.iterdir()) == [path]
        assert rows_of(path) == rows_of(whole)
        seconds = SweepTable.read(path).column("seconds")
        assert seconds[: len(kept)] == [row["seconds"] for row in kept]


def test_a_disk_that_is_full_from_the_start_is_refused(cli: Cli, tmp_path: Path) -> None:
    """Before a point is run, and nothing is left."""
    with mounted(tmp_path / "disk", "size=64k") as disk:
        filler = fill(disk, 0)
        assert "No space left on device" in cli.refuse(*GEMM, *GRID, "--out", str(disk / "a.parquet"))
        assert list(disk.iterdir()) == [filler]


def test_pictures_are_drawn(cli: Cli, tmp_path: Path) -> None:
    """With the sweep, or of its file: other axes, another cost."""
    path, first, second = tmp_path / "a.parquet", tmp_path / "one", tmp_path / "two"
    result = cli(*GEMM, *GRID, "--out", str(path), "--report", str(first))
    assert result.exit_code == 0
    names = ["curves.png", "heat-map.png", *(f"pareto-{cost}.png" for cost in ("ddr_gbs", "gsm_gbs"))]
    assert sorted(file.name for file in first.iterdir())[:4] == names
    axes = ("--x", DDR, "--series", "dtype", "--value", "gflops", "--cost", "bytes.ddr")
    drawn = cli("sweep-report", str(path), "--out", str(second), *axes)
    assert drawn.exit_code == 0
    assert [Path(line).name for line in drawn.stdout.splitlines()] == [*names[:2], "pareto-bytes-ddr.png"]
    assert all(file.read_bytes().startswith(b"\x89PNG") for file in second.iterdir())


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        (("--x", "clock_mhz"), f"no such field: got clock_mhz, limit cores, {DDR}, dtype"),
        (("--value", "colour"), "no column of numbers: where colour"),
        (("--value", "bound"), "no column of numbers: where bound"),
        (("--cost", "cost.gold"), "no column of numbers: where cost.gold"),
    ],
)
def test_a_picture_of_what_is_not_there_is_refused(
    cli: Cli, tmp_path: Path, arguments: tuple[str, ...], match: str
) -> None:
    """With what there is."""
    path = str(tmp_path / "a.parquet")
    assert cli(*GEMM, *GRID, "--out", path).exit_code == 0
    assert match in cli.refuse("sweep-report", path, "--out", str(tmp_path / "p"), *arguments)
    assert "there is no saved sweep" in cli.refuse("sweep-report", f"{path}x", "--out", str(tmp_path / "p"))
    assert not (tmp_path / "p").exists()


def test_the_bar_counts_stored_points_but_not_their_time() -> None:
    """The time left is that of the points of now: of 4 with 2 stored, one done in a moment leaves one."""
    bar = Progress(console=Console(file=io.StringIO(), force_terminal=True))
    told = _shown(bar)
    told(3, 4)
    task = bar.tasks[0]
    assert (task.completed, task.total) == (3, 4)
    told(4, 4)
    assert task.finished


@pytest.mark.parametrize(
    ("arguments", "left"),
    [((), "nothing is kept without --out"), (("--out", "a.parquet"), "no point was done")],
)
def test_an_interrupted_sweep_says_what_is_left(
    cli: Cli, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, arguments: tuple[str, ...], left: str
) -> None:
    """Of one that was stopped before its first point, or that has no file."""

    def stopped(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(tilesim, "sweep", stopped)
    monkeypatch.chdir(tmp_path)
    result = cli(*GEMM, *GRID, *arguments)
    assert (result.exit_code, result.stdout, result.stderr) == (130, "", f"tilesim: interrupted; {left}\n")
