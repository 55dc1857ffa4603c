"""Buffers of Da Vinci memories for tests of single instructions."""

import numpy as np
from numpy.typing import NDArray

from simulator.memory.memories import Buffer, View, fill_from
from simulator.values.numerics import Array, dtype


def buffer(memory: str, *shape: int, kind: str = "fp32", values: Array | None = None) -> Buffer:
    """A buffer at address 0; with values, or as a fresh one."""
    made = Buffer(memory, memory, 0, shape, dtype(kind), shared=memory == "gm")
    if values is not None:
        fill_from(made, values.copy())
    return made


def whole(memory: str, *shape: int, kind: str = "fp32", values: Array | None = None) -> View:
    """All of a new buffer."""
    return buffer(memory, *shape, kind=kind, values=values).box((0,) * len(shape), shape)


def integers(*shape: int, seed: int = 0) -> NDArray[np.float32]:
    """Small integers that every type holds."""
    return np.random.default_rng(seed).integers(-4, 5, shape).astype(np.float32)
