"""`tilesim validate`: how far predictions are from published measurements."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from targets.errors import TilesimError
from targets.loader import load_target
from tilesim.cli.errors import ArgumentError
from tilesim.cli.output import print_json, print_table, progress
from tilesim.cli.validate_ascend import print_ascend
from tilesim.cli.validate_checks import require_kind, require_scores
from tilesim.cli.validate_profile import print_profile
from tilesim.validation.ascend_rows import PUBLISHED as ASCEND
from tilesim.validation.instruction_rows import INSTRUCTIONS, read_instruction_rows
from tilesim.validation.instruction_scores import ClassSummary, class_summaries, score_instructions
from tilesim.validation.picture import PICTURE, keep_scatter
from tilesim.validation.profile_columns import is_profile, require_columns
from tilesim.validation.rows import DEFAULT_TARGET, KINDS, PUBLISHED, read_rows
from tilesim.validation.scores import Score, Summary, score_rows, summaries
from tilesim.validation.tables import head_of

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


CLASS_HEADS = ("series", "class", "median %", "90 % within %", "rows")


def validate(
    measured: Annotated[
        Path | None,
        typer.Option(
            "--measured",
            help="A CSV file of measurements with the columns of the published ones, or an Ascend profile:"
            " op_summary_*.csv or kernel_details.csv.",
        ),
    ] = None,
    target: Annotated[
        str | None,
        typer.Option("--target", help=f"A target's name or a TOML file (products: {DEFAULT_TARGET})."),
    ] = None,
    suite: Annotated[
        Literal["products", "instructions", "conv", "gemm"],
        typer.Option(
            "--suite",
            help="Matrix products on FT-M7032; instructions, convolutions or products of Ascend cores.",
        ),
    ] = "products",
    kind: Annotated[
        str | None,
        typer.Option(
            "--kind",
            help="Only rows of this kind: microkernel, gemm, gemm-skinny, gemm-irregular; or forward, dx, dw.",
        ),
    ] = None,
    l2: Annotated[
        Literal["cold", "warm"], typer.Option("--l2", help="What the tasks of a profile find in L2.")
    ] = "cold",
    out: Annotated[Path | None, typer.Option("--out", help=f"Directory for {PICTURE}.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON object.")] = False,
) -> None:
    """Run the simulator on published measurements and print the errors (half a minute for all products)."""
    if measured is not None and is_profile(head_of(measured)):
        require_columns(measured)
        print_profile(measured, target, kind, l2, out, as_json)
        return
    if suite == "instructions":
        _instructions(measured or INSTRUCTIONS, target, kind, out, as_json)
        return
    if suite in ("conv", "gemm"):
        print_ascend(measured or ASCEND[suite], suite, kind, as_json)
        return
    _products(measured or PUBLISHED, target or DEFAULT_TARGET, kind, out, as_json)


def _products(measured: Path, target: str, kind: str | None, out: Path | None, as_json: bool) -> None:
    """Print what the products of each group are off by."""
    require_kind(kind, KINDS)
    machine = load_target(target)
    if machine.family != "dsp":
        what = "these products are compared with targets of the family dsp"
        raise ArgumentError(what=what, where="--target", got=f"{target} ({machine.family})", limit="dsp")
    rows = [row for row in read_rows(measured, machine) if kind in (None, row.kind)]
    with progress(f"running {len(rows)} rows"):
        scores = score_rows(rows, machine)
    require_scores(scores, measured, kind, "a rate or cycles")
    groups = summaries(scores)
    if out is not None:
        points = [(score.group, score.measured, score.error) for score in scores]
        keep_scatter(out, points, f"Matrix products on {target}", "GFLOPS a core")
    if as_json:
        print_json({"target": target, **record(scores, groups)})
    else:
        print_table("GFLOPS a core", ROW_HEADS, [_row(score) for score in scores])
        print_table("Absolute errors", GROUP_HEADS, [_group(summary) for summary in groups])


def _instructions(
    measured: Path, target: str | None, kind: str | None, out: Path | None, as_json: bool
) -> None:
    """Print what the instructions of each class are off by, and the rows without a prediction."""
    if kind is not None:
        raise TilesimError("instructions have no kinds", got=f"--kind {kind}", remedy="leave --kind out")
    rows = read_instruction_rows(measured)
    targets = {row.target: load_target(target or row.target) for row in rows}
    scores, left_out = score_instructions(rows, targets)
    classes = class_summaries(scores)
    if out is not None and scores:
        points = [(f"{score.chip}, {score.family}", score.measured, score.error) for score in scores]
        keep_scatter(out, points, "Instructions of Ascend cores", "cycles")
    if as_json:
        print_json(
            {
                "rows": [score.to_dict() for score in scores],
                "classes": [each.to_dict() for each in classes],
                "left_out": [row.to_dict() for row in left_out],
            }
        )
        require_scores(scores, measured, None, "cycles and an instruction that is predicted")
        return
    print_table("Absolute errors of instructions", CLASS_HEADS, [_class(each) for each in classes])
    reasons = [[row.name, row.family, row.reason] for row in left_out]
    print_table(f"Left out: {len(left_out)} of {len(rows)} rows", ("row", "class", "reason"), reasons)
    require_scores(scores, measured, None, "cycles and an instruction that is predicted")


def _class(summary: ClassSummary) -> list[str]:
    errors = (f"{100 * summary.median:.1f}", f"{100 * summary.within_90:.1f}")
    return [summary.chip, summary.family, *errors, str(summary.rows)]


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
