"""The points of a sweep: the full grid, a list out of a file, or a Latin hypercube sample."""

from __future__ import annotations

import csv
import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from types import ModuleType

from tilesim.sweeps.call import digest
from tilesim.sweeps.errors import SweepError
from tilesim.sweeps.values import Interval, Value, Values, checked_values, parse_value

MOST_POINTS = 100_000
"""Points of one sweep; a larger grid is to be sampled."""


@dataclass(frozen=True)
class Point:
    """Values of the varied fields, as pure data: equal points have equal keys in every process.

    Attributes:
        values: (field, value), in the order in which the fields were given.
    """

    values: tuple[tuple[str, Value], ...]

    @cached_property
    def key(self) -> str:
        """A hash of the fields and values."""
        return digest(dict(self.values))


def points_of(
    vary: Mapping[str, Values],
    rows: Sequence[Mapping[str, Value]] = (),
    sample: int | None = None,
    seed: int = 0,
) -> tuple[Point, ...]:
    """The points of a sweep, each once, in an order that depends on the arguments alone.

    Without a sample it is every row with every combination of the fields' values, the last field fastest; a
    sample of the fields' values is a Latin hypercube.

    Raises:
        SweepError: nothing is varied, rows disagree, an interval is not sampled, or there are too many points.
    """
    _check_rows(vary, rows)
    if sample is not None:
        if rows:
            raise SweepError(
                "points that are listed and sampled", where="--sample", remedy="leave --points out"
            )
        return _sampled(vary, sample, seed)
    lists = {field: _listed(field, values) for field, values in vary.items()}
    count = math.prod(len(values) for values in lists.values()) * max(1, len(rows))
    if count > MOST_POINTS:
        got = f"{count:,} points"
        raise SweepError(
            "too large a grid", got=got, limit=f"{MOST_POINTS:,}", remedy="take a --sample of it"
        )
    combinations = (zip(lists, chosen, strict=True) for chosen in itertools.product(*lists.values()))
    grid = [tuple(pairs) for pairs in combinations]
    return _once(Point((*row.items(), *pairs)) for row in rows or ({},) for pairs in grid)


def _listed(field: str, values: Values) -> tuple[Value, ...]:
    if isinstance(values, Interval):
        remedy = "say how many values (FIRST:LAST:COUNT), or take a --sample"
        raise SweepError("an interval without values", where=f"--vary {field}", remedy=remedy)
    return checked_values(field, values)


def _check_rows(vary: Mapping[str, Values], rows: Sequence[Mapping[str, Value]]) -> None:
    if not vary and not rows:
        raise SweepError(
            "nothing is varied", where="--vary", remedy="--vary cores=1,2,4, or --points FILE.csv"
        )
    for row in rows:
        if row.keys() != rows[0].keys() or not row:
            got = ", ".join(row) or "none"
            raise SweepError(
                "points with other fields than the first", where="--points", got=got, limit=", ".join(rows[0])
            )
    if twice := sorted(set(vary) & set(rows[0] if rows else ())):
        raise SweepError("a field given twice", where="--vary and --points", got=twice[0])


def _once(points: Iterable[Point]) -> tuple[Point, ...]:
    return tuple({point.key: point for point in points}.values())


def _sampled(vary: Mapping[str, Values], count: int, seed: int) -> tuple[Point, ...]:
    """A Latin hypercube: along each field the points are spread evenly over its values. Equal points are one.

    McKay, Beckman and Conover, Technometrics 21(2), 1979, as SciPy has it.
    """
    if not 1 <= count <= MOST_POINTS:
        raise SweepError("not a number of points", where="--sample", got=count, limit=f"1 to {MOST_POINTS:,}")
    qmc = _scipy()
    shares = qmc.LatinHypercube(d=len(vary), rng=seed).random(count).tolist()
    return _once(
        Point(tuple((field, _at(vary[field], share)) for field, share in zip(vary, row, strict=True)))
        for row in shares
    )


def _at(values: Values, share: float) -> Value:
    return values.at(share) if isinstance(values, Interval) else values[int(share * len(values))]


def _scipy() -> ModuleType:
    try:
        from scipy.stats import qmc  # noqa: PLC0415 - an extra, and it takes a second to load
    except ImportError as error:
        remedy = "pip install 'tilesim[sweep]' (from a checkout: pip install -e '.[sweep]')"
        raise SweepError("SciPy is missing", where="--sample", remedy=remedy) from error
    return qmc  # type: ignore[no-any-return]  # SciPy publishes no types


def read_points(path: Path) -> list[dict[str, Value]]:
    """The rows of a CSV file whose head names the fields.

    Raises:
        SweepError: it cannot be read, has no row, names a field twice, or a row has other than one value a field.
    """
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            lines = [[cell.strip() for cell in line] for line in csv.reader(file) if any(line)]
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        got = getattr(error, "strerror", None) or error
        raise SweepError("cannot read the points", where=f"--points {path}", got=got) from error
    if len(lines) < 2:
        raise SweepError(
            "no points", where=f"--points {path}", remedy="a line of fields, then a line a point"
        )
    head = lines[0]
    if len(set(head)) != len(head):
        raise SweepError("a field named twice", where=f"--points {path}", got=", ".join(head))
    for number, line in enumerate(lines[1:], 2):
        if len(line) != len(head) or not all(line):
            where, got = f"--points {path}, line {number}", ",".join(line)
            raise SweepError(
                "a line without a value for each field", where=where, got=got, limit=",".join(head)
            )
    return [dict(zip(head, map(parse_value, line), strict=True)) for line in lines[1:]]
