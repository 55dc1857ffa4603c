"""`tilesim sweep`: an operator at many points of chip, tiling, type and shape."""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated

import typer

import tilesim
from reports.sweeps.table import SweepTable, as_text
from simulator.results.run import plain
from tilesim.cli.arguments import check_writable, find_operator, parse_grads, parse_pairs, parse_value
from tilesim.cli.errors import FAULT, ArgumentError, say
from tilesim.cli.output import Counted, counted, print_json, write_lines
from tilesim.cli.sweep_report import draw
from tilesim.sweeps.api import Told
from tilesim.sweeps.points import read_points

MOST_LINES = 40
"""Rows up to which all are printed; of more, the fastest `FASTEST`."""

FASTEST = 10
REASONS = 5
"""How many of the reasons of failed points are told; all are in the table."""


Vary = Annotated[
    list[str] | None,
    typer.Option(
        help="FIELD=VALUES; repeatable, all combinations are run. FIELD: cores, dtype, shape.KEY, tile.KEY or a field"
        " of the target. VALUES: 1,2,4 or 12.8:102.4:8 (8 values) or 1:1024:*2 (by the factor 2)."
    ),
]
Points = Annotated[Path | None, typer.Option(help="A CSV file: a line of fields, then a line a point.")]
Sample = Annotated[
    int | None, typer.Option(min=1, help="So many points of a Latin hypercube instead of all combinations.")
]
Tile = Annotated[
    list[str] | None, typer.Option(help="A field of the tiling of all points, key=value; repeatable.")
]
Set = Annotated[
    list[str] | None, typer.Option("--set", help="A number of the target of all points; repeatable.")
]
Out = Annotated[
    Path | None, typer.Option(help="The Parquet file of the results; what it holds is not run again.")
]
Workers = Annotated[int | None, typer.Option(min=1, help="Processes; default: one a processor.")]
Scheduler = Annotated[
    str | None, typer.Option(help="tcp://HOST:PORT of a dask scheduler, whose workers run the points.")
]


def sweep(
    operator: Annotated[str, typer.Argument(help="What to run: see `tilesim operators`.")],
    target: Annotated[str, typer.Option(help="A target's name (see `tilesim targets`) or a TOML file.")],
    shape: Annotated[str, typer.Option(help="As of `tilesim run`; shape.KEY of it can be varied.")],
    vary: Vary = None,
    points: Points = None,
    sample: Sample = None,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the sample.")] = 0,
    dtype: Annotated[str | None, typer.Option(help="What the chip computes in: fp16, fp32, ...")] = None,
    grads: Annotated[str | None, typer.Option(help="Gradients to compute, such as dx,dw.")] = None,
    cores: Annotated[int | None, typer.Option(min=1, help="How many cores; default: all.")] = None,
    tile: Tile = None,
    set_: Set = None,
    out: Out = None,
    workers: Workers = None,
    scheduler: Scheduler = None,
    report: Annotated[Path | None, typer.Option(help="Directory for pictures of the results.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Time an operator at many points, without values; a sweep that was stopped goes on from its file."""
    if workers is not None and scheduler is not None:
        raise ArgumentError(what="two who run", where="--workers and --scheduler", remedy="give one of them")
    if report is not None:
        check_writable(report, "--report")
    with _told_where(out), counted(f"{operator} on {target}") as told:
        table = tilesim.sweep(
            operator,
            target=target,
            shape=shape,
            vary=parse_pairs("--vary", vary or ()),
            points=read_points(points) if points else (),
            sample=sample,
            seed=seed,
            dtype=dtype,
            grads=parse_grads(find_operator(operator), grads),
            cores=cores,
            tiling={key: parse_value(text) for key, text in parse_pairs("--tile", tile or ()).items()},
            overrides=parse_pairs("--set", set_ or ()),
            out=out,
            workers=workers,
            scheduler=scheduler,
            on_row=_of_rows(told),
            on_notice=say,
        )
    _print(table, out, as_json=as_json)
    _tell_failures(table)
    if report is not None and table.done:
        for file in draw(table, report):
            if not as_json:
                write_lines(str(file))
    _check_outcome(table)


@contextlib.contextmanager
def _told_where(out: Path | None) -> Iterator[None]:
    """Of an interrupted sweep, say what is left of it.

    Raises:
        KeyboardInterrupt: with that text.
    """
    try:
        yield
    except KeyboardInterrupt as error:
        left = "nothing is kept without --out" if out is None else "no point was done"
        if out is not None and out.exists():
            left = f"{out} has the points that were done: the same command goes on from there"
        raise KeyboardInterrupt(left) from error


def _of_rows(told: Counted | None) -> Told | None:
    """What a sweep tells of each row, as a bar takes it."""
    return None if told is None else lambda done, total, _: told(done, total)


def _print(table: SweepTable, out: Path | None, *, as_json: bool) -> None:
    if as_json:
        counts = {"points": len(table), "failed": len(table.failed), "file": str(out) if out else None}
        print_json(plain({**table.call, "varied": table.varied, **counts, "rows": table.rows}))
        return
    if len(table) <= MOST_LINES:
        write_lines(str(table))
    elif table.done:
        write_lines(f"the {FASTEST} fastest:")
        write_lines(
            as_text(table.varied, sorted(table.done, key=lambda row: float(row["time_ms"]))[:FASTEST])
        )
    write_lines(f"{len(table)} points, {len(table.failed)} failed" + (f": {out}" if out else ""))


def _tell_failures(table: SweepTable) -> None:
    reasons = Counter((row["status"], row["error"]) for row in table.failed)
    for (status, error), count in reasons.most_common(REASONS):
        say(f"{count} {'points' if count > 1 else 'point'} {status}: {error}")
    if len(reasons) > REASONS:
        say(f"and {len(reasons) - REASONS} other reasons: see the column error")


def _check_outcome(table: SweepTable) -> None:
    """Refuse a sweep of which no point could be run; exit with status 1 where tilesim or its workers failed."""
    if any(row["status"] != "refused" for row in table.failed):
        raise typer.Exit(FAULT)
    if not table.done:
        raise ArgumentError(what="every point was refused", where="--vary", got=table.failed[0]["error"])
