"""The reference of deformable convolutions: published gradients, finite differences, borders, offsets of no number."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from kernels.errors import OperandError, ShapeError
from kernels.reference.deform import deform_backward_reference, deform_forward_reference
from kernels.reference.references import conv_backward_reference, conv_forward_reference
from kernels.shape.deform import DeformShape
from kernels.shape.shapes import ConvShape
from tests.deform_table import (
    BIASES,
    FILTERS,
    Array,
    DeformCase,
    deform_cases,
    operands,
    placed,
    reported_cases,
)

CASES = {case.id: case for case in (*deform_cases(), *reported_cases())}
DIFFERENTIABLE = ("D_004", "D_011", "D_053", "D_054", "BO046")
"""Small rows that say so."""


def test_every_row_is_read() -> None:
    """The outputs that a row tells are those of its geometry."""
    assert len(deform_cases()) == 55
    assert [case.id for case in reported_cases()] == ["BO030", "BO033", "BO038", "BO046", "BO047", "BO054"]
    for case in CASES.values():
        assert case.shape.conv.out == case.out


@pytest.mark.parametrize("name", DIFFERENTIABLE)
def test_gradients_are_finite_differences(name: str) -> None:
    """Each gradient is the central difference of the output at sampled elements of its operand."""
    shape = CASES[name].shape
    given = operands(shape)
    given["offset"] = np.floor(given["offset"]) + np.random.default_rng(5).uniform(
        0.2, 0.8, shape.offset_shape
    )
    dy = given.pop("dy")
    found = deform_backward_reference(shape, dy, **given)
    rng = np.random.default_rng(1)
    for operand, array in given.items():
        for place in rng.choice(array.size, min(array.size, 20), replace=False):
            at = np.unravel_index(place, array.shape)
            difference = (
                dy * (_moved(shape, given, operand, at, 1e-5) - _moved(shape, given, operand, at, -1e-5))
            ).sum() / 2e-5
            assert found[f"d{operand}"][at] == pytest.approx(difference, abs=1e-6, rel=1e-6)
    assert np.array_equal(found["db"], dy.sum(axis=(0, 2, 3)))


def _moved(
    shape: DeformShape, given: dict[str, Any], operand: str, at: tuple[np.intp, ...], step: float
) -> Array:
    """The output with one element of an operand moved."""
    changed = given[operand].copy()
    changed[at] += step
    return deform_forward_reference(shape, **{**given, operand: changed})


@pytest.mark.parametrize("name", ["D_002", "D_001"])
def test_no_images(name: str) -> None:
    """Gradients of an empty batch are empty or zero."""
    shape = CASES[name].shape
    for grad in deform_backward_reference(shape, **operands(shape)).values():
        assert not grad.any()


def test_published_modulated() -> None:
    """The numbers of mmcv's test of the modulated convolution."""
    shape = CASES["D_010"].shape
    x = np.broadcast_to(np.array([1.0, 2, 3]), (1, 1, 3, 3))
    offset, mask = np.zeros(shape.offset_shape), np.full(shape.mask_shape, 0.5)
    w, dy = np.ones(shape.conv.w_shape), np.ones(shape.conv.dy_shape)
    y = deform_forward_reference(shape, x, w, offset, mask)
    found = deform_backward_reference(shape, dy, w, x, offset, mask)
    assert y[0, 0].tolist() == [[0.5, 1.5, 2.5, 1.5], [1, 3, 5, 3], [1, 3, 5, 3], [0.5, 1.5, 2.5, 1.5]]
    assert (found["dx"] == 2).all()
    assert (found["dw"] == 9).all()
    assert found["db"] == 16
    assert (found["dmask"].sum(axis=(0, 2, 3)) == 18).all()
    assert found["doffset"].sum(axis=(0, 2, 3)).reshape(-1, 2).tolist() == [[-3, -1.5]] * 4


@pytest.mark.parametrize("name", ["D_008", "D_009"])
def test_published_plain(name: str) -> None:
    """The numbers of mmcv's test: offsets are a convolution of x themselves, and x gets both gradients."""
    shape = CASES[name].shape
    n = shape.conv.n
    x = np.repeat(np.array([[1.0, 2, 3], [0, 1, 2], [3, 5, 2]])[None, None], n, axis=0)
    w, dy = np.array([0.4, 0.2, 0.1, 0.9]).reshape(1, 1, 2, 2), np.ones(shape.conv.dy_shape)
    maker = ConvShape(n, 1, (3, 3), 8, (2, 2))
    offset = conv_forward_reference(maker, x, FILTERS, BIASES)
    y = deform_forward_reference(shape, x, w, offset)
    found = deform_backward_reference(shape, dy, w, x, offset)
    through = conv_backward_reference(maker, found["doffset"], FILTERS, x)
    assert y[0].ravel() == pytest.approx([1.65, 0, 0, 0], abs=1e-6)
    assert found["dw"].ravel() == pytest.approx(n * np.array([3.62, 0, 0.40, 0.18]), abs=1e-6)
    assert through["db"] == pytest.approx(
        n * np.array([1.44, -0.72, 0, 0, -0.10, -0.08, -0.54, -0.54]), abs=1e-6
    )
    assert (found["dx"] + through["dx"])[0].ravel() == pytest.approx(
        [-0.666, 0.204, 0, 0.030, -0.416, 0.012, 0, 0.252, 0.129], abs=1e-6
    )


def test_offsets_of_zero() -> None:
    """Without offsets and mask it is the plain convolution; the mask's gradient is w x dy x x of its tap."""
    shape = CASES["D_044"].shape
    given = operands(shape)
    given["offset"][...] = 0
    given["mask"][...] = 1
    found = deform_backward_reference(shape, **given)
    plain = conv_backward_reference(shape.conv, given["dy"], given["w"], given["x"])
    for grad, wanted in plain.items():
        assert found[grad] == pytest.approx(wanted, abs=1e-12)
    assert found["dmask"].sum() == pytest.approx((plain["dw"] * given["w"]).sum())


@pytest.mark.parametrize("row", [-1.0, 7.0, 1e6, -1e6, np.nan, np.inf, -np.inf])
def test_absent_taps(row: float) -> None:
    """At the border and beyond, and at no number, a tap adds nothing to anything."""
    shape = CASES["D_045"].shape
    given = operands(shape)
    given["offset"] = placed(shape, row)
    y = deform_forward_reference(shape, given["x"], given["w"], given["offset"], given["mask"])
    found = deform_backward_reference(shape, **given)
    assert not y.any()
    assert not any(found[grad].any() for grad in ("dx", "dw", "doffset", "dmask"))
    assert found["db"].any()


@pytest.mark.parametrize("row", [-1 + 1e-6, -1 + 1e-9, 6.0, 7 - 1e-9])
def test_taps_just_inside(row: float) -> None:
    """Inside by any distance, the derivative by rows is whole: it is that of the border's row."""
    shape = CASES["D_046"].shape
    given = operands(shape)
    given["offset"], given["mask"][...] = placed(shape, row), 1.0
    found = deform_backward_reference(shape, **given)
    sign, border = (1, 0) if row < 0 else (-1, 6)
    x = given["x"][:, :, border]
    y, j, k = 2, 4, 4  # the middle tap of an output, which reads its own column
    per_channel = np.einsum("k,kc->c", given["dy"][0, :3, y, j], given["w"][:3, :, 1, 1])
    wanted = sign * float(per_channel @ x[0, :2, j])
    assert found["doffset"][0, 2 * k, y, j] == pytest.approx(wanted)


def test_whole_offsets_shift_x() -> None:
    """Offsets (1, -2) everywhere are a plain convolution of shifted x."""
    shape = CASES["D_049"].shape
    given = operands(shape)
    given["offset"].reshape(2, -1, 2, 7, 9)[:, :, 0] = 1
    given["offset"].reshape(2, -1, 2, 7, 9)[:, :, 1] = -2
    given["mask"][...] = 1
    shifted = ConvShape(2, 4, (7, 9), 6, (3, 3), padding=((0, 2), (3, 0 - 1)), groups=2)
    plain = conv_backward_reference(shifted, given["dy"], given["w"], given["x"])
    found = deform_backward_reference(shape, **given)
    assert found["dx"] == pytest.approx(plain["dx"], abs=1e-12)
    assert found["dw"] == pytest.approx(plain["dw"], abs=1e-12)


def test_one_offset_of_no_number() -> None:
    """A NaN removes its own tap alone."""
    shape = CASES["D_051"].shape
    given = operands(shape)
    before = deform_backward_reference(shape, **given)
    given["offset"][0, 3, 2, 2] = np.nan
    after = deform_backward_reference(shape, **given)
    assert all(np.isfinite(grad).all() for grad in after.values())
    changed = np.argwhere(before["doffset"] != after["doffset"])
    assert {tuple(at) for at in changed.tolist()} <= {(0, 2, 2, 2), (0, 3, 2, 2)}


def test_magnitudes_bound_the_gradients() -> None:
    """Sums of absolute values are at least as large."""
    case: DeformCase = CASES["D_055"]
    given = operands(case.shape)
    plain = deform_backward_reference(case.shape, **given)
    sizes = deform_backward_reference(case.shape, **given, magnitude=True)
    assert all((np.abs(plain[grad]) <= sizes[grad] * (1 + 1e-12)).all() for grad in plain)


def test_wrong_shapes() -> None:
    """The array is named, and its right shape."""
    shape = CASES["D_006"].shape
    given = operands(shape)
    with pytest.raises(OperandError, match=r"offset must be.*36"):
        deform_backward_reference(shape, **{**given, "offset": given["offset"][:, :2]})
    with pytest.raises(OperandError, match=r"mask must be.*18"):
        deform_backward_reference(shape, **{**given, "mask": given["mask"][:, :2]})


@pytest.mark.parametrize(
    ("conv", "groups", "argument"),
    [
        (ConvShape(1, 6, (5, 5), 2, (3, 3)), 4, "deform_groups"),
        (ConvShape(1, 6, (5, 5), 2, (3, 3)), 0, "deform_groups"),
        (ConvShape(1, 6, (5,), 2, (3,)), 1, "shape"),
        (ConvShape(1, 6, (5, 5), 2, (3, 3), transposed=True), 1, "shape"),
        (ConvShape(1, 6, (2, 2), 2, (3, 3)), 1, "shape"),
    ],
)
def test_geometries_that_do_not_deform(conv: ConvShape, groups: int, argument: str) -> None:
    """One and three axes, transposed ones, no outputs, and groups that do not divide."""
    with pytest.raises(ShapeError) as caught:
        DeformShape(conv, groups)
    assert caught.value.argument == argument
