"""`tilesim validate --suite conv` and `--suite gemm`: Ascend kernels against published rows."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

from targets.loader import load_target
from tilesim.cli.output import print_json, print_table, progress
from tilesim.validation.ascend_rows import FIGURES, read_ascend_rows
from tilesim.validation.ascend_scores import (
    AscendScore,
    FigureSummary,
    figure_summaries,
    fitted_constants,
    score_ascend,
)

FITTED_TARGET = "ascend910b1"
"""The base of the parts whose profiles were fitted."""


def print_ascend(measured: Path, kind: str | None, as_json: bool) -> None:
    """Run the rows of a file, of one operator or all, and print their errors and the constants that were fitted."""
    rows = [row for row in read_ascend_rows(measured) if kind in (None, row.op)]
    with progress(f"running {len(rows)} rows"):
        scores = score_ascend(rows)
    groups, constants = figure_summaries(scores), fitted_constants(load_target(FITTED_TARGET))
    if as_json:
        print_json(
            {
                "rows": [score.to_dict() for score in scores],
                "groups": [asdict(group) for group in groups],
                "fitted": constants,
            }
        )
        return
    heads = ("row", "what", *(f"{figure} %" for figure in FIGURES), "roofline %")
    print_table("Predicted over measured, minus 1", heads, [_row(score) for score in scores])
    heads = ("group", "figure", "median %", "90 % within %", "worst %", "rows")
    print_table("Absolute errors", heads, [_group(group) for group in groups])
    values = [[path, str(value)] for path, value in constants.items()]
    print_table(f"{len(values)} constants of {FITTED_TARGET} fitted on profiles", ("number", "value"), values)


def _row(score: AscendScore) -> list[str]:
    errors = [score.error(figure) for figure in FIGURES]
    shown = ["" if error is None else f"{100 * error:+.1f}" for error in errors]
    return [score.row.name, score.row.label, *shown, f"{100 * score.roofline_error:+.1f}"]


def _group(group: FigureSummary) -> list[str]:
    figures = (f"{100 * value:.1f}" for value in (group.median, group.within_90, group.worst))
    return [group.group, group.figure, *figures, str(group.rows)]
