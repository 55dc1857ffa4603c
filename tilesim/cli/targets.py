"""`tilesim targets`: the chips, and each number of one with its unit, mark and source."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, NamedTuple

import typer

from targets.loader import available_targets, load_target
from targets.schema import Target
from tilesim.cli.output import print_json, print_table

_UNITS = (  # the longest ending that fits comes first
    ("gigabytes_per_second", "GB/s"),
    ("bytes_per_cycle_per_core", "B/cycle a core"),
    ("bytes_per_cycle", "B/cycle"),
    ("flops_per_cycle", "FLOP/cycle"),
    ("macs_per_cycle", "MAC/cycle"),
    ("elements_per_cycle", "elements/cycle"),
    ("cycles_16bit", "cycles a repeat"),
    ("cycles_32bit", "cycles a repeat"),
    ("moves_per_cycle", "moves/cycle"),
    ("cycles_per_core", "cycles a core"),
    ("_cycles", "cycles"),
    ("cycles", "cycles"),
    ("_bytes", "B"),
    ("_mhz", "MHz"),
    ("_address", "B"),
)


class Fact(NamedTuple):
    """One value of a target: its dotted key, unit, and where it comes from."""

    key: str
    value: Any
    unit: str
    mark: str
    source: str


def facts(target: Target) -> list[Fact]:
    """Return every value of the target in the order of the schema; mark and source are empty for text."""
    return [_fact(target, key, value) for key, value in _leaves(_tables(target))]


def targets(
    name: Annotated[
        str | None, typer.Argument(help="A target's name or a TOML file; default: list them.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """List the targets, or show each number of one with its unit, mark and source."""
    if name is None:
        _list(as_json=as_json)
    else:
        _show(load_target(name), as_json=as_json)


def unit_of(key: str) -> str:
    """Return the unit that the end of a dotted key says; empty for counts and ratios."""
    return next((unit for ending, unit in _UNITS if key.endswith(ending)), "")


def _list(*, as_json: bool) -> None:
    known = [load_target(name) for name in available_targets()]
    if as_json:
        fields = {"name", "title", "family", "clock_mhz", "groups"}
        print_json({"targets": [target.model_dump(mode="json", include=fields) for target in known]})
        return
    rows = [(t.name, t.title, t.family, f"{t.clock_mhz:g}", str(t.groups)) for t in known]
    print_table("targets", ("name", "chip", "family", "clock (MHz)", "cores"), rows)


def _show(target: Target, *, as_json: bool) -> None:
    if as_json:
        values = [fact._asdict() for fact in facts(target)]
        print_json({"name": target.name, "title": target.title, "family": target.family, "values": values})
        return
    rows = [(fact.key, _text(fact), fact.unit, fact.mark, fact.source) for fact in facts(target)]
    print_table(f"{target.name}: {target.title}", ("key", "value", "unit", "mark", "source"), rows)


def _tables(target: Target) -> dict[str, Any]:
    return target.model_dump(mode="json", exclude={"name", "title", "provenance"})


def _leaves(table: Mapping[str, Any], above: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in table.items():
        if isinstance(value, Mapping):
            yield from _leaves(value, f"{above}{name}.")
        elif value is not None:
            yield f"{above}{name}", value


def _fact(target: Target, key: str, value: Any) -> Fact:
    origin = target.provenance.get(key)
    mark, source = (origin.mark, origin.source) if origin else ("", "")
    return Fact(key, value, unit_of(key), mark, source)


def _text(fact: Fact) -> str:
    if fact.key.endswith("_address"):
        return hex(fact.value)
    if isinstance(fact.value, list):
        return ", ".join(item if isinstance(item, str) else f"{item:g}" for item in fact.value)
    return (
        f"{fact.value:,}"
        if isinstance(fact.value, int) and not isinstance(fact.value, bool)
        else str(fact.value)
    )
