"""Fit the constants of Ascend cores on eight profiled convolutions, and refit them without each row in turn.

    python benchmarks/fit_ascend.py            # constants that the fit proposes
    python benchmarks/fit_ascend.py --left-out # a table: errors of each row with constants that never saw it

Every constant moves every figure nearly in proportion while it changes by less than half. So a row is simulated once
as the target is and once with each constant a fifth higher; the fit is made on these straight lines, by coordinate
steps on the sum of absolute relative errors (each step is a weighted median). Errors of a row that was left out are not
read off the lines: it is simulated again with the refitted constants. Takes a few minutes.
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from targets.loader import load_target
from tilesim.validation.ascend_constants import Fitted, fitted_constants
from tilesim.validation.ascend_rows import PUBLISHED, AscendRow, read_ascend_rows
from tilesim.validation.ascend_runs import predicted

FIGURES = ("mac", "mte1", "mte2", "fixpipe", "scalar", "core")
STEP = 1.2
"""The factor by which a constant is changed to see what follows."""

MOST = 2.0
"""The factor within which a refit may move a constant."""

Factors = dict[str, float]
"""By the first path of each constant: its inverse if it is a rate, over what the target has."""


@dataclass(frozen=True)
class Line:
    """A figure of a row over the measured one: `base` as the target is, and the slope of each constant's factor."""

    row: str
    base: float
    slopes: Factors

    def error(self, factors: Mapping[str, float]) -> float:
        """Predicted over measured, minus 1."""
        return self.base - 1 + sum(slope * (factors[name] - 1) for name, slope in self.slopes.items())


def main() -> None:
    """Print constants, or the table of rows that were left out."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--left-out", action="store_true", help="refit without each row in turn")
    asked = parser.parse_args()
    rows = [row for row in read_ascend_rows(PUBLISHED["conv"]) if "mte1" in row.measured]
    constants = [each for each in fitted_constants(load_target(rows[0].target)) if each.on_convolutions]
    lines = [line for row in rows for line in lines_of(row, constants)]
    _print_constants(constants, fit(lines))
    if asked.left_out:
        _print_left_out(rows, constants, lines)


def lines_of(row: AscendRow, constants: Sequence[Fitted]) -> list[Line]:
    """How the figures of a row move with each constant."""
    base = _over_measured(row, constants, {})
    tried = {each.path: _over_measured(row, constants, {each.path: STEP}) for each in constants}
    return [
        Line(row.name, base[f], {path: (found[f] - base[f]) / (STEP - 1) for path, found in tried.items()})
        for f in FIGURES
    ]


def _over_measured(row: AscendRow, constants: Sequence[Fitted], factors: Mapping[str, float]) -> Factors:
    """The figures over the measured ones, with constants of the target times factors."""
    changed = {
        path: str(moved(each, factors[each.path]))
        for each in constants if each.path in factors for path in each.paths
    }  # fmt: skip
    found = predicted(replace(row, overrides={**row.overrides, **changed}))
    return {figure: found[figure] / row.measured[figure] for figure in FIGURES}


def moved(constant: Fitted, factor: float) -> float:
    """A constant times a factor, or over it; cycles of one instruction are whole."""
    return constant.number / factor if constant.rate else round(constant.number * factor)


def fit(lines: Sequence[Line]) -> Factors:
    """Factors that make the sum of absolute errors least, one after the other until nothing moves."""
    factors = dict.fromkeys(lines[0].slopes, 1.0)
    for _ in range(50):
        before = dict(factors)
        for name in factors:
            factors[name] = _best(lines, factors, name)
        if all(abs(factors[name] - before[name]) < 1e-4 for name in factors):  # has settled
            break
    return factors


def _best(lines: Sequence[Line], factors: Factors, name: str) -> float:
    """The factor of one constant: the median of those that make a line's error zero, weighted by slopes."""
    zeros = []
    for line in lines:
        slope = line.slopes[name]
        if abs(slope) > 1e-3:  # others do not depend on it
            zeros.append((factors[name] - line.error(factors) / slope, abs(slope)))
    half, seen = sum(weight for _, weight in zeros) / 2, 0.0
    for zero, weight in sorted(zeros):
        seen += weight
        if seen >= half:
            return min(max(zero, 1 / MOST), MOST)
    return factors[name]


def _print_constants(constants: Sequence[Fitted], factors: Factors) -> None:
    print("| constant | target | fit |\n|---|---|---|")
    for each in constants:
        print(f"| {each.path} | {each.number:g} | {moved(each, factors[each.path]):.3g} |")


def _print_left_out(rows: Sequence[AscendRow], constants: Sequence[Fitted], lines: Sequence[Line]) -> None:
    print(f"\n| row left out | {' | '.join(FIGURES)} |\n|---|{'---|' * len(FIGURES)}")
    errors: dict[str, list[float]] = {figure: [] for figure in FIGURES}
    for row in rows:
        found = _over_measured(row, constants, fit([line for line in lines if line.row != row.name]))
        for figure in FIGURES:
            errors[figure].append(100 * (found[figure] - 1))
        shown = " | ".join(f"{errors[figure][-1]:+.1f}" for figure in FIGURES)
        print(f"| {row.label} | {shown} |", flush=True)
    for what, of in (("median", statistics.median), ("worst", max)):
        shown = " | ".join(f"{of([abs(e) for e in errors[figure]]):.1f}" for figure in FIGURES)
        print(f"| {what} | {shown} |")


if __name__ == "__main__":
    main()
