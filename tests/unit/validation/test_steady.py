"""Products that are extended from shorter ones cost what the plain simulation says."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from targets.loader import load_target
from tilesim.validation.rows import Row
from tilesim.validation.scores import Predictor
from tilesim.validation.steady import FENCED, FLOWING, Repeat, steady_cycles

TARGET = load_target("ft_m7032")
NN = {"M_G": 96, "K_G": 64, "M_A": 48, "K_A": 64, "N_A": 48, "M_S": 12}
NT = {"M_G": 72, "K_G": 128, "M_A": 36, "K_A": 128, "N_A": 32, "M_S": 12}
LONG = Row("x", "chip", 2, "fp64", "gemm", "NN", 480, 768, 512, NN, 100.0, None)

ROWS = [
    LONG,
    replace(LONG, m=500, n=800, k=530),
    replace(LONG, mode="NT", blocking=NT, k=1024),
    replace(LONG, mode="TN", cores=1, n=480),
    replace(LONG, dtype="fp16", n=1536),
    replace(LONG, kind="gemm-skinny", dtype="fp32", blocking={}, m=1536, n=32, k=12288),
    replace(LONG, kind="gemm-skinny", dtype="fp32", blocking={}, m=82572, n=96, k=96, cores=8),
    replace(LONG, kind="gemm-irregular", blocking={}, m=48, n=6144, k=4096, cores=4),
    replace(LONG, kind="gemm-irregular", mode="NT", blocking={}, m=6144, n=48, k=4096, cores=4),
]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row.kind} {row.label}")
def test_a_long_product_is_as_the_plain_simulation(row: Row) -> None:
    """Within three thousandths, for panels, columns and steps, ragged ones too."""
    plain, extended = plain_and_extended(row)
    assert extended == pytest.approx(plain, rel=0.003)


def test_panels_between_barriers_repeat_to_the_cycle() -> None:
    """Where only whole panels are left out, nothing is lost."""
    plain, extended = plain_and_extended(replace(LONG, n=192))
    assert extended == plain


def plain_and_extended(row: Row) -> tuple[float, float]:
    """Cycles of a row as a whole, and from shorter products only."""
    whole, parts = Predictor(TARGET, math.inf), Predictor(TARGET, 0)
    found = whole.cycles(row), parts.cycles(row)
    (size,) = whole._known
    assert size not in parts._known
    return found


def test_pieces_of_every_axis_are_extended() -> None:
    """What is linear in each axis comes out exactly, from few and small products."""
    repeats = (Repeat(10, *FENCED), Repeat(8, *FLOWING), Repeat(4, *FENCED))
    seen = []

    def cycles(sizes: tuple[int, int, int]) -> int:
        seen.append(sizes)
        m, n, k = (size // repeat.size for size, repeat in zip(sizes, repeats, strict=True))
        return 7 + 3 * m + 5 * n * k + 2 * m * n * k

    assert steady_cycles(cycles, (1003, 801, 42), repeats) == 7 + 300 + 5 * 1000 + 2 * 100 * 1000
    assert len(seen) == 8
    assert max(m for m, _, _ in seen) == 23
    assert max(n for _, n, _ in seen) == 33
    assert steady_cycles(cycles, (20, 32, 8), repeats) == 7 + 6 + 5 * 8 + 2 * 2 * 8
