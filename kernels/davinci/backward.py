"""Any subset of a convolution's gradients on the Da Vinci family: tilings, tensors, and launches.

dx of a plain convolution, and forward of a transposed one, scatter; dx of a transposed one, and forward of a
plain one, gather. dw is summed in fp32 by atomic additions of the cores, onto zeros that a launch before it writes, and
then rounded. db is a sum on vector cores.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

from kernels.davinci.bias import ELEMENTS, ReduceSum
from kernels.davinci.conversions import Conversions
from kernels.davinci.grid import Grid
from kernels.davinci.image import ConvImage, ImageTensors
from kernels.davinci.image_rules import Setting, plan_image
from kernels.davinci.operands import Operands, sums
from kernels.davinci.sums import WeightGrid
from kernels.davinci.terms import Absent
from kernels.davinci.tiling import BiasTiling, ImageTiling, Tiling, WeightTiling, checked
from kernels.davinci.vectors import CastAll, MemSet
from kernels.davinci.weight_rules import plan_weights
from kernels.davinci.weights import ConvWeights, WeightTensors
from kernels.gradient_fields import PREFIXES, split_tiling
from kernels.shape.shapes import ConvShape
from simulator.machine import Machine
from simulator.values.numerics import Array, DType

Way = Literal["gather", "scatter"]


@dataclass
class Backward:
    """The gradients of one call: what is asked for has a tiling and operands."""

    shape: ConvShape
    operand: DType
    machine: Machine
    grads: tuple[str, ...]
    tilings: dict[str, Tiling]
    operands: Operands
    rate: str
    conversions: Conversions | None = None
    absent: Absent = "skipped"
    unrounded: frozenset[str] = frozenset()

    @classmethod
    def of(
        cls,
        shape: ConvShape,
        operand: DType,
        machine: Machine,
        grads: tuple[str, ...],
        given: Mapping[str, object],
        *,
        rate: str | None = None,
        include_layout: bool = False,
        absent: Absent = "skipped",
        unrounded: frozenset[str] = frozenset(),
    ) -> Backward:
        """Choose tilings and addresses, before a number is made.

        Args:
            shape: the geometry.
            operand: what tensors are stored in.
            machine: where it runs.
            grads: which gradients.
            given: fields of the tilings to keep, those of dw and db with their prefixes.
            rate: what the cube computes in, where it is not the stored type ("hf32").
            include_layout: launch the conversions between plain tensors and the device's layouts too, on chips whose
                kernels do not take plain tensors.
            absent: products of the padding are "skipped", or made with "zeros" as on the chip: 0 x NaN is NaN.
            unrounded: which of dw and db stay in fp32, as they are summed.

        Raises:
            TilingError: a field is not usable, or nothing fits with it.
            CapacityError: main memory is too small.
        """
        fields = split_tiling(given, grads)
        operands = Operands(shape, operand, machine)
        made = cls(shape, operand, machine, grads, {}, operands, rate or operand.name)
        made.absent, made.unrounded = absent, unrounded
        if "dx" in grads:
            made.tilings["dx"] = plan_image(made.setting, made.way, fields["dx"])
            for name in ("dy", "dx"):
                operands.image(name)
            operands.weights("w")
        if "dw" in grads:
            made.tilings["dw"] = plan_weights(made.setting, fields["dw"])
            for name in ("dy", "x"):
                operands.image(name)
            operands.weights(made._sums("dw"), sums())
            operands.weights("dw")
        if "db" in grads:
            k = max(1, ELEMENTS // operands.sides.c0)
            made.tilings["db"] = checked(BiasTiling, {"k": k, **fields["db"]}, PREFIXES["db"])
            operands.image("dy")
            operands.bias(made._sums("db"), sums())
            operands.bias("db")
        if include_layout and made.setting.converts:
            names = tuple(n for n in ("dy", "x", "w", "dx", "dw") if n in operands.held)
            made.conversions = Conversions(operands, names)
        return made

    @property
    def way(self) -> Way:
        """How dx is computed."""
        return "gather" if self.shape.transposed else "scatter"

    @property
    def setting(self) -> Setting:
        """What tilings are chosen for."""
        m = self.machine
        return Setting(self.operands.sides, m.target, self.operand, self.shape.ndim, len(m.cores))

    def _sums(self, grad: str) -> str:
        """The tensor that a gradient is summed in: itself where its type is fp32."""
        return grad if self.operand is sums() or grad in self.unrounded else f"{grad}_sums"

    @property
    def host_bytes(self) -> int:
        """Bytes of this computer's memory: operands as given and as stored, gradients twice, and sums."""
        return 3 * self.operands.bytes

    @property
    def flops_per_cycle(self) -> float:
        """Peak of a core."""
        return self.machine.target.cube[self.rate].flops_per_cycle

    @property
    def tiling(self) -> dict[str, object]:
        """Every field with its prefix, and its value."""
        return {
            PREFIXES[grad] + name: value
            for grad, tiling in self.tilings.items()
            for name, value in tiling.model_dump().items()
        }

    def put(self, arrays: Mapping[str, Array]) -> None:
        """Place the channel-first operands."""
        if self.conversions is not None:
            for name in ("dy", "x", "w"):
                if name in self.operands.held:
                    self.conversions.put(name, arrays[name])
            return
        for name in ("dy", "x"):
            if name in self.operands.held:
                self.operands.put_image(name, arrays[name])
        if "w" in self.operands.held:
            self.operands.put_weights("w", arrays["w"])

    def run(self) -> None:
        """Launch what the gradients need: dx, then dw, then db."""
        for _ in self.parts():
            pass

    def parts(self) -> Iterator[str]:
        """Launch what the gradients need, one gradient after another; its name comes when its launches have run."""
        for name in ("dy", "x", "w"):
            if name in self.operands.held:
                if self.conversions is not None:
                    self.conversions.bring(name)
                self.operands.held[name].constant = True
        for grad in PREFIXES:
            if grad in self.tilings:
                getattr(self, f"_run_{grad}")()
                if self.conversions is not None and grad != "db":
                    self.conversions.return_(grad)
                yield grad

    def _run_dx(self) -> None:
        held, tiling, target = self.operands.held, self.tilings["dx"], self.machine.target
        assert isinstance(tiling, ImageTiling)  # noqa: S101  # as `of` made it
        if self.operands.sides.empty:
            self._zero("dx")
            return
        grid = Grid(self.operands.sides, self.way, tiling)
        tensors = ImageTensors(held["dy"], held["w"], held["dx"])
        kernel = ConvImage("conv_dx", grid, tensors, self.operand, self.rate, target)
        kernel.absent = self.absent
        self.machine.launch(kernel).useful_macs = self.shape.useful_macs

    def _run_dw(self) -> None:
        held, tiling, target = self.operands.held, self.tilings["dw"], self.machine.target
        assert isinstance(tiling, WeightTiling)  # noqa: S101  # as `of` made it
        self._zero(self._sums("dw"))
        if not self.operands.sides.empty:
            grid = WeightGrid(self.operands.sides, tiling)
            small, large = ("x", "dy") if self.shape.transposed else ("dy", "x")
            tensors = WeightTensors(held[small], held[large], held[self._sums("dw")])
            kernel = ConvWeights(grid, tensors, self.operand, self.rate, target)
            kernel.absent = self.absent
            self.machine.launch(kernel).useful_macs = self.shape.useful_macs
        self._round("dw")

    def _run_db(self) -> None:
        held, tiling = self.operands.held, self.tilings["db"]
        assert isinstance(tiling, BiasTiling)  # noqa: S101  # as `of` made it
        self._zero(self._sums("db"))
        if held["dy"].size:
            self.machine.launch(ReduceSum(self.machine.target, held["dy"], held[self._sums("db")], tiling.k))
        self._round("db")

    def _zero(self, name: str) -> None:
        if self.operands.held[name].size:
            self.machine.launch(MemSet(self.machine.target, self.operands.held[name]))

    def _round(self, grad: str) -> None:
        held = self.operands.held
        if self._sums(grad) != grad and held[grad].size:
            self.machine.launch(CastAll(self.machine.target, held[grad], held[self._sums(grad)]))

    def take(self) -> dict[str, Array]:
        """The gradients, channel first."""
        found: dict[str, Array] = {}
        if self.conversions is not None:
            found = {grad: self.conversions.take(grad) for grad in ("dx", "dw") if grad in self.tilings}
            return {**found, "db": self.operands.take_bias("db")} if "db" in self.tilings else found
        if "dx" in self.tilings:
            found["dx"] = self.operands.take_image("dx")
        if "dw" in self.tilings:
            found["dw"] = self.operands.take_weights("dw")
        if "db" in self.tilings:
            found["db"] = self.operands.take_bias("db")
        return found
