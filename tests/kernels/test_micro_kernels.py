"""The micro-kernels of FT-M7032 against their published formulas and measurements."""

from __future__ import annotations

import pytest

from simulator.instructions import matmul_cycles
from targets.loader import load_target
from tilesim.validation.rows import MICROKERNEL, Row, read_rows

ROWS = [row for row in read_rows() if row.kind == MICROKERNEL]
TABLES = {"NN": "", "NT": "_nt", "NT-merged": "_nt_merged"}
CALL = 7
"""Cycles of a function call, which the published measurements hold and the formulas do not."""


def formula(row: Row) -> int:
    """Cycles of a row by the target's table, without the software around a kernel."""
    spec = load_target("ft_m7032").matmul[row.dtype + TABLES[row.mode]]
    return matmul_cycles(spec.model_copy(update={"call_cycles": 0}), 1, row.m, row.n, row.k)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.label)
def test_the_table_is_the_published_formula(row: Row) -> None:
    """To the cycle."""
    assert formula(row) == row.cycles


@pytest.mark.parametrize("row", [row for row in ROWS if row.gflops_per_core], ids=lambda row: row.label)
def test_measurements_are_the_formula_and_a_call(row: Row) -> None:
    """Within 3 %, which is the rounding of the measurements and what is left of them."""
    assert row.gflops_per_core
    measured = 2 * row.m * row.n * row.k / row.gflops_per_core * 1.8
    assert formula(row) + CALL == pytest.approx(measured, rel=0.03)


def test_there_are_rows_of_every_kernel() -> None:
    """Eleven points of four kernels."""
    assert len(ROWS) == 11
    assert {(row.dtype, row.mode) for row in ROWS} == {
        ("fp64", "NN"),
        ("fp64", "NT"),
        ("fp32", "NN"),
        ("fp64", "NT-merged"),
    }
