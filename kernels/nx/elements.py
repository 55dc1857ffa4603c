"""The elements of the page's arrays: 8 bytes whose low 32 bits are those of an fp32 number."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from kernels.errors import OperandError
from simulator.values.numerics import dtype

ELEMENT = dtype("fp32_i64")
"""Their data type on a device."""

Elements = npt.NDArray[np.int64]


def to_elements(values: npt.ArrayLike) -> Elements:
    """Numbers, rounded to fp32, as elements; the high half of each is 0."""
    with np.errstate(over="ignore"):
        numbers = np.ascontiguousarray(np.asarray(values), np.float32)
    return numbers.view(np.uint32).astype(np.int64)


def from_elements(elements: Elements) -> npt.NDArray[np.float32]:
    """The numbers of elements; the high halves are not looked at.

    Raises:
        OperandError: the array is not of 8-byte integers.
    """
    array = np.asarray(elements)
    if array.dtype != np.int64:
        raise OperandError(
            "an array that is not of 8-byte integers",
            argument="elements",
            got=str(array.dtype),
            limit="int64",
        )
    numbers = (array & 0xFFFFFFFF).astype(np.uint32).view(np.float32)
    return np.asarray(numbers.reshape(array.shape))
