"""Cells of files of measurements: numbers above 0, whole numbers, names of a known set; all else is refused."""

from __future__ import annotations

import math
from collections.abc import Collection

from targets.errors import TilesimError
from targets.loader import available_targets, load_target
from targets.schema import Target

Record = dict[str, str]
"""The cells of a line by column, without blanks around them; empty where the line is too short."""

ABOVE_0 = "a finite number above 0"
FROM_0 = "a finite number from 0"


class CellError(ValueError):
    """A cell that is not usable.

    Attributes:
        column: its column's name.
        got: its text.
        limit: what may stand there.
    """

    def __init__(self, column: str, got: str, limit: str) -> None:
        super().__init__(f"{column} {got}: not {limit}")
        self.column, self.got, self.limit = column, got, limit


def measured(record: Record, column: str, *, zero: bool = False) -> float:
    """A measurement; times of parts that may have been idle can be 0.

    Raises:
        CellError: it is no number, not finite, or not above 0.
    """
    text = record[column]
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not math.isfinite(value) or value < 0 or (value == 0 and not zero):
        raise CellError(column, shown(text), FROM_0 if zero else ABOVE_0)
    return value


def whole(record: Record, column: str, most: int | None = None) -> int:
    """A size or a count: a whole number from 1, up to `most`.

    Raises:
        CellError: it is none.
    """
    return _whole(record[column], column, record[column], 1, most)


def numbers(record: Record, column: str, least: int) -> list[int]:
    """Three whole numbers, such as 1x4x4, from `least`.

    Raises:
        CellError: they are others, or not three.
    """
    text = record[column]
    parts = text.split("x")
    if len(parts) != 3:
        raise CellError(column, shown(text), "three whole numbers, such as 1x2x2")
    return [_whole(part, column, text, least, None) for part in parts]


def _whole(text: str, column: str, got: str, least: int, most: int | None) -> int:
    limit = f"a whole number from {least}" if most is None else f"a whole number from {least} to {most}"
    # Python reads no more than 4300 digits; sizes of 18 are beyond every machine.
    value = int(text) if text.isascii() and text.isdigit() and len(text) <= 18 else -1
    if value < least or (most is not None and value > most):
        raise CellError(column, shown(got), limit)
    return value


def one_of(record: Record, column: str, known: Collection[str]) -> str:
    """A name out of a known set.

    Raises:
        CellError: it is another.
    """
    if record[column] not in known:
        raise CellError(column, shown(record[column]), ", ".join(name or "nothing" for name in known))
    return record[column]


def davinci_target(record: Record, overrides: dict[str, str] | None = None) -> Target:
    """The target of the column `target`, with the overrides of the column `set`.

    Raises:
        CellError: there is no such target, it is no Da Vinci chip, or an override is not usable.
    """
    name = record["target"]
    try:
        target = load_target(name)
    except TilesimError:
        raise CellError("target", shown(name), ", ".join(_davinci_names())) from None
    if target.family != "davinci":
        raise CellError("target", name, ", ".join(_davinci_names()))
    try:
        return load_target(name, overrides) if overrides else target
    except TilesimError as error:
        raise CellError("set", record["set"], f"keys and values of the target ({error})") from None


def _davinci_names() -> list[str]:
    return [name for name in available_targets() if load_target(name).family == "davinci"]


def shown(text: str) -> str:
    """A cell's text in a message."""
    return text or "nothing"
