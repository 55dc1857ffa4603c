"""Predicted against measured instructions: each row, and the errors of classes."""

from __future__ import annotations

import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from math import ceil
from typing import Any

from targets.errors import TilesimError
from targets.schema import Target
from tilesim.validation.instruction_rows import InstructionRow
from tilesim.validation.instructions import predicted_cycles


@dataclass(frozen=True)
class InstructionScore:
    """One row: cycles as measured and as predicted.

    Attributes:
        error: predicted over measured cycles, minus 1; where the row was measured at another clock than the target's,
            predicted over measured bandwidth, minus 1.
    """

    name: str
    chip: str
    family: str
    measured: float
    predicted: int
    error: float

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        return asdict(self)


@dataclass(frozen=True)
class LeftOut:
    """A row that has no score, and why."""

    name: str
    family: str
    reason: str

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        return asdict(self)


@dataclass(frozen=True)
class ClassSummary:
    """Absolute errors of one class on one series: median, what nine of ten rows are within, and how many rows."""

    chip: str
    family: str
    median: float
    within_90: float
    rows: int

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        return asdict(self)


def score_instructions(
    rows: Iterable[InstructionRow], targets: Mapping[str, Target]
) -> tuple[list[InstructionScore], list[LeftOut]]:
    """The scores of all rows that can be predicted, and the rows that cannot."""
    scores, left_out = [], []
    for row in rows:
        try:
            scores.append(_score(row, targets[row.target]))
        except TilesimError as error:
            left_out.append(LeftOut(row.name, row.family, str(error)))
    return scores, left_out


def _score(row: InstructionRow, target: Target) -> InstructionScore:
    if row.cycles is None:
        raise TilesimError("no cycles were recorded")
    predicted = predicted_cycles(row, target)
    return InstructionScore(
        row.name, row.chip, row.family, row.cycles, predicted, error_of(row, predicted, target)
    )


def error_of(row: InstructionRow, predicted: int, target: Target) -> float:
    """The error of a prediction: of cycles, or of bandwidth between two clocks."""
    measured = row.cycles or 0.0
    if row.clock_mhz == target.clock_mhz:
        return predicted / measured - 1
    return measured / row.clock_mhz * target.clock_mhz / predicted - 1


def class_summaries(scores: Sequence[InstructionScore]) -> list[ClassSummary]:
    """One a series and class, in the order of the rows."""
    keys = dict.fromkeys((score.chip, score.family) for score in scores)
    return [_summary(key, [s for s in scores if (s.chip, s.family) == key]) for key in keys]


def _summary(key: tuple[str, str], scores: Sequence[InstructionScore]) -> ClassSummary:
    errors = sorted(abs(score.error) for score in scores)
    return ClassSummary(*key, statistics.median(errors), errors[ceil(0.9 * len(errors)) - 1], len(errors))
