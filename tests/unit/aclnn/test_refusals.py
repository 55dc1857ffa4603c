"""Every rule of the page of aclnnConvolutionBackward that refuses: argument, product, code, and nothing written."""

from __future__ import annotations

import pytest

from kernels import aclnn
from kernels.aclnn.objects import aclDataType, aclFormat
from kernels.aclnn.products import PRODUCTS
from kernels.errors import OperandError
from targets.loader import available_targets, load_target
from tests.unit.aclnn.call import BF16, FLOAT, FLOAT16, call, refused, shapes, tensor

NULL, INVALID = 161001, 161002
SPLIT = ("A2", "A3", "950")
FIRST = ("910", "310P")
NHWC = aclFormat.ACL_FORMAT_NHWC
FP8 = aclDataType.ACL_FLOAT8_E4M3FN


@pytest.mark.parametrize("series", PRODUCTS)
@pytest.mark.parametrize(
    "argument",
    [
        *("gradOutput", "input", "weight", "biasSizes", "stride", "padding", "dilation", "outputPadding"),
        *("outputMask", "gradInput", "gradWeight", "gradBias", "workspaceSize", "executor"),
    ],
)
def test_null_pointers(series: str, argument: str) -> None:
    """Each required pointer may not be null."""
    error = refused(call(changed={argument: None}), series)
    assert (error.code, error.argument) == (NULL, argument)


@pytest.mark.parametrize("target", ["ascend310b1", "mt7004", "ft_m7032"])
def test_a_processor_without_the_operator(target: str) -> None:
    """Atlas 200I/500 A2, and a chip that is no product of the page, are refused before anything else."""
    error = refused(call(gradOutput=None), target)
    assert (error.code, error.argument) == (INVALID, "device")
    assert target in str(error)


@pytest.mark.parametrize("target", [name for name in available_targets() if name.startswith("ascend")])
def test_every_target_of_the_vendor_has_a_series(target: str) -> None:
    """The series is told by the name of the target: all but Atlas 200I/500 A2 have the operator."""
    assert (call().plan(target) == 0) is not target.startswith("ascend310b")


def test_a_series_of_ones_own_target() -> None:
    """A target by another name is of the series that is given."""
    own = load_target("ascend910b1").model_copy(update={"name": "mine"})
    assert aclnn.Device(own).product is None
    assert aclnn.Device(own, series="A2").product is PRODUCTS["A2"]
    with pytest.raises(OperandError, match="310B"):
        aclnn.Device(own, series="310B")


def test_without_a_device() -> None:
    """The first call needs to know the product."""
    made = call()
    status = aclnn.aclnnConvolutionBackwardGetWorkspaceSize(
        **made.arguments, workspaceSize=made.size, executor=made.executor
    )
    assert status == INVALID
    assert "with Device" in str(aclnn.aclGetRecentErrMsg())


@pytest.mark.parametrize("series", PRODUCTS)
@pytest.mark.parametrize("argument", ["gradOutput", "input", "weight"])
@pytest.mark.parametrize("kind", [aclDataType.ACL_DOUBLE, aclDataType.ACL_INT8, aclDataType.ACL_INT32, FP8])
def test_types_of_operands(series: str, argument: str, kind: aclDataType) -> None:
    """No product takes these types in a plain convolution; 8-bit floats are for transposed ones of 950."""
    shape = call().tensors[argument].shape
    error = refused(call(changed={argument: tensor(shape, kind)}), series)
    assert (error.code, error.argument) == (INVALID, argument)


@pytest.mark.parametrize("series", FIRST)
def test_bf16_of_the_first_generation(series: str) -> None:
    """910 and 310P have no BFLOAT16."""
    error = refused(call(kind=BF16), series)
    assert (error.code, error.argument) == (INVALID, "gradOutput")
    assert "FLOAT, FLOAT16" in error.limit


@pytest.mark.parametrize("mask", [(True, True, False), (False, True, False), (True, False, True)])
def test_8_bit_floats_are_for_the_input_gradient_only(mask: tuple[bool, ...]) -> None:
    """On 950 a transposed convolution in fp8 has gradInput only."""
    made = call(kind=FP8, transposed=True, outputMask=list(mask))
    error = refused(made, "950")
    assert (error.code, error.argument) == (INVALID, "gradOutput")
    assert "transposed" in error.limit


def test_8_bit_floats_do_not_mix() -> None:
    """All three operands are of one 8-bit type."""
    made = call(kind=FP8, transposed=True, outputMask=[True, False, False])
    made.arguments["weight"] = tensor(made.tensors["weight"].shape, FLOAT16)
    assert refused(made, "950").argument == "gradOutput"


@pytest.mark.parametrize("argument", ["gradInput", "gradWeight", "gradBias"])
def test_types_of_results(argument: str) -> None:
    """A result has its operand's type."""
    shape = call().tensors[argument].shape
    error = refused(call(changed={argument: tensor(shape, FLOAT)}))
    assert (error.code, error.argument) == (INVALID, argument)


@pytest.mark.parametrize("argument", ["gradOutput", "input", "weight", "gradInput", "gradWeight"])
@pytest.mark.parametrize("layout", [NHWC, aclFormat.ACL_FORMAT_ND, aclFormat.ACL_FORMAT_NCL])
def test_formats(argument: str, layout: aclFormat) -> None:
    """Formats are NCL, NCHW and NCDHW, by rank."""
    shape = call().tensors[argument].shape
    error = refused(call(changed={argument: tensor(shape, FLOAT16, layout)}))
    assert (error.code, error.argument) == (INVALID, argument)


def test_the_bias_gradient_is_nd() -> None:
    """GradBias is of format ND."""
    error = refused(call(gradBias=tensor((6,), FLOAT16, aclFormat.ACL_FORMAT_NCHW)))
    assert (error.code, error.argument) == (INVALID, "gradBias")


@pytest.mark.parametrize("argument", ["gradOutput", "weight", "gradInput", "gradWeight"])
def test_ranks_differ(argument: str) -> None:
    """All tensors but gradBias have the input's rank."""
    error = refused(call(changed={argument: tensor((2, 4, 5, 6, 7))}))
    assert (error.code, error.argument) == (INVALID, argument)


@pytest.mark.parametrize("shape", [(2, 4), (2, 4, 1, 1, 1, 1)])
def test_ranks_that_no_product_has(shape: tuple[int, ...]) -> None:
    """1 to 3 spatial axes."""
    layout = aclFormat.ACL_FORMAT_NCHW
    changed = {name: tensor(shape, FLOAT16, layout) for name in ("gradOutput", "input", "weight")}
    error = refused(call(changed=changed))
    assert (error.code, error.argument) == (INVALID, "gradOutput")


@pytest.mark.parametrize("series", FIRST)
def test_three_axes_of_the_first_generation(series: str) -> None:
    """910 and 310P have no 3-D convolution."""
    error = refused(call(ndim=3), series)
    assert (error.code, error.argument) == (INVALID, "input")
    assert "3D" in error.got


@pytest.mark.parametrize("series", PRODUCTS)
@pytest.mark.parametrize("groups", [0, -1, 65536, 1.5, True])
def test_groups_outside_their_range(series: str, groups: object) -> None:
    """Groups are 1 to 65535."""
    error = refused(call(groups=groups), series)
    assert (error.code, error.argument) == (INVALID, "groups")


@pytest.mark.parametrize("argument", ["stride", "dilation", "outputPadding"])
@pytest.mark.parametrize("values", [[], [1], [1, 1, 1], [1, 1, 1, 1]])
@pytest.mark.parametrize("transposed", [False, True])
def test_lengths_of_arrays(argument: str, values: list[int], transposed: bool) -> None:
    """One value an axis."""
    error = refused(call(transposed=transposed, changed={argument: values}))
    assert (error.code, error.argument) == (INVALID, argument)


@pytest.mark.parametrize(
    ("ndim", "length"), [(1, 0), (1, 2), (1, 4), (2, 1), (2, 3), (2, 5), (3, 2), (3, 4), (3, 6)]
)
def test_lengths_of_padding(ndim: int, length: int) -> None:
    """One value an axis, or four in 2-D only."""
    error = refused(call(ndim=ndim, padding=[1] * length))
    assert (error.code, error.argument) == (INVALID, "padding")


@pytest.mark.parametrize(
    ("argument", "value"), [("stride", 0), ("stride", -1), ("padding", -1), ("dilation", 0), ("dilation", -2)]
)
@pytest.mark.parametrize("series", PRODUCTS)
@pytest.mark.parametrize("transposed", [False, True])
def test_lowest_values(series: str, argument: str, value: int, transposed: bool) -> None:
    """Strides and dilations are positive, pads are not negative."""
    error = refused(call(transposed=transposed, changed={argument: [1, value]}), series)
    assert (error.code, error.argument) == (INVALID, argument)


@pytest.mark.parametrize("value", [2.0, "1", None, True])
def test_values_that_are_no_whole_numbers(value: object) -> None:
    """Arrays are of int64."""
    assert refused(call(stride=[1, value])).argument == "stride"


@pytest.mark.parametrize("mask", [[True, True], [True] * 4, [1, 0, 1]])
def test_the_mask_is_three_truth_values(mask: list[object]) -> None:
    """OutputMask has three entries."""
    error = refused(call(outputMask=mask))
    assert (error.code, error.argument) == (INVALID, "outputMask")


@pytest.mark.parametrize("series", PRODUCTS)
def test_output_padding_of_a_plain_convolution(series: str) -> None:
    """It is 0 where not transposed."""
    error = refused(call(outputPadding=[0, 1], stride=[2, 2]), series)
    assert (error.code, error.argument) == (INVALID, "outputPadding")


@pytest.mark.parametrize("extra", [[2, 0], [0, 5], [-1, 0]])
def test_output_padding_is_smaller_than_stride(extra: list[int]) -> None:
    """Each is in [0, stride)."""
    error = refused(call(transposed=True, outputPadding=extra, stride=[2, 2]))
    assert (error.code, error.argument) == (INVALID, "outputPadding")


@pytest.mark.parametrize("series", ["A2", "A3"])
@pytest.mark.parametrize(
    ("ndim", "argument", "values"),
    [
        (3, "stride", [1, 64, 1]),
        (3, "stride", [1, 1, 64]),
        (3, "padding", [1, 256, 1]),
        (3, "padding", [1, 1, 256]),
        (2, "padding", [256, 1]),
        (2, "padding", [1, 1, 1, 256]),
        (1, "padding", [256]),
        (1, "dilation", [256]),
        (2, "dilation", [1, 256]),
        (3, "dilation", [256, 1, 1]),
    ],
)
def test_ranges_of_the_second_generation(series: str, ndim: int, argument: str, values: list[int]) -> None:
    """A2 and A3 have upper limits where not transposed."""
    error = refused(call(ndim=ndim, changed={argument: values}), series)
    assert (error.code, error.argument) == (INVALID, argument)
    assert PRODUCTS[series].name in str(error)


@pytest.mark.parametrize("series", ["A2", "A3"])
@pytest.mark.parametrize(
    ("ndim", "w"), [(1, (6, 2, 256)), (2, (6, 2, 256, 1)), (2, (6, 2, 1, 256)), (3, (6, 2, 1, 1, 256))]
)
def test_kernels_of_the_second_generation(series: str, ndim: int, w: tuple[int, ...]) -> None:
    """A2 and A3 have kernels up to 255 on H and W."""
    error = refused(call(ndim=ndim, changed=shapes(weight=w)), series)
    assert (error.code, error.argument) == (INVALID, "weight")
    assert error.limit == "1 to 255"


@pytest.mark.parametrize(
    ("ndim", "argument", "values"),
    [
        (3, "stride", [1_000_001, 1, 1]),
        (3, "padding", [1_000_001, 1, 1]),
        (3, "dilation", [1_000_001, 1, 1]),
        (2, "stride", [2_147_483_647, 1]),
        (2, "padding", [1, 2_147_483_647]),
        (2, "dilation", [1, 2_147_483_647]),
    ],
)
def test_ranges_of_950_transposed(ndim: int, argument: str, values: list[int]) -> None:
    """950 has upper limits where transposed."""
    error = refused(call(ndim=ndim, transposed=True, changed={argument: values}), "950")
    assert (error.code, error.argument) == (INVALID, argument)


def test_kernels_of_950_transposed() -> None:
    """950 has kernels up to 255 on H and W where transposed."""
    error = refused(call(transposed=True, changed=shapes(weight=(4, 3, 1, 256))), "950")
    assert (error.code, error.argument) == (INVALID, "weight")


@pytest.mark.parametrize("asked", [-1, 4, 1.0, None, "0"])
def test_unknown_cube_math(asked: object) -> None:
    """CubeMathType is 0 to 3."""
    error = refused(call(cubeMathType=asked))
    assert (error.code, error.argument) == (INVALID, "cubeMathType")


@pytest.mark.parametrize("series", FIRST)
@pytest.mark.parametrize("asked", [0, 3])
def test_float_of_the_first_generation(series: str, asked: int) -> None:
    """910 and 310P have no cube for FLOAT or HFLOAT32."""
    error = refused(call(kind=FLOAT, cubeMathType=asked), series)
    assert (error.code, error.argument) == (INVALID, "cubeMathType")


@pytest.mark.parametrize("series", SPLIT)
def test_bf16_is_not_lowered_to_fp16(series: str) -> None:
    """USE_FP16 is not for BFLOAT16."""
    error = refused(call(kind=BF16, cubeMathType=2), series)
    assert (error.code, error.argument) == (INVALID, "cubeMathType")


@pytest.mark.parametrize(
    ("changed", "argument"),
    [
        ({"groups": 3}, "groups"),
        ({"groups": 1}, "groups"),
        (shapes(weight=(7, 2, 3, 3)), "weight"),
        ({**shapes(weight=(5, 2, 3, 3), gradOutput=(2, 5, 6, 7)), "biasSizes": [5]}, "groups"),
        (shapes(gradOutput=(2, 6, 6, 8)), "gradOutput"),
        (shapes(gradOutput=(3, 6, 6, 7)), "gradOutput"),
        (shapes(gradOutput=(2, 7, 6, 7)), "weight"),
        ({"gradInput": tensor((2, 4, 6, 6))}, "gradInput"),
        ({"gradWeight": tensor((6, 2, 3, 4))}, "gradWeight"),
        ({"gradBias": tensor((5,))}, "gradBias"),
        ({"gradBias": tensor((6, 1))}, "gradBias"),
        ({"biasSizes": [5]}, "biasSizes"),
        ({"biasSizes": [6, 1]}, "biasSizes"),
        ({"biasSizes": []}, "biasSizes"),
    ],
)
@pytest.mark.parametrize("series", PRODUCTS)
def test_shapes_that_do_not_fit(series: str, changed: dict[str, object], argument: str) -> None:
    """Channels, groups, sizes, results and biasSizes of a plain convolution."""
    error = refused(call(changed=changed), series)
    assert (error.code, error.argument) == (INVALID, argument)


@pytest.mark.parametrize(
    ("changed", "argument"),
    [
        ({"groups": 3}, "groups"),
        (shapes(weight=(6, 3, 3, 3)), "weight"),
        ({**shapes(weight=(5, 3, 3, 3), input=(2, 5, 6, 7))}, "groups"),
        (shapes(gradOutput=(2, 6, 7, 7)), "gradOutput"),
        ({"biasSizes": [4]}, "biasSizes"),
    ],
)
@pytest.mark.parametrize("series", PRODUCTS)
def test_shapes_that_do_not_fit_transposed(series: str, changed: dict[str, object], argument: str) -> None:
    """Weights are [Cin, Cout / groups, ...]; weight.N is input.C, groups x weight.C is gradOutput.C."""
    error = refused(call(transposed=True, changed=changed), series)
    assert (error.code, error.argument) == (INVALID, argument)


@pytest.mark.parametrize("series", PRODUCTS)
def test_a_kernel_larger_than_the_padded_input(series: str) -> None:
    """(in + 2 pad) >= (k - 1) dilation + 1."""
    error = refused(call(dilation=[1, 5], changed=shapes(gradOutput=(2, 6, 6, 1))), series)
    assert (error.code, error.argument) == (INVALID, "input")


@pytest.mark.parametrize("argument", ["gradInput", "gradWeight"])
def test_results_are_contiguous(argument: str) -> None:
    """A result on a strided view is refused."""
    whole = call().tensors[argument].data
    assert whole is not None
    wide = whole.repeat(2, axis=-1)
    error = refused(call(changed={argument: aclnn.aclTensor.of(wide[..., ::2])}))
    assert (error.code, error.argument) == (INVALID, argument)


@pytest.mark.parametrize("argument", ["gradOutput", "input", "weight", "gradInput", "gradWeight", "gradBias"])
def test_data_of_some_tensors_only(argument: str) -> None:
    """Either all tensors that are used have data, or none has."""
    shape = call().tensors[argument].shape
    error = refused(call(changed={argument: tensor(shape, data=False)}))
    assert (error.code, error.argument) == (NULL, argument)


def test_an_8_bit_call_passes_the_checks_of_950() -> None:
    """What the page allows is refused by no check; that the simulator has no such type is an inner error."""
    made = call(kind=FP8, transposed=True, outputMask=[True, False, False])
    error = refused(made, "950")
    assert (error.code, error.argument) == (561103, "gradOutput")
