"""`tilesim diff`: what changed between two saved runs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from reports.diff import diff as difference_of
from reports.diff import sentence
from reports.load import load
from tilesim.cli.errors import ArgumentError
from tilesim.cli.output import print_json, print_table

CHANGED = 3
"""The exit status when the time changed by more than the threshold."""

HEADS = ("part", "name", "before", "after", "change")


def diff(
    before: Annotated[Path, typer.Argument(metavar="DIR_A", help="A directory that `run --out` wrote.")],
    after: Annotated[Path, typer.Argument(metavar="DIR_B", help="Another, of the same or a changed call.")],
    threshold: Annotated[
        float, typer.Option(min=0, help="Share of the time that may change; beyond it the status is 3.")
    ] = 0.01,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Say what changed between two saved runs: the call, the target, the tiling, the time, and where it went."""
    for name, directory in (("DIR_A", before), ("DIR_B", after)):
        if not (directory / "run.json").is_file():
            raise ArgumentError(
                what="no saved run", where=name, got=str(directory), remedy="tilesim run ... --out DIR"
            )
    found = difference_of(load(before), load(after))
    if as_json:
        print_json(found.to_dict() | {"threshold": threshold, "changed": found.beyond(threshold)})
    else:
        typer.echo(sentence(found))
        if found.changes:
            print_table("changes", HEADS, [change.cells() for change in found.changes])
    if found.beyond(threshold):
        raise typer.Exit(CHANGED)
