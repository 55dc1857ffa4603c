"""`tilesim run`: one call of an operator, its summary, and what is to be kept of it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

import tilesim
from kernels.operators import Operator, run_operator
from kernels.search.search import BUDGET
from kernels.shape.shapes import ConvShape
from simulator.results.run import Run
from tilesim.cli.arguments import (
    check_core_choice,
    check_directory,
    find_operator,
    parse_core_mask,
    parse_grads,
    parse_pairs,
    parse_tiling,
    remove_report,
    shape_of,
)
from tilesim.cli.errors import FAULT, ArgumentError, say
from tilesim.cli.output import page_of, print_json, progress, write_lines

Name = Annotated[
    str,
    typer.Argument(
        help="What to run: see `tilesim operators`; or a kernel of yours, my_kernel.py:name (the file is executed)."
    ),
]
Tile = Annotated[
    list[str] | None,
    typer.Option(help="A field of the tiling, key=value; repeatable. auto: search the others by timed runs."),
]
Budget = Annotated[int | None, typer.Option(min=1, help=f"Runs of --tile auto at most; default: {BUDGET}.")]


def run(
    operator: Name,
    target: Annotated[str, typer.Option(help="A target's name (see `tilesim targets`) or a TOML file.")],
    shape: Annotated[
        str,
        typer.Option(
            help="n=4,cin=128,h=28,w=28,cout=128,kh=3,kw=3,stride=1,pad=1; for gemm m=512,n=512,k=64."
        ),
    ],
    dtype: Annotated[str | None, typer.Option(help="What the chip computes in: fp16, fp32, ...")] = None,
    grads: Annotated[str | None, typer.Option(help="Gradients to compute, such as dx,dw.")] = None,
    cores: Annotated[int | None, typer.Option(min=1, help="How many cores; default: all.")] = None,
    core_mask: Annotated[str | None, typer.Option(help="Which cores, as bits: 0b1111.")] = None,
    tile: Tile = None,
    search_budget: Budget = None,
    set_: Annotated[
        list[str] | None, typer.Option("--set", help="A number of the target, key=value; repeatable.")
    ] = None,
    timing_only: Annotated[bool, typer.Option("--timing-only", help="Compute no values.")] = False,
    no_check: Annotated[bool, typer.Option("--no-check", help="Do not compare with the reference.")] = False,
    seed: Annotated[int, typer.Option(min=0, help="Seed of the random operands.")] = 0,
    integers: Annotated[bool, typer.Option("--integers", help="Small integers as operands.")] = False,
    out: Annotated[
        Path | None,
        typer.Option(help="Directory for the run's record and trace; it replaces a run saved there before."),
    ] = None,
    report: Annotated[bool, typer.Option("--report", help="Write pictures and a page into --out.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Run an operator on a target and say what it cost and what bounds it."""
    check_core_choice(cores, core_mask)
    _check_place(out, report=report)
    chosen, (auto, tiling) = find_operator(operator), parse_tiling(tile or (), search_budget)
    call: dict[str, Any] = {
        "shape": shape_of(operator, shape),
        "target": tilesim.load_target(target, parse_pairs("--set", set_ or ())),
        "dtype": dtype,
        "grads": parse_grads(chosen, grads),
        "cores": cores,
        "core_mask": parse_core_mask(core_mask),
    }
    found = _search(operator, call, tiling, search_budget) if auto else None
    with progress(f"{operator} on {target}"):
        result = run_operator(
            operator,
            **call,
            tiling=found.tiling if found else tiling,
            numerics=not timing_only,
            seed=seed,
            integers=integers,
            check=not (no_check or timing_only),
        )
    _tell_of_file(chosen)
    _tell_of_nothing(call["shape"])
    _print(result, found, as_json=as_json)
    page = _keep(result, out, report=report)
    if page and not as_json:
        typer.echo(page)
    _check_errors(result)


def _tell_of_file(operator: Operator) -> None:
    """Say on stderr that a kernel file was executed."""
    if operator.file:
        say(f"{operator.file} was executed: the code and the figures of {operator.name} are its own")


def _tell_of_nothing(shape: object) -> None:
    """Say on stderr that a convolution has no outputs: most often a pad was forgotten."""
    if isinstance(shape, ConvShape) and 0 in shape.out:
        size = "x".join(map(str, shape.out))
        say(f"the convolution has no outputs ({size}): the kernel is larger than the padded input")


def _check_place(out: Path | None, *, report: bool) -> None:
    if out is not None:
        check_directory(out)
    elif report:
        raise ArgumentError(what="no place for the report", where="--report", remedy="give --out DIR too")


def _search(
    operator: str, call: dict[str, Any], tiling: dict[str, object], budget: int | None
) -> tilesim.TileSearch:
    with progress(f"searching the tiling of {operator}"):
        return tilesim.search_tiling(operator, **call, tiling=tiling, budget=budget or BUDGET)


def _print(result: Run, found: tilesim.TileSearch | None, *, as_json: bool) -> None:
    if as_json:
        print_json(result.to_dict() | ({"search": found.to_dict()} if found else {}))
        return
    typer.echo(result.summary())
    if found:
        write_lines(f"  search     {str(found).replace(chr(10), chr(10) + ' ' * 13)}")


def _keep(result: Run, out: Path | None, *, report: bool) -> Path | None:
    """Save the run, write its report if wanted, and return the report's page."""
    if out is None:
        return None
    remove_report(out)
    result.save(out)
    if not report:
        return None
    with progress("report"):
        return page_of(tilesim.report(out))


def _check_errors(result: Run) -> None:
    """Exit with status 1 if an output is further from the reference than the arithmetic explains."""
    tolerance = result.tolerance or {}
    for name, error in (result.max_error or {}).items():
        if not error <= tolerance[name]:
            say(f"{name} is off by {error:.3g}, more than its tolerance of {tolerance[name]:.3g}")
            raise typer.Exit(FAULT)
