"""Operations of the vector unit on UB, by what they do; what they cost is a property of their group."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from functools import partial
from math import ceil, prod
from typing import Any, NamedTuple

import numpy as np

from simulator.cube.fractals import table_of
from simulator.errors import ProgramError
from simulator.instructions import Coords, Cost, Instruction
from simulator.memory.memories import View
from simulator.values.numerics import Array
from targets.schema import Target

REPEAT_BYTES = 256
"""Bytes of an operand that one repeat of a vector instruction takes."""

WIDE = 4
"""Bytes of an element from which on an operation counts as one on 32 bits."""

Compute = Callable[..., Any]


class Operation(NamedTuple):
    """What an operation does with its operands, and the group that says what it costs."""

    group: str
    inputs: int
    compute: Compute


def _with_scalar(function: Compute) -> Compute:
    """Of an array and the instruction's scalar, in the array's type."""
    return lambda a, scalar: function(a, a.dtype.type(scalar))


def _sum(a: Array, axis: int) -> Array:
    """Sum along one axis, in fp32."""
    return np.asarray(a.astype(np.float32).sum(axis=axis, dtype=np.float32))


OPERATIONS: dict[str, Operation] = {
    "copy": Operation("unary", 1, np.positive),
    "cast": Operation("unary", 1, np.positive),
    "abs": Operation("unary", 1, np.abs),
    "relu": Operation("unary", 1, lambda a: np.maximum(a, 0)),
    "adds": Operation("unary", 1, _with_scalar(np.add)),
    "muls": Operation("unary", 1, _with_scalar(np.multiply)),
    "maxs": Operation("unary", 1, _with_scalar(np.maximum)),
    "mins": Operation("unary", 1, _with_scalar(np.minimum)),
    "transpose": Operation("unary", 1, np.transpose),
    "add": Operation("binary", 2, np.add),
    "sub": Operation("binary", 2, np.subtract),
    "mul": Operation("binary", 2, np.multiply),
    "max": Operation("binary", 2, np.maximum),
    "min": Operation("binary", 2, np.minimum),
    "div": Operation("divide", 2, np.divide),
    "mul_add": Operation("multiply_add", 3, lambda a, b, c: a * b + c),
    "exp": Operation("special", 1, np.exp),
    "ln": Operation("special", 1, np.log),
    "sqrt": Operation("special", 1, np.sqrt),
    "sum_rows": Operation("binary", 1, partial(_sum, axis=0)),
    "sum_columns": Operation("reduce", 1, partial(_sum, axis=-1)),
    "gather": Operation("gather", 2, lambda a, index: a.reshape(-1)[index.astype(np.intp)]),
}
"""By name: `sum_rows` adds the rows of [rows, ...] one by one, `sum_columns` reduces the last axis; `gather` takes
elements by an index array; the scalar ones take `scalar`, and `transpose` takes `axes`."""


class Vector(Instruction):
    """out = op(inputs) on UB: as many repeats as the largest input has pieces of 256 bytes.

    That the inputs count, not a wider result, is what casts show in the micro-benchmarks of msKPP
    (xiaobingling93-pixel/Ascend-mskpp).
    """

    __slots__ = ("_arguments", "_op", "name", "repeats", "wide")
    engine = "vector"

    def __init__(
        self,
        op: str,
        out: View,
        *inputs: View,
        scalar: float | None = None,
        axes: tuple[int, ...] | None = None,
        coords: Coords = (),
    ) -> None:
        """Apply an operation of `OPERATIONS`; the result is rounded to out's type.

        Raises:
            ProgramError: there is no such operation, or it takes another number of operands.
        """
        found = OPERATIONS.get(op)
        if found is None or found.inputs != len(inputs):
            limit = ", ".join(OPERATIONS) if found is None else f"{found.inputs} operands"
            raise ProgramError("no such vector operation", got=f"{op} of {len(inputs)} operands", limit=limit)
        super().__init__(inputs, (out,), coords)
        self.name = op
        self._op = found
        self._arguments = tuple(each for each in (scalar, axes) if each is not None)
        self.repeats = max(ceil(_bytes(view) / REPEAT_BYTES) for view in inputs)
        self.wide = max(view.buffer.dtype.size_bytes for view in inputs) >= WIDE

    def signature(self) -> Hashable:
        """Group, width and repeats."""
        return ("vector", self._op.group, self.wide, self.repeats)

    def cost(self, target: Target) -> Cost:
        """Cycles of each repeat by group and width.

        Raises:
            ProgramError: the target has no such group.
        """
        return Cost(
            target.issue.vector_cycles, vector_cycles(target, self._op.group, self.repeats, wide=self.wide)
        )

    def execute(self) -> None:
        """Compute and round once."""
        out = self.writes[0]
        inputs = [view.array() for view in self.reads]
        with np.errstate(all="ignore"):
            made = np.asarray(self._op.compute(*inputs, *self._arguments))
            out.put(made.astype(out.buffer.dtype.storage))


class Fill(Instruction):
    """Set a range of UB to one value."""

    __slots__ = ("repeats", "value", "wide")
    engine = "vector"
    name = "fill"

    def __init__(self, out: View, value: float = 0.0, *, coords: Coords = ()) -> None:
        """Fill `out`."""
        super().__init__((), (out,), coords)
        self.value = value
        self.repeats = ceil(_bytes(out) / REPEAT_BYTES)
        self.wide = out.buffer.dtype.size_bytes >= WIDE

    def signature(self) -> Hashable:
        """Width and repeats: as any operation of one operand."""
        return ("vector", "unary", self.wide, self.repeats)

    def cost(self, target: Target) -> Cost:
        """As an operation of one operand.

        Raises:
            ProgramError: the target has no vector unit.
        """
        return Cost(target.issue.vector_cycles, vector_cycles(target, "unary", self.repeats, wide=self.wide))

    def execute(self) -> None:
        """Write the value."""
        out = self.writes[0]
        out.put(np.full(out.shape, self.value, out.buffer.dtype.storage))


def vector_cycles(target: Target, group: str, repeats: int, *, wide: bool) -> int:
    """Cycles of a vector instruction of a group, on elements of 32 bits (wide) or fewer.

    Raises:
        ProgramError: the target has no such group.
    """
    spec = table_of(target.vector_class, "group of vector operations", group, target.name)
    each = spec.cycles_32bit if wide else spec.cycles_16bit
    return max(spec.floor_cycles, ceil(spec.start_cycles + repeats * each))


def _bytes(view: View) -> int:
    return prod(view.shape) * view.buffer.dtype.size_bytes
