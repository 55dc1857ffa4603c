"""The tables that only Da Vinci targets have: cube, its loads and its write-out, and the vector unit."""

from typing import Annotated, Self

from pydantic import Field, model_validator

from targets.tables import Count, Natural, Rate, Table

Cycles = Annotated[float, Field(ge=0, allow_inf_nan=False)]
"""Cycles of a part of an instruction, not rounded yet."""


class CubeSpec(Table):
    """The cube with operands of one data type; the table is named after it ("fp16", "hf32").

    A product m x n x k, each rounded up to whole fractals, takes m * n * k / macs_per_cycle and a head.

    Attributes:
        granule_k: k is rounded up to this many.
        macs_per_cycle: multiply-adds a cycle.
        head_cycles: added to an instruction that follows another at once.
        isolated_head_cycles: added instead where the cube stood idle before.
        flops_per_cycle: peak of one core (a multiply-add is two).
    """

    granule_k: Count
    macs_per_cycle: Rate
    head_cycles: Natural
    isolated_head_cycles: Natural
    flops_per_cycle: Rate


class Load2dSpec(Table):
    """A load of whole fractals from L1; the table is named after the destination.

    Attributes:
        bytes_per_cycle, transposed_bytes_per_cycle: rate of a plain and of a transposing load.
        start_cycles, transposed_start_cycles: added for each instruction.
        idle_cycles: added where the engine stood idle before.
    """

    bytes_per_cycle: Rate
    transposed_bytes_per_cycle: Rate
    start_cycles: Cycles
    transposed_start_cycles: Cycles
    idle_cycles: Natural


class Load3dSpec(Table):
    """A load from L1 that makes columns of an image (im2col); the table is named after the destination.

    A fractal whose positions span n rows of the image takes `stride_cycles` times the column stride, n more where
    n > 1, and `extra_cycles`. With the stride 1 it takes at most `most_cycles` before the extra ones; with a
    stride that is not one of `fast_strides` it always takes these.

    Attributes:
        stride_cycles, most_cycles, extra_cycles, fast_strides: as above.
        start_cycles: added for each instruction.
        idle_cycles: added where the engine stood idle before.
    """

    stride_cycles: Rate
    most_cycles: Rate
    extra_cycles: Cycles
    fast_strides: Annotated[tuple[Count, ...], Field(min_length=1, strict=False)]
    start_cycles: Cycles
    idle_cycles: Natural


class FixpipeSpec(Table):
    """The write-out of L0C in one layout; the table is named after the layout, `chip` is for L1 and UB in any layout.

    Attributes:
        start_cycles: added for each instruction.
        bytes_per_cycle: rate of what is written.
        elements_per_cycle: rate of the elements; where both rates are given, the slower one holds.
        atomic_bytes_per_cycle: rate of what is added in the memory, where it differs.

    Raises:
        ValueError: neither of the rates is given.
    """

    start_cycles: Cycles
    bytes_per_cycle: Rate | None = None
    elements_per_cycle: Rate | None = None
    atomic_bytes_per_cycle: Rate | None = None

    @model_validator(mode="after")
    def _some_rate(self) -> Self:
        if self.bytes_per_cycle is None and self.elements_per_cycle is None:
            raise ValueError("bytes_per_cycle or elements_per_cycle, not neither")
        return self


class VectorClassSpec(Table):
    """A group of vector operations that cost the same.

    Attributes:
        cycles_16bit, cycles_32bit: cycles of a repeat (256 bytes of the widest operand), by its element size.
        start_cycles: added for each instruction.
        floor_cycles: no instruction is shorter.
    """

    cycles_16bit: Rate
    cycles_32bit: Rate
    start_cycles: Cycles
    floor_cycles: Natural
