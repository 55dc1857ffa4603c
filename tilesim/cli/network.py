"""`tilesim network`: the convolutions of a network, and where the time of their training goes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

import tilesim
from reports.networks.times import PICTURE, RECORD, TABLE, NetworkTimes
from targets.schema import Target
from tilesim.cli.arguments import check_core_choice, check_writable, names_of, parse_core_mask, parse_pairs
from tilesim.cli.errors import ArgumentError, say
from tilesim.cli.output import counted, print_json, write_lines


def network(
    model: Annotated[Path, typer.Argument(help="An ONNX model, or a CSV table of layers.")],
    targets: Annotated[
        str, typer.Option("--target", "--targets", help="Names of targets or TOML files: mt7004,ascend910b1.")
    ],
    batch: Annotated[int | None, typer.Option(min=1, help="Images; default: as the file says.")] = None,
    dim: Annotated[
        list[str] | None,
        typer.Option(help="A dimension that an ONNX model leaves open, name=size; repeatable."),
    ] = None,
    step: Annotated[bool, typer.Option("--step", help="A training step: forward, then dx and dw.")] = False,
    all_dx: Annotated[
        bool,
        typer.Option(
            "--all-dx", help="dx also where no convolution lies before: training has no use for it."
        ),
    ] = False,
    grads: Annotated[str, typer.Option(help="Gradients to time.")] = "dx,dw",
    dtype: Annotated[
        str, typer.Option(help="What the chips compute in; native: each target's best.")
    ] = "native",
    cores: Annotated[int | None, typer.Option(min=1, help="How many cores; default: all.")] = None,
    core_mask: Annotated[str | None, typer.Option(help="Which cores, as bits: 0b1111.")] = None,
    set_: Annotated[
        list[str] | None, typer.Option("--set", help="A number of every target, key=value; repeatable.")
    ] = None,
    memory: Annotated[
        bool, typer.Option("--memory", help="Show the gradients and workspaces that are held.")
    ] = False,
    jobs: Annotated[int, typer.Option(min=1, help="Processes that share the work.")] = 1,
    out: Annotated[Path | None, typer.Option(help=f"Directory for {RECORD}, {TABLE} and {PICTURE}.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Time the backward of every convolution of a network, each distinct layer once."""
    check_core_choice(cores, core_mask)
    if out is not None:
        check_writable(out)
    with counted(model.name) as told:
        times = tilesim.network(
            model,
            targets=_chips(targets, set_ or ()),
            batch=batch,
            dims=_dims(dim or ()),
            dtype=dtype,
            cores=cores if core_mask is None else _cores(core_mask),
            grads=[name.strip() for name in grads.split(",")],
            step=step,
            all_dx=all_dx,
            jobs=jobs,
            on_layer=told,
        )
    if out is not None:
        times.save(out)
    if as_json:
        print_json(times.to_dict())
    else:
        write_lines(times.table(memory=memory))
    _warn(times)


def _chips(names: str, numbers: Sequence[str]) -> list[Target]:
    """Targets with numbers of their own."""
    overrides = parse_pairs("--set", numbers)
    return [tilesim.load_target(name, overrides) for name in names_of(names)]


def _cores(text: str) -> list[int]:
    """The cores of a mask."""
    mask = parse_core_mask(text) or 0
    return [core for core in range(mask.bit_length()) if mask >> core & 1]


def _dims(texts: Sequence[str]) -> dict[str, int]:
    """Sizes by name.

    Raises:
        ArgumentError: one is no positive number.
    """
    found: dict[str, int] = {}
    for name, text in parse_pairs("--dim", texts).items():
        if not text.isascii() or not text.isdigit() or len(text) > 18 or int(text) < 1:
            raise ArgumentError(what="not a size", where="--dim", got=f"{name}={text}", limit="1 or more")
        found[name] = int(text)
    return found


def _warn(times: NetworkTimes) -> None:
    """Say on stderr what the totals lack."""
    for name, reason in times.refused.items():
        say(f"{name} is left out: {reason}")
    for note in times.notes:
        say(note)
    for found in times.targets:
        place = next((i for i in range(len(found.which)) if found.layer(i).refused), None)
        if place is not None:
            first = f"{times.layers[place].name}: {found.layer(place).refused}"
            say(f"{found.target} refuses {found.refused:,} of {len(found.which):,} convolutions; {first}")
