"""The forward convolution of one call on the DSP family: its tiling, its buffers, and its launches."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from kernels.dsp.backward import peak_flops_per_cycle
from kernels.dsp.dx.lowering import device_shape, put_dy
from kernels.dsp.panels.call import PanelCall, PanelPlan
from kernels.shape.shapes import ConvShape
from simulator.machine import Machine
from simulator.memory.memories import Buffer, fill_from
from simulator.values.numerics import Array, DType


@dataclass(frozen=True)
class Forward:
    """x, the bias if there is one, and the convolution; a transposed one adds each input to what its taps reach."""

    shape: ConvShape
    call: PanelCall
    x: Buffer
    bias: Buffer | None

    @classmethod
    def of(
        cls, shape: ConvShape, operand: DType, machine: Machine, given: Mapping[str, object], *, bias: bool
    ) -> Forward:
        """Choose a tiling and addresses, before a number is made.

        Raises:
            TilingError: a field is not usable, or nothing fits with it.
            CapacityError: DDR is too small.
        """
        plan = PanelPlan.of(shape, operand, machine, given, gathers=not shape.transposed, bias=bias)
        x = machine.tensor("x", device_shape(shape, shape.x_shape), operand)
        added = machine.tensor("bias", (shape.cout,), operand) if bias else None
        return cls(shape, plan.allocate(x, "y"), x, added)

    @property
    def host_bytes(self) -> int:
        """Bytes of this computer's memory: operands as given and as stored, and the result twice."""
        return 3 * sum(buffer.bytes for buffer in (self.x, *self.call.buffers))

    @property
    def tiling(self) -> dict[str, object]:
        """Every field, and its value."""
        return self.call.plan.fields

    @property
    def flops_per_cycle(self) -> float:
        """Peak of a core."""
        plan = self.call.plan
        return peak_flops_per_cycle(plan.machine, plan.operand, [self.tiling])

    def put(self, arrays: Mapping[str, Array]) -> None:
        """Place the channel-first operands."""
        put_dy(self.shape, self.x, arrays["x"])
        self.call.put_w(arrays["w"])
        if self.bias is not None:
            fill_from(self.bias, arrays["bias"])

    def run(self) -> None:
        """Launch it."""
        if self.bias is not None:
            self.bias.constant = True
        self.call.run("conv_forward", self.bias)

    def take(self) -> dict[str, Array]:
        """y, channel first."""
        return {"y": self.call.take(self.shape.dy_shape)}
