"""Predicted against measured Ascend kernels: each figure of each row, and the errors of groups of rows."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from tilesim.validation.ascend_rows import FIGURES, AscendRow
from tilesim.validation.ascend_runs import predicted, roofline_us

PIPES = ("mac", "mte1", "mte2", "fixpipe", "scalar")
"""Figures that are busy times of one pipe each."""

NEARLY = 0.1
"""Pipes whose times differ by no more than this part of the longer are as long as each other."""

FAR = 0.3
"""An error of a duration beyond which a row is named."""

MARGIN = 0.05
"""How much worse than the bare roofline a row may be before it is named."""


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

    @property
    def pipes(self) -> tuple[str, str] | None:
        """The longest pipe as measured, and as predicted; None where pipes were not measured."""
        if not all(self.row.measured.get(pipe) for pipe in PIPES):
            return None
        longest = (
            max(PIPES, key=lambda pipe: times.get(pipe, 0)) for times in (self.row.measured, self.predicted)
        )
        return next(longest), next(longest)

    @property
    def same_pipe(self) -> bool | None:
        """Whether both are one pipe, or two that were measured as nearly the same; None where none were."""
        if self.pipes is None:
            return None
        measured, found = (self.row.measured[pipe] for pipe in self.pipes)
        return found >= (1 - NEARLY) * measured

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        return {
            "name": self.row.name,
            "label": self.row.label,
            "group": self.row.group,
            "measured_us": self.row.measured,
            "predicted_us": self.predicted,
            "roofline_us": self.roofline,
            "longest_pipes": self.pipes,
            "same_pipe": self.same_pipe,
        }


@dataclass(frozen=True)
class DurationFacts:
    """Absolute errors of all durations: median, what nine of ten rows are within, and which rows stand out.

    Attributes:
        far: rows that are off by more than `FAR`.
        below_roofline: rows that are worse than the bare roofline, by more than `MARGIN`.
    """

    median: float
    within_90: float
    far: tuple[str, ...]
    below_roofline: tuple[str, ...]


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


def duration_facts(scores: Sequence[AscendScore]) -> DurationFacts | None:
    """What can be said of the durations of all rows; None without any."""
    errors = {score.row.name: abs(e) for score in scores if (e := score.error("duration")) is not None}
    if not errors:
        return None
    bare = {score.row.name: abs(score.roofline_error) for score in scores}
    whole = _summary("all", "duration", list(errors.values()))
    far = tuple(name for name, error in errors.items() if error > FAR)
    below = tuple(name for name, error in errors.items() if error > bare[name] + MARGIN)
    return DurationFacts(whole.median, whole.within_90, far, below)


def _summary(group: str, figure: str, errors: list[float]) -> FigureSummary:
    ordered = sorted(errors)
    within = ordered[min(len(ordered) - 1, -(-9 * len(ordered) // 10) - 1)]
    return FigureSummary(group, figure, statistics.median(ordered), within, ordered[-1], len(ordered))
