"""`tilesim report`: pictures and a page out of a saved run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

import tilesim
from tilesim.cli.errors import ArgumentError
from tilesim.cli.output import page_of, progress


def report(
    directory: Annotated[Path, typer.Argument(metavar="DIR", help="A directory that `run --out` wrote.")],
    start: Annotated[int | None, typer.Option("--from", min=0, help="First cycle of the timeline.")] = None,
    end: Annotated[int | None, typer.Option("--to", min=0, help="Cycle at which the timeline stops.")] = None,
    perfetto: Annotated[
        bool | None,
        typer.Option(
            "--perfetto/--no-perfetto",
            help="Write trace.pftrace for ui.perfetto.dev; default: unless it is very long.",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Write the report of a saved run into its directory; the last line is the path of its page."""
    if not (directory / "run.json").is_file():
        raise ArgumentError(
            what="no saved run", where="DIR", got=str(directory), remedy="tilesim run ... --out DIR"
        )
    if start is not None and end is not None and start >= end:
        raise ArgumentError(what="no cycles between", where="--from and --to", got=f"{start} and {end}")
    with progress("report"):
        files = tilesim.report(directory, start=start, end=end, perfetto=perfetto)
    for file in files:
        if file != page_of(files):
            typer.echo(file)
    typer.echo(page_of(files))
