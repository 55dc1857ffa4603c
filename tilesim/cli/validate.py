"""`tilesim validate`: how far predictions are from published measurements."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from targets.loader import load_target
from tilesim.cli.output import print_json, print_table, progress
from tilesim.validation.rows import PUBLISHED, read_rows
from tilesim.validation.scores import Score, Summary, score_rows, summaries

TARGET = "ft_m7032"

ROW_HEADS = ("row", "product", "group", "measured", "predicted", "error %", "roofline", "error %")
GROUP_HEADS = (
    "group",
    "rows",
    "median %",
    "mean %",
    "90 % within %",
    "roofline: median %",
    "mean %",
    "90 % within %",
)


def validate(
    measured: Annotated[
        Path,
        typer.Option("--measured", help="A CSV file of measurements with the columns of the published ones."),
    ] = PUBLISHED,
    target: Annotated[str, typer.Option("--target", help="A target's name or a TOML file.")] = TARGET,
    kind: Annotated[
        str | None,
        typer.Option(
            "--kind", help="Only rows of this kind: microkernel, gemm, gemm-skinny, gemm-irregular."
        ),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Run the simulator on published measurements of matrix products and print the errors (half a minute for all)."""
    rows = [row for row in read_rows(measured) if kind in (None, row.kind)]
    with progress(f"running {len(rows)} rows"):
        scores = score_rows(rows, load_target(target))
    groups = summaries(scores)
    if as_json:
        print_json({"target": target, **record(scores, groups)})
    else:
        print_table("GFLOPS a core", ROW_HEADS, [_row(score) for score in scores])
        print_table("Absolute errors", GROUP_HEADS, [_group(summary) for summary in groups])


def record(scores: list[Score], groups: list[Summary]) -> dict[str, Any]:
    """Plain values of all rows and groups."""
    return {"rows": [s.to_dict() for s in scores], "groups": [g.to_dict() for g in groups]}


def _row(score: Score) -> list[str]:
    errors = (f"{100 * score.error:+.1f}", f"{100 * score.roofline_error:+.1f}")
    rates = (f"{score.measured:.2f}", f"{score.predicted:.2f}", f"{score.roofline:.2f}")
    return [score.name, score.label, score.group, rates[0], rates[1], errors[0], rates[2], errors[1]]


def _group(summary: Summary) -> list[str]:
    plain = summary.to_dict()
    figures = [name for name in plain if name not in ("group", "rows")]
    return [summary.group, str(summary.rows), *(f"{100 * plain[name]:.1f}" for name in figures)]
