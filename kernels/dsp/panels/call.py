"""A convolution by panels as a call needs it: forward, or the input gradient, each of which is the other's adjoint."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from kernels.dsp.dx import lowering as dx_side
from kernels.dsp.dx.geometry import Geometry
from kernels.dsp.dx.lowering import DxOperands, taken
from kernels.dsp.dx.tiling import DxTiling
from kernels.dsp.forward import lowering as forward_side
from kernels.dsp.forward.lowering import ForwardOperands
from kernels.dsp.forward.tiling import of_panels
from kernels.shape.shapes import ConvShape
from simulator.machine import Machine
from simulator.memory.memories import Buffer, fill_from
from simulator.values.numerics import Array, DType


@dataclass(frozen=True)
class PanelPlan:
    """What is decided before addresses are: the kernel and its tiling.

    `gathers`: each output reads its taps, as in a plain forward convolution and in the input gradient of a transposed
    one; else each element of the source is added to what its taps reach.
    """

    shape: ConvShape
    operand: DType
    machine: Machine
    gathers: bool
    tiling: DxTiling

    @classmethod
    def of(
        cls,
        shape: ConvShape,
        operand: DType,
        machine: Machine,
        given: Mapping[str, object],
        *,
        gathers: bool,
        bias: bool = False,
    ) -> PanelPlan:
        """Choose the tiling.

        Raises:
            TilingError: a field is not usable, or nothing fits with it.
        """
        if gathers:
            tiling = forward_side.forward_tiling(shape, operand, machine, given, bias=bias)
        else:
            tiling = dx_side.dx_tiling(shape, operand, machine, given, bias=bias)
        return cls(shape, operand, machine, gathers, tiling)

    @property
    def fields(self) -> dict[str, object]:
        """The tiling as it is shown."""
        return (of_panels(self.tiling) if self.gathers else self.tiling).model_dump()

    def allocate(self, source: Buffer, name: str) -> PanelCall:
        """Addresses in DDR for weights and the result, which is called `name`.

        Raises:
            CapacityError: DDR is too small.
        """
        shape, operand, machine = self.shape, self.operand, self.machine
        if self.gathers:
            return PanelCall(self, forward_side.allocate_forward(shape, operand, machine, source, name=name))
        return PanelCall(self, dx_side.allocate_dx(shape, operand, machine, self.tiling, source, name=name))


@dataclass(frozen=True)
class PanelCall:
    """A plan with its buffers."""

    plan: PanelPlan
    held: DxOperands | ForwardOperands

    @property
    def result(self) -> Buffer:
        """What it makes."""
        return self.held.dx if isinstance(self.held, DxOperands) else self.held.y

    @property
    def buffers(self) -> list[Buffer]:
        """Weights and result."""
        return [self.held.w, self.result]

    def put_w(self, w: Array) -> None:
        """Place the weights, whose layout the device shares."""
        g = Geometry.of(self.plan.shape)
        fill_from(self.held.w, w.reshape(g.cout, g.cig, g.taps))

    def run(self, name: str, bias: Buffer | None = None) -> None:
        """Launch it under a name."""
        plan = self.plan
        call = (plan.shape, plan.operand, plan.machine, plan.tiling)
        if isinstance(self.held, DxOperands):
            dx_side.run_dx(*call, self.held, bias=bias, name=name)
        else:
            forward_side.run_forward(*call, self.held, bias=bias, name=name)

    def take(self, dims: tuple[int, ...]) -> Array:
        """The result in its shape [N, C, *sizes]."""
        return taken(self.result, dims)
