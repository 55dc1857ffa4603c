"""The launches around a convolution whose tensors are given, and wanted, in plain layouts."""

from __future__ import annotations

import numpy as np

from kernels.davinci.operands import Operands
from kernels.davinci.trans_data import Piece, TransData, image_pieces, weight_pieces
from kernels.davinci.vectors import MemSet
from simulator.memory.memories import Buffer, fill_from
from simulator.values.numerics import Array

WEIGHTS = ("w", "dw")
"""Tensors that are weights; the others are images."""


class Conversions:
    """Plain twins of the tensors of a call."""

    def __init__(self, operands: Operands, names: tuple[str, ...]) -> None:
        """Allocate the plain twin of each.

        Raises:
            CapacityError: main memory is too small.
        """
        self.operands = operands
        self.plain: dict[str, Buffer] = {}
        for name in names:
            shape = self._shape(name)
            self.plain[name] = operands.machine.tensor(f"{name}_plain", shape, operands.held[name].dtype)

    def _shape(self, name: str) -> tuple[int, ...]:
        s = self.operands.shape
        if name in WEIGHTS:
            return s.w_shape
        return s.x_shape if name in ("x", "dx") else s.dy_shape

    def put(self, name: str, array: Array) -> None:
        """Place an operand as it is given."""
        fill_from(self.plain[name], np.asarray(array))

    def bring(self, name: str) -> None:
        """Launch the conversion of an operand to its blocked layout."""
        blocked, target = self.operands.held[name], self.operands.machine.target
        if not blocked.size:
            return
        self.plain[name].constant = True
        if name in WEIGHTS:
            self.operands.machine.launch(MemSet(target, blocked))
        kernel = TransData(target, self._pieces(name), self.plain[name], blocked, back=False)
        self.operands.machine.launch(kernel)

    def return_(self, name: str) -> None:
        """Launch the conversion of a result to its plain layout."""
        blocked, target = self.operands.held[name], self.operands.machine.target
        if blocked.size:
            kernel = TransData(target, self._pieces(name), self.plain[name], blocked, back=True)
            self.operands.machine.launch(kernel)

    def take(self, name: str) -> Array:
        """A result in its plain layout."""
        return self.plain[name].numbers()

    def _pieces(self, name: str) -> list[Piece]:
        operands = self.operands
        if name in WEIGHTS:
            return weight_pieces(operands.sides)
        return image_pieces(operands.sides, operands.side(name))
