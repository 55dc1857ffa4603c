"""The forward convolution on the Da Vinci family: a plain one gathers, a transposed one scatters."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from kernels.davinci.conversions import Conversions
from kernels.davinci.grid import Grid
from kernels.davinci.image import ConvImage, ImageTensors
from kernels.davinci.image_rules import Setting, plan_image
from kernels.davinci.operands import Operands, sums
from kernels.davinci.tiling import ImageTiling
from kernels.davinci.vectors import MemSet
from kernels.errors import OperandError
from kernels.shape.shapes import ConvShape
from simulator.machine import Machine
from simulator.values.numerics import Array, DType


@dataclass(frozen=True)
class Forward:
    """The output of one call, before a number is made."""

    shape: ConvShape
    machine: Machine
    operands: Operands
    grid: Grid
    rate: str
    conversions: Conversions | None

    @classmethod
    def of(
        cls,
        shape: ConvShape,
        operand: DType,
        machine: Machine,
        given: Mapping[str, object],
        *,
        rate: str | None = None,
        include_layout: bool = False,
        bias: bool = False,
    ) -> Forward:
        """Choose a tiling and addresses.

        Raises:
            TilingError: a field is not usable, or nothing fits with it.
            CapacityError: main memory is too small.
            OperandError: there is a bias, and nothing that it could be added to.
        """
        operands = Operands(shape, operand, machine)
        if bias and operands.sides.empty and 0 not in shape.dy_shape:
            what = "a bias where no channels are summed"
            raise OperandError(what, argument="bias", got=f"{shape.cin} input channels", remedy="add it to y")
        setting = Setting(operands.sides, machine.target, operand, shape.ndim, len(machine.cores), bias)
        way = "scatter" if shape.transposed else "gather"
        tiling: ImageTiling = plan_image(setting, way, given)  # type: ignore[arg-type]  # one of two words
        for name in ("x", "y"):
            operands.image(name)
        operands.weights("w")
        if bias:
            operands.bias("bias", sums())
        grid = Grid(operands.sides, way, tiling)  # type: ignore[arg-type]  # one of two words
        converts = include_layout and setting.converts
        conversions = Conversions(operands, ("x", "w", "y")) if converts else None
        return cls(shape, machine, operands, grid, rate or operand.name, conversions)

    @property
    def host_bytes(self) -> int:
        """Bytes of this computer's memory: operands as given and as stored, and the result twice."""
        return 3 * self.operands.bytes

    @property
    def flops_per_cycle(self) -> float:
        """Peak of a core."""
        return self.machine.target.cube[self.rate].flops_per_cycle

    @property
    def tiling(self) -> dict[str, object]:
        """Every field, and its value."""
        return self.grid.tiling.model_dump()

    def put(self, arrays: Mapping[str, Array]) -> None:
        """Place the channel-first operands."""
        if "bias" in self.operands.held:
            self.operands.put_bias("bias", arrays["bias"])
        if self.conversions is not None:
            for name in ("x", "w"):
                self.conversions.put(name, arrays[name])
            return
        self.operands.put_image("x", arrays["x"])
        self.operands.put_weights("w", arrays["w"])

    def run(self) -> None:
        """Launch it, between the conversions of the layouts where they are asked for."""
        held, target = self.operands.held, self.machine.target
        bias = held.get("bias")
        if bias is not None:
            bias.constant = True
        for name in ("x", "w"):
            if self.conversions is not None:
                self.conversions.bring(name)
            held[name].constant = True
        if not self.operands.sides.empty:
            tensors = ImageTensors(held["x"], held["w"], held["y"], bias)
            kernel = ConvImage("conv_forward", self.grid, tensors, self.operands.operand, self.rate, target)
            self.machine.launch(kernel)
        elif held["y"].size:
            self.machine.launch(MemSet(target, held["y"]))
        if self.conversions is not None:
            self.conversions.return_("y")

    def take(self) -> dict[str, Array]:
        """y, channel first."""
        if self.conversions is not None:
            return {"y": self.conversions.take("y")}
        return {"y": self.operands.take_image("y")}
