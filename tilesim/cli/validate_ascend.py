"""`tilesim validate --suite conv` and `--suite gemm`: Ascend kernels against published rows."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path

from targets.loader import load_target
from tilesim.cli.output import print_json, print_table, progress
from tilesim.cli.validate_checks import require_kind, require_scores
from tilesim.validation.ascend_constants import fitted_constants
from tilesim.validation.ascend_rows import FIGURES, OPS, read_ascend_rows
from tilesim.validation.ascend_scores import (
    FAR,
    MARGIN,
    AscendScore,
    DurationFacts,
    FigureSummary,
    duration_facts,
    figure_summaries,
    score_ascend,
)

FITTED_TARGET = "ascend910b1"
"""The base of the parts whose profiles were fitted."""


def print_ascend(measured: Path, suite: str, kind: str | None, as_json: bool) -> None:
    """Run the rows of a file, of one operator or all, and print their errors and the constants that were fitted."""
    require_kind(kind, OPS if suite == "conv" else ("gemm",))
    rows = [row for row in read_ascend_rows(measured) if kind in (None, row.op)]
    require_scores(rows, measured, kind, "a duration")
    with progress(f"running {len(rows)} rows"):
        scores = score_ascend(rows)
    groups, facts = figure_summaries(scores), duration_facts(scores)
    constants = fitted_constants(load_target(FITTED_TARGET))
    if as_json:
        print_json(
            {
                "rows": [score.to_dict() for score in scores],
                "groups": [asdict(group) for group in groups],
                "durations": asdict(facts) if facts else None,
                "fitted": [each.to_dict() for each in constants],
            }
        )
        return
    heads = ("row", "what", *(f"{figure} %" for figure in FIGURES), "roofline %", "longest pipe", "same")
    print_table("Predicted over measured, minus 1", heads, [_row(score) for score in scores])
    heads = ("group", "figure", "median %", "90 % within %", "worst %", "rows")
    print_table("Absolute errors", heads, [_group(group) for group in groups])
    if facts:
        print_table("Durations of all rows", ("what", "result"), _facts(facts))
    values = [[", ".join(each.paths), f"{each.number:g}", each.source] for each in constants]
    title = f"{len(values)} constants of {FITTED_TARGET} fitted on rows of these suites"
    print_table(title, ("numbers", "value", "fitted on"), values)


def _facts(facts: DurationFacts) -> list[list[str]]:
    """The three facts, with the rows that stand out."""
    return [
        ["median error", f"{100 * facts.median:.1f} %"],
        ["90 % of the rows are within", f"{100 * facts.within_90:.1f} %"],
        [f"rows off by more than {100 * FAR:.0f} %", ", ".join(facts.far) or "none"],
        [
            f"rows worse than the bare roofline by more than {100 * MARGIN:.0f} points",
            ", ".join(facts.below_roofline) or "none",
        ],
    ]


def _row(score: AscendScore) -> list[str]:
    errors = [score.error(figure) for figure in FIGURES]
    shown = ["" if error is None else f"{100 * error:+.1f}" for error in errors]
    bare = f"{100 * score.roofline_error:+.1f}"
    return [score.row.name, score.row.label, *shown, bare, *_pipes(score)]


def _pipes(score: AscendScore) -> tuple[str, str]:
    """The longest pipe as measured and as predicted, and whether that is the same or nearly so."""
    if score.pipes is None:
        return "", ""
    measured, found = score.pipes
    shown = measured if measured == found else f"{measured} / {found}"
    return shown, "yes" if score.same_pipe else "NO"


def _group(group: FigureSummary) -> list[str]:
    figures = (f"{100 * value:.1f}" for value in (group.median, group.within_90, group.worst))
    return [group.group, group.figure, *figures, str(group.rows)]
