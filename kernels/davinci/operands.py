"""The tensors of a convolution in main memory, in the layouts of the device."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from kernels.davinci.layout import from_blocks, from_fractals, to_blocks, to_fractals
from kernels.davinci.sides import Side, Sides
from kernels.shape.shapes import ConvShape
from simulator.machine import Machine
from simulator.memory.memories import Buffer, fill_from
from simulator.values.numerics import Array, DType, dtype

BLOCK_BYTES = 32
"""Bytes of a block of C0 channels."""


@dataclass
class Operands:
    """Tensors by name, made where they are asked for; "x", "dx" lie as the input, "dy", "y" as the output.

    Attributes:
        shape: the geometry of the call.
        operand: the type that tensors are stored in.
        machine: where they lie.
        held: those that there are.
    """

    shape: ConvShape
    operand: DType
    machine: Machine
    held: dict[str, Buffer] = field(default_factory=dict)

    @property
    def sides(self) -> Sides:
        """The geometry as the cube sees it."""
        return Sides.of(self.shape, BLOCK_BYTES // self.operand.size_bytes)

    def side(self, name: str) -> Side:
        """The side that an image lies on: of a plain convolution, the output is the strided one."""
        small = (name in ("dy", "y")) != self.shape.transposed
        return self.sides.small if small else self.sides.large

    def image(self, name: str) -> Buffer:
        """An image, NDC1HWC0.

        Raises:
            CapacityError: main memory is too small.
        """
        return self._tensor(name, self.sides.image_shape(self.side(name)), self.operand)

    def weights(self, name: str, kind: DType | None = None) -> Buffer:
        """Weights or their gradient, FRACTAL_Z.

        Raises:
            CapacityError: main memory is too small.
        """
        return self._tensor(name, self.sides.weight_shape, kind or self.operand)

    def bias(self, name: str, kind: DType | None = None) -> Buffer:
        """A bias or its gradient, [groups x blocks x C0].

        Raises:
            CapacityError: main memory is too small.
        """
        side = self.side("dy")
        return self._tensor(name, (self.sides.groups * side.blocks * self.sides.c0,), kind or self.operand)

    def _tensor(self, name: str, shape: tuple[int, ...], kind: DType) -> Buffer:
        if name not in self.held:
            self.held[name] = self.machine.tensor(name, shape, kind)
        return self.held[name]

    def put_image(self, name: str, array: Array) -> None:
        """Place a channel-first image."""
        values = np.asarray(array).astype(self.operand.storage, copy=False)
        fill_from(self.held[name], to_blocks(self.sides, self.side(name), values))

    def put_weights(self, name: str, array: Array) -> None:
        """Place weights, [strided side's channels, other channels of a group, *kernel]."""
        values = np.asarray(array).astype(self.operand.storage, copy=False)
        fill_from(self.held[name], to_fractals(self.sides, values))

    def put_bias(self, name: str, array: Array) -> None:
        """Place a bias, [Cout], as its channels lie in an image."""
        side, one = replace(self.side("dy"), size=(1, 1, 1)), replace(self.sides, n=1)
        held = self.held[name]
        values = np.asarray(array).astype(held.dtype.storage).reshape(1, -1, 1, 1, 1)
        fill_from(held, to_blocks(one, side, values).reshape(held.shape))

    def take_image(self, name: str) -> Array:
        """An image, channel first."""
        shape = self.shape.x_shape if name in ("x", "dx") else self.shape.dy_shape
        return from_blocks(self.sides, self.side(name), self.held[name].numbers()).reshape(shape)

    def take_weights(self, name: str) -> Array:
        """Weights in the shape of the call."""
        return from_fractals(self.sides, self.held[name].numbers()).reshape(self.shape.w_shape)

    def take_bias(self, name: str) -> Array:
        """The gradient of the bias, [Cout]."""
        side = replace(self.side("dy"), size=(1, 1, 1))
        one = replace(self.sides, n=1)
        return from_blocks(one, side, self.held[name].numbers()).reshape(self.shape.cout)

    @property
    def bytes(self) -> int:
        """Bytes of all of them."""
        return sum(buffer.bytes for buffer in self.held.values())


def sums() -> DType:
    """The type of what is summed in main memory."""
    return dtype("fp32")
