"""`tilesim sweep-report`: pictures of a saved sweep."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, TypedDict, Unpack

import typer

from reports.sweeps.table import SweepTable
from tilesim.cli.output import progress, write_lines


def sweep_report(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The Parquet file of `tilesim sweep --out`.")],
    out: Annotated[Path, typer.Option(help="Directory for the pictures.")],
    x: Annotated[str | None, typer.Option(help="The varied field along the axis; default: a number.")] = None,
    series: Annotated[
        str | None, typer.Option(help="The varied field with a curve, or a line of the heat map, a value.")
    ] = None,
    value: Annotated[
        str, typer.Option(help="The column shown: time_ms, gflops, share_of_peak, ...")
    ] = "time_ms",
    cost: Annotated[
        str | None,
        typer.Option(
            help="The column that the Pareto front sets against the time; default: each that varies."
        ),
    ] = None,
) -> None:
    """Draw curves, a heat map and the Pareto front of a sweep."""
    for path in draw(SweepTable.read(file), out, x=x, series=series, value=value, cost=cost):
        write_lines(str(path))


class Choice(TypedDict, total=False):
    """What is drawn, as `reports.sweeps.pictures.draw_sweep` takes it."""

    x: str | None
    series: str | None
    value: str
    cost: str | None


def draw(table: SweepTable, out: Path, **choice: Unpack[Choice]) -> list[Path]:
    """Draw what the table has into a directory; returns the files.

    Raises:
        TilesimError: a column is not there, or the directory is not to be written to.
    """
    with progress("pictures"):
        from reports.sweeps.pictures import draw_sweep  # noqa: PLC0415 - matplotlib takes most of a second to load

        return draw_sweep(table, out, **choice)
