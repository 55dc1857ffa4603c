"""Checks of aclnnConvolutionBackward in the order in which they are made: the first that fails is told.

Processor, null pointers, types, formats and ranks, groups, arrays, cubeMathType, empty tensors, channels, geometry,
results. Each raises AclnnError with the argument's name and the vendor's code.
"""

from __future__ import annotations

import numpy as np

from kernels.aclnn.arguments import INPUTS, OUTPUTS, PARTNER, Arguments
from kernels.aclnn.errors import AclnnError, Status, null
from kernels.aclnn.geometry import checked_geometry
from kernels.aclnn.objects import PLAIN_FORMATS, STORAGE, aclDataType, aclFormat, aclTensor
from kernels.aclnn.products import BF16, FLOAT, FP8, USE_FP16, Product
from kernels.aclnn.ranges import check_arrays, check_groups
from kernels.shape.checks import is_listed, is_whole, shown
from kernels.shape.shapes import ConvShape

REQUIRED_ARRAYS = ("stride", "padding", "dilation", "outputPadding")


def check_convolution_backward(given: Arguments, product: Product) -> ConvShape:
    """The geometry of a call that the product takes.

    Raises:
        AclnnError: with 161001 for a null pointer, 161002 for anything else outside the page's rules.
    """
    check_present(given)
    check_types(given, product)
    check_formats(given, product)
    check_groups(given)
    check_arrays(given, product)
    compute_type(given, product)
    shape = checked_geometry(given, product)
    check_results(given)
    check_data(given)
    return shape


def check_present(given: Arguments) -> None:
    """Refuse null pointers: of operands and arrays always, of what a gradient needs where it is asked for."""
    for name in INPUTS:
        _require_tensor(name, given.tensors[name])
    for name in (*REQUIRED_ARRAYS, "outputMask"):
        _require_array(name, getattr(given, name))
    _check_mask(given)
    for name in given.wanted:
        _require_tensor(name, given.tensors[name])
    if "gradBias" in given.wanted:
        _require_array("biasSizes", given.biasSizes)


def _require_tensor(name: str, value: object) -> None:
    if value is None:
        raise null(name)
    if not isinstance(value, aclTensor):
        raise AclnnError("no aclTensor", argument=name, got=shown(value))


def _require_array(name: str, value: object) -> None:
    if value is None:
        raise null(name)
    if not is_listed(value):
        raise AclnnError("no array", argument=name, got=shown(value))


def _check_mask(given: Arguments) -> None:
    mask = given.array("outputMask")
    if len(mask) != 3 or not all(isinstance(asked, bool | np.bool_) for asked in mask):
        raise AclnnError("three truth values are needed", argument="outputMask", got=shown(mask), limit=3)
    if not isinstance(given.transposed, bool | np.bool_):
        raise AclnnError("no truth value", argument="transposed", got=shown(given.transposed))


def check_types(given: Arguments, product: Product) -> None:
    """Refuse types that the product does not have, and results of another type than their operand.

    Raises:
        AclnnError: names the tensor.
    """
    fp8 = [given.tensor(name).dtype in FP8 for name in INPUTS]
    if any(fp8) and product.fp8:
        _check_fp8(given, all(fp8))
    for name, tensor in given.named.items():
        if tensor.dtype not in product.dtypes and not (product.fp8 and tensor.dtype in FP8 and any(fp8)):
            known = ", ".join(sorted(product.dtypes))
            raise AclnnError(
                "a type that the product does not take",
                argument=name,
                where=product.name,
                got=str(tensor.dtype),
                limit=known,
            )
    for name in given.wanted:
        tensor, partner = given.tensor(name), PARTNER[name]
        if tensor.dtype != given.tensor(partner).dtype:
            limit = f"{given.tensor(partner).dtype}, as {partner}"
            raise AclnnError("another type", argument=name, got=str(tensor.dtype), limit=limit)


def _check_fp8(given: Arguments, everywhere: bool) -> None:
    """8-bit floats are for gradInput of a transposed convolution only, and do not mix with other types."""
    name = next(name for name in INPUTS if given.tensor(name).dtype in FP8)
    same = len({given.tensor(operand).dtype for operand in INPUTS}) == 1
    if not (given.transposed and given.wanted == ("gradInput",) and everywhere and same):
        limit = "all operands of one type, transposed, outputMask (true, false, false)"
        raise AclnnError(
            "an 8-bit float is for gradInput of a transposed convolution only",
            argument=name,
            got=str(given.tensor(name).dtype),
            limit=limit,
        )


def promoted(given: Arguments) -> aclDataType:
    """The type that gradOutput, input and weight are promoted to: different ones meet in FLOAT."""
    kinds = {given.tensor(name).dtype for name in INPUTS}
    return kinds.pop() if len(kinds) == 1 else FLOAT


def compute_type(given: Arguments, product: Product) -> str:
    """What the cube computes in, by cubeMathType and the promoted type: fp16, bf16, fp32 or hf32.

    Raises:
        AclnnError: cubeMathType is none of 0 to 3, or not for this type on this product.
    """
    asked, kind = given.cubeMathType, promoted(given)
    if not is_whole(asked) or not 0 <= asked <= 3:
        raise AclnnError("no such rule", argument="cubeMathType", got=shown(asked), limit="0, 1, 2, 3")
    math = product.float_math[asked] if kind is FLOAT else STORAGE.get(kind, str(kind))
    if not math or (kind is BF16 and asked == USE_FP16):
        raise AclnnError(
            f"not for {kind}",
            argument="cubeMathType",
            where=product.name,
            got=asked,
            remedy="take another rule, or operands of another type",
        )
    return math


def check_formats(given: Arguments, product: Product) -> None:
    """Refuse formats that are no channel-first ones or differ, and ranks that differ or the product lacks.

    Raises:
        AclnnError: names the tensor.
    """
    rank = len(given.tensor("input").shape)
    for name, tensor in given.named.items():
        if name != "gradBias":
            _check_plain(name, tensor, rank)
    if rank - 2 not in product.ranks:
        limit = ", ".join(f"{ndim}D" for ndim in sorted(product.ranks))
        raise AclnnError(
            "spatial axes that the product does not have",
            argument="input",
            where=product.name,
            got=f"{rank - 2}D",
            limit=limit,
        )
    bias = given.tensors["gradBias"]
    if "gradBias" in given.wanted and bias is not None and bias.format is not aclFormat.ACL_FORMAT_ND:
        raise AclnnError("another format", argument="gradBias", got=str(bias.format), limit="ND")


def _check_plain(name: str, tensor: aclTensor, rank: int) -> None:
    """Refuse a tensor that is not channel first, or not of the input's rank and format."""
    if tensor.format not in PLAIN_FORMATS.values():
        limit = ", ".join(PLAIN_FORMATS.values())
        raise AclnnError("another format", argument=name, got=str(tensor.format), limit=limit)
    if len(tensor.shape) not in PLAIN_FORMATS:
        raise AclnnError(
            "3 to 5 axes are needed", argument=name, got=tensor.shape, limit="1 to 3 spatial axes"
        )
    if len(tensor.shape) != rank:
        raise AclnnError("another rank than input", argument=name, got=tensor.shape, limit=f"{rank} axes")
    if tensor.format is not PLAIN_FORMATS[rank]:
        limit = f"{PLAIN_FORMATS[rank]} for {rank} axes"
        raise AclnnError(
            "a format that does not fit the rank", argument=name, got=str(tensor.format), limit=limit
        )


def check_results(given: Arguments) -> None:
    """Refuse biasSizes and results of another shape, and results that are not contiguous.

    Raises:
        AclnnError: names the tensor.
    """
    shapes = {"gradInput": given.tensor("input").shape, "gradWeight": given.tensor("weight").shape}
    shapes["gradBias"] = (given.tensor("gradOutput").shape[1],)
    if "gradBias" in given.wanted:
        _check_bias_sizes(given, shapes["gradBias"])
    for name in given.wanted:
        tensor = given.tensor(name)
        if tensor.shape != shapes[name]:
            raise AclnnError("another shape", argument=name, got=tensor.shape, limit=shapes[name])
        if not tensor.contiguous:
            raise AclnnError("a result must be contiguous", argument=name, got=f"strides {tensor.strides}")


def _check_bias_sizes(given: Arguments, wanted: tuple[int, ...]) -> None:
    sizes = given.array("biasSizes")
    if len(sizes) != 1:
        raise AclnnError("one value is needed", argument="biasSizes", got=shown(sizes), limit="length 1")
    if not is_whole(sizes[0]) or sizes != wanted:
        raise AclnnError("not the output channels", argument="biasSizes", got=shown(sizes), limit=wanted)


def needed(given: Arguments) -> tuple[str, ...]:
    """The operands whose values the results asked for need."""
    needs = {
        "gradInput": ("gradOutput", "weight"),
        "gradWeight": ("gradOutput", "input"),
        "gradBias": ("gradOutput",),
    }
    return tuple(name for name in INPUTS if any(name in needs[result] for result in given.wanted))


def check_data(given: Arguments) -> None:
    """Refuse calls where some of the tensors that are used have values and others have none.

    Raises:
        AclnnError: names the tensor; also one that is read-only.
    """
    used = (*needed(given), *given.wanted)
    absent = [name for name in used if given.tensor(name).data is None]
    if absent and len(absent) < len(used):
        raise AclnnError(
            "a tensor without data beside tensors with data",
            argument=absent[0],
            code=Status.ACLNN_ERR_PARAM_NULLPTR,
            remedy="give data to all tensors of the call, or to none: then it is only timed",
        )
    for name in (name for name in OUTPUTS if name in given.wanted):
        data = given.tensor(name).data
        if data is not None and not data.flags.writeable:
            raise AclnnError("its array is read-only", argument=name)
