"""Transposed convolutions backward: every gradient, split and way of watching, beside the reference."""

from __future__ import annotations

from typing import Literal

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kernels.conv_backward import conv_backward
from kernels.dsp.dx.tiling import DxTiling
from kernels.dsp.forward.tiling import ForwardTiling
from kernels.errors import TilingError
from kernels.shape.shapes import ConvShape
from simulator.machine import Checks
from tests.kernels.sweep import check_integers, check_random
from tests.shape_strategies import conv_shapes

GRADS = ("dx", "dw", "db")
PLAIN = ConvShape(n=3, cin=20, size=(5, 6), cout=12, kernel=(3, 3), stride=2, padding=1, transposed=True)
GROUPED = ConvShape(
    n=2, cin=12, size=(5, 6), cout=8, kernel=(3, 2), stride=(2, 3), padding=1, dilation=(1, 2), groups=2,
    transposed=True, output_padding=(1, 0),
)  # fmt: skip
DEEP = ConvShape(
    n=1, cin=4, size=(3, 4, 5), cout=6, kernel=(3, 2, 2), stride=(2, 1, 2), transposed=True, output_padding=(1, 0, 1)
)  # fmt: skip
LINE = ConvShape(
    n=2, cin=6, size=(7,), cout=10, kernel=(4,), stride=3, padding=2, dilation=2, transposed=True
)
SHAPES = {"plain": PLAIN, "grouped": GROUPED, "three axes": DEEP, "one axis": LINE}


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
@pytest.mark.parametrize("split", ["batch", "rows", "channels", "auto"])
def test_splits_agree(shape: ConvShape, split: str) -> None:
    """Every split of every gradient gives the reference's bits on integers."""
    for dtype in ("fp16", "fp32"):
        check_integers(shape, dtype, GRADS, tiling={"split": split, "dw.split": split}, cores=3)
    check_random(shape, "fp16", GRADS, tiling={"fp16_accumulate": "fp16", "dw.fp16_accumulate": "fp16"})


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
def test_however_it_is_watched(shape: ConvShape) -> None:
    """No races; DMA may land early or late; instructions one by one give the bits of whole blocks."""
    for checks in (
        Checks(races=True),
        Checks(dma="early"),
        Checks(dma="late"),
        Checks(values="instructions"),
    ):
        check_integers(shape, "fp32", GRADS, checks=checks)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(shape=conv_shapes(largest=7), data=st.data())
def test_any_shape(shape: ConvShape, data: st.DataObject) -> None:
    """Random geometries on any number of cores: all gradients of integers exactly."""
    values: Literal["tiles", "instructions"] = data.draw(st.sampled_from(["tiles", "instructions"]))
    check_integers(shape, "fp32", GRADS, cores=data.draw(st.integers(1, 4)), checks=Checks(values=values))


def test_numbers_change_no_trace() -> None:
    """A timing-only run has the trace of one with numbers."""
    timed = conv_backward(shape=GROUPED, dtype="fp32", grads=GRADS, numerics=False)
    assert timed.trace.hash() == check_integers(GROUPED, "fp32", GRADS).trace.hash()


def test_the_fields_of_dx_are_those_of_a_forward_convolution() -> None:
    """Dx is one: its tiling is, and fields of another kind are refused by name."""
    run = conv_backward(shape=PLAIN, grads=("dx",), numerics=False, tiling={"x_buffers": 1})
    assert set(run.tiling) == set(ForwardTiling.model_fields)
    assert run.tiling["x_buffers"] == 1
    with pytest.raises(TilingError) as caught:
        conv_backward(shape=PLAIN, grads=("dx",), numerics=False, tiling={"budget_bytes": 4096})
    assert caught.value.field == "budget_bytes"
    plain = ConvShape(n=1, cin=4, size=(5, 5), cout=4, kernel=(3, 3))
    assert set(conv_backward(shape=plain, grads=("dx",), numerics=False).tiling) == set(DxTiling.model_fields)


def test_a_nan_reaches_only_what_its_taps_reach() -> None:
    """A NaN in dy reaches the dx whose sum has it, and no other."""
    dy, w = np.ones(PLAIN.dy_shape, np.float32), np.ones(PLAIN.w_shape, np.float32)
    dy[0, 0, 0, 0] = np.nan
    dx = conv_backward(dy, w, shape=PLAIN, grads=("dx",)).dx
    assert dx is not None
    expected = np.zeros(PLAIN.size, bool)
    expected[0, 0] = True
    np.testing.assert_array_equal(np.isnan(dx[0, 0]), expected)
