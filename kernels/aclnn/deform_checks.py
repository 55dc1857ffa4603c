"""Checks of aclnnDeformableConv2dBackward in the order in which the vendor's code makes them.

Processor, null pointers, types, formats, attributes, ranks, shapes; then data, which only the simulator may lack. Each
raises AclnnError with the argument's name and the vendor's code: the first that fails is told.
"""

from __future__ import annotations

import numpy as np

from kernels.aclnn.deform_arguments import ARRAYS, INPUTS, OUTPUTS, DeformArguments
from kernels.aclnn.device import Device
from kernels.aclnn.errors import AclnnError, Status, null
from kernels.aclnn.objects import aclFormat, aclTensor
from kernels.aclnn.products import BF16, FLOAT, FLOAT16
from kernels.errors import ShapeError
from kernels.shape.checks import is_listed, is_whole, shown
from kernels.shape.deform import DeformShape
from kernels.shape.shapes import ConvShape

SERIES = "950"
"""The only products that have the operator: Ascend 950PR and 950DT."""

TYPES = (FLOAT, FLOAT16, BF16)
MOST_TAPS = 2048
MOST_COLUMN = 65535
MOST_PIXELS = 2147483647
LENGTHS = {"kernelSize": 2, "stride": 4, "padding": 4, "dilation": 4}
RANKS = dict.fromkeys((*INPUTS, "gradInput", "gradWeight", "gradOffset"), 4) | {"gradBias": 1}


def check_deform_backward(given: DeformArguments, device: Device) -> DeformShape:
    """The geometry of a call that the product takes.

    Raises:
        AclnnError: with 161001 for a null pointer, 161002 for anything else outside the page's rules.
    """
    _check_product(device)
    _check_present(given)
    _check_types(given)
    _check_formats(given)
    _check_attributes(given)
    _check_ranks(given)
    shape = _checked_shapes(given)
    _check_data(given)
    return shape


def _check_product(device: Device) -> None:
    if device.series != SERIES:
        what = "the processor does not have this operator"
        got = device.series or f"family {device.target.family}"
        raise AclnnError(what, argument="device", where=device.target.name, got=got, limit=SERIES)


def _check_present(given: DeformArguments) -> None:
    for name in (*INPUTS, *OUTPUTS):
        if given.tensors[name] is None:
            raise null(name)
        if not isinstance(given.tensors[name], aclTensor):
            raise AclnnError("no aclTensor", argument=name, got=shown(given.tensors[name]))
    for name in ARRAYS:
        if given.arrays[name] is None:
            raise null(name)
        if not is_listed(given.arrays[name]):
            raise AclnnError("no array", argument=name, got=shown(given.arrays[name]))


def _check_types(given: DeformArguments) -> None:
    wanted = given.tensor("input").dtype
    for name in (*INPUTS, *OUTPUTS):
        kind = given.tensor(name).dtype
        if kind not in TYPES:
            limit = ", ".join(TYPES)
            raise AclnnError(
                "a type that the operator does not take", argument=name, got=str(kind), limit=limit
            )
        if kind is not wanted:
            raise AclnnError("another type", argument=name, got=str(kind), limit=f"{wanted}, as input")


def _check_formats(given: DeformArguments) -> None:
    for name in (*INPUTS, *OUTPUTS):
        layout = given.tensor(name).format
        wanted = aclFormat.ACL_FORMAT_ND if name == "gradBias" else aclFormat.ACL_FORMAT_NCHW
        if layout is not wanted:
            raise AclnnError("another format", argument=name, got=str(layout), limit=str(wanted))


def _check_attributes(given: DeformArguments) -> None:
    """Arrays, groups and modulated; the limits on the kernel need the channels, and come with them."""
    for name, length in LENGTHS.items():
        values = given.array(name)
        if len(values) != length:
            raise AclnnError("another length", argument=name, got=shown(values), limit=f"{length} values")
        lowest = 0 if name == "padding" else 1
        for value in values:
            if not is_whole(value) or value < lowest:
                limit = f"at least {lowest}"
                raise AclnnError("outside its range", argument=name, got=shown(values), limit=limit)
        if name in ("stride", "dilation") and values[:2] != (1, 1):
            raise AclnnError("must be 1 on N and C", argument=name, got=shown(values), limit=1)
    for name in ("groups", "deformableGroups"):
        value = getattr(given, name)
        if not is_whole(value) or value < 1:
            raise AclnnError("outside its range", argument=name, got=shown(value), limit="at least 1")
    if not isinstance(given.modulated, bool | np.bool_) or not given.modulated:
        what = "must be true: offset holds the mask"
        raise AclnnError(what, argument="modulated", got=shown(given.modulated), limit=True)
    high, wide = given.array("kernelSize")
    if high * wide > MOST_TAPS:
        raise AclnnError("too many taps", argument="kernelSize", got=high * wide, limit=MOST_TAPS)


def _check_ranks(given: DeformArguments) -> None:
    for name, rank in RANKS.items():
        dims = given.tensor(name).shape
        if len(dims) != rank:
            raise AclnnError("another number of axes", argument=name, got=dims, limit=rank)


def _checked_shapes(given: DeformArguments) -> DeformShape:
    """The geometry of shapes that fit the table.

    Raises:
        AclnnError: a tensor is empty, channels do not divide, or a shape differs from the table.
    """
    for name in (*INPUTS, *OUTPUTS):
        dims = given.tensor(name).shape
        if 0 in dims:
            raise AclnnError("an empty tensor", argument=name, got=dims, limit="at least 1 on each axis")
    _check_channels(given)
    shape = _shape_of(given)
    conv = shape.conv
    planes = (conv.n, 3 * shape.points, *conv.out)
    wanted = {
        "gradOutput": conv.dy_shape,
        "offsetOut": shape.features.x_shape,
        "weight": conv.w_shape,
        "offset": planes,
        "gradInput": conv.x_shape,
        "gradWeight": conv.w_shape,
        "gradOffset": planes,
        "gradBias": (conv.cout,),
    }
    for name, dims in wanted.items():
        if given.tensor(name).shape != dims:
            raise AclnnError("another shape", argument=name, got=given.tensor(name).shape, limit=dims)
    return shape


def _check_channels(given: DeformArguments) -> None:
    """Groups divide the channels, and neither a column of the kernel nor the image is too large."""
    x, w = given.tensor("input").shape, given.tensor("weight").shape
    if x[2] * x[3] > MOST_PIXELS:
        raise AclnnError("too many pixels", argument="input", got=x[2] * x[3], limit=MOST_PIXELS)
    for name, whole, what in (
        ("groups", x[1], "input.C"),
        ("groups", w[0], "weight.N"),
        ("deformableGroups", x[1], "input.C"),
    ):
        if whole % getattr(given, name):
            got = f"{name} {getattr(given, name)}, {what} {whole}"
            raise AclnnError(f"does not divide {what}", argument=name, got=got)
    high, wide = given.array("kernelSize")
    column = high * wide * (x[1] // given.groups)
    if column > MOST_COLUMN:
        what = "KH x KW x input.C / groups is too large"
        raise AclnnError(what, argument="kernelSize", got=column, limit=MOST_COLUMN)


def _shape_of(given: DeformArguments) -> DeformShape:
    x, (top, bottom, left, right) = given.tensor("input").shape, given.array("padding")
    try:
        conv = ConvShape(
            n=x[0],
            cin=x[1],
            size=x[2:],
            cout=given.tensor("weight").shape[0],
            kernel=given.array("kernelSize"),
            stride=given.array("stride")[2:],
            padding=((top, bottom), (left, right)),
            dilation=given.array("dilation")[2:],
            groups=given.groups,
        )
        return DeformShape(conv, given.deformableGroups, masked=True)
    except ShapeError as error:
        argument = {"kernel": "kernelSize", "shape": "input", "size": "input"}.get(
            error.argument, error.argument
        )
        raise AclnnError(error.what, argument=argument, got=error.got, limit=error.limit) from None


def _check_data(given: DeformArguments) -> None:
    """Refuse results that cannot be written, and calls where only some of the tensors have values."""
    absent = [name for name in (*INPUTS, *OUTPUTS) if given.tensor(name).data is None]
    if absent and len(absent) < len((*INPUTS, *OUTPUTS)):
        raise AclnnError(
            "a tensor without data beside tensors with data",
            argument=absent[0],
            code=Status.ACLNN_ERR_PARAM_NULLPTR,
            remedy="give data to all tensors of the call, or to none: then it is only timed",
        )
    for name in OUTPUTS:
        data = given.tensor(name).data
        if data is not None and not data.flags.writeable:
            raise AclnnError("its array is read-only", argument=name)
