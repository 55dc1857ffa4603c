"""Shapes of gradOutput, input and weight: which may be empty, which channels fit, and the size of the output."""

from __future__ import annotations

from kernels.aclnn.arguments import INPUTS, Arguments
from kernels.aclnn.errors import AclnnError
from kernels.aclnn.products import Product
from kernels.aclnn.ranges import check_limits
from kernels.errors import ShapeError
from kernels.shape.shapes import ConvShape

VENDOR_NAMES = {
    "n": "input",
    "cin": "input",
    "size": "input",
    "cout": "weight",
    "kernel": "weight",
    "output_padding": "outputPadding",
}
"""The page's argument behind one of ConvShape."""


def checked_geometry(given: Arguments, product: Product) -> ConvShape:
    """The geometry of shapes that fit each other.

    Raises:
        AclnnError: an axis is empty that must not be, channels or sizes do not fit.
    """
    _check_empty(given, product)
    check_limits(given, product, "weight", given.tensor("weight").shape[2:])
    _check_channels(given)
    if not given.transposed:
        _check_window(given)
    shape = _shape_of(given)
    dy = given.tensor("gradOutput").shape
    if dy != shape.dy_shape:
        remedy = "outputPadding chooses among the sizes that stride allows" if given.transposed else ""
        raise AclnnError(
            "not the output of input and weight",
            argument="gradOutput",
            got=dy,
            limit=shape.dy_shape,
            remedy=remedy,
        )
    return shape


def _check_empty(given: Arguments, product: Product) -> None:
    """Refuse empty axes: batch may be 0, and the input's channels with the weight's, where the product allows it."""
    dy, x, w = (given.tensor(name).shape for name in INPUTS)
    channels = not given.transposed and x[1] == 0 and w[1] == 0
    allowed = {
        "gradOutput": (0,) if x[0] == 0 else (),
        "input": (0, 1) if channels else (0,),
        "weight": (1,) if channels else (),
    }
    for name, axes in (("gradOutput", dy), ("weight", w), ("input", x)):
        empty = [axis for axis, size in enumerate(axes) if size == 0]
        if empty and (not product.empty or not set(empty).issubset(allowed[name])):
            limit = "at least 1 on each axis"
            raise AclnnError("an empty tensor", argument=name, where=product.name, got=axes, limit=limit)


def _check_channels(given: Arguments) -> None:
    """Refuse channels that do not fit: a transposed weight is [Cin, Cout / groups, ...]."""
    dy, x, w = (given.tensor(name).shape for name in INPUTS)
    cin, cout = x[1], dy[1]
    grouped, grouped_name = (cout, "gradOutput") if given.transposed else (cin, "input")
    whole, whole_name = (cin, "input") if given.transposed else (cout, "gradOutput")
    if given.groups * w[1] != grouped:
        raise AclnnError(
            f"groups x weight.C is not {grouped_name}.C",
            argument="groups",
            got=f"groups {given.groups}, weight.C {w[1]}, {grouped_name}.C {grouped}",
            limit=f"{given.groups} x {w[1]} = {given.groups * w[1]}",
        )
    if w[0] != whole:
        what = f"weight.N is not {whole_name}.C"
        raise AclnnError(what, argument="weight", got=f"weight.N {w[0]}", limit=f"{whole_name}.C {whole}")
    if whole % given.groups:
        raise AclnnError(
            f"groups does not divide {whole_name}.C",
            argument="groups",
            got=f"groups {given.groups}, {whole_name}.C {whole}, remainder {whole % given.groups}",
        )


def _check_window(given: Arguments) -> None:
    """Refuse a dilated kernel that is larger than the padded input."""
    x, w = given.tensor("input").shape[2:], given.tensor("weight").shape[2:]
    rows = zip(x, w, given.array("dilation"), given.pads, strict=True)
    for size, kernel, step, (low, high) in rows:
        if size + low + high < (kernel - 1) * step + 1:
            raise AclnnError(
                "smaller with its padding than the dilated kernel",
                argument="input",
                got=f"{size} + {low} + {high}",
                limit=f"at least {(kernel - 1) * step + 1}",
                remedy="raise padding, or lower dilation",
            )


def _shape_of(given: Arguments) -> ConvShape:
    x, w = given.tensor("input").shape, given.tensor("weight").shape
    try:
        return ConvShape(
            n=x[0],
            cin=x[1],
            size=x[2:],
            cout=w[1] * given.groups if given.transposed else w[0],
            kernel=w[2:],
            stride=given.array("stride"),
            padding=given.pads,
            dilation=given.array("dilation"),
            groups=given.groups,
            transposed=given.transposed,
            output_padding=given.array("outputPadding"),
        )
    except ShapeError as error:
        argument = VENDOR_NAMES.get(error.argument, error.argument)
        raise AclnnError(
            error.what, argument=argument, got=error.got, limit=error.limit, remedy=error.remedy
        ) from None
