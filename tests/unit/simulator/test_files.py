"""Files that belong together are written all or none."""

from __future__ import annotations

from pathlib import Path

import pytest

from simulator.results.files import RunFileError, text_writer, write_files


def interrupt(path: Path) -> None:
    """Write half of a file, then be stopped by Ctrl-C."""
    path.write_text("half", encoding="utf-8")
    raise KeyboardInterrupt


def test_files_are_written_into_a_new_directory(tmp_path: Path) -> None:
    """In the order of their names, with no line end changed."""
    written = write_files(tmp_path / "a" / "b", {"z": text_writer("1\r\n2\n"), "y": text_writer("")})
    assert written == [tmp_path / "a" / "b" / "z", tmp_path / "a" / "b" / "y"]
    assert written[0].read_bytes() == b"1\r\n2\n"


def test_an_interruption_leaves_nothing_that_was_not_there(tmp_path: Path) -> None:
    """Neither a file nor half of one, nor the directory; an old file stays as it was."""
    writers = {"first": text_writer("new"), "second": interrupt}
    with pytest.raises(KeyboardInterrupt):
        write_files(tmp_path / "out", writers)
    assert list(tmp_path.iterdir()) == []
    write_files(tmp_path / "out", {"first": text_writer("old")})
    with pytest.raises(KeyboardInterrupt):
        write_files(tmp_path / "out", writers)
    assert [path.read_text("utf-8") for path in (tmp_path / "out").iterdir()] == ["old"]


def test_a_file_is_no_directory(tmp_path: Path) -> None:
    """It stays as it is."""
    (tmp_path / "file").write_text("mine", encoding="utf-8")
    with pytest.raises(RunFileError, match="leads through, a file"):
        write_files(tmp_path / "file", {"a": text_writer("")})
    assert (tmp_path / "file").read_text("utf-8") == "mine"
