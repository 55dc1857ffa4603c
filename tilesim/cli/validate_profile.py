"""`tilesim validate --measured op_summary.csv --target T`: a profile of one's own beside the model."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Literal

from tilesim.cli.errors import ArgumentError
from tilesim.cli.output import print_json, print_table, progress
from tilesim.cli.validate_checks import require_scores
from tilesim.validation.ascend_rows import FIGURES
from tilesim.validation.ascend_scores import AscendScore, FigureSummary, figure_summaries
from tilesim.validation.picture import keep_scatter
from tilesim.validation.profile_rows import LeftOut, ProfileRow, ProfileScores, score_profile

OPERATORS = ("forward", "dx", "dw", "gemm")
"""What tasks compute that are predicted."""

DURATION_HEADS = ("task", "what", "tasks", "measured us", "predicted us", "error %", "roofline us")
ERROR_HEADS = ("group", "figure", "median %", "90 % within %", "worst %", "rows")
LEFT_HEADS = ("type", "tasks", "us", "shapes", "reason")


def print_profile(
    measured: Path,
    target: str | None,
    kind: str | None,
    l2: Literal["cold", "warm"],
    out: Path | None,
    as_json: bool,
) -> None:
    """Predict the convolutions and products of a profile, and print them beside what was measured.

    Raises:
        ArgumentError: no target is named, or the kind is none.
        TilesimError: after the tables, that no task could be predicted.
    """
    if target is None:
        raise ArgumentError(
            what="a profile does not say which target stands for its chip",
            where="--target",
            remedy="give one, such as --target ascend910b2",
        )
    if kind not in (None, *OPERATORS):
        raise ArgumentError(what="no such kind of task", where="--kind", got=kind, limit=", ".join(OPERATORS))
    with progress(f"running the tasks of {measured}"):
        found = score_profile(measured, target, kind, l2)
    scores = [score for _, score in found.scores]
    groups = figure_summaries(scores) if scores else []
    if out is not None and scores:
        points = [(s.row.op, s.row.measured["duration"], s.error("duration") or 0.0) for s in scores]
        keep_scatter(out, points, f"A profile on {target}", "us")
    if as_json:
        print_json({"target": target, **found.to_dict(), "groups": [asdict(group) for group in groups]})
    else:
        _print(found, groups)
    left = sum(each.tasks for each in found.left_out)
    require_scores(scores, measured, kind, f"a task that is predicted; {left} tasks were left out")


def _print(found: ProfileScores, groups: list[FigureSummary]) -> None:
    print_table("Durations", DURATION_HEADS, [_duration(*each) for each in found.scores])
    pipes = [name for name in FIGURES if name != "duration"]
    beside = [[score.row.name, *(_beside(score, name) for name in pipes)] for _, score in found.scores]
    print_table("Times of cores and pipes, measured / predicted, us", ("task", *pipes), beside)
    print_table("Absolute errors", ERROR_HEADS, [_group(group) for group in groups])
    share = 100 * found.scored_us / found.duration_us if found.duration_us else 0.0
    left = sum(each.tasks for each in found.left_out)
    title = f"Left out: {left} tasks; predicted are {share:.0f} % of the time"
    print_table(title, LEFT_HEADS, [_left(each) for each in found.left_out])


def _duration(found: ProfileRow, score: AscendScore) -> list[str]:
    error = score.error("duration")
    figures = (score.row.measured["duration"], score.predicted["duration"])
    shown = [f"{value:.1f}" for value in figures]
    percent = "" if error is None else f"{100 * error:+.1f}"
    return [score.row.name, score.row.label, str(found.tasks), *shown, percent, f"{score.roofline:.1f}"]


def _beside(score: AscendScore, figure: str) -> str:
    both = (score.row.measured.get(figure), score.predicted.get(figure))
    return " / ".join("-" if value is None else f"{value:.1f}" for value in both)


def _group(group: FigureSummary) -> list[str]:
    figures = (f"{100 * value:.1f}" for value in (group.median, group.within_90, group.worst))
    return [group.group, group.figure, *figures, str(group.rows)]


def _left(each: LeftOut) -> list[str]:
    return [each.type, str(each.tasks), f"{each.duration_us:.1f}", each.shapes, each.reason]
