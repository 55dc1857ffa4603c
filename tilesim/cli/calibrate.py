"""`tilesim calibrate`: measure this computer, and write a target that is like it."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from simulator.results.files import text_writer, write_aside
from targets.errors import TilesimError
from targets.loader import available_targets, load_target
from tilesim.calibration.measure import measured, this_computer
from tilesim.calibration.target_file import check_place, facts, target_text
from tilesim.cli.output import print_json, print_table, progress

OUT = Path("nx_host_here.toml")


def calibrate(
    target: Annotated[str, typer.Argument(help="The target to extend: nx_host.")],
    out: Annotated[Path, typer.Option("--out", help="The TOML file to write.")] = OUT,
    force: Annotated[bool, typer.Option("--force", help="Replace a file that is there.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Measure fork and join, copies and software fp32 on this computer, and write a target that extends TARGET.

    It compiles a C program with the system's compiler and takes some seconds. The file is written aside and then moved
    into its place; one that is there already is not replaced without --force.
    """
    hosts = [name for name in available_targets() if load_target(name).host is not None]
    if target not in hosts:
        raise TilesimError(
            "only a host that comes with tilesim can be measured",
            where="TARGET",
            got=target,
            limit=", ".join(hosts),
        )
    base = load_target(target)
    check_place(out, force=force)
    computer = this_computer()
    with progress("measuring this computer"):
        ns = measured(computer.cores, computer.cache_bytes or base.memory["cache"].size_bytes)
    text = target_text(base, out.stem, computer, ns, datetime.now(UTC).date())
    check_place(out, force=force)  # measuring took some seconds
    write_aside({out: text_writer(text)})
    if as_json:
        print_json({"file": str(out), "load": computer.load, "nanoseconds": ns})
        return
    rows = [(".".join(filter(None, fact[:2])), f"{fact[2]:g}", fact[3]) for fact in facts(base, computer, ns)]
    print_table(f"{out}: load {computer.load:.1f} on {computer.cores} cores", ("key", "value", "how"), rows)
