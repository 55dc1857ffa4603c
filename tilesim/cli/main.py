"""The command `tilesim`: its sub-commands, and the one place where errors become exit statuses."""

from __future__ import annotations

import functools
import sys
from collections.abc import Sequence
from typing import Annotated, Any, NoReturn

import typer
from typer.core import TyperGroup

import tilesim
from tilesim.cli.calibrate import calibrate
from tilesim.cli.compare import compare
from tilesim.cli.critical import critical
from tilesim.cli.diff import diff
from tilesim.cli.errors import InterruptedCommandError, exit_status
from tilesim.cli.given import require_places
from tilesim.cli.network import network
from tilesim.cli.operators import operators
from tilesim.cli.report import report
from tilesim.cli.run import run
from tilesim.cli.sweep import sweep
from tilesim.cli.sweep_report import sweep_report
from tilesim.cli.targets import targets
from tilesim.cli.validate import validate


class OneLineGroup(TyperGroup):
    """A command group that ends with one line on stderr instead of a usage box or a traceback."""

    def main(self, args: Sequence[str] | None = None, *rest: Any, **options: Any) -> NoReturn:
        """Run the command and exit; `--debug` is taken wherever it stands."""
        given = list(sys.argv[1:] if args is None else args)
        plain = [word for word in given if word != "--debug"]
        main = functools.partial(super().main, plain, *rest, **{**options, "standalone_mode": False})

        def call() -> object:
            require_places(plain)
            return main()

        sys.exit(exit_status(call, debug=plain != given))

    def invoke(self, ctx: Any) -> Any:
        """Run the sub-command.

        Raises:
            InterruptedCommandError: Ctrl-C; Typer alone would exit without a word.
        """
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt as error:
            raise InterruptedCommandError(str(error)) from error


app = typer.Typer(
    cls=OneLineGroup,
    add_completion=False,
    help="Run backward kernels of convolutions tile by tile on models of multi-core DSPs and NPUs.",
)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"tilesim {tilesim.__version__}")
        raise typer.Exit


@app.callback()
def options(
    _version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version.")
    ] = False,
    _debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error.")] = False,
) -> None:
    """Options of the program itself."""


app.command()(run)
app.command()(targets)
app.command()(operators)
app.command()(report)
app.command()(critical)
app.command()(compare)
app.command()(sweep)
app.command()(sweep_report)
app.command()(diff)
app.command()(network)
app.command()(validate)
app.command()(calibrate)


def main() -> None:
    """Run the command line of this process; never returns."""
    app()
