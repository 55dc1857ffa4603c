"""Whether a tiling fits the memories of a core, and the first of several that does."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TypeVar

from kernels.errors import TilingError
from targets.schema import Target

Fields = dict[str, object]
T = TypeVar("T")

SUM_BYTES = 4
"""Sums are fp32."""


def fits_l0(target: Target, sizes: Mapping[str, int], item_bytes: int, l0c: int) -> bool:
    """Whether two halves of L0A and L0B, and the sums in L0C (and UB, where results go through it), have room."""
    memory = target.memory
    sums = _aligned(target, "l0c", sizes["sums"] * SUM_BYTES)
    through_ub = f"l0c->{target.main_memory}" not in target.path
    return (
        2 * _aligned(target, "l0a", sizes["a"] * item_bytes) <= memory["l0a"].size_bytes
        and 2 * _aligned(target, "l0b", sizes["b"] * item_bytes) <= memory["l0b"].size_bytes
        and l0c * sums <= memory["l0c"].size_bytes
        and (not through_ub or sums <= memory["ub"].size_bytes)
    )


def fits_l1(target: Target, buffers: Iterable[tuple[int, int]]) -> bool:
    """Whether buffers, as (bytes, how many), have room in L1."""
    return (
        sum(count * _aligned(target, "l1", size) for size, count in buffers) <= target.memory["l1"].size_bytes
    )


def _aligned(target: Target, memory: str, size: int) -> int:
    align = target.memory[memory].align_bytes
    return -(-size // align) * align


def first_that_fits(options: Iterable[T], fits: Callable[[T], bool], what: str) -> T:
    """The first option that fits.

    Raises:
        TilingError: none does.
    """
    last: T | None = None
    for option in options:
        if fits(option):
            return option
        last = option
    raise TilingError(
        "no tiling fits the memories of a core", field=what, got=repr(last), limit="L1, L0A, L0B and L0C",
        remedy="give fewer fields of the tiling, or smaller ones",
    )  # fmt: skip


def halves(value: int, least: int, unit: int = 1) -> list[int]:
    """A size, and what halving it leads to, in multiples of a unit, down to the least."""
    found = [value]
    while value > least:
        value = max(least, -(-(value // 2) // unit) * unit)
        if value == found[-1]:
            break
        found.append(value)
    return found
