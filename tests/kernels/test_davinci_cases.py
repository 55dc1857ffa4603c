"""Gradients of the case tables on Da Vinci chips: networks, edge cases of other libraries, public bugs, 1 to 3 axes."""

from __future__ import annotations

import pytest

from tests.case_table import Case
from tests.kernels.davinci_rows import check_integers, check_mixed, check_random, chip_of, rows_of, sample

SAMPLE = sample(60, 1e6)


@pytest.mark.parametrize(("number", "case"), list(enumerate(SAMPLE)), ids=lambda v: getattr(v, "id", ""))
def test_sample(number: int, case: Case) -> None:
    """A fixed sample of rows, dealt to chips and types: integers exactly, random data within the bound."""
    check_integers(case.shape, *chip_of(number))
    check_random(case.shape, *chip_of(number + 3))


def _dealt(table: str, most_macs: float) -> list[object]:
    rows = enumerate(rows_of(table, most_macs))
    return [pytest.param(number, case, id=case.id) for number, case in rows]


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize(("number", "case"), _dealt("networks", float("inf")))
def test_networks(number: int, case: Case) -> None:
    """Every layer, with one image."""
    check_mixed(case.shape, *chip_of(number))


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize(("number", "case"), _dealt("conv3d", 1e9))
def test_three_axes(number: int, case: Case) -> None:
    """Rows with three axes, with one image."""
    check_mixed(case.shape, *chip_of(number))


SMALL = ("torch_npu_cases", "pytorch_samples", "bugs_open", "edge_regressions")


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize(("number", "case"), [row for table in SMALL for row in _dealt(table, 1e9)])
def test_small_tables(number: int, case: Case) -> None:
    """Every row of the small tables, with one image where a row has many, on two chips."""
    check_integers(case.shape, *chip_of(number))
    check_random(case.shape, *chip_of(number + 4))


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize(("number", "case"), _dealt("edge_shapes", 1e6))
def test_edges(number: int, case: Case) -> None:
    """Edge shapes, the transposed ones among them: integers exactly, random data within the bound."""
    check_integers(case.shape, *chip_of(number))
    check_random(case.shape, *chip_of(number + 5))
