"""The arrays of a convolution's call: as channel-first arrays of a floating type, checked against the geometry."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np
import numpy.typing as npt

from kernels.errors import OperandError
from simulator.values.numerics import Array
from targets.schema import Target


def channel_first(given: Mapping[str, npt.ArrayLike | None], layout: str) -> dict[str, Array]:
    """The operands that are there, by name, channel first; `layout` is that of all but "w" and "bias".

    Raises:
        OperandError: the layout is unknown, or an operand is no array of a floating type.
    """
    if layout not in ("NCHW", "NHWC"):
        raise OperandError("unknown layout", argument="layout", got=repr(layout), limit="NCHW, NHWC")
    return {name: _channel_first(name, value, layout) for name, value in given.items() if value is not None}


def _channel_first(name: str, value: npt.ArrayLike, layout: str) -> Array:
    try:
        array = np.asarray(value)
    except ValueError as error:
        raise OperandError("not an array", argument=name, got=str(error)) from None
    array = array.astype(array.dtype.newbyteorder("="), copy=False)
    require_floating(name, array)
    return np.moveaxis(array, -1, 1) if layout == "NHWC" and name != "w" and array.ndim > 2 else array


def require_floating(name: str, array: Array) -> None:
    """Refuse an operand of whole numbers, of text or the like.

    Raises:
        OperandError: it is one.
    """
    if array.dtype.kind not in "fV" and array.dtype.name != "bfloat16":
        what, limit = "an operand that is not of a floating type", "fp16, bf16, fp32, fp64"
        raise OperandError(what, argument=name, where=name, got=str(array.dtype), limit=limit)


def as_given(array: Array, layout: str) -> Array:
    """A channel-first result in the layout of the call."""
    return np.moveaxis(array, 1, -1) if layout == "NHWC" else array


def require_shapes(arrays: Mapping[str, Array], wanted: Mapping[str, tuple[int, ...]]) -> None:
    """Refuse operands of another shape.

    Raises:
        OperandError: one is.
    """
    for name, array in arrays.items():
        if array.shape != wanted[name]:
            raise OperandError(
                "an operand of another shape", argument=name, where=name, got=array.shape, limit=wanted[name]
            )


SHAPED = "give it, or shape with numerics=False"
"""What to do where an operand is missing that the geometry would be read from."""


def require_given(
    names: Iterable[str], arrays: Mapping[str, Array], remedy: str = "give it, or ask for numerics=False"
) -> None:
    """Refuse a call that computes numbers, or has no other geometry, without its operands.

    Raises:
        OperandError: one is missing.
    """
    for name in names:
        if name not in arrays:
            raise OperandError("an operand is missing", argument=name, where=name, remedy=remedy)


def require_convolution_type(name: str, target: Target) -> str:
    """The type, unless it is one that only products of matrices are computed in.

    Raises:
        OperandError: it is fp64.
    """
    if name == "fp64":
        what = "fp64 is a type of gemm only"
        raise OperandError(what, argument="dtype", where=target.name, got="fp64", limit="fp16, fp32")
    return name
