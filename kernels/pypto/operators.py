"""conv_backward_input: the gradient of a 2-D convolution's input, with the tile sizes that were set."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass

import numpy as np

from kernels.aclnn.products import series_of
from kernels.davinci.convert import Convert, Turn, blocked_turns, fractal_turns, plain_turns
from kernels.davinci.given_tiles import GivenTiles, GivenTilesDx
from kernels.davinci.sides import Sides
from kernels.errors import OperandError, TilingError
from kernels.placement import chosen_cores, resolved_target
from kernels.pypto.checks import FRACTAL, Arguments, check_tiles, checked_shape, gradient_box
from kernels.pypto.pypto_impl import ConvBpTileL0Info, ConvBpTileL1Info
from kernels.pypto.settings import DEFAULT_DEVICE, MOST_VECTOR_TILES, Settings, settings
from kernels.pypto.tensors import DataType, Tensor
from kernels.shape.shapes import ConvShape
from simulator.machine import Machine
from simulator.memory.memories import Buffer, fill_from
from simulator.results.run import Run
from targets.schema import Target

SERIES = ("A2", "A3")
"""The products that have the operator."""


@dataclass(frozen=True)
class Plan:
    """A checked call.

    Attributes:
        target, cores: where it runs.
        shape: the geometry, one group.
        l1, l0, vector: the tile sizes, which are obeyed as they are.
    """

    target: Target
    cores: tuple[int, ...]
    shape: ConvShape
    l1: ConvBpTileL1Info
    l0: ConvBpTileL0Info
    vector: tuple[int, ...]

    @property
    def tiling(self) -> dict[str, object]:
        """The tile sizes by the vendor's names."""
        return {**asdict(self.l1), **asdict(self.l0), "vec_tile_shapes": self.vector}

    @property
    def tiles(self) -> GivenTiles:
        """The tile sizes as the kernel takes them."""
        rows, columns = gradient_box(self.shape, self.l1.tileML1)
        l1, l0 = self.l1, self.l0
        gradient = rows * columns * l1.tileKL1 // self.shape.taps
        return GivenTiles(l1.tileML1, l1.tileKL1, l1.tileNL1, l0.tileML0, l0.tileKL0, l0.tileNL0, gradient)


def conv_backward_input(
    grad_output: Tensor,
    input_size: Sequence[int],
    weight: Tensor,
    out_dtype: DataType,
    strides: Sequence[int],
    paddings: Sequence[int],
    dilations: Sequence[int],
    *,
    groups: int = 1,
) -> Tensor:
    """The gradient of a 2-D convolution's input, [N, Cin, Hin, Win]; its `run` says what it cost.

    Args:
        grad_output: [N, Cout, Hout, Wout], DT_FP16 or DT_BF16.
        input_size: [N, Cin, Hin, Win], one of those that give grad_output's size.
        weight: [Cout, Cin, Kh, Kw], of grad_output's type; it has data where grad_output has.
        out_dtype: grad_output's type.
        strides: of H and W, 1 to 63.
        paddings: top, bottom, left, right, 0 to 255; both sides equal, and smaller than the dilated kernel.
        dilations: of H and W, 1 to 63.
        groups: 1.

    Layout conversions before and after are launches on the vector cores. What lies in the padding, or between the
    elements of a gradient that strides spread, is zero and is multiplied, as on the chip: 0 x NaN is NaN.

    Raises:
        OperandError: an argument is outside its rules, or the device is neither Atlas A2 nor A3.
        TilingError: tile sizes are not set, or break a formula.
        CapacityError: a memory is too small.
    """
    given = Arguments(grad_output, input_size, weight, out_dtype, strides, paddings, dilations, groups)
    plan = planned(given, settings())
    run = execute(plan, grad_output, weight)
    return Tensor(plan.shape.x_shape, out_dtype, "grad_input", run.dx, run)


def planned(given: Arguments, held: Settings) -> Plan:
    """A checked call under some settings.

    Raises:
        OperandError: an argument is outside its rules, or the device lacks the operator.
        TilingError: tile sizes are not set, or break a formula.
    """
    target = held.target or resolved_target(DEFAULT_DEVICE)
    if (held.series or series_of(target.name)) not in SERIES:
        raise OperandError(
            "the device does not have this operator",
            argument="device",
            where=target.name,
            limit=" and ".join(f"Atlas {series}" for series in SERIES),
            remedy="pypto.set_device",
        )
    shape = checked_shape(given)
    if held.l1 is None or held.l0 is None:
        field = "set_convbp_input_tile_shapes"
        raise TilingError("tile sizes are not set", field=field, remedy=f"call pypto.{field} before")
    if held.vector is None or len(held.vector) != MOST_VECTOR_TILES:
        field = "set_vec_tile_shapes"
        raise TilingError(
            "a tile size for each axis is not set",
            field=field,
            got=held.vector or "",
            limit="n, c, h, w",
            remedy=f"call pypto.{field} before",
        )
    size = given.grad_output.dtype.kind.size_bytes
    check_tiles(shape, held.l1, held.l0, target, size)
    return Plan(target, chosen_cores(target, held.cores), shape, held.l1, held.l0, held.vector)


def execute(plan: Plan, grad_output: Tensor, weight: Tensor) -> Run:
    """Run a plan: conversions of both operands, the product, the conversion back.

    Raises:
        CapacityError: a memory is too small.
    """
    machine = Machine(plan.target, plan.cores, numerics=grad_output.data is not None)
    kind, shape = grad_output.dtype.kind, plan.shape
    sides = Sides.of(shape, FRACTAL)
    dy, w = (
        machine.tensor(t.name or name, t.shape, kind) for name, t in (("dy", grad_output), ("w", weight))
    )
    blocked = machine.tensor("dy_blocked", sides.image_shape(sides.small), kind)
    fractals = machine.tensor("w_fractals", sides.weight_shape, kind)
    dx_blocked = machine.tensor("dx_blocked", sides.image_shape(sides.large), kind)
    dx = machine.tensor("dx", shape.x_shape, kind)
    if grad_output.data is not None and weight.data is not None:
        fill_from(dy, grad_output.data)
        fill_from(w, weight.data)
    less = "lower set_vec_tile_shapes"

    def convert(name: str, source: Buffer, target: Buffer, turns: list[Turn]) -> None:
        machine.launch(Convert(name, source, target, turns, plan.target, less))

    convert("transdata dy", dy, blocked, blocked_turns(sides, sides.small, plan.vector))
    convert("transdata w", w, fractals, fractal_turns(sides, plan.vector))
    kernel = GivenTilesDx(sides, plan.tiles, blocked, fractals, dx_blocked, plan.target)
    machine.launch(kernel).useful_macs = shape.useful_macs
    convert("transdata dx", dx_blocked, dx, plain_turns(sides, sides.large, plan.vector))
    rate = plan.target.cube[kind.name].flops_per_cycle
    return Run(
        operator="conv_backward_input",
        target=plan.target,
        cores=len(machine.cores),
        dtype=kind.name,
        cycles=machine.cycles,
        launches=machine.launches,
        tiling=plan.tiling,
        trace=machine.trace(),
        outputs={"dx": np.array(dx.numbers())} if machine.numerics else {},
        macs=machine.macs,
        useful_macs=shape.useful_macs,
        peak_flops_per_cycle=rate * len(machine.cores),
        shape=shape.to_dict(),
        numerics=machine.numerics,
    )
