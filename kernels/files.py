"""Kernels of one's own: operators that a Python file registers. The file is executed, with all that it may do."""

from __future__ import annotations

import importlib.util
import sys
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from hashlib import sha256
from pathlib import Path
from types import ModuleType
from typing import ClassVar

from kernels.registry import Call, Operator
from simulator.results.run import Run
from targets.errors import TilesimError

MARK = ".py:"
"""What stands between the file and the operator in `my_kernel.py:name`."""

_LOADED: dict[tuple[Path, int, int], ModuleType] = {}
"""Files that were executed, by path, time of change and size: a file that changed is executed again."""


class KernelFileError(TilesimError):
    """A kernel file that cannot be used.

    Attributes:
        file: the file, as it was named.
    """

    own_fields: ClassVar[tuple[str, ...]] = ("file",)

    def __init__(
        self, what: str, *, file: str, where: str = "", got: object = "", limit: object = "", remedy: str = ""
    ) -> None:
        self.file = file
        super().__init__(what, where=where or file, got=got, limit=limit, remedy=remedy)


def names_a_file(name: str) -> bool:
    """Whether an operator's name is that of a file: `my_kernel.py:name`, or without a name."""
    return MARK in name or name.endswith(MARK[:-1])


def absolute_name(name: str) -> str:
    """The name of an operator from any directory: that of a kernel file with the file's whole path."""
    if MARK not in name:
        return name
    file, _, wanted = name.rpartition(":")
    return f"{Path(file).resolve()}:{wanted}"


def file_digest(name: str) -> str:
    """A hash of what is in the file of an operator.

    Raises:
        KernelFileError: it cannot be read.
    """
    file = name.rpartition(":")[0] if MARK in name else name
    try:
        return sha256(Path(file).read_bytes()).hexdigest()
    except OSError as error:
        raise KernelFileError("cannot read the kernel file", file=file, got=error.strerror) from error


def operator_in_file(name: str) -> Operator:
    """The operator of `my_kernel.py:name`; the file is executed, once while it does not change.

    Raises:
        KernelFileError: there is no such file or no such operator in it, or its code raised.
    """
    file, _, wanted = name.rpartition(":") if MARK in name else (name, "", "")
    path = Path(file)
    if not path.is_file():
        raise KernelFileError("no such kernel file", file=file, remedy="name it as folder/my_kernel.py:name")
    module = _module(path.resolve(), file)
    known = {key: value for key, value in vars(module).items() if isinstance(value, Operator)}
    known = {key: value for key, value in known.items() if not value.file}
    if wanted in known:
        return replace(known[wanted], name=name, function=_guarded(known[wanted], file, path), file=file)
    listed = ", ".join(known) or "none"
    if wanted and callable(vars(module).get(wanted)):
        what, remedy = "a function that is not registered", "write @operator(...) above it"
        raise KernelFileError(what, file=file, got=wanted, limit=f"registered: {listed}", remedy=remedy)
    what = "no such operator in the kernel file" if wanted else "a kernel file without an operator's name"
    raise KernelFileError(what, file=file, got=wanted, limit=listed, remedy=f"{file}:NAME")


def _module(path: Path, file: str) -> ModuleType:
    """The module of a file, executed with its own folder to import from.

    Raises:
        KernelFileError: it cannot be read, or it raised.
    """
    about = path.stat()
    key = (path, about.st_mtime_ns, about.st_size)
    if key not in _LOADED:
        name = f"tilesim_kernel_{sha256(str(path).encode()).hexdigest()[:12]}"
        spec = importlib.util.spec_from_file_location(name, path)
        assert spec is not None  # noqa: S101  # the name ends in .py
        assert spec.loader is not None  # noqa: S101
        module = importlib.util.module_from_spec(spec)
        sys.modules[name] = module  # dataclasses look themselves up there
        with _raising(file, path), _importing_from(path.parent):
            spec.loader.exec_module(module)
        _LOADED[key] = module
    return _LOADED[key]


def _guarded(operator: Operator, file: str, path: Path) -> _Guarded:
    return _Guarded(operator, file, path.resolve())


class _Guarded:
    """The function of a registered operator, whose exceptions name the file and the line."""

    def __init__(self, operator: Operator, file: str, path: Path) -> None:
        self.operator = operator
        self.file = file
        self.path = path

    def __call__(self, call: Call) -> Run:
        """Make the call.

        Raises:
            KernelFileError: the function raised, or did not return a Run.
            TilesimError: the function or the machine refused something.
        """
        assert self.operator.function is not None  # noqa: S101  # registered operators have one
        with _raising(self.file, self.path):
            run: object = self.operator.function(call)
        if isinstance(run, Run):
            return run
        what, remedy = "the kernel did not return a Run", "return call.finished(machine, ...)"
        raise KernelFileError(
            what, file=self.file, where=f"{self.file}:{self.operator.name}", got=repr(run), remedy=remedy
        )


@contextmanager
def _importing_from(folder: Path) -> Iterator[None]:
    """Let a file import what lies beside it, as a program does."""
    sys.path.insert(0, str(folder))
    try:
        yield
    finally:
        sys.path.remove(str(folder))


@contextmanager
def _raising(file: str, path: Path) -> Iterator[None]:
    """Turn what the file's code raises into one line that names the file's own line.

    Raises:
        KernelFileError: instead of any exception but those of tilesim itself.
    """
    try:
        yield
    except TilesimError:
        raise
    except (Exception, SystemExit) as error:
        got = f"{type(error).__name__}: {error}"
        where = f"{file}:{_line(error, path)}"
        raise KernelFileError(
            "the code of the kernel file raised", file=file, where=where, got=got
        ) from error


def _line(error: BaseException, path: Path) -> int:
    """The last line of the file on the way to an exception; of a syntax error its own."""
    if isinstance(error, SyntaxError) and error.filename == str(path):
        return error.lineno or 0
    frames = traceback.extract_tb(error.__traceback__)
    return next((frame.lineno or 0 for frame in reversed(frames) if frame.filename == str(path)), 0)
