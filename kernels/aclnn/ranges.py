"""Ranges of groups, stride, padding, dilation and outputPadding, and of the weight's spatial sizes."""

from __future__ import annotations

from kernels.aclnn.arguments import Arguments
from kernels.aclnn.errors import AclnnError
from kernels.aclnn.products import Limit, Product
from kernels.shape.checks import is_whole, shown

MOST_GROUPS = 65535
LOWEST = {"stride": 1, "padding": 0, "dilation": 1, "outputPadding": 0}


def check_groups(given: Arguments) -> None:
    """Refuse groups outside [1, 65535]: before anything is computed with them.

    Raises:
        AclnnError: they are.
    """
    groups = given.groups
    if not is_whole(groups) or not 1 <= groups <= MOST_GROUPS:
        limit = f"1 to {MOST_GROUPS}"
        raise AclnnError("outside its range", argument="groups", got=shown(groups), limit=limit)


def check_arrays(given: Arguments, product: Product) -> None:
    """Refuse arrays of another length, and values outside the ranges of the page or of the product."""
    for argument, lowest in LOWEST.items():
        _check_values(given, argument, lowest)
    values = {name: given.array(name) for name in ("stride", "dilation")}
    for argument, found in values.items():
        check_limits(given, product, argument, found)
    for side in (0, 1):
        check_limits(given, product, "padding", tuple(pair[side] for pair in given.pads))
    _check_output_padding(given)


def _check_values(given: Arguments, argument: str, lowest: int) -> None:
    values, ndim = given.array(argument), given.ndim
    lengths = (2, 4) if argument == "padding" and ndim == 2 else (ndim,)
    if len(values) not in lengths:
        limit = f"{' or '.join(map(str, lengths))} values"
        raise AclnnError("another length", argument=argument, got=shown(values), limit=limit)
    for value in values:
        if not is_whole(value) or value < lowest:
            limit = f"at least {lowest}"
            raise AclnnError("outside its range", argument=argument, got=shown(values), limit=limit)


def _check_output_padding(given: Arguments) -> None:
    extra = given.array("outputPadding")
    if not given.transposed and any(extra):
        what = "must be 0 where not transposed"
        raise AclnnError(what, argument="outputPadding", got=shown(extra), limit=0)
    for value, step in zip(extra, given.array("stride"), strict=True):
        if value >= step:
            limit = f"less than stride {step}"
            raise AclnnError("outside its range", argument="outputPadding", got=shown(extra), limit=limit)


def check_limits(given: Arguments, product: Product, argument: str, values: tuple[int, ...]) -> None:
    """Refuse one value an axis that is outside the product's own range.

    Raises:
        AclnnError: names the argument and the axis.
    """
    axes = "DHW"[-given.ndim :]
    for limit in product.limits:
        if limit.argument == argument and _applies(limit, given):
            for axis, value in zip(axes, values, strict=True):
                if axis in limit.axes and not limit.low <= value <= limit.high:
                    raise AclnnError(
                        f"outside its range on {axis if given.ndim > 1 else 'L'}",
                        argument=argument,
                        where=product.name,
                        got=shown(values),
                        limit=f"{limit.low} to {limit.high}",
                    )


def _applies(limit: Limit, given: Arguments) -> bool:
    return limit.transposed == given.transposed and given.ndim in limit.ranks
