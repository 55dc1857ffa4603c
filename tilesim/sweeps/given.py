"""What a caller of `tilesim.sweep` may give, as a sweep takes it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from os import PathLike
from pathlib import Path
from typing import Any

from kernels.operators import OPERATORS
from kernels.shape.problems import checked_problem
from tilesim.sweeps.errors import SweepError
from tilesim.sweeps.points import read_points
from tilesim.sweeps.values import Interval, Value, Values, parse_values


def swept_shape(operator: str, shape: Any) -> Any:
    """The shape: a mapping of the keys of a shape text as that text, else as given.

    Raises:
        ShapeError: it is no problem of the operator.
    """
    if isinstance(shape, Mapping):
        return ",".join(f"{key}={value}" for key, value in shape.items())
    if isinstance(shape, str) or operator not in OPERATORS:  # refused later, with the nearest name
        return shape
    return checked_problem(OPERATORS[operator].shape, shape)


def varied_values(vary: object) -> dict[str, Values]:
    """The values by field, a value alone as a list of one.

    Raises:
        SweepError: they are no mapping, or no values.
    """
    if vary is None:
        return {}
    if not isinstance(vary, Mapping):
        what, limit = "not values by field", "a mapping such as {'cores': [1, 2, 4]}"
        raise SweepError(what, where="vary", got=repr(vary), limit=limit)
    return {str(name): _values(str(name), given) for name, given in vary.items()}


def _values(name: str, given: object) -> Values:
    if isinstance(given, str):
        return parse_values(name, given)
    if isinstance(given, Interval):
        return given
    if isinstance(given, Iterable) and not isinstance(given, Mapping) and getattr(given, "ndim", None) != 0:
        return tuple(_plain(name, each) for each in given)
    return (_plain(name, given),)


def _plain(name: str, value: Any) -> Value:
    """A value; NumPy's numbers as Python's."""
    made = value.item() if hasattr(value, "item") and not getattr(value, "ndim", 0) else value
    if isinstance(made, int | float | bool | str):
        return made
    limit = "whole numbers, fractions, true or false, and texts"
    raise SweepError("not a value of a field", where=f"vary {name}", got=repr(value), limit=limit)


def listed_points(points: object) -> list[Mapping[str, Value]]:
    """The listed points: as they are, or those of a CSV file.

    Raises:
        SweepError: the file is not usable, or they are no mappings.
    """
    if isinstance(points, str | Path):
        return [*read_points(Path(points))]
    if isinstance(points, Iterable) and not isinstance(points, Mapping):
        return [_point(each) for each in points]
    return [_point(points)]  # one alone


def _point(given: object) -> Mapping[str, Value]:
    if not isinstance(given, Mapping):
        what, limit = "not a point", "a CSV file, or a mapping of values by field for each point"
        raise SweepError(what, where="points", got=repr(given), limit=limit)
    return {str(name): _plain(str(name), value) for name, value in given.items()}


def place_of(out: str | PathLike[str] | None) -> Path | None:
    """The file of the results.

    Raises:
        SweepError: its path is empty: that would be the current directory.
    """
    if out is None:
        return None
    if not Path(out).name:
        raise SweepError(
            "not a file of results", where="out", got=repr(str(out)), remedy="--out FILE.parquet"
        )
    return Path(out)
