"""Bounds of rounding errors, and the comparison of a result with its reference."""

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernels.errors import OperandError
from kernels.reference import comparison
from kernels.reference.comparison import UNIT_ROUNDOFF, Comparison, compare, error_bound

TYPES = {"fp16": np.float16, "bf16": ml_dtypes.bfloat16, "fp32": np.float32, "fp64": np.float64}
NAN, INF = float("nan"), float("inf")


def test_the_bound_is_its_formula() -> None:
    """The bound is u_out |reference| + u terms magnitude, element by element."""
    bound = error_bound([8.0, 4.0], [-2.0, 1.0], "fp16", terms=10)
    assert bound.tolist() == [2 * 2.0**-11 + 80 * 2.0**-24, 2.0**-11 + 40 * 2.0**-24]
    assert error_bound([8.0], [2.0], "fp64", 1, unit=2.0**-53).tolist() == [10 * 2.0**-53]


def test_a_sum_of_no_terms_must_be_exact() -> None:
    """Where no product contributes, the bound is 0, also for types with coarse small numbers."""
    assert error_bound([0.0], [0.0], "fp16", 10).tolist() == [0.0]


@pytest.mark.parametrize("dtype", TYPES)
@given(st.floats(-1e4, 1e4, width=32))
def test_rounding_once_is_within_the_bound(dtype: str, value: float) -> None:
    """A value rounded to a data type is within that type's bound, also below its normal numbers."""
    rounded = np.asarray(value).astype(TYPES[dtype]).astype(np.float64)
    bound = error_bound(abs(value), value, dtype, terms=0)
    assert compare(rounded, value, bound).ok


@pytest.mark.parametrize("dtype", ["fp16", "bf16", "fp32"])
def test_unit_roundoffs_are_tight(dtype: str) -> None:
    """The value half way between 1 and the next number is wrong by the unit roundoff, up to its square."""
    middle = 1 + UNIT_ROUNDOFF[dtype]
    assert abs(float(np.asarray(middle).astype(TYPES[dtype])) - middle) == UNIT_ROUNDOFF[dtype]


@given(st.lists(st.floats(-1, 1, width=32), min_size=1, max_size=60))
def test_a_running_sum_is_within_the_bound(values: list[float]) -> None:
    """A sum in fp32, one term after another, is within the bound of as many terms."""
    products = np.array(values, np.float32)
    running = np.float32(0)
    for product in products:
        running = np.float32(running + product)
    exact, magnitude = products.astype(np.float64).sum(), np.abs(products.astype(np.float64)).sum()
    assert compare(running, exact, error_bound(magnitude, exact, "fp32", len(values))).ok


def test_the_worst_element_is_the_largest_error() -> None:
    """While all is within, the largest error is reported with its own bound and place."""
    result = compare([[1.0, 2.5], [3.25, 4.0]], [[1.0, 2.0], [3.0, 4.0]], [[0.0, 1.0], [0.25, 0.0]])
    assert result == Comparison(max_error=0.5, tolerance=1.0, index=(0, 1), ok=True)


def test_an_element_beyond_its_bound_goes_first() -> None:
    """A small error beyond a small bound is worse than a large one within a large bound."""
    result = compare([10.0, 1.5, 1.25], [0.0, 1.0, 1.0], [20.0, 0.25, 0.125])
    assert result == Comparison(max_error=0.5, tolerance=0.25, index=(1,), ok=False)


@pytest.mark.parametrize(
    ("got", "reference", "ok"),
    [
        (NAN, NAN, True),
        (INF, INF, True),
        (NAN, 1.0, False),
        (1.0, NAN, False),
        (INF, 1.0, False),
        (-INF, INF, False),
        (1.0, INF, False),
        (NAN, INF, False),
        (INF, NAN, False),
    ],
)
def test_nan_and_infinity_must_be_where_the_reference_has_them(
    got: float, reference: float, ok: bool
) -> None:
    """A value that is not finite on one side only is an infinite error, whatever the bound."""
    for bound in (0.5, INF, NAN):
        if np.isfinite(reference) and bound != 0.5:
            continue
        result = compare([0.0, got], [0.0, reference], [0.0, bound])
        assert (result.ok, result.max_error) == (ok, 0.0 if ok else INF)
        assert result.index == ((0,) if ok else (1,))


def test_a_bound_that_is_nan_allows_nothing() -> None:
    """An error beside a NaN bound is never within it."""
    assert not compare(1.0, 1.5, NAN).ok


def test_empty_results_are_equal() -> None:
    """There is no worst element in an empty array."""
    assert compare(np.zeros((0, 3)), np.zeros((0, 3)), 0.0) == Comparison(0.0, 0.0, None, True)


def test_faulty_comparisons_are_refused() -> None:
    """Another shape, or a data type without a unit roundoff, is an error that names the argument."""
    with pytest.raises(OperandError) as caught:
        compare(np.zeros((2, 3)), np.zeros((3, 2)), 0.0)
    assert caught.value.argument == "got"
    with pytest.raises(OperandError) as caught:
        error_bound(1.0, 1.0, "int8", 1)
    assert caught.value.argument == "out_dtype"


@pytest.mark.parametrize("slab", [1, 3, 7, 100])
@pytest.mark.parametrize("bound", [0.5, 2.5, 10.0])
def test_slabs_do_not_change_the_worst_element(
    monkeypatch: pytest.MonkeyPatch, slab: int, bound: float
) -> None:
    """However many elements are looked at together, the first of the worst is found, beyond its bound or not."""
    reference = np.zeros((4, 5))
    got = np.asarray([[0, 1, 2, 3, 0], [0, 3, 2, 1, 0], [2, 2, 2, 2, 2], [0, 0, 0, 0, 1]], np.float32)
    monkeypatch.setattr(comparison, "SLAB", slab)
    assert compare(got, reference, bound) == Comparison(3.0, bound, (0, 3), bound >= 3)
    own = np.where(got == 2, 1.5, 9.0)
    assert compare(got, reference, own) == Comparison(2.0, 1.5, (0, 2), False)
