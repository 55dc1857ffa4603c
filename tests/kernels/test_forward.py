"""conv_forward on the DSP family: cases of the tables, every policy and split, and every way of watching a run."""

from __future__ import annotations

from typing import Any, Literal

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from kernels.conv_forward import conv_forward
from kernels.dsp.forward.tiling import ForwardTiling
from kernels.errors import OperandError, ShapeError, TilingError
from kernels.shape.shapes import ConvShape
from simulator.machine import Checks
from tests.case_table import Case
from tests.kernels.forward_checks import check_forward_integers, check_forward_random, forward_operands
from tests.kernels.sweep import every_case, spread
from tests.kernels.test_dx_options import SHAPES
from tests.shape_strategies import conv_shapes

SAMPLE = spread([case for case in every_case() if case.shape.useful_macs < 3e6], 40)
TRANSPOSED = ConvShape(
    n=2, cin=12, size=(5, 6), cout=8, kernel=(3, 2), stride=(2, 3), padding=1, dilation=(1, 2), groups=2,
    transposed=True, output_padding=(1, 0),
)  # fmt: skip
Values = Literal["tiles", "instructions"]


@pytest.mark.parametrize("case", SAMPLE, ids=lambda case: case.id)
def test_sample(case: Case) -> None:
    """Rows of all tables, 1 to 3 axes, transposed ones too: integers exactly, random data within the bound."""
    check_forward_integers(case.shape, "fp16")
    check_forward_random(case.shape, "fp32")


@pytest.mark.parametrize("shape", [*SHAPES.values(), TRANSPOSED], ids=[*SHAPES, "transposed"])
@pytest.mark.parametrize("split", ["batch", "rows", "channels", "auto"])
@pytest.mark.parametrize("cores", [1, 3, 4])
def test_cores_and_splits_agree(shape: ConvShape, split: str, cores: int) -> None:
    """Every number of cores and every split gives the reference's bits on integer data."""
    check_forward_integers(shape, "fp32", cores=cores, tiling={"split": split})


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
@pytest.mark.parametrize(
    ("weights", "holds"),
    [("am", "x"), ("am", "none"), ("stream", "x"), ("stream", "none"), ("gsm", "both"), ("gsm", "w")],
)
@pytest.mark.parametrize("values", ["tiles", "instructions"])
def test_policies_agree(shape: ConvShape, weights: str, holds: str, values: Values) -> None:
    """Wherever operands lie, and in whatever steps values are made, the bits are the reference's."""
    tiling = {"weights": weights, "gsm_holds": holds}
    check_forward_integers(shape, "fp32", tiling=tiling, checks=Checks(values=values))


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
@pytest.mark.parametrize("split", ["batch", "rows", "channels"])
def test_no_races_and_dma_may_land_any_time(shape: ConvShape, split: str) -> None:
    """The race check finds nothing, and a DMA that lands early or late changes no bit."""
    for weights, holds in (("stream", "x"), ("gsm", "both")):
        tiling = {"split": split, "weights": weights, "gsm_holds": holds}
        for checks in (Checks(races=True), Checks(dma="early"), Checks(dma="late")):
            check_forward_integers(shape, "fp32", tiling=tiling, checks=checks)


@pytest.mark.parametrize(("memory", "kind"), [("sm", "raw"), ("am", "war")])
def test_a_dropped_hazard_is_noticed(memory: str, kind: str) -> None:
    """Rows of x that are read before they came, or a panel of y that is begun before it left, change the result."""
    shape = ConvShape(n=2, cin=64, size=(12, 12), cout=16, kernel=(3, 3), padding=1)
    made, tiling, found = (
        forward_operands(shape, "fp32", True),
        {"positions": 12, "rows": 3, "y_buffers": 1},
        [],
    )
    for dropped in (frozenset(), frozenset({(memory, kind)})):
        checks = Checks(values="instructions", dropped=dropped)
        found.append(conv_forward(**made, shape=shape, tiling=tiling, checks=checks).y)
    assert found[0] is not None
    assert found[1] is not None
    assert not np.array_equal(found[0], found[1])


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(shape=conv_shapes(largest=9), data=st.data())
def test_any_tiling_of_any_shape(shape: ConvShape, data: st.DataObject) -> None:
    """Random geometries, plain and transposed, under random legal tilings: integers exactly."""
    draw = data.draw
    tiling: dict[str, object] = {
        "split": draw(st.sampled_from(["batch", "rows", "channels"])),
        "rows": draw(st.integers(1, 9)),
        "cols": draw(st.integers(1, 9)),
        "images": 1,
        "channels": draw(st.integers(1, 20)),
        "k": draw(st.integers(1, 9)),
        "positions": draw(st.integers(1, 40)),
        "block_channels": draw(st.integers(1, 9)),
        "block_taps": draw(st.integers(1, 3)),
        "ahead": draw(st.integers(0, 2)),
    }
    values: Values = draw(st.sampled_from(["tiles", "instructions"]))
    checks, cores = Checks(values=values), draw(st.integers(1, 4))
    check_forward_integers(shape, "fp32", tiling=tiling, cores=cores, checks=checks)


@pytest.mark.parametrize("shape", [*SHAPES.values(), TRANSPOSED], ids=[*SHAPES, "transposed"])
def test_without_a_bias(shape: ConvShape) -> None:
    """A bias is optional."""
    made = forward_operands(shape, "fp32", True)
    with_bias = conv_forward(**made, shape=shape).y
    plain = conv_forward(made["x"], made["w"], shape=shape).y
    assert plain is not None
    assert with_bias is not None
    np.testing.assert_array_equal(with_bias - made["bias"].reshape(-1, *(1,) * shape.ndim), plain)


@pytest.mark.parametrize("dtype", ["fp16", "fp32"])
def test_numerics_never_change_the_trace(dtype: str) -> None:
    """A timing-only run, a run with numbers, and cores simulated one by one give one trace."""
    shape = SHAPES["uneven"]
    runs = [
        conv_forward(shape=shape, dtype=dtype, with_bias=True, numerics=False),
        conv_forward(shape=shape, dtype=dtype, with_bias=True, numerics=False, checks=Checks(fold=False)),
        conv_forward(**forward_operands(shape, dtype, True), shape=shape),
    ]
    assert len({run.trace.hash() for run in runs}) == 1


def test_a_nan_reaches_only_what_its_taps_reach() -> None:
    """A NaN in x or in w reaches the y whose sum has it: taps in the padding are absent, not zero times NaN."""
    shape = ConvShape(n=1, cin=2, size=(6, 6), cout=2, kernel=(3, 3), padding=1)
    x, w = np.ones(shape.x_shape, np.float32), np.ones(shape.w_shape, np.float32)
    x[0, 0, 0, 0] = np.nan
    y = conv_forward(x, w, padding=1).y
    assert y is not None
    expected = np.zeros((6, 6), bool)
    expected[:2, :2] = True
    np.testing.assert_array_equal(np.isnan(y[0, 0]), expected)
    x, w[0, 0, 0, 0] = np.ones(shape.x_shape, np.float32), np.inf
    y = conv_forward(x, w, padding=1).y
    assert y is not None
    expected = np.zeros((6, 6), bool)
    expected[1:, 1:] = True
    np.testing.assert_array_equal(np.isinf(y[0, 0]), expected)
    assert np.isfinite(y[0, 1]).all()


def test_fp16_accumulation_sets_cost_peak_and_numbers() -> None:
    """An fp16 accumulator doubles the peak, costs fewer cycles, and rounds at each step."""
    shape = ConvShape(n=1, cin=128, size=(8, 8), cout=64, kernel=(3, 3), padding=1)
    made = forward_operands(shape, "fp16", False)
    mixed = conv_forward(**made, shape=shape, cores=1)
    half = check_forward_random(shape, "fp16", cores=1, tiling={"fp16_accumulate": "fp16"})
    assert half.peak_flops_per_cycle == 2 * mixed.peak_flops_per_cycle
    assert half.cycles < mixed.cycles
    assert half.y is not None
    assert mixed.y is not None
    assert not np.array_equal(half.y, mixed.y)


def test_layouts_agree() -> None:
    """Channel-last operands give the channel-last output."""
    made = forward_operands(SHAPES["plain"], "fp32", True)
    first = conv_forward(**made, padding=1).y
    last = conv_forward(np.moveaxis(made["x"], 1, -1), made["w"], made["bias"], padding=1, layout="NHWC").y
    assert first is not None
    assert last is not None
    np.testing.assert_array_equal(np.moveaxis(first, 1, -1), last)


def test_empty_batches_and_outputs() -> None:
    """No images give an empty y; so do sizes that leave no output."""
    for size, n in (((10, 5), 0), ((34, 1), 1)):
        shape = ConvShape(n=n, cin=3, size=size, cout=4, kernel=(3, 3), stride=2)
        y = conv_forward(np.zeros(shape.x_shape, np.float32), np.zeros(shape.w_shape, np.float32), stride=2).y
        assert y is not None
        assert y.shape == shape.dy_shape
        assert y.size == 0


def test_a_tiling_is_obeyed_and_shown() -> None:
    """Given fields stand in run.tiling, and the others are chosen around them."""
    tiling = {"rows": 2, "split": "batch", "x_buffers": 1, "block_taps": 2}
    run = conv_forward(shape=SHAPES["plain"], tiling=tiling, numerics=False)
    assert tiling.items() <= run.tiling.items()
    assert set(run.tiling) == set(ForwardTiling.model_fields)


@pytest.mark.parametrize(
    ("tiling", "field"),
    [
        ({"rows": 0}, "rows"),
        ({"dy_buffers": 2}, "dy_buffers"),
        ({"weights": "gsm", "gsm_holds": "x"}, "gsm_holds"),
        ({"split": "diagonal"}, "split"),
        ({"y_buffers": 3}, "y_buffers"),
    ],
)
def test_a_bad_tiling_names_its_field(tiling: dict[str, object], field: str) -> None:
    """A field that cannot be is refused by name."""
    with pytest.raises(TilingError) as caught:
        conv_forward(shape=SHAPES["plain"], tiling=tiling, numerics=False)
    assert caught.value.field == field


@pytest.mark.parametrize(
    ("argument", "change"),
    [
        ("x", {"x": None}),
        ("w", {"w": None}),
        ("bias", {"bias": np.zeros(3, np.float32)}),
        ("layout", {"layout": "HWCN"}),
        ("cores", {"cores": 9}),
        ("dtype", {"dtype": "fp64"}),
        ("x and w and bias", {"x": np.zeros(SHAPES["plain"].x_shape, np.float16)}),
    ],
)
def test_refusals_name_their_argument(argument: str, change: dict[str, Any]) -> None:
    """Operands that are missing, of another shape or type, and options that are not there."""
    with pytest.raises(OperandError) as caught:
        conv_forward(**(forward_operands(SHAPES["plain"], "fp32", True) | {"padding": 1} | change))
    assert caught.value.argument == argument


def test_two_geometries_are_refused() -> None:
    """A shape and one of its parts are one too many."""
    with pytest.raises(ShapeError) as caught:
        conv_forward(shape=SHAPES["plain"], stride=2, numerics=False)
    assert caught.value.argument == "stride"


def test_groups_that_do_not_divide_are_refused() -> None:
    """The geometry is checked before anything is computed."""
    x, w = np.zeros((1, 5, 4), np.float32), np.zeros((4, 2, 3), np.float32)
    with pytest.raises(ShapeError) as caught:
        conv_forward(x, w, groups=2)
    assert caught.value.argument == "groups"
