"""`tilesim critical`: the chain that set a saved run's end, and what other numbers of the chip would save."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from kernels.operators import run_again
from reports.load import SavedRun, load
from simulator.results.critical.advice import sentence
from simulator.results.critical.path import critical_path
from simulator.results.critical.what_if import Change, Estimate, usual_changes, what_if
from simulator.results.metrics import percent
from tilesim.cli.errors import ArgumentError
from tilesim.cli.output import print_json, print_table, progress, write_lines

PATH_HEADS = ("engine", "reason", "cycles", "share")


def critical(
    directory: Annotated[Path, typer.Argument(metavar="DIR", help="A directory that `run --out` wrote.")],
    verify: Annotated[
        bool,
        typer.Option("--verify", help="Run the call again on each changed chip, and print the difference."),
    ] = False,
    by: Annotated[
        float, typer.Option(min=1, max=99, help="By how many per cent each number of the chip is better.")
    ] = 20,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Say what set the end of a saved run, by engine and reason, and what better numbers of the chip would save."""
    if not (directory / "run.json").is_file():
        raise ArgumentError(
            what="no saved run", where="DIR", got=str(directory), remedy="tilesim run ... --out DIR"
        )
    saved = load(directory)
    table = critical_path(saved.trace, saved.target, saved.launches, saved.cycles).table()
    changes = usual_changes(saved.target, by / 100)
    found = [what_if(saved.trace, saved.target, saved.launches, saved.cycles, change) for change in changes]
    true = {change: _again(saved, change) for change in changes} if verify else {}
    if as_json:
        print_json(_record(saved, table, found, true))
        return
    rows = [(*key, f"{cycles:,}", percent(cycles / max(1, saved.cycles))) for key, cycles in table.items()]
    print_table(f"critical path of {saved.cycles:,} cycles", PATH_HEADS, rows)
    for estimate in found:
        write_lines(_line(estimate, true.get(estimate.change)))


def _again(saved: SavedRun, change: Change) -> float:
    """The share of its time that the call really saves on a changed chip; the tiling is kept."""
    with progress(str(change)):
        again = run_again(saved.record, change.on(saved.target))
        return 1 - again.time_us / saved.target.us(saved.cycles)


def _line(estimate: Estimate, true: float | None) -> str:
    if true is None:
        return sentence(estimate)
    points = 100 * (estimate.saved - true)
    return f"{sentence(estimate)}; run again, it saves {100 * true:.1f} % ({points:+.1f} points off)"


def _record(
    saved: SavedRun, table: dict[tuple[str, str], int], found: list[Estimate], true: dict[Change, float]
) -> dict[str, object]:
    """The object of `--json`; shares are of the run's time."""
    estimates = [
        {
            "change": each.change.what,
            "factor": each.change.factor,
            "saved": each.saved,
            **({"saved_run_again": true[each.change]} if each.change in true else {}),
        }
        for each in found
    ]
    path = [{"engine": engine, "reason": reason, "cycles": n} for (engine, reason), n in table.items()]
    return {"cycles": saved.cycles, "critical_path": path, "what_if": estimates}
