"""Faults that were reported of other libraries: each row of bugs_open on a plain or transposed convolution is answered.

Rows of dgrad, wgrad, fwd and all are also compared with the reference, with every other row of the tables.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from kernels.conv_backward import conv_backward
from kernels.conv_forward import conv_forward
from kernels.errors import OperandError, ShapeError
from kernels.reference.references import conv_backward_reference, conv_forward_reference
from kernels.shape.shapes import ConvShape
from simulator.errors import CapacityError
from simulator.results.run import Run
from targets.loader import load_target
from tests.case_table import load_cases
from tests.kernels.sweep import smaller

BUGS = {case.id: case.shape for case in load_cases("bugs_open")}


def zeros(*size: int) -> NDArray[Any]:
    """An operand of zeros."""
    return np.zeros(size, np.float32)


def ones(shape: ConvShape) -> dict[str, NDArray[Any]]:
    """Operands of ones."""
    sizes = {"dy": shape.dy_shape, "w": shape.w_shape, "x": shape.x_shape}
    return {name: np.ones(size, np.float32) for name, size in sizes.items()}


def integers(shape: ConvShape, seed: int = 0) -> dict[str, NDArray[Any]]:
    """Small integers as operands."""
    rng = np.random.default_rng(seed)
    sizes = {"dy": shape.dy_shape, "w": shape.w_shape, "x": shape.x_shape}
    return {name: rng.integers(-4, 5, size).astype(np.float32) for name, size in sizes.items()}


def backward(shape: ConvShape, made: dict[str, NDArray[Any]], **options: Any) -> Run:
    """All gradients."""
    return conv_backward(made["dy"], made["w"], x=made["x"], shape=shape, **options)


def rows(array: NDArray[Any] | None) -> Any:
    """An output as plain lists."""
    assert array is not None
    return array.tolist()


# -- refusals ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("out", [10, 13])
def test_bo004_an_output_that_no_output_padding_gives(out: int) -> None:
    """Sizes 11 and 12 fit stride 2; others are refused, naming dy's size and what chooses it."""
    x, w = zeros(1, 4, 5, 5, 5), zeros(4, 2, 3, 3, 3)
    with pytest.raises(ShapeError, match="output_padding") as caught:
        conv_backward(zeros(1, 2, out, out, out), w, x=x, stride=2, transposed=True)
    assert caught.value.argument == "dy"
    run = conv_backward(zeros(1, 2, 12, 12, 12), w, x=x, stride=2, transposed=True, output_padding=1)
    assert run.dx is not None
    assert run.dx.shape == x.shape
    with pytest.raises(ShapeError) as refused:
        conv_forward(x, w, stride=2, transposed=True, output_padding=2)
    assert refused.value.argument == "output_padding"


@pytest.mark.parametrize(
    ("argument", "sizes", "options"),
    [
        ("groups", ((2, 12, 8, 8), (12, 6, 3, 3), (2, 20, 8, 8)), {"groups": 3, "padding": 1}),
        ("groups", ((5, 4, 3), (2, 5, 8), (2, 5, 8)), {"groups": 0, "stride": 65534, "dilation": 536870912}),
        ("stride", ((1, 1, 7, 2), (1, 1, 5, 3), (1, 1, 11, 4)), {"stride": (4538426903074820908, 1)}),
        ("kernel", ((2, 3, 4, 4, 4), (3, 5, 0, 1, 2), (2, 5, 8, 8, 8)), {"stride": 2}),
    ],
    ids=["BO015", "BO016", "BO021", "BO026"],
)
def test_arguments_that_cannot_be(
    argument: str, sizes: tuple[tuple[int, ...], ...], options: dict[str, Any]
) -> None:
    """Refused at entry, by name, backward and forward alike."""
    dy, w, x = (zeros(*size) for size in sizes)
    with pytest.raises(ShapeError) as caught:
        conv_backward(dy, w, x=x, **options)
    assert argument in caught.value.argument
    with pytest.raises(ShapeError) as caught:
        conv_forward(x, w, **options)
    assert argument in caught.value.argument


def test_bo018_no_output_of_a_transposed_convolution() -> None:
    """Padding that leaves 0x0 is refused, naming padding and the size."""
    options: dict[str, Any] = {"stride": 2, "padding": 2, "transposed": True}
    with pytest.raises(ShapeError, match="0x0") as caught:
        conv_forward(zeros(1, 1, 2, 2), zeros(1, 1, 2, 2), **options)
    assert caught.value.argument == "padding"


def test_bo003_an_integer_that_fp32_keeps() -> None:
    """2077 needs 12 bits: fp32 keeps it; types that would not are not computed here, and refused."""
    shape = BUGS["BO003"]
    made = {**ones(shape), "dy": np.full(shape.dy_shape, 2077, np.float32)}
    np.testing.assert_array_equal(backward(shape, made).dx, made["dy"])
    with pytest.raises(OperandError) as caught:
        backward(shape, made, dtype="hf32")
    assert caught.value.argument == "dtype"


def test_bo014_a_workspace_is_never_too_small_by_surprise() -> None:
    """DDR that just holds the workspace runs; 64 bytes less are refused, naming it with its size."""
    shape, tiling = smaller(BUGS["BO014"], n=2), {"column": "blocks", "column_place": "workspace"}

    def run(ddr_bytes: int) -> Run:
        target = load_target("mt7004", {"memory.ddr.size_bytes": ddr_bytes})
        return conv_backward(
            shape=shape, dtype="fp16", grads=("dx",), target=target, tiling=tiling, numerics=False
        )

    tensors = 2 * (2 * shape.n * 1024 * 14 * 14 + 1024 * 1024)
    enough = tensors + 4 * 0x10000
    assert run(enough).cycles
    with pytest.raises(CapacityError, match="workspace") as caught:
        run(enough - 64)
    assert (caught.value.memory, caught.value.wanted_bytes) == ("ddr", 4 * 0x10000)


@pytest.mark.parametrize("dtype", ["bf16", "fp64"])
@pytest.mark.parametrize("bug", ["BO027", "BO036"])
def test_types_that_are_not_computed_are_refused(bug: str, dtype: str) -> None:
    """MT7004 has neither bf16 nor fp64 convolutions."""
    with pytest.raises(OperandError) as caught:
        conv_backward(shape=BUGS[bug], dtype=dtype, numerics=False)
    assert caught.value.argument == "dtype"


# -- layouts and what is returned ----------------------------------------------------------------------------


@pytest.mark.parametrize("bug", ["BO042", "BO010"])
def test_layouts_give_the_same_numbers(bug: str) -> None:
    """Channel last and channel first, a batch of none too: shapes as they should be, values the same."""
    shape = BUGS[bug]
    made = integers(shape)
    last = {name: a if name == "w" else np.moveaxis(a, 1, -1) for name, a in made.items()}
    first, other = backward(shape, made), backward(shape, last, layout="NHWC")
    assert first.dx is not None
    assert other.dx is not None
    np.testing.assert_array_equal(np.moveaxis(first.dx, 1, -1), other.dx)
    np.testing.assert_array_equal(first.dw, other.dw)
    np.testing.assert_array_equal(first.db, other.db)
    y = conv_forward(made["x"], made["w"], shape=shape).y
    y_last = conv_forward(last["x"], last["w"], shape=shape, layout="NHWC").y
    assert y is not None
    assert y_last is not None
    assert y.shape == {"BO042": (2, 16, 8, 8), "BO010": (0, 16, 98, 48)}[bug]
    np.testing.assert_array_equal(np.moveaxis(y, 1, -1), y_last)
    if bug == "BO010":
        assert first.dw is not None
        assert not first.dw.any()


def test_bo041_what_is_not_asked_for_is_absent() -> None:
    """Asked for dx and dw, a run has no db: not zeros, none."""
    shape = smaller(BUGS["BO041"], cin=32, size=(16, 16))
    run = backward(shape, integers(shape), grads=("dx", "dw"))
    assert list(run.outputs) == ["dx", "dw"]
    assert run.db is None
    assert "conv_db" not in [launch.name for launch in run.launches]


# -- numbers -------------------------------------------------------------------------------------------------

SMALL = [bug for bug, shape in BUGS.items() if shape.useful_macs < 3e6 and 0 not in (shape.n, *shape.out)]
CONVOLUTIONS = {case.id for case in load_cases("bugs_open") if "deform" not in case.op}


@pytest.mark.parametrize("bug", [bug for bug in SMALL if bug in CONVOLUTIONS])
def test_small_rows_equal_the_direct_sum(bug: str) -> None:
    """All three gradients and the output of integers, exactly."""
    shape = BUGS[bug]
    made = integers(shape)
    run, reference = backward(shape, made), conv_backward_reference(shape, **made)
    for name, gradient in reference.items():
        np.testing.assert_array_equal(run.outputs[name], gradient, err_msg=name)
    y = conv_forward(made["x"], made["w"], shape=shape).y
    np.testing.assert_array_equal(y, conv_forward_reference(shape, made["x"], made["w"]))


def test_bo005_pixels_that_no_output_reads() -> None:
    """Only the first pixel has a gradient, the others are exactly zero though memory held NaN."""
    shape = smaller(BUGS["BO005"], n=4, cin=96, cout=64)
    made = integers(shape)
    dx = backward(shape, made, grads=("dx",)).dx
    assert dx is not None
    np.testing.assert_array_equal(dx[:, :, 0, 0], made["dy"][:, :, 0, 0] @ made["w"][:, :, 0, 0])
    dx[:, :, 0, 0] = 0
    assert not dx.any()


@pytest.mark.parametrize("bug", ["BO006", "BO036"])
def test_an_empty_output_has_gradients_of_zero(bug: str) -> None:
    """Forward gives an empty y, backward zeros; no crash, and no refusal."""
    shape = BUGS[bug]
    run = backward(shape, ones(shape), dtype="fp32")
    assert all(not gradient.any() for gradient in run.outputs.values())
    assert run.dx is not None
    assert run.dx.shape == shape.x_shape
    y = conv_forward(ones(shape)["x"], ones(shape)["w"], shape=shape).y
    assert y is not None
    assert y.size == 0


@pytest.mark.parametrize("name", ["dy", "w"])
def test_bo009_a_nan_reaches_every_sum_that_includes_it(name: str) -> None:
    """And no other: taps in the padding are absent."""
    shape = BUGS["BO009"]
    made = integers(shape)
    made[name][0, 0, 0] = np.nan
    dx = backward(shape, made, grads=("dx",)).dx
    reference = conv_backward_reference(shape, made["dy"], made["w"], grads=("dx",))["dx"]
    np.testing.assert_array_equal(dx, reference)
    assert 0 < np.isnan(reference).sum() < reference.size


def test_bo011_the_last_columns() -> None:
    """dx[h, v] = 3 count(h) count(v), and the last row and column are zero."""
    shape = BUGS["BO011"]
    dx = backward(shape, ones(shape), grads=("dx",)).dx
    assert dx is not None
    count = [sum(3 * o - 1 + q == i for o in range(10) for q in range(5)) for i in range(32)]
    assert count[29:] == [1, 1, 0]
    np.testing.assert_array_equal(dx[0, 0], 3 * np.outer(count, count))


def test_bo019_a_result_that_was_thought_wrong() -> None:
    """Two elements, padding 2: the report's own numbers."""
    x = np.array([[[7, 3]], [[3, 2]]], np.float32)
    w = np.array([[[3, 6]], [[4, 2]]], np.float32)
    run = conv_backward(np.ones(BUGS["BO019"].dy_shape, np.float32), w, x=x, shape=BUGS["BO019"])
    reference = conv_backward_reference(BUGS["BO019"], np.ones(BUGS["BO019"].dy_shape), w, x)
    assert {name: rows(a) for name, a in run.outputs.items()} == {n: a.tolist() for n, a in reference.items()}
    assert rows(run.dw) == [[[0, 5]], [[0, 5]]]
    assert rows(run.db) == [2, 2]


def test_bo020_the_adjoint() -> None:
    """<convT(x), dy> = <x, dx>, for sizes that no plain convolution gives."""
    shape = BUGS["BO020"]
    made = integers(shape)
    y = conv_forward(made["x"], made["w"], shape=shape).y
    dx = backward(shape, made).dx
    assert y is not None
    assert dx is not None
    assert y.shape[2:] == (22, 22)
    assert dx.shape == (2, 2, 4, 4)
    assert np.vdot(y.astype(np.float64), made["dy"]) == np.vdot(made["x"].astype(np.float64), dx)


def test_bo025_the_last_row_of_a_block() -> None:
    """24 depthwise channels of ones: every filter's gradient is the same."""
    dw = backward(BUGS["BO025"], ones(BUGS["BO025"])).dw
    assert rows(dw) == 24 * [[[[4, 6, 6], [6, 9, 9], [6, 9, 9]]]]


@pytest.mark.parametrize("dtype", ["fp16", "fp32"])
def test_bo027_a_bias_gradient_of_many_terms(dtype: str) -> None:
    """1600 ones are 1600."""
    made = {
        name: a.astype({"fp16": np.float16, "fp32": np.float32}[dtype])
        for name, a in ones(BUGS["BO027"]).items()
    }
    assert rows(backward(BUGS["BO027"], made, grads=("db",)).db) == [1600, 1600]


@pytest.mark.parametrize("bug", ["BO023", "BO050"])
def test_taps_that_never_reach_the_image(bug: str) -> None:
    """An image smaller than the filter: rows of dw whose taps lie outside are exactly zero."""
    shape = BUGS[bug]
    dw = backward(shape, integers(shape)).dw
    assert dw is not None
    inside = {"BO023": (slice(1, 4), slice(0, 5)), "BO050": (slice(2, 3), slice(1, 4))}[bug]
    assert dw[(slice(None), slice(None), *inside)].any(axis=(0, 1)).all()
    dw[(slice(None), slice(None), *inside)] = 0
    assert not dw.any()


def test_bo037_a_gradient_scales_with_dy() -> None:
    """A power of two comes out of dw bit for bit."""
    shape = BUGS["BO037"]
    rng = np.random.default_rng(1)
    made = {name: rng.standard_normal(a.shape, np.float32) for name, a in ones(shape).items()}
    once = backward(shape, made, grads=("dw",)).dw
    scaled = backward(shape, {**made, "dy": 8 * made["dy"]}, grads=("dw",)).dw
    assert once is not None
    np.testing.assert_array_equal(8 * once, scaled)


def test_bo048_the_output_padding_adds_to_the_end() -> None:
    """Without it, y is the first 13x13 of the 14x14."""
    shape = BUGS["BO048"]
    made = integers(shape)
    y = conv_forward(made["x"], made["w"], shape=shape).y
    bare = conv_forward(made["x"], made["w"], shape=smaller(shape, output_padding=0)).y
    assert y is not None
    assert y.shape[2:] == (14, 14)
    np.testing.assert_array_equal(y[:, :, :13, :13], bare)


def test_bo049_depthwise_with_a_stride() -> None:
    """The report's own numbers."""
    shape = BUGS["BO049"]
    x = np.arange(64, dtype=np.float32).reshape(shape.x_shape)
    w = np.arange(36, dtype=np.float32).reshape(shape.w_shape)
    run = conv_backward(np.ones(shape.dy_shape, np.float32), w, x=x, shape=shape)
    assert run.dx is not None
    assert run.dw is not None
    assert rows(run.dx[0, 0]) == [[4, 8, 4, 5], [8, 16, 8, 10], [4, 8, 4, 5], [7, 14, 7, 8]]
    assert rows(run.dw[0, 0]) == [[5, 10, 12], [10, 20, 24], [18, 36, 40]]
    assert rows(run.dw[3, 0]) == [[53, 106, 108], [106, 212, 216], [114, 228, 232]]
    assert rows(run.db) == [4, 4, 4, 4]


def test_bo053_overflow_is_infinity_by_sign() -> None:
    """Sums in fp32, one conversion: too large a sum is an infinity of its sign, never NaN."""
    shape = BUGS["BO053"]
    x = np.full(shape.x_shape, 200, np.float16)
    x[1] = -200
    y = conv_forward(x, np.full(shape.w_shape, 100, np.float16), shape=shape).y
    assert y is not None
    assert y.shape[2:] == (25, 36)
    assert not np.isnan(y).any()
    assert (y[0, :, 10:15, 10:25] == np.inf).all()
    assert (y[1, :, 10:15, 10:25] == -np.inf).all()


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("dtype", ["fp16", "fp32"])
def test_bo007_a_batch_is_the_sum_of_its_parts(dtype: str) -> None:
    """Dw of 1024 images beside that of 512 + 512, scaled to a mean of 1."""
    shape, half = BUGS["BO007"], smaller(BUGS["BO007"], n=512)
    kind = {"fp16": np.float16, "fp32": np.float32}[dtype]
    rng = np.random.default_rng(2)
    dy, x = (rng.standard_normal(size, np.float32).astype(kind) for size in (shape.dy_shape, shape.x_shape))
    whole = conv_backward(dy, x=x, shape=shape, grads=("dw",)).dw
    parts = [
        conv_backward(dy[p], x=x[p], shape=half, grads=("dw",)).dw for p in (slice(512), slice(512, 1024))
    ]
    assert whole is not None
    total = sum(part.astype(np.float64) for part in parts if part is not None)
    off = np.abs(whole - total).max() / np.abs(whole).mean()
    assert off < {"fp16": 5e-2, "fp32": 1e-5}[dtype]


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_bo045_a_sum_of_very_many_equal_terms() -> None:
    """A million of its hundred million terms: chunks of the sum keep the error far below that of a running sum."""
    shape = smaller(BUGS["BO045"], n=10_000)
    terms = shape.n * 100
    dy = np.full(shape.dy_shape, 0.5 / terms, np.float32)
    dw = conv_backward(dy, x=np.ones(shape.x_shape, np.float32), shape=shape, grads=("dw",)).dw
    assert dw is not None
    running = np.cumsum(np.full(terms, 0.5 / terms, np.float32))[-1]
    assert np.abs(dw - 0.5).max() < 1e-5
    assert np.abs(dw - 0.5).max() < abs(running - 0.5)
