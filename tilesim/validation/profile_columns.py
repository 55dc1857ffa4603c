"""Lines of the Ascend profilers' tables: `op_summary_*.csv` of msprof, `kernel_details.csv` of the framework's.

Both list device tasks, the second under shorter names. What is measured depends on the level of the profile and on its
metrics, so that every column but name, type, duration and shapes may be missing; cells without a value hold N/A. Shapes
are quoted once more inside their cell, tensors stand between semicolons. (Columns: «op_summary (Operator Details)» of
CANN's profiling guide; `OP_SUMMARY_KERNEL_BASE_HEADERS` of the framework's profiler.)
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from targets.errors import TilesimError
from tilesim.validation.cells import CellError, Record, measured
from tilesim.validation.tables import head_of, read_table

NAME, TYPE = ("Op Name", "Name"), ("OP Type", "Op Type", "Type")
DURATION = ("Task Duration(us)", "Duration(us)")
SHAPES = ("Input Shapes", "Output Shapes")
"""Columns that a line must have, under one of their names; those of shapes have one."""

FIGURES = {
    "duration": DURATION,
    "core": ("aicore_time(us)",),
    "mac": ("aic_mac_time(us)", "mac_time(us)", "aic_cube_time(us)"),
    "mte1": ("aic_mte1_time(us)", "mte1_time(us)"),
    "mte2": ("aic_mte2_time(us)", "mte2_time(us)"),
    "fixpipe": ("aic_fixpipe_time(us)", "fixpipe_time(us)"),
    "scalar": ("aic_scalar_time(us)", "scalar_time(us)"),
}
"""Columns of what is measured, in microseconds; chips whose cores are not split have no `aic_`."""

HF32 = "HF32 Eligible"

NOTHING = frozenset({"", "N/A", "NA", "NONE", "NULL"})
"""Cells that hold no value."""


@dataclass(frozen=True)
class Tensor:
    """One operand or result of a task: its shape as it lies in memory, type and format, as the profiler names them."""

    shape: tuple[int, ...]
    dtype: str
    format: str


@dataclass(frozen=True)
class Task:
    """One line.

    Attributes:
        name: of the task.
        type: of the operator.
        inputs, outputs: their tensors; scalars and absent ones have an empty shape.
        hf32: whether fp32 operands were computed in hf32.
        figures: by `FIGURES`, those that were measured.
        fault: what is wrong with a figure that is no measurement; else empty.
    """

    name: str
    type: str
    inputs: tuple[Tensor, ...]
    outputs: tuple[Tensor, ...]
    hf32: bool
    figures: dict[str, float]
    fault: str = ""


def is_profile(head: Collection[str]) -> bool:
    """Whether columns are those of a profiler's table, or some of them: none of these names is in our own files."""
    own = ("Op Name", "OP Type", "Op Type", *DURATION)
    return any(name in head for name in own) or {"Name", "Type"} <= set(head)


def require_columns(path: Path) -> None:
    """Refuse a profiler's table without names, types or durations.

    Raises:
        TilesimError: a column is missing.
    """
    head = head_of(path)
    needed = (NAME, TYPE, DURATION)
    missing = [names for names in needed if not any(name in head for name in names)]
    if missing:
        got, limit = (", ".join(" or ".join(names) for names in each) for each in (missing, needed))
        raise TilesimError("a profile without some columns", where=str(path), got=got, limit=limit)


def read_tasks(path: Path) -> list[Task]:
    """The lines of a profiler's table.

    Raises:
        TilesimError: it cannot be read, has no shapes, or a line is not usable.
    """
    try:
        return read_table(path, SHAPES, _task)
    except TilesimError as error:
        if "without some columns" not in error.what:
            raise
        remedy = "collect the profile with shapes: profiler_level Level1, or msprof --task-time=l1"
        raise TilesimError(
            error.what, where=error.where, got=error.got, limit=error.limit, remedy=remedy
        ) from None


def _task(record: Record) -> Task:
    figures, faults = _figures(record)
    return Task(
        name=_cell(record, NAME),
        type=_cell(record, TYPE),
        inputs=_tensors(record, "Input"),
        outputs=_tensors(record, "Output"),
        hf32=record.get(HF32, "").upper() == "YES",
        figures=figures,
        fault="; ".join(faults),
    )


def _figures(record: Record) -> tuple[dict[str, float], list[str]]:
    """What was measured, and what is wrong with cells that are no measurements; only the duration must not be 0."""
    found, faults = {}, []
    for name, columns in FIGURES.items():
        column = next((each for each in columns if each in record), "")
        if not column or record[column].upper() in NOTHING:
            continue
        try:
            found[name] = measured(record, column, zero=name != "duration")
        except CellError as error:
            faults.append(str(error))
    return found, faults


def _cell(record: Record, columns: Collection[str]) -> str:
    return next((record[name] for name in columns if name in record), "")


def _tensors(record: Record, side: str) -> tuple[Tensor, ...]:
    """The tensors of a side; types and formats that are not recorded are empty."""
    shapes, dtypes, formats = (
        _parts(record.get(f"{side} {what}", "")) for what in ("Shapes", "Data Types", "Formats")
    )
    found = []
    for at, text in enumerate(shapes):
        dtype, layout = (listed[at] if at < len(listed) else "" for listed in (dtypes, formats))
        found.append(Tensor(_shape(text), dtype, layout))
    return tuple(found)


def _parts(cell: str) -> list[str]:
    text = cell.strip().strip('"').strip()
    return [] if text.upper() in NOTHING else [part.strip() for part in text.split(";")]


def _shape(text: str) -> tuple[int, ...]:
    numbers = text.strip("[]() ")
    if numbers.upper() in NOTHING:
        return ()
    return tuple(int(part) for part in numbers.replace(" ", ",").split(",") if part)
