"""What is best in a sweep: by a column, and between the time and a cost."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

from targets.errors import TilesimError

Row = Mapping[str, Any]

HIGHER_IS_BETTER = frozenset({"gflops", "peak_gflops", "share_of_peak"})
"""Figures of which more is better; of all others less is."""


def pareto_front(rows: Sequence[Row], cost: str, time: str = "time_ms") -> list[Row]:
    """The rows that no other beats: none is both as fast and as cheap, and faster or cheaper. Cheapest first.

    Of rows that are equal in both, the first is taken; rows without the cost are left out.
    """
    front: list[Row] = []
    priced = [row for row in rows if row.get(cost) is not None]
    for row in sorted(priced, key=lambda row: (row[cost], row[time])):
        if not front or row[time] < front[-1][time]:
            front.append(row)
    return front


def best_by(rows: Sequence[Row], fields: Sequence[str], value: str) -> dict[tuple[Hashable, ...], Row]:
    """For each combination of the fields' values, the row with the best figure in a column."""
    sign = -1 if value in HIGHER_IS_BETTER else 1
    found: dict[tuple[Hashable, ...], Row] = {}
    for row in rows:
        key = tuple(row[field] for field in fields)
        if row.get(value) is not None and (key not in found or sign * row[value] < sign * found[key][value]):
            found[key] = row
    return found


def values_of(rows: Sequence[Row], field: str) -> list[Any]:
    """The different values of a field: numbers in order, others as they come."""
    found = list(dict.fromkeys(row[field] for row in rows))
    return sorted(found) if all(is_number(value) for value in found) else found


def is_number(value: object) -> bool:
    """Whether a value can stand on an axis."""
    return isinstance(value, int | float) and not isinstance(value, bool)


def chosen_costs(rows: Sequence[Row], asked: str | None) -> list[str]:
    """The columns of Pareto fronts: the one asked for, else every cost that varies.

    Raises:
        TilesimError: no row has the column that is asked for.
    """
    names = sorted({name for row in rows for name in row if name.startswith(("cost.", "bytes."))})
    if asked is not None:
        require_numbers(rows, asked, names)
        return [asked]
    return [n for n in names if n.startswith("cost.") and len({row.get(n) for row in rows}) > 1]


def require_numbers(rows: Sequence[Row], name: str, known: Sequence[str]) -> None:
    """Refuse a column without numbers.

    Raises:
        TilesimError: with those that have some.
    """
    if not any(is_number(row.get(name)) for row in rows):
        raise TilesimError("no column of numbers", where=name, limit=", ".join(known), remedy="name another")
