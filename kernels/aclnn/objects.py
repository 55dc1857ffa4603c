"""The objects of an aclnn call: tensors with strides, arrays of numbers and of truth values, and out-pointers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from math import prod
from typing import Any, Generic, Self, TypeVar

import numpy as np
from numpy.lib.stride_tricks import as_strided
from numpy.typing import NDArray

from kernels.errors import OperandError
from kernels.shape.checks import is_whole, shown
from simulator.values.numerics import dtype as named

Value = TypeVar("Value")


class aclDataType(StrEnum):  # noqa: N801  # the vendor's name
    """Types of a tensor's elements; a value is the type's name on the vendor's pages."""

    ACL_FLOAT = "FLOAT"
    ACL_FLOAT16 = "FLOAT16"
    ACL_BF16 = "BFLOAT16"
    ACL_DOUBLE = "DOUBLE"
    ACL_INT8 = "INT8"
    ACL_INT32 = "INT32"
    ACL_INT64 = "INT64"
    ACL_BOOL = "BOOL"
    ACL_HIFLOAT8 = "HIFLOAT8"
    ACL_FLOAT8_E4M3FN = "FLOAT8_E4M3FN"


class aclFormat(StrEnum):  # noqa: N801  # the vendor's name
    """What the axes of a tensor mean."""

    ACL_FORMAT_ND = "ND"
    ACL_FORMAT_NCL = "NCL"
    ACL_FORMAT_NCHW = "NCHW"
    ACL_FORMAT_NCDHW = "NCDHW"
    ACL_FORMAT_NHWC = "NHWC"
    ACL_FORMAT_NDHWC = "NDHWC"
    ACL_FORMAT_NC1HWC0 = "NC1HWC0"


STORAGE = {
    aclDataType.ACL_FLOAT: "fp32",
    aclDataType.ACL_FLOAT16: "fp16",
    aclDataType.ACL_BF16: "bf16",
    aclDataType.ACL_DOUBLE: "fp64",
}
"""The simulator's name of a type; it has no others."""

PLAIN_FORMATS = {3: aclFormat.ACL_FORMAT_NCL, 4: aclFormat.ACL_FORMAT_NCHW, 5: aclFormat.ACL_FORMAT_NCDHW}
"""Channel-first formats by rank."""


@dataclass(frozen=True, eq=False)
class aclTensor:  # noqa: N801  # the vendor's name
    """A view of a device tensor.

    Attributes:
        shape: sizes of the view.
        dtype: type of its elements.
        format: what its axes mean.
        strides: distance of neighbours on each axis, in elements.
        data: the view on its storage; None for a tensor without values (timing only).
    """

    shape: tuple[int, ...]
    dtype: aclDataType
    format: aclFormat
    strides: tuple[int, ...]
    data: NDArray[Any] | None = None

    @classmethod
    def of(cls, array: NDArray[Any], format: aclFormat | None = None) -> Self:  # noqa: A002  # the vendor's word
        """A tensor on a NumPy array, which it shares; views keep their strides.

        The format of 3, 4 and 5 axes is NCL, NCHW and NCDHW unless another is given, else ND.

        Raises:
            OperandError: a type that no tensor has, or strides that are negative or no whole elements.
        """
        kind = _type_of(array.dtype)
        if any(step < 0 or step % array.itemsize for step in array.strides):
            raise OperandError("strides of no tensor", argument="array", got=array.strides)
        strides = tuple(step // array.itemsize for step in array.strides)
        chosen = format or PLAIN_FORMATS.get(array.ndim, aclFormat.ACL_FORMAT_ND)
        return cls(array.shape, kind, chosen, strides, array)

    @property
    def empty(self) -> bool:
        """Whether it has no element."""
        return 0 in self.shape

    @property
    def contiguous(self) -> bool:
        """Whether its elements lie one after another in the order of its axes; axes of one element do not count."""
        wanted = packed(self.shape)
        rows = zip(self.shape, self.strides, wanted, strict=True)
        return self.empty or all(size == 1 or step == packing for size, step, packing in rows)


def _type_of(kind: np.dtype[Any]) -> aclDataType:
    for name, storage in STORAGE.items():
        if named(storage).storage == kind:
            return name
    known = ", ".join(STORAGE.values())
    raise OperandError("an array of a type that no tensor has", argument="array", got=str(kind), limit=known)


def packed(shape: Sequence[int]) -> tuple[int, ...]:
    """Strides, in elements, of a tensor that lies packed."""
    return tuple(prod(shape[axis + 1 :]) for axis in range(len(shape)))


def aclCreateTensor(  # noqa: N802  # the vendor's name
    viewDims: Sequence[int],
    dataType: aclDataType,
    stride: Sequence[int] | None = None,
    offset: int = 0,
    format: aclFormat = aclFormat.ACL_FORMAT_ND,  # noqa: A002  # the vendor's word
    storageDims: Sequence[int] | None = None,
    tensorData: NDArray[Any] | None = None,
) -> aclTensor:
    """A tensor as the vendor's call makes it, without the counts that C needs; strides and offset in elements.

    tensorData is the storage, of storageDims elements (default: the whole array); without it the tensor is timing only.

    Raises:
        OperandError: sizes, strides or the offset cannot be, or the view reaches outside its storage.
    """
    shape = _counts("viewDims", viewDims)
    strides = packed(shape) if stride is None else _counts("stride", stride)
    (start,) = _counts("offset", (offset,))
    if len(strides) != len(shape):
        raise OperandError("one stride an axis", argument="stride", got=shown(strides), limit=len(shape))
    _require_kind("dataType", dataType, aclDataType)
    _require_kind("format", format, aclFormat)
    last = start + sum((size - 1) * step for size, step in zip(shape, strides, strict=True))
    held = _held(storageDims, tensorData)
    if held is not None and 0 not in shape and last >= held:
        raise OperandError(
            "a view reaches outside its storage", argument="viewDims", got=last, limit=held - 1
        )
    if tensorData is None:
        return aclTensor(shape, dataType, format, strides)
    return aclTensor(shape, dataType, format, strides, _view(tensorData, shape, strides, start, dataType))


def _require_kind(argument: str, value: object, kind: type[StrEnum]) -> None:
    if not isinstance(value, kind):
        raise OperandError(f"no {kind.__name__}", argument=argument, got=shown(value))


def _held(storageDims: Sequence[int] | None, data: NDArray[Any] | None) -> int | None:
    """Elements of the storage; None when nothing is known of it."""
    if storageDims is None:
        return None if data is None else data.size
    held = prod(_counts("storageDims", storageDims))
    if data is not None and data.size < held:
        raise OperandError("the storage is smaller", argument="tensorData", got=data.size, limit=held)
    return held


def _view(
    data: NDArray[Any], shape: tuple[int, ...], strides: tuple[int, ...], start: int, kind: aclDataType
) -> NDArray[Any]:
    """The elements of a view on packed storage."""
    if _type_of(data.dtype) != kind or not data.flags.c_contiguous:
        what = "the storage is not packed, or of another type"
        raise OperandError(what, argument="tensorData", got=str(data.dtype), limit=str(kind))
    flat = data.reshape(-1)[start:]
    return as_strided(flat, shape, [step * data.itemsize for step in strides])


def _counts(argument: str, values: object) -> tuple[int, ...]:
    """Whole numbers, none negative."""
    if not isinstance(values, Iterable):
        raise OperandError("no sequence", argument=argument, got=shown(values))
    listed = tuple(values)
    if not all(is_whole(value) and value >= 0 for value in listed):
        raise OperandError("whole numbers, none negative, are needed", argument=argument, got=shown(listed))
    return tuple(int(value) for value in listed)


class aclIntArray(tuple[int, ...]):  # noqa: N801  # the vendor's name
    """An array of whole numbers; calls take tuples and lists as well."""

    __slots__ = ()


class aclBoolArray(tuple[bool, ...]):  # noqa: N801  # the vendor's name
    """An array of truth values; calls take tuples and lists as well."""

    __slots__ = ()


def aclCreateIntArray(value: Iterable[int]) -> aclIntArray:  # noqa: N802  # the vendor's name
    """An array of whole numbers."""
    return aclIntArray(value)


def aclCreateBoolArray(value: Iterable[bool]) -> aclBoolArray:  # noqa: N802  # the vendor's name
    """An array of truth values."""
    return aclBoolArray(value)


@dataclass
class Out(Generic[Value]):
    """Where a call leaves a result: `uint64_t *workspaceSize` is an `Out[int]`, read as `.value` afterwards."""

    value: Value | None = None
