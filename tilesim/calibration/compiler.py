"""The system's C compiler, for programs that have to run on this computer and not on a model of one."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from targets.errors import TilesimError

FOLDER = Path(__file__).parent
"""Where the C files lie."""

OPTIONS = ("-O2", f"-I{FOLDER}")
COMPILERS = ("cc", "gcc", "clang")
TIMEOUT_S = 600


def compiler() -> str:
    """The compiler: `CC` of the environment, or the first of the usual names that is there.

    Raises:
        TilesimError: there is none.
    """
    names = (os.environ["CC"],) if os.environ.get("CC") else COMPILERS
    found = next(filter(None, map(shutil.which, names)), None)
    if found is None:
        raise TilesimError(
            "no C compiler", where="PATH", got=", ".join(names), remedy="install gcc or clang, or set CC"
        )
    return found


def compiled(source: Path, folder: Path) -> Path:
    """The program made of a C file, in a folder.

    Raises:
        TilesimError: there is no compiler, or it refused.
    """
    program = folder / source.stem
    output([compiler(), *OPTIONS, "-o", str(program), str(source)])
    return program


def output(command: Sequence[str]) -> str:
    """What a command writes to its output.

    Raises:
        TilesimError: it failed.
    """
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=TIMEOUT_S)  # noqa: S603  # programs of ours, and the compiler
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["no message"])[-1]
        raise TilesimError("a program failed", where=Path(command[0]).name, got=f"{done.returncode}: {last}")
    return done.stdout
