"""dw and db of the case tables on MT7004: the rows of dx."""

from __future__ import annotations

from dataclasses import replace

import pytest

from kernels.conv_backward import require_capacity
from simulator.errors import CapacityError
from targets.loader import load_target
from tests.case_table import Case, load_cases
from tests.kernels.sweep import check_integers, check_random, sample

SAMPLE = sample(30, 1.5e8)
GRADS = ("dw", "db")


@pytest.mark.parametrize("dtype", ["fp16", "fp32"])
@pytest.mark.parametrize("case", SAMPLE, ids=lambda case: case.id)
def test_sample(case: Case, dtype: str) -> None:
    """A fixed sample of rows: integers exactly, random data within the bound."""
    check_integers(case.shape, dtype, GRADS)
    check_random(case.shape, dtype, GRADS)


@pytest.mark.parametrize("grads", [("dw",), ("db",), ("dw", "db")])
def test_gigabytes_are_refused_before_they_are_made(grads: tuple[str, ...]) -> None:
    """Tensors of more gigabytes than DDR has: the error names memory and remedy, whatever is asked for."""
    case = next(case for case in load_cases("edge_regressions") if case.id == "R_057")
    shape = replace(case.shape, n=2 * case.shape.n)
    with pytest.raises(CapacityError) as caught:
        require_capacity(shape, load_target("mt7004"), "fp32", grads)
    assert caught.value.memory == "ddr"
    assert "batch" in caught.value.remedy
