"""Channel-first arrays to and from the layouts of the device: NDC1HWC0 images and FRACTAL_Z weights."""

from __future__ import annotations

import numpy as np

from kernels.davinci.sides import Side, Sides
from simulator.values.numerics import Array


def to_blocks(sides: Sides, side: Side, array: Array) -> Array:
    """An image [N, groups x channels, *size] as [N, D, groups x blocks, H, W, C0]; what pads channels is 0."""
    n, single = sides.n, side.channels // sides.merged
    whole = np.zeros((n, sides.groups * sides.merged, single, *side.size), array.dtype)
    whole[:, : sides.single] = array.reshape(n, sides.single, single, *side.size)
    merged = whole.reshape(n, sides.groups, side.channels, *side.size)
    padded = np.zeros((n, sides.groups, side.blocks * sides.c0, *side.size), array.dtype)
    padded[:, :, : side.channels] = merged
    split = padded.reshape(n, sides.groups * side.blocks, sides.c0, *side.size)
    return np.ascontiguousarray(split.transpose(0, 3, 1, 4, 5, 2))


def from_blocks(sides: Sides, side: Side, blocks: Array) -> Array:
    """The image [N, groups x channels, D, H, W] of a blocked one."""
    n, single = sides.n, side.channels // sides.merged
    split = blocks.reshape(sides.image_shape(side)).transpose(0, 2, 5, 1, 3, 4)
    padded = split.reshape(n, sides.groups, side.blocks * sides.c0, *side.size)[:, :, : side.channels]
    whole = padded.reshape(n, sides.groups * sides.merged, single, *side.size)[:, : sides.single]
    return np.ascontiguousarray(whole.reshape(n, sides.single * single, *side.size))


def to_fractals(sides: Sides, weights: Array) -> Array:
    """Weights [groups x small, large, *kernel] in FRACTAL_Z; between merged groups, and beyond channels, they are 0."""
    g, kd, blocks, taps, wide, sixteen, c0 = sides.weight_shape
    padded = np.zeros((g, wide * sixteen, blocks * c0, kd, taps), weights.dtype)
    given = weights.reshape(sides.single, sides.cs, sides.cl, kd, taps)
    for group in range(sides.single):
        where, slot = divmod(group, sides.merged)
        rows = slice(slot * sides.cs, (slot + 1) * sides.cs)
        padded[where, rows, slot * sides.cl : (slot + 1) * sides.cl] = given[group]
    split = padded.reshape(g, wide, sixteen, blocks, c0, kd, taps)
    return np.ascontiguousarray(split.transpose(0, 5, 3, 6, 1, 2, 4))


def from_fractals(sides: Sides, fractals: Array) -> Array:
    """Weights [groups x small, large, taps] of FRACTAL_Z ones."""
    g, kd, blocks, taps, wide, sixteen, c0 = sides.weight_shape
    split = fractals.reshape(sides.weight_shape).transpose(0, 4, 5, 2, 6, 1, 3)
    padded = split.reshape(g, wide * sixteen, blocks * c0, kd * taps)
    found = np.zeros((sides.single, sides.cs, sides.cl, kd * taps), fractals.dtype)
    for group in range(sides.single):
        where, slot = divmod(group, sides.merged)
        rows = slice(slot * sides.cs, (slot + 1) * sides.cs)
        found[group] = padded[where, rows, slot * sides.cl : (slot + 1) * sides.cl]
    return found
