"""The vendor's calls on rows of the case tables that they can take: both calls, every data type, both chips."""

from __future__ import annotations

import pytest

from simulator.device.device import Device
from simulator.errors import CapacityError
from tests.case_table import Case as Row
from tests.kernels.ft_calls import Case
from tests.kernels.sweep import plain_cases

CHIPS = [("mt7004", "fp32"), ("mt7004", "fp16"), ("ft78ne", "fp32")]


def rows(most_macs: float) -> list[Row]:
    """Rows without empty tensors and without negative pads, which the structure cannot say."""
    return [
        row
        for row in plain_cases()
        if 0 < row.shape.useful_macs <= most_macs and all(min(pads) >= 0 for pads in row.shape.padding)
    ]


def check(row: Row, chip: str, kind: str, private: bool) -> None:
    """Integers, on top of what dx holds: exactly in fp32, within the bound of one rounding in fp16."""
    with Device(chip) as device:
        try:
            case = Case.on(device, row.shape, kind, private=private)
        except CapacityError:
            assert private  # a core's memory does not hold every layer
            return
        case.call(0b1011)
        assert case.exact() if kind == "fp32" else case.compared().ok


@pytest.mark.parametrize("row", rows(2e6)[::25], ids=lambda row: row.id)
def test_sample(row: Row) -> None:
    """A fixed sample of small rows."""
    for chip, kind in CHIPS:
        for private in (False, True):
            check(row, chip, kind, private)


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("row", rows(1e8), ids=lambda row: row.id)
@pytest.mark.parametrize(("chip", "kind"), CHIPS)
@pytest.mark.parametrize("private", [False, True], ids=["s", "p"])
def test_every_row(row: Row, chip: str, kind: str, private: bool) -> None:
    """Every row that is not too large."""
    check(row, chip, kind, private)
