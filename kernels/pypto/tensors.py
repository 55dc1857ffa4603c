"""Tensors of pypto: a shape, a type, and values or none."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import numpy as np
import numpy.typing as npt

from kernels.errors import OperandError
from kernels.shape.checks import is_listed, is_whole, shown
from simulator.results.run import Run
from simulator.values.numerics import DType
from simulator.values.numerics import dtype as named


class DataType(StrEnum):
    """Element types; a value is the simulator's name."""

    DT_FP16 = "fp16"
    DT_BF16 = "bf16"
    DT_FP32 = "fp32"

    @property
    def kind(self) -> DType:
        """How it is stored."""
        return named(self.value)


DT_FP16, DT_BF16, DT_FP32 = DataType.DT_FP16, DataType.DT_BF16, DataType.DT_FP32


@dataclass(eq=False)
class Tensor:
    """A packed tensor.

    Attributes:
        shape: its sizes; there are no dynamic ones.
        dtype: type of its elements.
        name: for people.
        data: its values; None for a tensor that is only timed.
        run: the Run that made it; None for one that no operator made.
    """

    shape: tuple[int, ...]
    dtype: DataType
    name: str = ""
    data: npt.NDArray[Any] | None = None
    run: Run | None = None


def tensor(
    shape: Sequence[int], dtype: DataType, name: str = "", data: npt.ArrayLike | None = None
) -> Tensor:
    """A tensor of a shape and a type; without data it is only timed.

    Raises:
        OperandError: the shape is no list of whole numbers, the type is none of pypto's, or the data do not fit.
    """
    if not is_listed(shape) or not all(is_whole(size) and size >= 0 for size in shape):
        limit = "whole numbers; dynamic shapes are not supported"
        raise OperandError("a shape that cannot be", argument="shape", got=shown(shape), limit=limit)
    if not isinstance(dtype, DataType):
        known = ", ".join(kind.name for kind in DataType)
        raise OperandError("no type of pypto", argument="dtype", got=shown(dtype), limit=known)
    if not isinstance(name, str):
        raise OperandError("no text", argument="name", got=shown(name), remedy="values are given as data=")
    sizes = tuple(int(size) for size in shape)
    return Tensor(sizes, dtype, name, None if data is None else _values(data, sizes, dtype))


def _values(data: npt.ArrayLike, sizes: tuple[int, ...], dtype: DataType) -> npt.NDArray[Any]:
    array = np.asarray(data)
    if array.shape != sizes:
        raise OperandError("values of another shape", argument="data", got=array.shape, limit=sizes)
    if array.dtype != dtype.kind.storage:
        got, limit = str(array.dtype), str(dtype.kind.storage)
        raise OperandError("values of another type", argument="data", got=got, limit=limit)
    return array
