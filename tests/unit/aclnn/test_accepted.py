"""Calls that aclnnConvolutionBackward must take, and what it plans for them."""

from __future__ import annotations

import numpy as np
import pytest

from kernels import aclnn
from kernels.aclnn.objects import aclDataType, aclFormat
from kernels.aclnn.plan import Plan
from kernels.aclnn.products import PRODUCTS
from kernels.errors import OperandError
from kernels.shape.shapes import ConvShape
from tests.case_table import load_cases
from tests.unit.aclnn.call import BF16, FLOAT, FLOAT16, Call, call, refused, shapes, tensor

KINDS = {"fp16": FLOAT16, "fp32": FLOAT, "bf16": BF16}
ROWS = {case.id: case for case in load_cases("torch_npu_cases")}


def planned(made: Call, series: str = "A2") -> Plan:
    """The plan of a call that is taken."""
    status = made.plan(series)
    assert status == 0, aclnn.aclGetRecentErrMsg()
    assert made.executor.value is not None
    assert isinstance(made.executor.value.plan, Plan)
    return made.executor.value.plan


@pytest.mark.parametrize("series", PRODUCTS)
@pytest.mark.parametrize("ndim", [1, 2, 3])
@pytest.mark.parametrize("transposed", [False, True])
def test_plain_calls(series: str, ndim: int, transposed: bool) -> None:
    """Ranks that a product has, both operators, with groups."""
    if ndim not in PRODUCTS[series].ranks:
        return
    plan = planned(call(ndim=ndim, transposed=transposed), series)
    assert plan.grads == ("dx", "dw", "db")
    assert plan.shape.dy_shape == (2, 6, *(5, 6, 7)[-ndim:])
    assert plan.shape.transposed is transposed


@pytest.mark.parametrize(
    ("series", "kind", "math"),
    [
        *((series, FLOAT, ("", "fp16", "fp16", "")) for series in ("910", "310P")),
        *((series, FLOAT, ("fp32", "hf32", "fp16", "hf32")) for series in ("A2", "A3", "950")),
        *((series, FLOAT16, ("fp16",) * 4) for series in PRODUCTS),
        *((series, BF16, ("bf16", "bf16", "", "bf16")) for series in ("A2", "A3", "950")),
    ],
)
def test_cube_math(series: str, kind: aclDataType, math: tuple[str, ...]) -> None:
    """What the cube computes in, by product, type and cubeMathType; "" is refused."""
    for asked, wanted in enumerate(math):
        made = call(kind=kind, cubeMathType=asked)
        if wanted:
            assert planned(made, series).compute == wanted
        else:
            assert made.plan(series) == 161002


@pytest.mark.parametrize(("first", "second"), [(FLOAT16, FLOAT), (BF16, FLOAT), (FLOAT16, BF16)])
def test_different_types_meet_in_float(first: aclDataType, second: aclDataType) -> None:
    """Operands of two types are promoted to FLOAT; each result has its operand's type."""
    made = call(kind=first, cubeMathType=0)
    for name in ("weight", "gradWeight"):
        made.arguments[name] = tensor(made.tensors[name].shape, second)
    assert planned(made).compute == "fp32"


@pytest.mark.parametrize("mask", [[bool(bits & 1), bool(bits & 2), bool(bits & 4)] for bits in range(8)])
@pytest.mark.parametrize("series", PRODUCTS)
def test_any_subset_of_results(series: str, mask: list[bool]) -> None:
    """What is not asked for may be null, biasSizes too."""
    absent = {n: None for n, on in zip(("gradInput", "gradWeight", "gradBias"), mask, strict=True) if not on}
    made = call(outputMask=mask, changed={**absent, **({} if mask[2] else {"biasSizes": None})})
    plan = planned(made, series)
    assert plan.grads == tuple(n for n, on in zip(("dx", "dw", "db"), mask, strict=True) if on)
    assert bool(plan.workspace_bytes) == (mask[1] or mask[2] or (mask[0] and series != "950"))


def test_bias_sizes_are_ignored_without_a_bias_gradient() -> None:
    """They say nothing where gradBias is not asked for."""
    planned(call(outputMask=[True, True, False], biasSizes=[0]))


@pytest.mark.parametrize("transposed", [False, True])
def test_padding_of_four(transposed: bool) -> None:
    """Top, bottom, left, right."""
    out = (6 - 3 + 2, 7 - 7 + 2) if transposed else (6 + 3 - 2, 7 + 7 - 2)
    made = call(transposed=transposed, padding=[1, 2, 3, 4], changed=shapes(gradOutput=(2, 6, *out)))
    assert planned(made).shape.padding == ((1, 2), (3, 4))


@pytest.mark.parametrize("series", ["A2", "A3", "950"])
@pytest.mark.parametrize("ndim", [1, 2, 3])
def test_no_images(series: str, ndim: int) -> None:
    """A batch of 0 is taken, and has nothing to multiply."""
    size = (5, 6, 7)[-ndim:]
    empty = shapes(input=(0, 4, *size), gradOutput=(0, 6, *size))
    assert planned(call(ndim=ndim, changed=empty), series).empty
    assert planned(call(ndim=ndim, transposed=True, changed=empty), series).empty


@pytest.mark.parametrize("series", ["A2", "A3", "950"])
def test_no_channels(series: str) -> None:
    """Input channels of 0 are taken with weight.C of 0, where not transposed."""
    empty = shapes(input=(2, 0, 6, 7), weight=(6, 0, 3, 3))
    assert planned(call(changed=empty), series).empty
    made = call(transposed=True, changed=shapes(input=(2, 0, 6, 7), weight=(0, 3, 3, 3)))
    assert refused(made, series).argument == "weight"


@pytest.mark.parametrize("series", PRODUCTS)
@pytest.mark.parametrize(
    ("changed", "argument"),
    [
        (shapes(input=(2, 4, 0, 7)), "input"),
        (shapes(gradOutput=(2, 6, 0, 7)), "gradOutput"),
        (shapes(gradOutput=(0, 6, 6, 7)), "gradOutput"),
        (shapes(weight=(6, 2, 0, 3)), "weight"),
        (shapes(weight=(0, 2, 3, 3), gradOutput=(2, 0, 6, 7)), "gradOutput"),
        (shapes(weight=(6, 0, 3, 3)), "weight"),
        (shapes(input=(2, 0, 6, 7)), "input"),
    ],
)
def test_empty_axes_that_nothing_explains(series: str, changed: dict[str, object], argument: str) -> None:
    """Only the batch, and input channels with the weight's, may be 0; the other tensors are told first."""
    made = call(changed=changed)
    assert refused(made, series).argument == argument


@pytest.mark.parametrize("series", ["910", "310P"])
@pytest.mark.parametrize(
    ("changed", "argument"),
    [
        (shapes(input=(0, 4, 6, 7), gradOutput=(0, 6, 6, 7)), "gradOutput"),
        (shapes(input=(2, 0, 6, 7), weight=(6, 0, 3, 3)), "weight"),
    ],
)
def test_the_first_generation_has_no_empty_tensors(
    series: str, changed: dict[str, object], argument: str
) -> None:
    """GradOutput and weight are not empty on 910 and 310P."""
    made = call(changed=changed)
    assert refused(made, series).argument == argument


@pytest.mark.parametrize("series", ["910", "310P"])
def test_the_first_generation_has_no_upper_limits(series: str) -> None:
    """Kernels, pads and dilations beyond 255 are taken where the page gives no range."""
    planned(call(padding=[1, 300], changed=shapes(gradOutput=(2, 6, 6, 605))), series)


@pytest.mark.parametrize("series", ["A2", "A3"])
def test_strides_of_two_axes_have_no_upper_limit(series: str) -> None:
    """The limit of 63 is of 3-D only, and of plain convolutions only."""
    planned(call(stride=[64, 100], changed=shapes(gradOutput=(2, 6, 1, 1))), series)
    far = shapes(gradOutput=(2, 6, 64 * 4 + 1, 6, 7))
    planned(call(ndim=3, transposed=True, stride=[64, 1, 1], changed=far), series)


def test_operands_with_strides() -> None:
    """Operands may be views; each view is packed first, in the workspace."""
    made = call()
    packed = planned(made).workspace_bytes
    whole = np.full((2, 6, 7, 4), 7.0, np.float16)
    view = aclnn.aclTensor.of(whole.transpose(0, 3, 1, 2))
    assert not view.contiguous
    assert planned(call(input=view)).workspace_bytes - packed == -(-whole.nbytes // 512) * 512


def test_views_of_a_storage() -> None:
    """Strides and offset are in elements, and stay inside the storage."""
    storage = np.arange(24, dtype=np.float32)
    made = aclnn.aclCreateTensor((2, 3), FLOAT, (12, 2), 1, aclFormat.ACL_FORMAT_ND, (24,), storage)
    assert made.data is not None
    assert made.data.tolist() == [[1, 3, 5], [13, 15, 17]]
    with pytest.raises(OperandError, match="outside its storage"):
        aclnn.aclCreateTensor((2, 3), FLOAT, (12, 6), 1, tensorData=storage)


@pytest.mark.parametrize("row", ROWS)
def test_cases_of_the_vendors_tests(row: str) -> None:
    """What the vendor's own tests call on A2 is taken, in its type, with the output that they have."""
    case = ROWS[row]
    shape = case.shape
    kind = KINDS["fp16" if "fp16" in case.note or "dtype" not in case.note else "fp32"]
    made = call(
        ndim=shape.ndim,
        transposed=shape.transposed,
        changed=dict(_tensors(shape, kind)),
        biasSizes=[shape.cout],
        stride=list(shape.stride),
        padding=[low for low, _ in shape.padding],
        dilation=list(shape.dilation),
        groups=shape.groups,
    )
    plan = planned(made)
    assert plan.shape.out == case.out[-shape.ndim :]
    assert plan.numerics is False


def _tensors(shape: ConvShape, kind: aclDataType) -> dict[str, object]:
    dims = {"gradOutput": shape.dy_shape, "input": shape.x_shape, "weight": shape.w_shape}
    dims |= {"gradInput": shape.x_shape, "gradWeight": shape.w_shape, "gradBias": (shape.cout,)}
    return {name: tensor(size, kind, data=False) for name, size in dims.items()}
