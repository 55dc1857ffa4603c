"""Which target, cores and data type a call runs on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from kernels.errors import OperandError
from simulator.values.numerics import Array, name_of
from targets.loader import load_target
from targets.schema import Target

PREFERENCE = ("fp16", "bf16", "fp32")
"""What "native" means: the first of these that the chip's matrix unit takes."""


def resolved_target(target: str | Path | Target) -> Target:
    """A target from its name or file."""
    return target if isinstance(target, Target) else load_target(target)


def chosen_cores(target: Target, cores: int | Sequence[int] | None) -> tuple[int, ...]:
    """The numbers of the cores: all, the first so many, or those listed.

    Raises:
        OperandError: the target has no such cores.
    """
    limit = f"1 to {target.groups}"
    if cores is None:
        return tuple(range(target.groups))
    if isinstance(cores, int | np.integer) and not isinstance(cores, bool):
        if not 1 <= cores <= target.groups:
            raise OperandError(
                "a number of cores that the target does not have",
                argument="cores",
                where=target.name,
                got=cores,
                limit=limit,
            )
        return tuple(range(int(cores)))
    if not isinstance(cores, Sequence | range) or not all(isinstance(c, int | np.integer) for c in cores):
        raise OperandError(
            "cores that are no whole number and no list", argument="cores", got=repr(cores), limit=limit
        )
    listed = tuple(int(c) for c in cores)
    if not listed or len(set(listed)) != len(listed) or not all(0 <= c < target.groups for c in listed):
        raise OperandError(
            "cores that the target does not have",
            argument="cores",
            where=target.name,
            got=list(listed),
            limit=f"different numbers from 0 to {target.groups - 1}",
        )
    return tuple(sorted(listed))


def chosen_dtype(target: Target, asked: str | None, arrays: Mapping[str, Array]) -> str:
    """The data type that the chip computes in.

    Raises:
        OperandError: arrays of different types and nothing asked, or a type that the chip does not compute.
    """
    known = [name for name in (*target.matmul, *target.cube) if "_" not in name]
    if asked == "native":
        asked = next((name for name in PREFERENCE if name in known), known[0])
    names = {argument: name_of(array.dtype) for argument, array in arrays.items()}
    if asked is None:
        if len(set(names.values())) > 1:
            listed = ", ".join(f"{a} is {n}" for a, n in names.items())
            raise OperandError(
                "operands of different types",
                argument=" and ".join(names),
                got=listed,
                remedy="convert one, or say dtype=",
            )
        asked = next(iter(names.values()), known[0])
    if asked not in known:
        raise OperandError(
            "a data type that the target does not compute",
            argument="dtype",
            where=target.name,
            got=asked,
            limit=", ".join(known),
        )
    return asked
