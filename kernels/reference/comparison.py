"""How far a result may be from its reference, and how far it is."""

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from kernels.errors import OperandError
from kernels.shape.checks import shown

Array = npt.NDArray[np.float64]

UNIT_ROUNDOFF = {"fp16": 2.0**-11, "bf16": 2.0**-8, "fp32": 2.0**-24, "hf32": 2.0**-24, "fp64": 2.0**-53}
"""Largest relative error of rounding a result to nearest, by data type; results of hf32 products are fp32."""

SMALLEST_NORMAL = {
    "fp16": 2.0**-14,
    "bf16": 2.0**-126,
    "fp32": 2.0**-126,
    "hf32": 2.0**-126,
    "fp64": 2.0**-1022,
}
"""Below this magnitude, rounding errors stop shrinking with the value."""


SLAB = 1 << 22
"""Elements that are compared at a time: what is made on the way stays small beside the arrays."""


@dataclass(frozen=True)
class Comparison:
    """The worst element of a result beside its reference.

    It is the one with the largest error of those beyond their bound, or of all when every one is within: `ok`
    means max_error <= tolerance. A NaN or an infinity on one side only counts as an infinite error.

    Attributes:
        max_error: |got - reference| there.
        tolerance: the bound there.
        index: where, None in an empty array.
        ok: whether every element is within its bound.
    """

    max_error: float
    tolerance: float
    index: tuple[int, ...] | None
    ok: bool


def error_bound(
    magnitude: npt.ArrayLike,
    reference: npt.ArrayLike,
    out_dtype: str,
    terms: int,
    unit: float = UNIT_ROUNDOFF["fp32"],
) -> Array:
    """Return u_out |reference| + unit * terms * magnitude: rounding the result, and summing it.

    magnitude is the sum of |a||b| (the reference of absolute values), `unit` the unit roundoff of what is
    summed, `terms` the longest chain of additions: longest K step + steps + cores. A result below the least
    normal number of `out_dtype` is rounded with that number's spacing; a sum of no terms must be exact.
    Raises `OperandError` for an unknown data type.
    """
    if out_dtype not in UNIT_ROUNDOFF:
        known = ", ".join(UNIT_ROUNDOFF)
        raise OperandError("unknown data type", argument="out_dtype", got=shown(out_dtype), limit=known)
    sums, size = np.asarray(magnitude, np.float64), np.abs(np.asarray(reference, np.float64))
    rounded = np.where(sums > 0, np.maximum(size, SMALLEST_NORMAL[out_dtype]), size)
    return np.asarray(UNIT_ROUNDOFF[out_dtype] * rounded + unit * terms * sums)


def compare(got: npt.ArrayLike, reference: npt.ArrayLike, bound: npt.ArrayLike) -> Comparison:
    """Return the worst element of `got`; bound is one number, or one an element.

    A NaN is right exactly where the reference has one, an infinity where it has the same.
    Raises `OperandError` when got and reference differ in shape.
    """
    actual, wanted = np.asarray(got), np.asarray(reference)
    if actual.shape != wanted.shape:
        what = f"got must have the reference's shape {shown(wanted.shape)}"
        raise OperandError(what, argument="got", got=shown(actual.shape))
    if not actual.size:
        return Comparison(0.0, 0.0, None, True)
    limits = np.broadcast_to(np.asarray(bound, np.float64), wanted.shape)
    got_flat, wanted_flat, limits_flat = (array.reshape(-1) for array in (actual, wanted, limits))
    slabs = (slice(first, first + SLAB) for first in range(0, wanted.size, SLAB))
    worst = max(
        (_worst(got_flat[part], wanted_flat[part], limits_flat[part], part.start) for part in slabs),
        key=lambda found: (found.beyond, found.error),
    )
    index = tuple(int(i) for i in np.unravel_index(worst.place, wanted.shape))
    return Comparison(worst.error, worst.limit, index, not worst.beyond)


class _Worst(NamedTuple):
    """The worst element of a slab: whether it is beyond its limit, its error and limit, and where it is."""

    beyond: bool
    error: float
    limit: float
    place: int


def _worst(got: npt.NDArray[Any], reference: npt.NDArray[Any], bound: Array, first: int) -> _Worst:
    actual, wanted = np.asarray(got, np.float64), np.asarray(reference, np.float64)
    limit = np.where(np.isfinite(wanted), bound, 0.0)
    error = _errors(actual, wanted)
    beyond = ~(error <= limit)  # a bound that is NaN allows nothing
    place = int(np.argmax(np.where(beyond, error, -1.0) if beyond.any() else error))
    return _Worst(bool(beyond[place]), float(error[place]), float(limit[place]), first + place)


def _errors(actual: Array, wanted: Array) -> Array:
    same = (actual == wanted) | (np.isnan(actual) & np.isnan(wanted))
    finite = np.isfinite(actual) & np.isfinite(wanted)
    difference = np.abs(np.subtract(actual, wanted, where=finite, out=np.full(actual.shape, np.inf)))
    return np.where(same, 0.0, difference)
