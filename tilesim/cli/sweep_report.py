"""`tilesim sweep-report`: pictures of a saved sweep."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

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


def draw(
    table: SweepTable,
    out: Path,
    *,
    x: str | None = None,
    series: str | None = None,
    value: str = "time_ms",
    cost: str | None = None,
) -> list[Path]:
    """Draw what the table has into a directory; returns the files.

    Raises:
        TilesimError: a column is not there, or the directory is not to be written to.
    """
    with progress("pictures"):
        from reports.sweeps.pictures import draw_sweep  # noqa: PLC0415 - matplotlib takes most of a second to load

        return draw_sweep(table, out, x=x, series=series, value=value, cost=cost)
