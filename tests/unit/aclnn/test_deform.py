"""aclnnDeformableConv2dBackward: values against the neutral operator and the reference, and every refusal."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import numpy as np
import pytest

from kernels import aclnn
from kernels.aclnn.objects import PLAIN_FORMATS, aclDataType, aclFormat, aclTensor, packed
from kernels.davinci.deform.backward import joined_planes
from kernels.deform_backward import deform_conv_backward
from kernels.reference.comparison import compare
from kernels.reference.deform import deform_backward_reference, resampled_reference
from kernels.reference.deform_checking import deform_bounds
from kernels.shape.deform import DeformShape
from kernels.shape.shapes import ConvShape
from simulator.values.numerics import dtype
from targets.loader import available_targets
from tests.deform_table import operands
from tests.unit.aclnn.call import BF16, FLOAT, FLOAT16, MARK, tensor

NULL, INVALID, INNER = 161001, 161002, 561103
PAGE = DeformShape(ConvShape(1, 6, (2, 4), 4, (5, 5), padding=2, groups=2), 1, True)
"""The example of the page."""

TENSORS = (
    *("input", "gradOutput", "offsetOut", "weight", "offset"),
    *("gradInput", "gradWeight", "gradOffset", "gradBias"),
)
ARRAYS = ("kernelSize", "stride", "padding", "dilation")


def sizes(shape: DeformShape) -> dict[str, tuple[int, ...]]:
    """The shapes of the table."""
    conv = shape.conv
    planes = (conv.n, 3 * shape.points, *conv.out)
    found = {"input": conv.x_shape, "gradOutput": conv.dy_shape, "offsetOut": shape.features.x_shape}
    found |= {"weight": conv.w_shape, "offset": planes, "gradInput": conv.x_shape}
    return {**found, "gradWeight": conv.w_shape, "gradOffset": planes, "gradBias": (conv.cout,)}


def attributes(shape: DeformShape) -> dict[str, Any]:
    """The other arguments."""
    conv = shape.conv
    return {
        "kernelSize": list(conv.kernel),
        "stride": [1, 1, *conv.stride],
        "padding": [side for pair in conv.padding for side in pair],
        "dilation": [1, 1, *conv.dilation],
        "groups": conv.groups,
        "deformableGroups": shape.deform_groups,
        "modulated": True,
    }


def call(
    changed: Mapping[str, object] = MappingProxyType({}), *, kind: aclDataType = FLOAT16, **more: object
) -> dict[str, Any]:
    """A call full of marks."""
    made = {name: tensor(dims, kind) for name, dims in sizes(PAGE).items()}
    return {**made, **attributes(PAGE), **changed, **more}


def refused(given: dict[str, Any], target: str = "ascend950pr") -> aclnn.AclnnError:
    """The error of a call that must be refused, with nothing written."""
    size, executor = aclnn.Out[int](), aclnn.Out[aclnn.aclOpExecutor]()
    with aclnn.Device(target):
        outs = {"workspaceSize": size, "executor": executor}
        status = aclnn.aclnnDeformableConv2dBackwardGetWorkspaceSize(**{**outs, **given})
    error = aclnn.recent_error()
    assert error is not None
    assert status == error.code
    assert aclnn.aclGetRecentErrMsg() == str(error)
    arrays = [value.data for value in given.values() if isinstance(value, aclTensor)]
    assert all((array == MARK).all() for array in arrays if array is not None)
    assert size.value is None
    assert executor.value is None
    return error


def filled(shape: DeformShape, kind: str = "fp32") -> tuple[dict[str, Any], dict[str, Any]]:
    """Operands of the neutral operator, and the call with them: features are those of the forward pass."""
    given = {name: array.astype(dtype(kind).storage) for name, array in operands(shape).items()}
    features = resampled_reference(shape, given["x"], given["offset"], given["mask"])
    arrays = {name: np.full(dims, np.nan, given["x"].dtype) for name, dims in sizes(shape).items()}
    arrays |= {"input": given["x"], "gradOutput": given["dy"], "weight": given["w"]}
    arrays["offsetOut"] = features.astype(given["x"].dtype)
    arrays["offset"] = joined_planes(shape, given["offset"], given["mask"])
    made = {name: aclTensor.of(array) for name, array in arrays.items()}
    return given, {**made, **attributes(shape)}


def run(given: dict[str, Any], device: aclnn.Device) -> aclnn.aclOpExecutor:
    """Both calls, which must succeed."""
    size, executor = aclnn.Out[int](), aclnn.Out[aclnn.aclOpExecutor]()
    with device:
        aclnn.check(
            aclnn.aclnnDeformableConv2dBackwardGetWorkspaceSize(
                **given, workspaceSize=size, executor=executor
            )
        )
    wanted = size.value or 0
    memory = device.malloc(wanted)
    aclnn.check(aclnn.aclnnDeformableConv2dBackward(memory, wanted, executor, device.stream()))
    assert executor.value is not None
    return executor.value


@pytest.mark.parametrize("kind", ["fp32", "fp16", "bf16"])
@pytest.mark.parametrize(
    "shape",
    [PAGE, DeformShape(ConvShape(2, 4, (5, 6), 4, (3, 2), (2, 1), ((1, 0), (0, 1)), (1, 2)), 2, True)],
)
def test_values(shape: DeformShape, kind: str) -> None:
    """Every result against the reference, whose offsets are (dy, dx) a tap."""
    given, made = filled(shape, kind)
    run(made, aclnn.Device("ascend950pr", cores=2))
    reference = deform_backward_reference(shape, **given, coordinates="float32")
    bounds = deform_bounds(kind, shape, given, reference)
    for name, grad in {"gradInput": "dx", "gradWeight": "dw", "gradBias": "db"}.items():
        assert compare(made[name].data, reference[grad], bounds[grad]).ok, name
    wanted = joined_planes(shape, reference["doffset"], reference["dmask"])
    bound = joined_planes(shape, bounds["doffset"], bounds["dmask"])
    assert compare(made["gradOffset"].data, wanted, bound).ok


def test_launches() -> None:
    """As the vendor composes it, with a copy for each tensor with strides; without data it is only timed."""
    _, made = filled(PAGE)
    executor = run(made, aclnn.Device("ascend950pr", cores=2))
    assert executor.run is not None
    names = [launch.name for launch in executor.run.launches]
    assert names == [
        *("conv_dx", "mem_set", "conv_dw", "mem_set", "reduce_sum"),
        *("transpose_x", "transpose_offset", "transpose_features", "deform_scatter"),
        *("transpose_dx", "transpose_doffset"),
    ]
    results = {name: np.array(made[name].data) for name in TENSORS[5:]}
    for name in ("input", "gradInput"):
        data = made[name].data
        wide = np.full((*data.shape[:3], 2 * data.shape[3]), np.nan, data.dtype)
        wide[..., ::2] = data
        made[name] = aclTensor.of(wide[..., ::2], aclFormat.ACL_FORMAT_NCHW)
    strided = run(made, aclnn.Device("ascend950pr", cores=2))
    assert strided.run is not None
    assert strided.run.launches[0].name == "contiguous input"
    assert strided.run.launches[-1].name == "contiguous gradInput"
    assert all(np.array_equal(made[name].data, results[name]) for name in results)
    timed = {
        name: aclTensor(value.shape, value.dtype, value.format, value.strides)
        if isinstance(value, aclTensor)
        else value
        for name, value in made.items()
    }
    alone = run(timed, aclnn.Device("ascend950dt", cores=2))
    assert alone.run is not None
    assert not alone.run.outputs
    assert alone.plan.workspace_bytes == strided.plan.workspace_bytes > executor.plan.workspace_bytes


def test_the_neutral_operator_agrees() -> None:
    """The same bits as the neutral operator with the features of the call."""
    given, made = filled(PAGE)
    run(made, aclnn.Device("ascend950pr", cores=2))
    plain = deform_conv_backward(
        **given, features=made["offsetOut"].data, shape=PAGE, target="ascend950pr", cores=2
    )
    planes = joined_planes(PAGE, plain.outputs["doffset"], plain.outputs["dmask"])
    results = {"gradInput": "dx", "gradWeight": "dw", "gradBias": "db"}
    found = {name: plain.outputs[grad] for name, grad in results.items()}
    for name, wanted in {**found, "gradOffset": planes}.items():
        assert np.array_equal(made[name].data, wanted)


@pytest.mark.parametrize("name", [*TENSORS, *ARRAYS, "workspaceSize", "executor"])
def test_null_pointers(name: str) -> None:
    """Nine tensors, four arrays and both out-pointers may not be null."""
    error = refused(call({name: None}))
    assert (error.code, error.argument) == (NULL, name)


@pytest.mark.parametrize("target", [t for t in available_targets() if not t.startswith("ascend950")])
def test_other_products(target: str) -> None:
    """Every chip but Ascend 950 refuses, before anything else."""
    error = refused(call(input=None), target)
    assert (error.code, error.argument) == (INVALID, "device")
    assert target in str(error)


@pytest.mark.parametrize("name", TENSORS)
@pytest.mark.parametrize("kind", [FLOAT, BF16, aclDataType.ACL_DOUBLE, aclDataType.ACL_INT32])
def test_types(name: str, kind: aclDataType) -> None:
    """All tensors are of one type, of three."""
    error = refused(call({name: tensor(sizes(PAGE)[name], kind)}))
    wanted = "gradOutput" if name == "input" and kind in (FLOAT, BF16) else name
    assert (error.code, error.argument) == (INVALID, wanted)


@pytest.mark.parametrize("name", TENSORS)
def test_formats(name: str) -> None:
    """NCHW, and ND for gradBias."""
    error = refused(call({name: tensor(sizes(PAGE)[name], FLOAT16, aclFormat.ACL_FORMAT_NHWC)}))
    assert (error.code, error.argument) == (INVALID, name)


ATTRIBUTES = [
    *(("kernelSize", value) for value in ([5], [5, 5, 5], [0, 5], [5, -1], [2049, 1], [64, 33], [5.0, 5])),
    *(
        ("stride", value)
        for value in ([1, 1], [1, 1, 1], [2, 1, 1, 1], [1, 2, 1, 1], [1, 1, 0, 1], [1, 1, 1, -1])
    ),
    *(("padding", value) for value in ([2, 2], [2, 2, 2], [-1, 2, 2, 2], [2, 2, 2, -1], [2, 2, 2, True])),
    *(("dilation", value) for value in ([1, 1], [2, 1, 1, 1], [1, 2, 1, 1], [1, 1, 0, 1], [1, 1, 1, 0])),
    *(("groups", value) for value in (0, -1, 4, 3, 1.0, True, None)),
    *(("deformableGroups", value) for value in (0, -1, 4, 5, 2.0, None)),
    *(("modulated", value) for value in (False, None, 1)),
]


@pytest.mark.parametrize(("name", "value"), ATTRIBUTES, ids=str)
def test_attributes(name: str, value: object) -> None:
    """Lengths, ranges, 1 on N and C, taps, divisors, and modulated."""
    error = refused(call({name: value}))
    assert (error.code, error.argument) == (INVALID, name)


@pytest.mark.parametrize("name", ARRAYS)
def test_arrays_that_are_none(name: str) -> None:
    """A number is no array."""
    assert refused(call({name: 1})).argument == name


@pytest.mark.parametrize("name", TENSORS)
def test_tensors_that_are_none(name: str) -> None:
    """An array is no tensor."""
    assert refused(call({name: np.full(3, MARK)})).argument == name


@pytest.mark.parametrize("name", TENSORS)
def test_ranks(name: str) -> None:
    """Four axes, and one of gradBias."""
    dims = (1, *sizes(PAGE)[name])
    layout = aclFormat.ACL_FORMAT_ND if name == "gradBias" else aclFormat.ACL_FORMAT_NCHW
    error = refused(call({name: tensor(dims, FLOAT16, layout)}))
    assert (error.code, error.argument) == (INVALID, name)
    assert "axes" in str(error)


@pytest.mark.parametrize("name", TENSORS)
@pytest.mark.parametrize("axis", [0, 1, 2, 3])
@pytest.mark.parametrize("empty", [True, False])
def test_shapes(name: str, axis: int, empty: bool) -> None:
    """No axis may be empty, and every size follows from input, weight and the arrays."""
    dims = list(sizes(PAGE)[name])
    if axis >= len(dims):
        axis = 0
    dims[axis] = 0 if empty else dims[axis] + 2
    error = refused(call({name: tensor(tuple(dims), FLOAT16)}))
    assert error.code == INVALID
    follows = {("input", 0): "gradOutput", ("input", 2): "gradOutput", ("input", 3): "gradOutput"}
    follows |= {("input", 1): "offsetOut", ("weight", 0): "gradOutput"}
    assert error.argument == (name if empty else follows.get((name, axis), name))


def large(dims: tuple[int, ...]) -> aclTensor:
    """A tensor without data."""
    return aclTensor(dims, FLOAT16, PLAIN_FORMATS[4], packed(dims))


def test_columns_and_pixels() -> None:
    """KH x KW x input.C / groups is at most 65535, an image has at most 2^31 - 1 pixels."""
    error = refused(call(input=large((1, 65535, 2, 4)), groups=1))
    assert (error.code, error.argument) == (INVALID, "kernelSize")
    error = refused(call(input=large((1, 6, 65536, 32768))))
    assert (error.code, error.argument) == (INVALID, "input")


def test_a_kernel_larger_than_its_input() -> None:
    """There is no output."""
    error = refused(call(padding=[0, 0, 0, 0]))
    assert (error.code, error.argument) == (INVALID, "input")


def test_order_of_the_checks() -> None:
    """Processor, null, type, format, attribute, rank, shape: each is told before the next."""
    faults: list[tuple[dict[str, Any], str]] = [
        ({"gradBias": None}, "gradBias"),
        ({"gradOffset": tensor(sizes(PAGE)["gradOffset"], FLOAT)}, "gradOffset"),
        ({"gradWeight": tensor(sizes(PAGE)["gradWeight"], FLOAT16, aclFormat.ACL_FORMAT_ND)}, "gradWeight"),
        ({"modulated": False}, "modulated"),
        ({"offset": tensor((1, 2, 3, 4, 5), FLOAT16, aclFormat.ACL_FORMAT_NCHW)}, "offset"),
        ({"offsetOut": tensor((1, 6, 3, 3), FLOAT16)}, "offsetOut"),
    ]
    changed: dict[str, Any] = {}
    for fault, argument in reversed(faults):
        changed |= fault
        assert refused(call(changed)).argument == argument
    assert refused(call(changed), "ascend910b1").argument == "device"


def test_some_data_and_results_that_cannot_be_written() -> None:
    """Data in all tensors or in none; results may be written to."""
    bare = tensor(sizes(PAGE)["weight"], data=False)
    error = refused(call(weight=bare))
    assert (error.code, error.argument) == (NULL, "weight")
    fixed = tensor(sizes(PAGE)["gradInput"])
    assert fixed.data is not None
    fixed.data.flags.writeable = False
    assert refused(call(gradInput=fixed)).argument == "gradInput"


def test_second_calls() -> None:
    """Null pointers, a workspace that is too small, an executor of the other operator."""
    device = aclnn.Device("ascend950pr", cores=1)
    size, executor = aclnn.Out[int](), aclnn.Out[aclnn.aclOpExecutor]()
    with device:
        given = call(kind=FLOAT)
        aclnn.check(
            aclnn.aclnnDeformableConv2dBackwardGetWorkspaceSize(
                **given, workspaceSize=size, executor=executor
            )
        )
    wanted, stream = size.value or 0, device.stream()
    memory = device.malloc(wanted)
    second = aclnn.aclnnDeformableConv2dBackward
    assert second(memory, wanted, None, stream) == NULL
    assert second(memory, wanted, executor, None) == NULL
    assert second(memory, wanted - 1, executor, stream) == INVALID
    assert second(None, wanted, executor, stream) == NULL
    assert aclnn.aclnnConvolutionBackward(memory, wanted, executor, stream) == INVALID
    assert "another operator" in str(aclnn.aclGetRecentErrMsg())
    assert second(memory, wanted, executor, stream) == 0
    assert second(memory, wanted, executor, stream) == INVALID
