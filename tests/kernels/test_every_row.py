"""Every row of the case tables, in every mode of the targets: integers exactly, random data within the bound."""

from __future__ import annotations

import pytest

from tests.case_table import Case
from tests.kernels.mixed import FORWARD, check_modes
from tests.kernels.sweep import (
    TARGETS,
    deep_cases,
    line_cases,
    plain_cases,
    spread,
    transposed_cases,
)

ROWS = {"plain": plain_cases(), "line": line_cases(), "deep": deep_cases(), "transposed": transposed_cases()}
OUTPUTS = {"dx": ("dx",), "dw": ("dw", "db"), "y": FORWARD}
QUICK = [
    case
    for kind, count in (("plain", 14), ("line", 8), ("deep", 8), ("transposed", 10))
    for case in spread([case for case in ROWS[kind] if case.shape.useful_macs < 1e6], count)
]
PAIRS = [(TARGETS[0], case) for case in QUICK] + [(t, case) for t in TARGETS[1:] for case in QUICK[::4]]


@pytest.mark.parametrize("outputs", OUTPUTS.values(), ids=OUTPUTS)
@pytest.mark.parametrize(("target", "case"), PAIRS, ids=lambda value: getattr(value, "id", value))
def test_sample(target: str, case: Case, outputs: tuple[str, ...]) -> None:
    """A fixed sample of rows, of 1 to 3 axes, transposed ones too; fewer of them on every target but the first."""
    check_modes(case.shape, target, outputs)


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("outputs", OUTPUTS.values(), ids=OUTPUTS)
@pytest.mark.parametrize("case", [case for rows in ROWS.values() for case in rows], ids=lambda case: case.id)
@pytest.mark.parametrize("target", TARGETS)
def test_every_row(target: str, case: Case, outputs: tuple[str, ...]) -> None:
    """Every row, layers with one image each."""
    check_modes(case.shape, target, outputs)
