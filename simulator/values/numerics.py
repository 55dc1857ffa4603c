"""Data types of the machine: how they are stored, rounded and poisoned.

Products of 16-bit operands are exact in fp32; sums are fp32 in the order of the tiles; a result is rounded
once, when it
is complete (an fp16 accumulator is the exception that a tiling can ask for).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from math import prod
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simulator.errors import ProgramError

Array = NDArray[np.generic]


@dataclass(frozen=True, slots=True)
class DType:
    """A storage type: its numpy type, its size in bytes and its unit roundoff (half an ulp of 1)."""

    name: str
    storage: np.dtype[np.generic]
    size_bytes: int
    unit_roundoff: float


def _bf16() -> DType:
    import ml_dtypes  # noqa: PLC0415  # only those who use bf16 pay for it

    return DType("bf16", np.dtype(ml_dtypes.bfloat16), 2, 2.0**-8)


@cache
def dtype(name: str) -> DType:
    """The data type called `name`: fp16, bf16, fp32, fp64, or fp32_i64 (fp32 in the low half of 8 bytes).

    Raises:
        ProgramError: there is no such type.
    """
    plain = {
        "fp16": (np.float16, 2, 2.0**-11),
        "fp32": (np.float32, 4, 2.0**-24),
        "fp64": (np.float64, 8, 2.0**-53),
        "fp32_i64": (np.float32, 8, 2.0**-24),
    }
    if name in plain:
        kind, size, unit = plain[name]
        return DType(name, np.dtype(kind), size, unit)
    if name == "bf16":
        return _bf16()
    raise ProgramError("unknown data type", got=repr(name), limit="fp16, bf16, fp32, fp64, fp32_i64")


def name_of(array_dtype: np.dtype[np.generic]) -> str:
    """The name that the project gives a numpy type.

    Raises:
        ProgramError: the machine does not store this type.
    """
    for name in ("fp16", "fp32", "fp64"):
        if dtype(name).storage == array_dtype:
            return name
    if array_dtype.name == "bfloat16":
        return "bf16"
    raise ProgramError(
        "array of a type that is not simulated", got=str(array_dtype), limit="fp16, bf16, fp32, fp64"
    )


def poisoned(count: int, kind: DType) -> Array:
    """A fresh range of `count` elements: NaN, so that a read before the first write is seen."""
    return np.full(count, np.nan, kind.storage)


_SCRATCH: dict[type[np.floating[Any]], Array] = {}


def _scratch(shape: tuple[int, ...], kind: type[np.floating[Any]]) -> Array:
    """An array that the next call with the same type uses again: fresh memory costs a page fault every 4 KB."""
    count = prod(shape)
    held = _SCRATCH.get(kind)
    if held is None or held.size < count:
        held = _SCRATCH[kind] = np.empty(count, kind)
    return held[:count].reshape(shape)


def product(a: Array, b: Array, *, passing: bool = False) -> NDArray[Any]:
    """A [.., m, k] times b [.., k, n], summed in fp32 (fp64 stays fp64).

    A product of one row goes through another BLAS routine, with other bits, than the same row among several; it is
    padded to two rows, so that tilings agree as far as the order of their sums does. A `passing` product is used up
    before the next one is made.
    """
    kind = np.float64 if a.dtype == np.float64 else np.float32
    left, right = a.astype(kind, copy=False), b.astype(kind, copy=False)
    if left.shape[-2] == 1:
        left = np.concatenate([left, left], axis=-2)
    shape = (*left.shape[:-1], right.shape[-1])
    out = _scratch(shape, kind) if passing else np.empty(shape, kind)
    with np.errstate(over="ignore", invalid="ignore"):  # overflow is infinity by sign, as on the chip
        np.matmul(left, right, out=out)
    return np.asarray(out[..., : a.shape[-2], :])


HF32_DROPPED_BITS = 12
"""hf32 stores 11 of the 23 mantissa bits of fp32."""


def round_hf32(values: Array) -> NDArray[np.float32]:
    """The values as the cube reads them in hf32: fp32 with 11 stored mantissa bits, nearest even.

    The range is that of fp32, denormals and infinities included; NaN stays as it is.
    """
    plain = np.ascontiguousarray(values, np.float32)
    bits = plain.view(np.uint32)
    half = np.uint32((1 << (HF32_DROPPED_BITS - 1)) - 1)
    odd = (bits >> np.uint32(HF32_DROPPED_BITS)) & np.uint32(1)
    rounded = (bits + half + odd) & ~np.uint32((1 << HF32_DROPPED_BITS) - 1)
    return np.where(np.isnan(plain), plain, rounded.view(np.float32))


def product_fp16(total: Array | None, a: Array, b: Array) -> NDArray[np.float16]:
    """A [.., m, k] times b [.., k, n] with an fp16 accumulator: each multiply-add is rounded to fp16, in order of k.

    The sum of an fp16 accumulator and an exact product fits fp64, so one rounding is made per step, as a fused
    multiply-add does.
    """
    shape = (*a.shape[:-1], b.shape[-1])
    acc = np.zeros(shape, np.float16) if total is None else total.astype(np.float16)
    with np.errstate(over="ignore", invalid="ignore"):
        for step in range(a.shape[-1]):
            term = a[..., :, step, None].astype(np.float64) * b[..., step, None, :].astype(np.float64)
            acc = (acc.astype(np.float64) + term).astype(np.float16)
    return acc
