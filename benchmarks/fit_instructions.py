"""Refit start, floor and rate of Ascend paths on every second row of a class, and score the other rows.

Run as `python benchmarks/fit_instructions.py` from the root of the checkout. It changes no target.
"""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Iterable, Sequence
from math import ceil
from typing import NamedTuple

from tilesim.validation.instruction_rows import InstructionRow, read_instruction_rows

Point = tuple[int, float]


class Rule(NamedTuple):
    """max(floor, start + bytes / rate)."""

    start: int
    rate: float
    floor: int

    def cycles(self, size: int) -> float:
        """What a transfer of so many bytes takes."""
        return max(self.floor, self.start + size / self.rate)


class Search(NamedTuple):
    """A class of rows, and the values that are tried for it."""

    target: str
    instruction: str
    bursts: str
    starts: Iterable[int]
    rates: Iterable[float]
    floors: Iterable[int]


SEARCHES = (
    Search("ascend910b1", "MOV GM_TO_L1", "", range(100, 220, 5), range(140, 200, 2), (0,)),
    Search("ascend910b1", "MOV GM_TO_UB", "one", range(0, 60, 10), (44, 45, 45.5, 46, 47, 48), (200, 240)),
    Search("ascend910b3", "MOV GM_TO_UB", "several", range(100, 220, 5), range(100, 150, 2), (200, 220)),
    Search("ascend910b1", "MOV UB_TO_GM", "", range(0, 150, 10), range(60, 90), (150, 200)),
    Search("ascend910b1", "MOV L0C_TO_GM", "", range(0, 60, 5), range(100, 140, 2), (84, 88, 92)),
)


def errors(rule: Rule, points: Sequence[Point]) -> tuple[float, float]:
    """Median of the absolute errors, and what nine of ten points are within."""
    found = sorted(abs(rule.cycles(size) / cycles - 1) for size, cycles in points)
    return statistics.median(found), found[ceil(0.9 * len(found)) - 1]


def fitted(search: Search, points: Sequence[Point]) -> Rule:
    """The rule with the least sum of both errors."""
    tried = (Rule(*each) for each in itertools.product(search.starts, search.rates, search.floors))
    return min(tried, key=lambda rule: sum(errors(rule, points)))


def points_of(search: Search, rows: Iterable[InstructionRow]) -> list[Point]:
    """Bytes and cycles of a class."""
    key = (search.target, search.instruction, search.bursts)
    chosen = (row for row in rows if (row.target, row.instruction, row.bursts) == key)
    return [(row.bytes, row.cycles) for row in chosen if row.cycles is not None]


def main() -> None:
    """Print, for both halves of each class, the rule and its errors on the other half."""
    rows = read_instruction_rows()
    for search in SEARCHES:
        points = points_of(search, rows)
        for half in (0, 1):
            rule = fitted(search, points[half::2])
            median, most = errors(rule, points[1 - half :: 2])
            print(f"{search.instruction:14} {search.bursts:8} {rule} median {median:.1%}, 90 % {most:.1%}")


if __name__ == "__main__":
    main()
