"""The float64 references, beside loops over every single product and beside published numbers."""

import itertools
from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernels.errors import OperandError
from kernels.reference.references import (
    conv_backward_magnitude,
    conv_backward_reference,
    conv_forward_reference,
    gemm_reference,
    places,
    windows,
)
from kernels.shape.shapes import ConvShape
from tests.shape_strategies import conv_shapes

Array = npt.NDArray[np.float64]
Place = tuple[int, ...]

SEEDS = st.integers(0, 2**16)


def integers(shape: ConvShape, seed: int) -> tuple[Array, Array, Array]:
    """Return dy, w and x of small integers: every sum of them is exact in any order."""
    rng = np.random.default_rng(seed)
    sizes = (shape.dy_shape, shape.w_shape, shape.x_shape)
    dy, w, x = (rng.integers(-4, 5, size).astype(np.float64) for size in sizes)
    return dy, w, x


def products(shape: ConvShape) -> Iterator[tuple[Place, Place, Place]]:
    """Yield the places in y, w and x of every product of the convolution, from its definition."""
    ranges = [range(shape.n), range(shape.cout), range(shape.cin), *map(range, shape.kernel)]
    steps = shape.size if shape.transposed else shape.out
    for n, co, ci, *rest in itertools.product(*ranges, *map(range, steps)):
        tap, step = rest[: shape.ndim], rest[shape.ndim :]
        per_cin, per_cout = shape.cin // shape.groups, shape.cout // shape.groups
        if ci // per_cin != co // per_cout:
            continue
        rows = zip(step, tap, shape.stride, shape.dilation, shape.padding, strict=True)
        other = [s * stride - low + q * dilation for s, q, stride, dilation, (low, _) in rows]
        limits = shape.out if shape.transposed else shape.size
        if all(0 <= place < limit for place, limit in zip(other, limits, strict=True)):
            out, source = (other, step) if shape.transposed else (step, other)
            channels = (ci, co % per_cout) if shape.transposed else (co, ci % per_cin)
            yield (n, co, *out), (*channels, *tap), (n, ci, *source)


@given(conv_shapes(largest=4), SEEDS)
def test_references_are_the_sums_of_their_products(shape: ConvShape, seed: int) -> None:
    """Forward and gradients equal a loop over every product, exactly on integers."""
    dy, w, x = integers(shape, seed)
    y, dw, dx = (np.zeros(size) for size in (shape.dy_shape, shape.w_shape, shape.x_shape))
    for out, tap, source in products(shape):
        y[out] += w[tap] * x[source]
        dw[tap] += dy[out] * x[source]
        dx[source] += dy[out] * w[tap]
    grads = conv_backward_reference(shape, dy, w, x)
    np.testing.assert_array_equal(conv_forward_reference(shape, x, w), y)
    np.testing.assert_array_equal(grads["dx"], dx)
    np.testing.assert_array_equal(grads["dw"], dw)
    np.testing.assert_array_equal(grads["db"], dy.sum(axis=(0, *range(2, dy.ndim))))


def spots(limits: tuple[int, ...], slices: tuple[slice, ...]) -> list[Place]:
    """Every place that a slice an axis takes."""
    return list(itertools.product(*(range(limit)[each] for limit, each in zip(limits, slices, strict=True))))


@given(conv_shapes())
def test_stepping_through_places_meets_the_products_of_stepping_through_taps(shape: ConvShape) -> None:
    """Both list the same (place, tap, place that is read)."""
    small, large = (shape.size, shape.out) if shape.transposed else (shape.out, shape.size)
    by_tap, by_place = set(), set()
    for tap, inner, outer in windows(shape):
        by_tap |= {
            (place, tap, far) for place, far in zip(spots(small, inner), spots(large, outer), strict=True)
        }
    for place, taps, outer in places(shape):
        pairs = zip(spots(shape.kernel, taps), spots(large, outer), strict=True)
        by_place |= {(place, tap, far) for tap, far in pairs}
    assert by_place == by_tap


@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("groups", [1, 2])
def test_a_kernel_with_more_taps_than_places(transposed: bool, groups: int) -> None:
    """Gradients and output of a kernel nearly as large as its input are the sums of their products."""
    shape = ConvShape(
        n=2,
        cin=2,
        size=(2, 2) if transposed else (5, 4),
        cout=4,
        kernel=(4, 3),
        groups=groups,
        transposed=transposed,
    )
    dy, w, x = integers(shape, 0)
    dx, dw, y = (np.zeros(size) for size in (shape.x_shape, shape.w_shape, shape.dy_shape))
    for out, tap, source in products(shape):
        y[out] += w[tap] * x[source]
        dw[tap] += dy[out] * x[source]
        dx[source] += dy[out] * w[tap]
    grads = conv_backward_reference(shape, dy, w, x)
    np.testing.assert_array_equal(conv_forward_reference(shape, x, w), y)
    np.testing.assert_array_equal(grads["dx"], dx)
    np.testing.assert_array_equal(grads["dw"], dw)


@given(conv_shapes(), SEEDS)
def test_gradients_are_adjoint_to_the_convolution(shape: ConvShape, seed: int) -> None:
    """The products <dy, conv(x)>, <dx, x> and <dw, w> are the same number."""
    dy, w, x = integers(shape, seed)
    grads = conv_backward_reference(shape, dy, w, x)
    forward = (dy * conv_forward_reference(shape, x, w)).sum()
    assert (grads["dx"] * x).sum() == forward
    assert (grads["dw"] * w).sum() == forward


@given(conv_shapes(largest=4), SEEDS, st.sampled_from(["dy", "w", "x"]), st.sampled_from([np.nan, np.inf]))
def test_a_nan_reaches_the_sums_that_include_it(
    shape: ConvShape, seed: int, where: str, value: float
) -> None:
    """A NaN or an infinity reaches every sum with a product of it, and no other: padding is not 0 x NaN."""
    operands = dict(zip(("dy", "w", "x"), integers(shape, seed), strict=True))
    if not operands[where].size:
        return
    operands = {name: np.where(array == 0, 1.0, array) for name, array in operands.items()}
    place = np.unravel_index(seed % operands[where].size, operands[where].shape)
    operands[where][place] = value
    reached: dict[str, set[Place]] = {"dx": set(), "dw": set()}
    for product in products(shape):
        at = dict(zip(("dy", "w", "x"), product, strict=True))
        if at[where] == tuple(map(int, place)) and where != "x":
            reached["dx"].add(at["x"])
        if at[where] == tuple(map(int, place)) and where != "w":
            reached["dw"].add(at["w"])
    grads = conv_backward_reference(shape, operands["dy"], operands["w"], operands["x"])
    for name, wanted in reached.items():
        found = {tuple(map(int, index)) for index in np.argwhere(~np.isfinite(grads[name]))}
        assert found == wanted


@given(conv_shapes(), SEEDS)
def test_magnitudes_bound_their_gradients(shape: ConvShape, seed: int) -> None:
    """The sums of |a||b| are at least the gradients, and equal them where nothing is negative."""
    dy, w, x = integers(shape, seed)
    magnitude = conv_backward_magnitude(shape, dy, w, x)
    signed = conv_backward_reference(shape, dy, w, x)
    positive = conv_backward_reference(shape, np.abs(dy), np.abs(w), np.abs(x))
    for name, values in magnitude.items():
        assert (values >= np.abs(signed[name])).all()
        np.testing.assert_array_equal(values, positive[name])


def test_dilated_taps_in_the_padding_golden() -> None:
    """Of two taps two apart, with pad 1 on two inputs, only the second one reads: the last input, once."""
    shape = ConvShape(2, 1, (2,), 2, (2,), stride=2, padding=1, dilation=2)
    w, x = [[[3, 6]], [[4, 2]]], [[[7, 3]], [[3, 2]]]
    grads = conv_backward_reference(shape, np.ones(shape.dy_shape), w, x)
    assert grads["dx"].tolist() == [[[0, 8]], [[0, 8]]]
    assert grads["dw"].tolist() == [[[0, 5]], [[0, 5]]]
    assert grads["db"].tolist() == [2, 2]


def test_depthwise_golden() -> None:
    """A depthwise layer with stride 2 has these published gradients."""
    shape = ConvShape(1, 4, (4, 4), 4, (3, 3), stride=2, padding=1, groups=4)
    x, w = np.arange(64.0).reshape(shape.x_shape), np.arange(36.0).reshape(shape.w_shape)
    grads = conv_backward_reference(shape, np.ones(shape.dy_shape), w, x)
    assert grads["dx"][0, 0].tolist() == [[4, 8, 4, 5], [8, 16, 8, 10], [4, 8, 4, 5], [7, 14, 7, 8]]
    assert grads["dw"][0, 0].tolist() == [[5, 10, 12], [10, 20, 24], [18, 36, 40]]
    assert grads["dw"][3, 0].tolist() == [[53, 106, 108], [106, 212, 216], [114, 228, 232]]
    assert grads["db"].tolist() == [4, 4, 4, 4]


def test_unread_input_has_no_gradient() -> None:
    """With a 1x1 kernel and stride 2 only every second pixel has a gradient; the others are exactly 0."""
    shape = ConvShape(1, 2, (2, 2), 3, (1, 1), stride=2)
    grads = conv_backward_reference(shape, np.ones(shape.dy_shape), np.ones(shape.w_shape), grads=("dx",))
    assert grads["dx"].tolist() == [[[[3, 0], [0, 0]], [[3, 0], [0, 0]]]]


def test_an_empty_output_has_zero_gradients() -> None:
    """A kernel that does not fit gives gradients of zeros in the operands' shapes."""
    shape = ConvShape(1, 1, (34, 1), 1, (3, 3), stride=2)
    grads = conv_backward_reference(
        shape, np.ones(shape.dy_shape), np.ones(shape.w_shape), np.ones(shape.x_shape)
    )
    assert {name: (array.shape, bool(array.any())) for name, array in grads.items()} == {
        "dx": ((1, 1, 34, 1), False),
        "dw": ((1, 1, 3, 3), False),
        "db": ((1,), False),
    }


def test_bias_is_added_to_each_channel() -> None:
    """The forward reference adds one number a channel."""
    shape = ConvShape(1, 1, (3,), 2, (1,))
    y = conv_forward_reference(shape, [[[1, 2, 3]]], [[[1]], [[10]]], bias=[100, 200])
    assert y.tolist() == [[[101, 102, 103], [210, 220, 230]]]


@pytest.mark.parametrize(("trans_a", "trans_b"), [(False, False), (False, True), (True, False), (True, True)])
def test_products_of_matrices(trans_a: bool, trans_b: bool) -> None:
    """The product is the sum over k, whichever of the operands come transposed."""
    a, b = np.array([[1.0, 2.0, 3.0]]), np.array([[1.0, 0.0], [0.0, 1.0], [2.0, -1.0]])
    got = gemm_reference(a.T if trans_a else a, b.T if trans_b else b, trans_a=trans_a, trans_b=trans_b)
    assert got.tolist() == [[7.0, -1.0]]


SHAPE = ConvShape(1, 1, (3,), 1, (1,))
REFUSED = (
    ({"dy": np.ones((1, 1, 4))}, "dy"),
    ({"w": np.ones((1, 1, 2))}, "w"),
    ({"x": np.ones((1, 1, 2))}, "x"),
    ({"x": None}, "x"),
    ({"w": None}, "w"),
    ({"w": np.ones((1, 1, 1), complex)}, "w"),
    ({"dy": [[["a", "b", "c"]]]}, "dy"),
    ({"grads": ("dz",)}, "grads"),
)


@pytest.mark.parametrize(("changes", "argument"), REFUSED)
def test_operands_that_do_not_fit_are_refused(changes: dict[str, object], argument: str) -> None:
    """A missing array, another shape or values that are no real numbers: the error names the array."""
    legal: dict[str, object] = {"dy": np.ones((1, 1, 3)), "w": np.ones((1, 1, 1)), "x": np.ones((1, 1, 3))}
    with pytest.raises(OperandError) as caught:
        conv_backward_reference(SHAPE, **{**legal, **changes})  # type: ignore[arg-type]
    assert caught.value.argument == argument


def test_matrices_that_do_not_fit_are_refused() -> None:
    """A product needs two matrices with the same k."""
    for a, b, argument in (((2, 3), (2, 3), "b"), ((2,), (2, 3), "a"), ((2, 3), (3, 3, 3), "b")):
        with pytest.raises(OperandError) as caught:
            gemm_reference(np.ones(a), np.ones(b))
        assert caught.value.argument == argument
