"""Rows out of a profile: equal tasks are one, with the medians of what was measured; others are counted and named."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any, Literal

from kernels.shape.shapes import ConvShape
from targets.errors import TilesimError
from targets.loader import load_target
from tilesim.validation.ascend_rows import AscendRow, Product, sizes_of
from tilesim.validation.ascend_runs import predicted, roofline_us
from tilesim.validation.ascend_scores import AscendScore
from tilesim.validation.profile_columns import Task, read_tasks
from tilesim.validation.profile_layouts import UnclearError, shown
from tilesim.validation.profile_problems import Computed, computed_by, operator_of

OTHER = "another operator"
"""The reason why most tasks have no prediction."""


@dataclass(frozen=True)
class ProfileRow:
    """Equal tasks.

    Attributes:
        row: what they computed, and the median of each figure.
        tasks: how many they are.
        type: of the operator, as the profile names it.
    """

    row: AscendRow
    tasks: int
    type: str


@dataclass(frozen=True)
class LeftOut:
    """Tasks without a prediction.

    Attributes:
        type: of the operator.
        shapes: of their operands, where the operator would be predicted; else empty.
        tasks: how many they are.
        duration_us: of all of them.
        reason: why there is none.
    """

    type: str
    shapes: str
    tasks: int
    duration_us: float
    reason: str


@dataclass(frozen=True)
class ProfileScores:
    """A profile beside the model.

    Attributes:
        scores: a row each, the longest first, with how many tasks it stands for.
        left_out: the other tasks, the longest first.
        duration_us: of all tasks of the profile.
    """

    scores: list[tuple[ProfileRow, AscendScore]]
    left_out: list[LeftOut]
    duration_us: float

    @property
    def scored_us(self) -> float:
        """The time of the tasks that are predicted, as far as the medians tell."""
        return sum(found.tasks * found.row.measured["duration"] for found, _ in self.scores)

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        return {
            "rows": [{"tasks": f.tasks, "type": f.type, **score.to_dict()} for f, score in self.scores],
            "left_out": [vars(each) for each in self.left_out],
            "duration_us": self.duration_us,
        }


def profile_rows(
    path: Path, target: str, kind: str | None = None, l2: Literal["cold", "warm"] = "cold"
) -> tuple[list[ProfileRow], list[LeftOut]]:
    """The rows of a profiler's table, and what has no prediction.

    Args:
        path: an `op_summary_*.csv` or `kernel_details.csv`.
        target: what stands for the chip.
        kind: only tasks that compute this: forward, dx, dw or gemm.
        l2: what tasks find in L2.

    Raises:
        TilesimError: the file is not usable.
    """
    same: dict[tuple[str, Computed], list[Task]] = defaultdict(list)
    others: dict[tuple[str, str, str], list[Task]] = defaultdict(list)
    for task in read_tasks(path):
        op = operator_of(task)
        if kind is not None and kind != op:
            continue
        shapes = " ".join(shown(tensor) for tensor in task.inputs) if op else ""
        try:
            if task.fault:
                raise UnclearError(task.fault)
            if not op:
                raise UnclearError(OTHER)
            if not task.figures.get("duration"):
                raise UnclearError("no duration")
            same[task.type, computed_by(task)].append(task)
        except UnclearError as error:
            others[task.type, shapes, str(error)].append(task)
    rows = [_row(target, l2, *key, tasks) for key, tasks in same.items()]
    left = [LeftOut(t, s, len(tasks), _total(tasks), r) for (t, s, r), tasks in others.items()]
    return rows, left


def _total(tasks: list[Task]) -> float:
    return sum(task.figures.get("duration", 0.0) for task in tasks)


def _row(
    target: str, l2: Literal["cold", "warm"], kind: str, computed: Computed, tasks: list[Task]
) -> ProfileRow:
    names = {name for task in tasks for name in task.figures}
    measured = {name: median(t.figures[name] for t in tasks if name in t.figures) for name in names}
    row = AscendRow(
        name=tasks[0].name,
        label=f"{computed.op} {_described(computed.problem)}, {computed.dtype}",
        group=computed.op,
        target=target,
        overrides={},
        op=computed.op,
        problem=computed.problem,
        dtype=computed.dtype,
        l2=l2,
        whole=False,
        framework=False,
        measured=measured,
    )
    return ProfileRow(row, len(tasks), kind)


def _described(problem: ConvShape | Product) -> str:
    """The sizes, and what was derived."""
    if isinstance(problem, Product):
        return f"{sizes_of(problem)} {'T' if problem.trans_a else 'N'}{'T' if problem.trans_b else 'N'}"
    stride = "x".join(map(str, problem.stride))
    pads = "x".join(str(low) if low == high else f"{low}+{high}" for low, high in problem.padding)
    dilation = "" if set(problem.dilation) == {1} else f" dilation {'x'.join(map(str, problem.dilation))}"
    groups = "" if problem.groups == 1 else f" groups {problem.groups}"
    return f"{sizes_of(problem)} stride {stride} pad {pads}{dilation}{groups}"


def score_profile(
    path: Path, target: str, kind: str | None = None, l2: Literal["cold", "warm"] = "cold"
) -> ProfileScores:
    """Predict the rows of a profile; what the target does not run is left out with the reason.

    Raises:
        TilesimError: the file is not usable, or the target is no Da Vinci chip.
    """
    family = load_target(target).family
    if family != "davinci":
        what = "profiles of Ascend chips are compared with targets of the family davinci"
        raise TilesimError(what, where=target, got=family, limit="davinci")
    rows, left = profile_rows(path, target, kind, l2)
    scores, refused = [], []
    for found in rows:
        try:
            scores.append((found, AscendScore(found.row, predicted(found.row), roofline_us(found.row))))
        except TilesimError as error:
            total = found.tasks * found.row.measured["duration"]
            refused.append(LeftOut(found.type, found.row.label, found.tasks, total, str(error)))
    scores.sort(key=lambda each: -each[0].tasks * each[0].row.measured["duration"])
    everything = sorted([*left, *refused], key=lambda each: (each.reason == OTHER, -each.duration_us))
    scored = sum(f.tasks * f.row.measured["duration"] for f, _ in scores)
    return ProfileScores(scores, everything, scored + sum(each.duration_us for each in everything))
