"""`tilesim operators`: what can be run, and the page of one operator."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from kernels.operators import OPERATORS, VENDOR_CALLS, Operator
from tilesim.cli.arguments import find_operator
from tilesim.cli.output import print_json, print_table


def operators(
    name: Annotated[str | None, typer.Argument(help="An operator's name; default: list them.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """List the operators, or explain one."""
    if name is None:
        _list(as_json=as_json)
    else:
        _show(VENDOR_CALLS.get(name) or find_operator(name), as_json=as_json)


def _list(*, as_json: bool) -> None:
    every = [*OPERATORS.values(), *VENDOR_CALLS.values()]
    if as_json:
        print_json({"operators": [_record(operator) for operator in every]})
        return
    rows = [
        (
            o.name,
            ", ".join(o.families),
            ", ".join(o.gradients),
            "Python" if o.name in VENDOR_CALLS else "",
            o.summary,
        )
        for o in every
    ]
    print_table("operators", ("name", "families", "gradients", "only from", "summary"), rows)


def _show(operator: Operator, *, as_json: bool) -> None:
    if as_json:
        print_json(_record(operator) | {"text": operator.text})
        return
    typer.echo(f"{operator.name}: {operator.summary}")
    typer.echo(f"runs on the families {', '.join(operator.families)}")
    typer.echo(f"gradients: {', '.join(operator.gradients) or 'none'}\n")
    typer.echo(operator.text.strip())


def _record(operator: Operator) -> dict[str, Any]:
    return {
        "name": operator.name,
        "summary": operator.summary,
        "families": list(operator.families),
        "gradients": list(operator.gradients),
        "command_line": operator.name in OPERATORS,
    }
