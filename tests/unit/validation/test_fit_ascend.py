"""The fit of Ascend constants: straight lines, medians of them, and values that a target can hold."""

from __future__ import annotations

import pytest

from benchmarks.fit_ascend import MOST, Line, fit, moved
from tilesim.validation.ascend_constants import CONVOLUTIONS, Fitted


def test_two_constants_are_found_where_they_fit() -> None:
    """Two constants that explain all lines but one; that one is ignored, not split evenly."""
    truth = {"a": 1.3, "b": 0.8}
    slopes = [{"a": 0.5, "b": 0.0}, {"a": 0.1, "b": 0.4}, {"a": 0.3, "b": 0.2}, {"a": 0.0, "b": 0.5}]
    lines = [
        Line("row", 1 - sum(slope * (truth[name] - 1) for name, slope in each.items()), each)
        for each in slopes
    ]
    found = fit([*lines, Line("odd", 0.5, {"a": 0.1, "b": 0.1})])
    assert found == pytest.approx(truth, abs=1e-3)
    assert all(abs(line.error(found)) < 1e-3 for line in lines)


def test_a_constant_goes_no_further_than_its_line_holds() -> None:
    """A single row that asks for ten times as much gets twice as much; a constant that moves nothing stays."""
    assert fit([Line("row", 0.1, {"a": 0.1, "b": 0.0})]) == {"a": MOST, "b": 1.0}


def test_rates_are_divided_and_cycles_are_whole() -> None:
    """A factor lengthens what a constant makes."""
    rate = Fitted(("fixpipe.split.bytes_per_cycle",), 27.0, CONVOLUTIONS)
    cycles = Fitted(("issue.copy_cycles", "issue.matmul_cycles"), 10.0, CONVOLUTIONS)
    assert moved(rate, 1.5) == 18
    assert moved(cycles, 1.26) == 13
