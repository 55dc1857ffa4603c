"""The fit of FT-M7032: what it may move, and that its search finds what is there to be found."""

from __future__ import annotations

import math

import numpy as np
import pytest

from benchmarks.fit_ft_m7032 import CONSTANTS, STAGES, Values, Vector, allowed, fit_stage, held
from targets.loader import load_target
from tilesim.validation.rows import MICROKERNEL, read_rows


def test_what_is_fitted_says_so() -> None:
    """At most twelve constants; each number that is fitted to products is one of them, at a value that it can have."""
    provenance = load_target("ft_m7032").provenance
    keys = {key for _, keys in CONSTANTS.values() for key in keys}
    assert len(CONSTANTS) <= 12
    assert {key for key, leaf in provenance.items() if "fitted to" in leaf.source} == keys
    assert {name: allowed(name, value) for name, value in held().items()} == held()


def test_every_constant_has_rows_that_fix_it() -> None:
    """The stages hold each constant once, and more rows than constants."""
    rows = [row for row in read_rows() if row.kind != MICROKERNEL]
    assert sorted(name for stage in STAGES for name in stage.names) == sorted(CONSTANTS)
    assert all(sum(map(stage.holds, rows)) > len(stage.names) for stage in STAGES)


def test_a_stage_finds_the_constants() -> None:
    """Rows that follow two constants lead to both, though one row is far off."""
    (stage,) = (stage for stage in STAGES if "call" in stage.names)
    true = {"call": 27.0, "copy": 44.0}

    def errors_of(trials: list[Values]) -> list[Vector]:
        parts = np.array([[500, 10, 3], [200, 9, 1], [900, 50, 2], [300, 10, 5], [600, 1, 9], [90, 1, 1]])
        terms = [np.array([1, values["call"], values["copy"]]) for values in (true, *trials)]
        wanted, *found = [np.log(parts @ each) for each in terms]
        wanted[-1] += 0.3
        return [wanted - each for each in found]

    begin = {name: float(start) for name, (start, _) in CONSTANTS.items()}
    found = fit_stage(stage, begin, errors_of)
    assert {name: found[name] for name in true} == pytest.approx(true, rel=0.05)
    assert {name: value for name, value in found.items() if name not in true} == {
        name: value for name, value in begin.items() if name not in true
    }


@pytest.mark.parametrize(
    ("name", "value", "kept"),
    [
        ("barrier", 5413.7, 5410),
        ("copy", 38.4, 38),
        ("copy", 0.2, 1),
        ("DDR", 1.3, 1.0),
        ("GSM", 23.456, 23.5),
    ],
)
def test_values_are_those_that_a_target_file_can_hold(name: str, value: float, kept: float) -> None:
    """Three digits, whole cycles, no efficiency above one."""
    assert math.isclose(allowed(name, value), kept)
