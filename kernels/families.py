"""What the neutral operators ask of a family of targets, and which family does it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

from kernels.davinci.backward import Backward as DavinciBackward
from kernels.davinci.deform.backward import DeformBackward as DavinciDeform
from kernels.davinci.forward import Forward as DavinciForward
from kernels.dsp.backward import Backward as DspBackward
from kernels.dsp.deform.backward import DeformBackward as DspDeform
from kernels.dsp.forward.call import Forward as DspForward
from kernels.errors import OperandError
from kernels.shape.deform import DeformShape
from kernels.shape.shapes import ConvShape
from simulator.machine import Machine
from simulator.values.numerics import Array, DType, dtype

STORED = {"hf32": "fp32"}
"""Types that only the cube computes in, and what their operands are stored in."""


class Lowered(Protocol):
    """What one call computes (its gradients, or its output), with tilings and addresses, before a number is made."""

    @property
    def host_bytes(self) -> int:
        """Bytes of this computer's memory that the numbers take."""

    @property
    def flops_per_cycle(self) -> float:
        """Peak of a core (of a cube)."""

    @property
    def tiling(self) -> dict[str, object]:
        """Every field with its prefix, and its value."""

    def put(self, arrays: Mapping[str, Array]) -> None:
        """Place the channel-first operands."""

    def run(self) -> None:
        """Launch what they need."""

    def take(self) -> dict[str, Array]:
        """The results by name, channel first."""


class LoweredDeform(Lowered, Protocol):
    """What one call of a deformable convolution computes."""

    machine: Machine
    shape: DeformShape
    grads: tuple[str, ...]

    @property
    def scattered(self) -> bool:
        """Whether the gradient of the features is computed."""


def stored_in(name: str) -> DType:
    """The type that operands are stored in where the chip computes in the type called `name`."""
    return dtype(STORED.get(name, name))


def backward_of(
    shape: ConvShape,
    computed: str,
    machine: Machine,
    grads: tuple[str, ...],
    given: Mapping[str, object],
    *,
    include_layout: bool = False,
) -> Lowered:
    """The gradients of a call on the machine's family; `computed` is the type that the chip computes in.

    Raises:
        TilingError: a field is not usable, or nothing fits with it.
        CapacityError: main memory is too small.
        OperandError: the family has no layouts to convert between.
    """
    operand = stored_in(computed)
    if machine.target.family == "davinci":
        return DavinciBackward.of(
            shape, operand, machine, grads, given, rate=computed, include_layout=include_layout
        )
    if include_layout:
        what = "this family of targets takes tensors as they are: there is no layout to convert"
        raise OperandError(what, argument="include_layout", where=machine.target.name)
    return DspBackward.of(shape, operand, machine, grads, given)


def forward_of(
    shape: ConvShape,
    computed: str,
    machine: Machine,
    given: Mapping[str, object],
    *,
    bias: bool,
    include_layout: bool = False,
) -> Lowered:
    """The output of a call on the machine's family; `computed` is the type that the chip computes in.

    Raises:
        TilingError: a field is not usable, or nothing fits with it.
        CapacityError: main memory is too small.
        OperandError: the family has no layouts to convert between, or adds no bias.
    """
    operand = stored_in(computed)
    if machine.target.family == "davinci":
        if bias:
            what = "this family of targets computes the convolution only"
            raise OperandError(what, argument="bias", where=machine.target.name, remedy="add it to y")
        return DavinciForward.of(shape, operand, machine, given, rate=computed, include_layout=include_layout)
    if include_layout:
        what = "this family of targets takes tensors as they are: there is no layout to convert"
        raise OperandError(what, argument="include_layout", where=machine.target.name)
    return DspForward.of(shape, operand, machine, given, bias=bias)


def deform_of(
    shape: DeformShape,
    computed: str,
    machine: Machine,
    grads: tuple[str, ...],
    given: Mapping[str, object],
    offset: Array,
    *,
    features: bool,
    deterministic: bool,
) -> LoweredDeform:
    """The gradients of a deformable convolution on the machine's family.

    `features`: those of the forward pass are an operand. On a DSP every order is fixed: `deterministic` costs nothing.

    Raises:
        TilingError: a field is not usable, or nothing fits with it.
        CapacityError: main memory is too small.
    """
    operand = stored_in(computed)
    if machine.target.family == "dsp":
        return DspDeform.of(shape, operand, machine, grads, given, offset, features=features)
    return DavinciDeform.of(
        shape, operand, machine, grads, given, offset, rate=computed, deterministic=deterministic
    )
