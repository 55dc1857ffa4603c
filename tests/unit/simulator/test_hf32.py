"""What the cube reads in hf32: fp32 with 11 stored mantissa bits, nearest even."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from simulator.values.numerics import round_hf32

LEAST = 2.0**-149
"""The smallest denormal of fp32."""


@pytest.mark.parametrize(
    ("value", "rounded"),
    [
        (0.0, 0.0),
        (2077.0, 2077.0),  # 12 significant bits
        (4098.0, 4098.0),
        (4097.0, 4096.0),  # a tie goes to the even mantissa: down
        (4099.0, 4100.0),  # and up
        (-4099.0, -4100.0),
        (4099.0 + 2.0**-11, 4100.0),
        (4097.0 + 2.0**-11, 4098.0),
        (1 + 2.0**-11, 1 + 2.0**-11),
        (1 + 2.0**-12, 1.0),
        (2 - 2.0**-23, 2.0),  # the carry reaches the exponent
        (np.inf, np.inf),
        (-np.inf, -np.inf),
        (4096 * LEAST, 4096 * LEAST),  # denormals lose the same bits
        (2048 * LEAST, 0.0),
        (6144 * LEAST, 8192 * LEAST),
        (float(np.finfo(np.float32).max), np.inf),
    ],
)
def test_values_by_hand(value: float, rounded: float) -> None:
    """Survivors, ties, carries, infinities, denormals."""
    assert round_hf32(np.array([value], np.float32))[0] == np.float32(rounded)


def test_nan_and_the_sign_of_zero_stay() -> None:
    """NaN payloads would round to infinity if nobody looked."""
    bits = np.array([0x7F800001, 0xFFFFFFFF, 0x80000000], np.uint32)
    assert (round_hf32(bits.view(np.float32)).view(np.uint32) == bits).all()


@given(st.lists(st.floats(width=32, allow_nan=False, allow_infinity=False), min_size=1, max_size=50))
def test_the_nearest_value_of_12_significant_bits(values: list[float]) -> None:
    """Rounding twice is rounding once, and no value moves by more than half a step of its binade."""
    given_values = np.array(values, np.float32)
    once = round_hf32(given_values)
    assert np.array_equal(once, round_hf32(once))
    finite = np.isfinite(once)
    step = 2.0 ** (np.maximum(np.frexp(given_values.astype(np.float64))[1], -125) - 12)
    moved = np.abs(once.astype(np.float64) - given_values)
    assert (moved[finite] <= step[finite] / 2).all()
    assert not (once.view(np.uint32)[finite] & 0xFFF).any()
