"""What the cube computes in, types of results, empty tensors, and zeros that are multiplied."""

from __future__ import annotations

from dataclasses import replace

import ml_dtypes
import numpy as np
import pytest

from kernels import aclnn
from kernels.reference.references import conv_backward_reference
from kernels.shape.shapes import ConvShape
from tests.case_table import Case, load_cases
from tests.unit.aclnn.running import PLAIN, RESULTS, TRANSPOSED, arguments, operands, run

SPLIT = ("ascend910b1", "ascend910_9391", "ascend950pr")
FIRST = ("ascend910a", "ascend310p3")
ONE = ConvShape(n=1, cin=1, size=(1, 1), cout=1, kernel=(1, 1))
ALL = (True, True, True)


def single(target: str, value: float, math: int) -> tuple[float, float, float]:
    """Gradients of input, weight and bias of a 1 x 1 convolution with dy = value, w = x = 1, in FLOAT."""
    arrays = {name: np.ones((1, 1, 1, 1), np.float32) for name in ("dy", "w", "x")}
    arrays["dy"][...] = value
    given = arguments(ONE, arrays, ALL, math)
    run(aclnn.Device(target, cores=1), given)
    return tuple(float(given[name].data.reshape(())) for name in RESULTS)  # type: ignore[return-value]  # of three


@pytest.mark.parametrize("target", SPLIT)
@pytest.mark.parametrize(
    ("math", "value", "seen"),
    [(0, 2077, 2077), (1, 2077, 2077), (2, 2077, 2076), (3, 2077, 2077), (0, 4099, 4099), (1, 4099, 4100)],
)
def test_what_the_cube_sees(target: str, math: int, value: float, seen: float) -> None:
    """BO003: FLOAT is kept, rounded to 11 stored bits (hf32) or to fp16; the bias' gradient is summed as given."""
    assert single(target, value, math) == (seen, seen, value)


@pytest.mark.parametrize("target", FIRST)
@pytest.mark.parametrize("math", [1, 2])
def test_the_first_generation_computes_in_fp16(target: str, math: int) -> None:
    """FLOAT becomes fp16 in front of the cube."""
    assert single(target, 2077, math) == (2076, 2076, 2077)


@pytest.mark.parametrize("target", SPLIT)
def test_the_run_says_what_was_computed_in(target: str) -> None:
    """The data type of the Run is the cube's."""
    for math, name in enumerate(("fp32", "hf32", "fp16", "hf32")):
        given = arguments(ONE, operands(ONE, "fp32"), ALL, math)
        assert run(aclnn.Device(target, cores=1), given).dtype == name


@pytest.mark.parametrize("target", SPLIT)
def test_operands_of_two_types(target: str) -> None:
    """FLOAT16 with BFLOAT16 is computed in FLOAT; each result has its operand's type."""
    arrays = operands(PLAIN, "fp16")
    arrays["w"] = arrays["w"].astype(ml_dtypes.bfloat16)
    given = arguments(PLAIN, arrays)
    done = run(aclnn.Device(target, cores=2), given)
    exact = conv_backward_reference(PLAIN, **{k: a.astype(np.float64) for k, a in arrays.items()})
    assert done.dtype == "fp32"
    assert given["gradWeight"].data.dtype == ml_dtypes.bfloat16
    for name, key in RESULTS.items():
        wanted = exact[key].astype(given[name].data.dtype)
        np.testing.assert_array_equal(given[name].data, wanted)


@pytest.mark.parametrize("target", SPLIT)
@pytest.mark.parametrize("shape", [replace(PLAIN, n=0), replace(TRANSPOSED, n=0), replace(PLAIN, cin=0)])
def test_empty_tensors(target: str, shape: ConvShape) -> None:
    """BO010: without images dw and db are zeros; without input channels db is what it always is."""
    arrays = operands(shape)
    given = arguments(shape, arrays)
    run(aclnn.Device(target, cores=2), given)
    exact = conv_backward_reference(shape, **arrays)
    for name, key in RESULTS.items():
        np.testing.assert_array_equal(given[name].data.astype(np.float64), exact[key])


@pytest.mark.parametrize("target", [*FIRST, *SPLIT])
def test_a_call_that_asks_for_nothing(target: str) -> None:
    """A mask without any result launches nothing."""
    done = run(aclnn.Device(target, cores=1), arguments(PLAIN, operands(PLAIN), (False, False, False)))
    assert (done.cycles, done.launches, done.outputs) == (0, [], {})


@pytest.mark.parametrize("target", [*FIRST, *SPLIT])
def test_padding_is_multiplied(target: str) -> None:
    """As on the chip, an infinite weight meets the zeros of the padding: all of its plane is NaN or infinite."""
    shape = ConvShape(n=1, cin=2, size=(6, 5), cout=2, kernel=(3, 3), padding=1)
    arrays = operands(shape)
    arrays["dy"][...] = 1
    arrays["w"][:, 0, 0, 0] = np.nan
    given = arguments(shape, arrays)
    run(aclnn.Device(target, cores=1), given)
    dx = given["gradInput"].data
    exact = conv_backward_reference(shape, **arrays, grads=("dx",))["dx"]
    assert np.isnan(dx[:, 0]).all()
    assert not np.isnan(exact[:, 0]).all()
    assert not np.isnan(dx[:, 1]).any()


@pytest.mark.parametrize("target", [*FIRST, *SPLIT])
def test_what_the_product_launches(target: str) -> None:
    """The weights' gradient is added up onto zeros, in fp32, and then rounded; so is that of the bias."""
    done = run(aclnn.Device(target, cores=2), arguments(PLAIN, operands(PLAIN)))
    names = [launch.name for launch in done.launches]
    products = [name for name in names if name != "trans_data"]
    assert [name for name in products if name != "mem_set"] == [
        "conv_dx",
        "conv_dw",
        "cast",
        "reduce_sum",
        "cast",
    ]
    assert products[products.index("conv_dw") - 1] == "mem_set"
    # dy, x and w to the device's layouts, dx and dw back; 950 reads and writes plain tensors
    assert names.count("trans_data") == (0 if target.startswith("ascend950") else 5)


@pytest.mark.parametrize("target", [*FIRST, *SPLIT])
def test_the_bias_gradient_alone_needs_no_layout(target: str) -> None:
    """It is summed from gradOutput as it lies."""
    given = arguments(PLAIN, operands(PLAIN), (False, False, True))
    names = [launch.name for launch in run(aclnn.Device(target, cores=2), given).launches]
    assert names == ["mem_set", "reduce_sum", "cast"]


def test_casts_are_launches() -> None:
    """FLOAT in fp16: the three operands are cast, gradInput is cast back; gradWeight leaves its sums as they are."""
    given = arguments(PLAIN, operands(PLAIN, "fp32"), ALL, 2)
    done = run(aclnn.Device("ascend910b1", cores=2), given)
    casts = [launch.name for launch in done.launches if launch.name.startswith("cast ")]
    assert casts == ["cast gradOutput", "cast input", "cast weight", "cast gradInput"]


def test_an_operand_with_strides_is_packed_by_a_launch() -> None:
    """A view costs a copy."""
    arrays = operands(PLAIN)
    given = arguments(PLAIN, arrays)
    given["input"] = aclnn.aclTensor.of(
        np.ascontiguousarray(arrays["x"].transpose(0, 2, 3, 1)).transpose(0, 3, 1, 2)
    )
    done = run(aclnn.Device("ascend910b1", cores=2), given)
    assert done.launches[0].name == "contiguous input"


SMALL = [
    case
    for case in load_cases("torch_npu_cases")
    if case.shape.n <= 16 and 0 < case.shape.useful_macs < 4_000_000
]


@pytest.mark.parametrize("case", SMALL, ids=lambda case: case.id)
@pytest.mark.parametrize("kind", ["fp16", "fp32"])
def test_small_cases_of_the_vendors_tests(case: Case, kind: str) -> None:
    """Integers give the reference, on A2, in both types that the vendor's tests have."""
    arrays = operands(case.shape, kind)
    given = arguments(case.shape, arrays)
    run(aclnn.Device("ascend910b1"), given)
    exact = conv_backward_reference(case.shape, **arrays)
    for name, key in RESULTS.items():
        wanted = exact[key].astype(given[name].data.dtype)
        np.testing.assert_array_equal(given[name].data, wanted)


@pytest.mark.parametrize("target", SPLIT)
def test_a_long_bias_sum_in_bf16(target: str) -> None:
    """BO027: 1600 terms of 1 are 1600, in BFLOAT16 too."""
    shape = ConvShape(n=1, cin=1, size=(80, 80), cout=2, kernel=(3, 3), stride=2, padding=1)
    sizes = {"dy": shape.dy_shape, "w": shape.w_shape, "x": shape.x_shape}
    given = arguments(shape, {name: np.ones(size, ml_dtypes.bfloat16) for name, size in sizes.items()})
    run(aclnn.Device(target), given)
    assert given["gradBias"].data.tolist() == [1600, 1600]


@pytest.mark.parametrize("target", [*FIRST, *SPLIT])
def test_input_that_no_tap_reads(target: str) -> None:
    """BO005, BO035: its gradient is exactly 0, whatever the result held before."""
    shape = ConvShape(n=2, cin=20, size=(2, 2), cout=3, kernel=(1, 1), stride=2)
    arrays = operands(shape)
    given = arguments(shape, arrays, (True, False, False))
    run(aclnn.Device(target, cores=2), given)
    exact = conv_backward_reference(shape, **arrays, grads=("dx",))["dx"]
    np.testing.assert_array_equal(given["gradInput"].data.astype(np.float64), exact)
    assert not exact[:, :, 1].any()
