"""Files that are whole or absent: written aside in their own folder, then moved into place."""

import os
import secrets
from collections.abc import Callable, Mapping
from pathlib import Path

from targets.errors import TilesimError


class RunFileError(TilesimError):
    """A file of a saved run cannot be written or read."""


def write_aside(writers: Mapping[Path, Callable[[Path], object]]) -> None:
    """Write a set of files, each by its writer, so that no reader ever meets half of one.

    Every writer gets a temporary path in the folder of its file; all files are moved into place, in the
    mapping's order, after the last writer has returned. When a writer fails, nothing is moved and nothing is
    left behind.

    Raises:
        RunFileError: the operating system refused to write.
    """
    aside = {
        path: path.with_name(f".{path.name}.{os.getpid()}.{secrets.token_hex(4)}.tmp") for path in writers
    }
    try:
        for path, write in writers.items():
            write(aside[path])
        for path, temporary in aside.items():
            temporary.replace(path)
    except OSError as error:
        names = ", ".join(str(path) for path in writers)
        raise RunFileError("cannot write", where=names, got=_reason(error)) from error
    finally:
        for temporary in aside.values():
            temporary.unlink(missing_ok=True)


def write_files(directory: Path, writers: Mapping[str, Callable[[Path], object]]) -> list[Path]:
    """Write a set of files by name into a directory, all or none, and return their paths.

    The directory is made when it is not there, and removed again when nothing could be written.

    Raises:
        RunFileError: the directory is a file, or the operating system refused.
    """
    there = directory.exists()
    make_directory(directory)
    files = {directory / name: write for name, write in writers.items()}
    try:
        write_aside(files)
    except BaseException:
        if not there and not any(directory.iterdir()):
            directory.rmdir()
        raise
    return list(files)


def text_writer(text: str) -> Callable[[Path], object]:
    """A writer of a text in UTF-8 for `write_aside`."""
    return lambda path: path.write_text(text, encoding="utf-8", newline="")


def make_directory(path: Path) -> None:
    """Make a directory, with those above it, unless it is there.

    Raises:
        RunFileError: the path, or one above it, is a file, or the operating system refused.
    """
    try:
        path.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError) as error:
        raise RunFileError(
            "a run is saved in a directory",
            where=str(path),
            got="a path that is, or leads through, a file",
            remedy="name a directory, or remove that file",
        ) from error
    except OSError as error:
        raise RunFileError("cannot make the directory", where=str(path), got=_reason(error)) from error


def _reason(error: OSError) -> str:
    return error.strerror or str(error)
