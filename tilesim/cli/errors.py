"""How the command line ends: one line on stderr and an exit status, never a traceback unless asked for."""

from __future__ import annotations

import contextlib
import errno
import sys
import traceback
from collections.abc import Callable

import typer

from targets.errors import TilesimError
from tilesim.cli.stdout import WatchedStdout

FAULT = 1
REFUSED = 2
INTERRUPTED = 130


class ArgumentError(TilesimError):
    """An argument of the command line was refused; `where` is the option or argument as it is typed."""


class InterruptedCommandError(Exception):
    """A person stopped the command; its text, if there is one, says what is left of the work."""


def exit_status(call: Callable[[], object], *, debug: bool) -> int:
    """Make the call and return the exit status: 0, 1 for a fault of ours, 2 for a refused argument, 130 for Ctrl-C.

    What went wrong goes to stderr in one line, after the traceback if `debug`.
    """
    if sys.stdout is None:  # Python's sign that descriptor 1 is closed
        return _say("cannot write to stdout: it is closed", FAULT, debug=False)
    watched = WatchedStdout(sys.stdout)
    try:
        with contextlib.redirect_stdout(watched):
            status = call()
            watched.flush()
    except (TilesimError, typer.TyperException) as error:
        return _say(_refusal(error), REFUSED, debug=debug)
    except (InterruptedCommandError, KeyboardInterrupt, typer.Abort) as error:
        return _say(f"interrupted{f'; {error}' if str(error) else ''}", INTERRUPTED, debug=debug)
    except Exception as error:
        return _unwritten(watched) or _say(_fault(error, debug=debug), FAULT, debug=debug)
    return status if isinstance(status, int) else 0


def _unwritten(stdout: WatchedStdout) -> int:
    """The status where stdout could not be written to, else 0; nothing is said of a reader that has gone, as `head`."""
    if stdout.failed is None:
        return 0
    if stdout.failed.errno != errno.EPIPE:
        say(f"cannot write to stdout: {stdout.failed.strerror}")
    return FAULT


def say(text: str) -> None:
    """Write the text to stderr as one line that names the program."""
    sys.stderr.write(f"tilesim: {' '.join(text.split())}\n")


def _say(text: str, status: int, *, debug: bool) -> int:
    if debug:
        traceback.print_exc()
    say(text)
    return status


def _refusal(error: TilesimError | typer.TyperException) -> str:
    if isinstance(error, TilesimError):
        return str(error)
    context = getattr(error, "ctx", None)
    command = context.command_path if context else "tilesim"
    return f"{error.format_message().rstrip('.')}; see '{command} --help'"


def _fault(error: Exception, *, debug: bool) -> str:
    hint = "" if debug else "; --debug shows the traceback"
    return f"{type(error).__name__}: {error}{hint}"
