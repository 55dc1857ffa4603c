"""dx of the case tables on MT7004: real networks, edge cases of other libraries, public bugs."""

from __future__ import annotations

import pytest

from kernels.conv_backward import require_capacity
from simulator.errors import CapacityError
from targets.loader import load_target
from tests.case_table import Case, load_cases
from tests.kernels.rows import check_row
from tests.kernels.sweep import sample

SAMPLE = sample(60, 1.5e8)


@pytest.mark.parametrize("case", SAMPLE, ids=lambda case: case.id)
def test_sample(case: Case) -> None:
    """A fixed sample of rows, in both data types: integers exactly, random data within the bound."""
    check_row(case.shape)


def test_gigabytes_are_refused_before_they_are_made() -> None:
    """The row whose tensors take 6.8 GB does not fit DDR: the error names memory, size and remedy."""
    case = next(case for case in load_cases("edge_regressions") if case.id == "R_057")
    with pytest.raises(CapacityError) as caught:
        require_capacity(case.shape, load_target("mt7004"), "fp32")
    assert caught.value.memory == "ddr"
    assert caught.value.wanted_bytes > caught.value.free_bytes
    assert "batch" in caught.value.remedy
