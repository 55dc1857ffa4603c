"""`tilesim compare`: one problem on several targets."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

import tilesim
from kernels.operators import Operator, run_operator
from simulator.results.files import text_writer, write_files
from simulator.results.run import Run
from targets.errors import TilesimError
from targets.schema import Target
from tilesim.cli.arguments import (
    check_core_choice,
    check_writable,
    find_operator,
    names_of,
    parse_core_mask,
    parse_grads,
    parse_pairs,
    parse_value,
    shape_of,
)
from tilesim.cli.errors import ArgumentError, say
from tilesim.cli.output import json_text, print_json, progress, write_lines

PICTURE, RECORD = "comparison.png", "comparison.json"


def compare(
    operator: Annotated[str, typer.Argument(help="What to run: see `tilesim operators`.")],
    targets: Annotated[str, typer.Option(help="Names of targets or TOML files: mt7004,ft_m7032.")],
    shape: Annotated[str, typer.Option(help="As of `tilesim run`.")],
    dtype: Annotated[
        str, typer.Option(help="What the chips compute in; native: each target's best.")
    ] = "native",
    grads: Annotated[str | None, typer.Option(help="Gradients to compute, such as dx,dw.")] = None,
    cores: Annotated[int | None, typer.Option(min=1, help="How many cores; default: all.")] = None,
    core_mask: Annotated[str | None, typer.Option(help="Which cores, as bits: 0b1111.")] = None,
    tile: Annotated[
        list[str] | None, typer.Option(help="A field of the tiling, key=value; repeatable.")
    ] = None,
    set_: Annotated[
        list[str] | None, typer.Option("--set", help="A number of every target, key=value; repeatable.")
    ] = None,
    _timing_only: Annotated[bool, typer.Option("--timing-only", hidden=True)] = True,
    out: Annotated[Path | None, typer.Option(help=f"Directory for {PICTURE} and {RECORD}.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Time an operator on several targets, without values, and put them beside each other."""
    check_core_choice(cores, core_mask)
    if out is not None:
        check_writable(out)
    chosen = find_operator(operator)
    overrides = parse_pairs("--set", set_ or ())
    chips = {name: tilesim.load_target(name, overrides) for name in names_of(targets)}
    asked: dict[str, Any] = {
        "shape": shape_of(operator, shape),
        "dtype": dtype,
        "grads": parse_grads(chosen, grads),
        "cores": cores,
        "core_mask": parse_core_mask(core_mask),
        "tiling": {key: parse_value(text) for key, text in parse_pairs("--tile", tile or ()).items()},
    }
    runs, refused = _run_all(chosen, chips, asked)
    comparison = tilesim.compare(runs)
    record = comparison.to_dict() | {"refused": refused}
    if as_json:
        print_json(record)
    else:
        write_lines(str(comparison))
    for name, reason in refused.items():
        say(f"{name} is left out: {reason}")
    if out is not None:
        write_files(out, {PICTURE: comparison.save, RECORD: text_writer(json_text(record))})


def _run_all(
    operator: Operator, chips: dict[str, Target], asked: dict[str, Any]
) -> tuple[dict[str, Run], dict[str, str]]:
    """Runs by target, and why the others have none; refused by all is refused.

    Raises:
        TilesimError: no target takes the call.
    """
    runs: dict[str, Run] = {}
    refused: dict[str, str] = {}
    first: TilesimError | None = None
    for name, chip in chips.items():
        try:
            _check_family(operator, chip)
            with progress(f"{operator.name} on {name}"):
                runs[name] = run_operator(operator.name, target=chip, numerics=False, check=False, **asked)
        except TilesimError as error:
            first = first or error
            refused[name] = str(error)
    if first is not None and not runs:
        raise first
    return runs, refused


def _check_family(operator: Operator, chip: Target) -> None:
    if chip.family not in operator.families:
        raise ArgumentError(
            what=f"{operator.name} does not run on this family of targets",
            where=chip.name,
            got=chip.family,
            limit=", ".join(operator.families),
        )
