"""Checks of single arguments of a geometry: whole numbers in a range, one value an axis, pad pairs."""

from collections.abc import Sequence
from typing import TypeGuard

import numpy as np

from kernels.errors import ShapeError

LIMIT = 2**31
"""Kernels, strides, dilations, pads and groups lie below this."""

SIZE_LIMIT = 2**40
"""Batches, channels and spatial sizes lie below this: a chip's 32-bit limits are not the geometry's."""

PadPairs = tuple[tuple[int, int], ...]
"""One (low, high) pair an axis."""

Axes = int | Sequence[int]
"""One value for all axes, or one value an axis."""

Padding = int | Sequence[int] | Sequence[tuple[int, int]]
"""One value for both sides of all axes, one value an axis, or one (low, high) pair an axis."""


def shown(value: object) -> str:
    """Return a short text of any value for a message, whatever the value is."""
    if isinstance(value, int) and value.bit_length() > 256:
        return f"a whole number of {value.bit_length()} bits"
    try:
        text = repr(value)
    except Exception:  # a value's own repr may fail in any way, and the refusal must still be told
        return f"a {type(value).__name__}"
    return text if len(text) <= 80 else text[:77] + "..."


def is_whole(value: object) -> TypeGuard[int]:
    """Return whether the value is a whole number; truth values and floats are not."""
    return isinstance(value, (int, np.integer)) and not isinstance(value, bool)


def is_listed(value: object) -> TypeGuard[Sequence[object]]:
    """Return whether the value gives one item an axis: a tuple, a list or an array of one axis."""
    return isinstance(value, (tuple, list)) or (isinstance(value, np.ndarray) and value.ndim == 1)


def whole(argument: str, value: object, lowest: int, limit: int = LIMIT) -> int:
    """Return the value as an int from `lowest` to below `limit`, or raise `ShapeError`."""
    if not is_whole(value):
        raise ShapeError(f"{argument} must be a whole number", argument=argument, got=shown(value))
    number = int(value)
    if number < lowest:
        kind = {0: "must not be negative", 1: "must be positive"}.get(lowest, "is too small")
        raise ShapeError(f"{argument} {kind}", argument=argument, got=shown(number), limit=lowest)
    if number >= limit:
        raise ShapeError(f"{argument} is too large", argument=argument, got=shown(number), limit=limit - 1)
    return number


def truth(argument: str, value: object) -> bool:
    """Return the value as a bool, or raise `ShapeError`."""
    if not isinstance(value, (bool, np.bool_)):
        raise ShapeError(f"{argument} must be true or false", argument=argument, got=shown(value))
    return bool(value)


def per_axis(argument: str, value: object, ndim: int, lowest: int, limit: int = LIMIT) -> tuple[int, ...]:
    """Return one whole number an axis, spreading a single one over all axes, or raise `ShapeError`."""
    return tuple(whole(argument, item, lowest, limit) for item in _spread(argument, value, ndim))


def pad_pairs(argument: str, value: object, ndim: int) -> PadPairs:
    """Return one (low, high) pair an axis, or raise `ShapeError`.

    A low pad must not be negative. The high pad of a pair may be: trailing input that no tap reads.
    """
    return tuple(_pad_pair(argument, item) for item in _spread(argument, value, ndim))


def spatial_rank(argument: str, value: Sequence[object]) -> int:
    """Return how many spatial axes a value lists: 1, 2 or 3, or raise `ShapeError`."""
    if not 1 <= len(value) <= 3:
        raise ShapeError(f"{argument} must list 1 to 3 axes", argument=argument, got=shown(value))
    return len(value)


def _pad_pair(argument: str, item: object) -> tuple[int, int]:
    if not is_listed(item):
        pad = whole(argument, item, 0)
        return pad, pad
    if len(item) != 2:
        raise ShapeError(f"a pair of {argument} must be (low, high)", argument=argument, got=shown(item))
    return whole(argument, item[0], 0), whole(argument, item[1], 1 - LIMIT)


def _spread(argument: str, value: object, ndim: int) -> Sequence[object]:
    if not is_listed(value):
        return (value,) * ndim
    if len(value) != ndim:
        wanted = "one value" if ndim == 1 else f"{ndim} values"
        raise ShapeError(
            f"{argument} must give one value an axis", argument=argument, got=shown(value), limit=wanted
        )
    return value
