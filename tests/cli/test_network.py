"""`tilesim network`: table, record, files, and what is refused."""

from __future__ import annotations

import csv
import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import tilesim

if TYPE_CHECKING:
    from tests.cli.conftest import Cli

LAYERS = "layer,N,Cin,H,W,Cout,Kh,Kw,pad_top,pad_bottom,pad_left,pad_right\n"
ROWS = "stem,1,3,8,8,16,3,3,1,1,1,1\nbody,1,16,8,8,16,3,3,1,1,1,1\nbody2,1,16,8,8,16,3,3,1,1,1,1\n"


@pytest.fixture
def layers(tmp_path: Path) -> str:
    """A table of three layers, two of them equal."""
    path = tmp_path / "small.csv"
    path.write_text(LAYERS + ROWS, encoding="utf-8")
    return str(path)


def test_the_table_has_a_row_a_distinct_layer_and_totals(cli: Cli, layers: str) -> None:
    """One table a target; the first layer has no dx."""
    result = cli("network", layers, "--targets", "mt7004,ascend910b1", "--memory")
    assert (result.exit_code, result.stderr) == (0, "")
    lines = result.stdout.splitlines()
    assert [line.split()[:2] for line in lines if line.startswith(("stem", "body"))] == [
        ["stem", "1"],
        ["body", "2"],
    ] * 2
    assert lines[2].split()[6] == "-"
    assert sum(line.startswith("total: 3 convolutions (2 distinct)") for line in lines) == 2
    assert sum(line.startswith("held: gradients of weights") for line in lines) == 2


def test_json_and_files_have_what_the_package_says(cli: Cli, layers: str, tmp_path: Path) -> None:
    """One object; a record, a table of all layers, and a picture."""
    out = tmp_path / "new" / "out"
    options = ("--target", "mt7004", "--dtype", "fp32", "--cores", "2", "--batch", "4", "--step", "--all-dx")
    result = cli("network", layers, *options, "--json", "--out", str(out))
    record = json.loads(result.stdout)
    times = tilesim.network(layers, batch=4, dtype="fp32", cores=2, step=True, all_dx=True)
    assert record == times.to_dict()
    assert json.loads((out / "network.json").read_text()) == record
    assert (out / "network.png").read_bytes()[:4] == b"\x89PNG"
    with (out / "network.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [row["layer"] for row in rows] == ["stem", "body", "body2"]
    assert sum(int(row["cycles"]) for row in rows) == record["targets"][0]["cycles"]
    assert sorted(path.name for path in out.iterdir()) == ["network.csv", "network.json", "network.png"]
    assert {tuple(each["size"]) for each in record["layers"]} == {(8, 8)}


def test_what_a_target_refuses_is_said(cli: Cli, layers: str) -> None:
    """Status 0 where something ran, and a line on stderr."""
    result = cli("network", layers, "--targets", "nx_host,mt7004")
    assert result.exit_code == 0
    assert result.stderr.startswith("tilesim: nx_host is left out: ")
    table = Path(layers)
    table.write_text(LAYERS + ROWS + "large,1073741824,16,8,8,16,3,3,0,0,0,0\n", encoding="utf-8")
    result = cli("network", layers, "--targets", "ascend910b1")
    assert result.exit_code == 0
    assert result.stderr.startswith("tilesim: ascend910b1 refuses 1 of 4 convolutions; large: ")
    assert "without 1 convolutions that ascend910b1 refuses" in result.stdout


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--target", "mt7005"), ("mt7004",)),
        (("--targets", "mt7004,,"), ("--targets",)),
        (("--target", "mt7004", "--grads", "dx,dz"), ("dz",)),
        (("--target", "mt7004", "--dtype", "int3"), ("int3",)),
        (("--target", "mt7004", "--cores", "5"), ("cores",)),
        (("--target", "mt7004", "--batch", "0"), ("batch",)),
        (("--target", "mt7004", "--dim", "height=-1"), ("--dim",)),
        (("--target", "mt7004", "--jobs", "0"), ("jobs",)),
        ((), ("target",)),
    ],
)
def test_arguments_that_cannot_be_are_refused(
    cli: Cli, layers: str, arguments: tuple[str, ...], words: tuple[str, ...]
) -> None:
    """One line, status 2."""
    line = cli.refuse("network", layers, *arguments)
    assert not [word for word in words if word not in line], line


def test_a_bad_file_is_refused_before_anything_is_written(cli: Cli, layers: str, tmp_path: Path) -> None:
    """The directory of --out is not made."""
    Path(layers).write_text(LAYERS + "a,1,nan,8,8,16,3,3,1,1,1,1\n", encoding="utf-8")
    line = cli.refuse("network", layers, "--target", "mt7004", "--out", str(tmp_path / "out"))
    assert "small.csv:2" in line
    assert not (tmp_path / "out").exists()


def test_a_place_below_a_file_is_refused(cli: Cli, layers: str) -> None:
    """Before anything is simulated."""
    line = cli.refuse("network", layers, "--target", "mt7004", "--out", f"{layers}/deeper/out")
    assert "not a directory" in line
    assert cli.refuse("network", layers, "--target", "mt7004", "--out", layers) == line


@contextmanager
def mounted(folder: Path, *options: str) -> Iterator[Path]:
    """A small file system of its own; the test is skipped where mounting is not permitted."""
    folder.mkdir()
    mount, umount = shutil.which("mount"), shutil.which("umount")
    if not mount or not umount:
        pytest.skip("there is no command mount")
    command = [mount, "-t", "tmpfs", *options, "tmpfs", str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip(f"mounting is not permitted: {done.stderr.strip()}")
    try:
        yield folder
    finally:
        subprocess.run([umount, str(folder)], check=True)


@pytest.mark.parametrize("options", [("-o", "size=16k"), ("-o", "ro")], ids=["full", "read-only"])
def test_a_disk_that_takes_nothing_is_refused(
    cli: Cli, layers: str, tmp_path: Path, options: tuple[str, ...]
) -> None:
    """One line, and neither a file nor half of one is left, nor the directory that was made for them."""
    with mounted(tmp_path / "disk", *options) as disk:
        line = cli.refuse("network", layers, "--target", "mt7004", "--out", str(disk / "out"))
        assert "cannot" in line
        assert list(disk.iterdir()) == []


@pytest.mark.skipif(os.geteuid() == 0, reason="root writes everywhere")
def test_a_directory_without_permission_is_refused(cli: Cli, layers: str, tmp_path: Path) -> None:
    """Before anything is simulated."""
    (tmp_path / "closed").mkdir(mode=0o500)
    line = cli.refuse("network", layers, "--target", "mt7004", "--out", str(tmp_path / "closed" / "out"))
    assert "cannot write" in line
