"""The TOML file of a measured computer: it extends a host target, and gives every number that was measured."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from datetime import date
from pathlib import Path

from targets.errors import TilesimError
from targets.schema import Target
from tilesim.calibration.measure import Computer

LEAST_PART = 0.05
"""A multiply takes at least this part of a multiply-add, whatever noise says of the difference."""

Fact = tuple[str, str, float | int, str]
"""Table, key, value, source."""


def facts(base: Target, computer: Computer, ns: Mapping[str, float]) -> Iterator[Fact]:
    """Every number that the file gives, in the order of the file."""
    clock = computer.clock_mhz or base.clock_mhz

    def cycles(name: str, less: float = 0.0) -> float:
        return round(max(ns[name] - less, LEAST_PART * ns[name]) * clock / 1000, 3)

    def whole(name: str) -> int:
        return round(ns[name] * clock / 1000)

    if computer.clock_mhz:
        yield "", "clock_mhz", clock, "/proc/cpuinfo of this computer"
    yield "", "groups", computer.cores, "cores that the process may use"
    if computer.cache_bytes:
        yield "memory.cache", "size_bytes", computer.cache_bytes, "L2 by the system's configuration"
    yield "memory.ddr", "size_bytes", computer.memory_bytes, "pages by the system's configuration"
    together = round(1 / ns["byte_together"], 3)
    yield "link.ddr", "gigabytes_per_second", together, "memcpy by all cores at once, both directions"
    yield "port.load", "gigabytes_per_second", round(1 / ns["byte"], 3), "memcpy by one core, both directions"
    yield "sync", "barrier_latency_cycles", whole("join"), "fork's return to waitpid's, of an empty worker"
    yield "sync", "barrier_cycles_per_core", whole("reap"), "waitpid of a worker that has ended"
    yield "host", "multiply_cycles", cycles("multiply_add", ns["add"]), "a multiply-add less an add, as calls"
    yield "host", "add_cycles", cycles("add"), "a sum of random numbers, as calls"
    yield "host", "move_cycles", cycles("move"), "a transposition inside the cache"
    yield "host", "scatter_cycles", cycles("scatter"), "stores to 576 lines in turn, 25,088 bytes apart"
    yield "host", "tap_cycles", cycles("tap", ns["move"]), "im2col inside the cache less the moves"
    yield "host", "line_cycles", cycles("line"), "writes at a stride beyond the cache"
    yield "host", "page_bytes", computer.page_bytes, "the system's configuration"
    yield "host", "page_cycles", whole("page"), "mmap, first touch and munmap, a page"
    yield "host", "fork_cycles", whole("fork"), "fork, until it returns to the parent"
    crowded = max(1.0, round(ns["crowded"], 4))  # below 1 is noise: cores do not help each other
    yield "host", "crowded_factor", crowded, "a multiply-add on all cores at once over one alone"


def target_text(base: Target, name: str, computer: Computer, ns: Mapping[str, float], day: date) -> str:
    """The file's text; numbers are marked derived, and say when they were measured and how loaded the computer was."""
    note = (
        f"measured {day.isoformat()} by tilesim calibrate, load {computer.load:.1f} on {computer.cores} cores"
    )
    lines = [
        f"# {base.name} as this computer is: {note}.",
        f"extends = {json.dumps(base.name)}",
        f"name = {json.dumps(name)}",
        f"title = {json.dumps(base.title + ': measured')}",
    ]
    table = ""
    for where, key, value, source in facts(base, computer, ns):
        if where != table:
            lines += ["", f"[{where}]"]
            table = where
        lines.append(f'{key} = {{ value = {value}, mark = "derived", source = "{source}; {note}" }}')
    return "\n".join(lines) + "\n"


def check_place(path: Path, *, force: bool) -> None:
    """Refuse a file that is there already, unless forced, and a name that does not end as a target's.

    Raises:
        TilesimError: as said.
    """
    if path.suffix != ".toml":
        raise TilesimError("a target's file ends in .toml", where="--out", got=str(path))
    if path.is_dir() or (path.exists() and not force):
        raise TilesimError(
            "the file is there already",
            where="--out",
            got=str(path),
            remedy="give another name, or --force to replace it",
        )
    if not path.absolute().parent.is_dir():
        raise TilesimError("no such directory", where="--out", got=str(path.parent))
