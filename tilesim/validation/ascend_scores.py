"""Predicted against measured Ascend kernels: each figure of each row, and the errors of groups of rows."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from targets.schema import Target
from tilesim.validation.ascend_rows import FIGURES, AscendRow
from tilesim.validation.ascend_runs import predicted, roofline_us

FITTED_ON = "profiles of an AlexNet training step"
"""How the source of a number begins that was fitted on the rows of these profiles."""


@dataclass(frozen=True)
class AscendScore:
    """One row: what was measured and predicted, in microseconds, and the bare roofline."""

    row: AscendRow
    predicted: dict[str, float]
    roofline: float

    def error(self, figure: str) -> float | None:
        """Predicted over measured, minus 1; None where one of them is missing."""
        measured, found = self.row.measured.get(figure), self.predicted.get(figure)
        return found / measured - 1 if measured and found is not None else None

    @property
    def roofline_error(self) -> float:
        """The same of the roofline, against the duration."""
        return self.roofline / self.row.measured["duration"] - 1

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        return {
            "name": self.row.name,
            "label": self.row.label,
            "group": self.row.group,
            "measured_us": self.row.measured,
            "predicted_us": self.predicted,
            "roofline_us": self.roofline,
        }


@dataclass(frozen=True)
class FigureSummary:
    """Absolute errors of one figure in one group: median, what nine of ten rows are within, the worst, and the rows."""

    group: str
    figure: str
    median: float
    within_90: float
    worst: float
    rows: int


def score_ascend(rows: Iterable[AscendRow]) -> list[AscendScore]:
    """The scores of all rows."""
    return [AscendScore(row, predicted(row), roofline_us(row)) for row in rows]


def figure_summaries(scores: Sequence[AscendScore]) -> list[FigureSummary]:
    """Errors by group and figure, then of all rows together, the roofline's beside them."""
    found = []
    for group in (*dict.fromkeys(score.row.group for score in scores), "all"):
        mine = [score for score in scores if group in ("all", score.row.group)]
        for figure in FIGURES:
            errors = [abs(e) for score in mine if (e := score.error(figure)) is not None]
            if errors:
                found.append(_summary(group, figure, errors))
        found.append(_summary(group, "roofline", [abs(score.roofline_error) for score in mine]))
    return found


def _summary(group: str, figure: str, errors: list[float]) -> FigureSummary:
    ordered = sorted(errors)
    within = ordered[min(len(ordered) - 1, -(-9 * len(ordered) // 10) - 1)]
    return FigureSummary(group, figure, statistics.median(ordered), within, ordered[-1], len(ordered))


def fitted_constants(target: Target) -> dict[str, object]:
    """The numbers of a target that were fitted on the profile rows, by path; equal ones are one."""
    found: dict[str, str] = {}
    plain = target.model_dump()
    for path, mark in target.provenance.items():
        if mark.mark == "derived" and mark.source.startswith(FITTED_ON):
            found.setdefault(repr(_at(plain, path)), path)
    return {path: value for value, path in found.items()}


def _at(tables: dict[str, Any], path: str) -> object:
    """The value under a dotted path."""
    here: Any = tables
    for part in path.split("."):
        here = here[part]
    return here
