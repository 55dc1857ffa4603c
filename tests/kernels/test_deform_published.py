"""Published gradients of deformable convolutions, on chips: mmcv's tests, and what follows from the formula by hand."""

from __future__ import annotations

import numpy as np
import pytest

from kernels.conv_backward import conv_backward
from kernels.reference.references import conv_forward_reference
from kernels.shape.shapes import ConvShape
from tests.deform_runs import ran
from tests.deform_table import BIASES, FILTERS, deform_cases, integers, reported_cases

CASES = {case.id: case for case in (*deform_cases(), *reported_cases())}
CHIPS = pytest.mark.parametrize("target", ["ascend950pr", "mt7004", "ft78ne"])


@CHIPS
@pytest.mark.parametrize("name", ["D_010", "BO047"])
def test_modulated(name: str, target: str) -> None:
    """Mmcv's numbers of the modulated convolution, exactly: every product and sum is a whole number or a half."""
    shape = CASES[name].shape
    x = np.broadcast_to(np.array([1, 2, 3], np.float32), (1, 1, 3, 3))
    given = {
        "dy": np.ones(shape.conv.dy_shape, np.float32),
        "w": np.ones(shape.conv.w_shape, np.float32),
        "x": x,
    }
    given["offset"] = np.zeros(shape.offset_shape, np.float32)
    given["mask"] = np.full(shape.mask_shape, 0.5, np.float32)
    found = ran(shape, given, target=target).outputs
    assert (found["dx"] == 2).all()
    assert (found["dw"] == 9).all()
    assert found["db"] == 16
    assert (found["dmask"].sum(axis=(0, 2, 3)) == 18).all()
    assert found["doffset"].sum(axis=(0, 2, 3)).reshape(-1, 2).tolist() == [[-3, -1.5]] * 4


@CHIPS
@pytest.mark.parametrize("name", ["D_008", "D_009"])
def test_plain(name: str, target: str) -> None:
    """Mmcv's numbers: offsets are a convolution of x themselves, and x gets both gradients."""
    shape = CASES[name].shape
    n = shape.conv.n
    x = np.repeat(np.array([[1, 2, 3], [0, 1, 2], [3, 5, 2]], np.float32)[None, None], n, axis=0)
    w = np.array([0.4, 0.2, 0.1, 0.9], np.float32).reshape(1, 1, 2, 2)
    maker = ConvShape(n, 1, (3, 3), 8, (2, 2))
    offset = conv_forward_reference(maker, x, FILTERS, BIASES).astype(np.float32)
    given = {"dy": np.ones(shape.conv.dy_shape, np.float32), "w": w, "x": x, "offset": offset}
    found = ran(shape, given, target=target).outputs
    through = conv_backward(found["doffset"], FILTERS.astype(np.float32), x=x, target=target).outputs
    assert found["dw"].ravel() == pytest.approx(n * np.array([3.62, 0, 0.40, 0.18]), rel=1e-5, abs=1e-5)
    wanted = n * np.array([1.44, -0.72, 0, 0, -0.10, -0.08, -0.54, -0.54])
    assert through["db"] == pytest.approx(wanted, rel=1e-5, abs=1e-5)
    total = [-0.666, 0.204, 0, 0.030, -0.416, 0.012, 0, 0.252, 0.129]
    assert (found["dx"] + through["dx"])[0].ravel() == pytest.approx(total, rel=1e-5, abs=1e-5)


@CHIPS
def test_whole_offsets_shift_x(target: str) -> None:
    """Row D_049: offsets (1, -2) everywhere are a plain convolution of shifted x, to the bit on whole numbers."""
    shape = CASES["D_049"].shape
    given = integers(shape)
    given["offset"].reshape(2, -1, 2, 7, 9)[:, :, 0] = 1
    given["offset"].reshape(2, -1, 2, 7, 9)[:, :, 1] = -2
    found = ran(shape, given, target=target).outputs
    shifted = ConvShape(2, 4, (7, 9), 6, (3, 3), padding=((0, 2), (3, 0 - 1)), groups=2)
    plain = conv_backward(given["dy"], given["w"], x=given["x"], shape=shifted, target=target).outputs
    for name in ("dx", "dw", "db"):
        assert np.array_equal(found[name], plain[name])


@CHIPS
def test_masks_of_zero_offsets(target: str) -> None:
    """Row D_044: what each tap of each deformable group sums in dmask is its part of the sum of w x dw."""
    shape = CASES["D_044"].shape
    found = ran(shape, integers(shape) | {}, target=target).outputs
    w = integers(shape)["w"]
    per_group = (found["dw"] * w).reshape(2, 3, 2, 9).sum(axis=(1, 2))
    assert np.array_equal(found["dmask"].sum(axis=(0, 2, 3)).reshape(2, 9), per_group)
