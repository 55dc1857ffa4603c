"""Lowering of the forward convolution to launches on the DSP family."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from kernels.dsp.dx.geometry import Geometry
from kernels.dsp.dx.plan import plan
from kernels.dsp.dx.tiling import DxTiling
from kernels.dsp.forward.estimate import ForwardSetting
from kernels.dsp.forward.geometry import ForwardGeometry
from kernels.dsp.forward.kernel import ConvForward
from kernels.dsp.forward.reorder import ReorderForward
from kernels.dsp.forward.tiling import as_panels, renamed
from kernels.dsp.panels.kernel import PanelTensors
from kernels.errors import TilingError
from kernels.shape.shapes import ConvShape
from simulator.machine import Machine
from simulator.memory.memories import Buffer
from simulator.values.numerics import DType, dtype


@dataclass(frozen=True)
class ForwardOperands:
    """Buffers: x [N, D, H, W, Cin], w [Cout, Cin / groups, taps] and in the kernel's order, y [N, D, H, W, Cout]."""

    x: Buffer
    w: Buffer
    ordered: Buffer
    y: Buffer


def forward_tiling(
    shape: ConvShape, operand: DType, machine: Machine, given: Mapping[str, object], *, bias: bool = False
) -> DxTiling:
    """The tiling on the machine's cores, in the terms of panels: chosen where it is not given.

    Raises:
        TilingError: a field is not usable, or nothing fits with it.
    """
    fields = as_panels(given)
    try:
        return plan(forward_setting(shape, operand, machine, fields, bias=bias), fields)
    except TilingError as error:
        raise renamed(error, given) from None


def forward_setting(
    shape: ConvShape, operand: DType, machine: Machine, fields: Mapping[str, object], *, bias: bool = False
) -> ForwardSetting:
    """What a tiling is chosen for; `fields` are those of panels."""
    half = operand.name == "fp16" and fields.get("fp16_accumulate") == "fp16"
    sum_type, turned = dtype("fp16" if half else "fp32"), ForwardGeometry.turned(Geometry.of(shape))
    cores = len(machine.cores)
    return ForwardSetting(turned, machine.target, operand, sum_type, cores, out_type=operand, bias=bias)


def allocate_forward(
    shape: ConvShape, operand: DType, machine: Machine, x: Buffer, *, name: str = "y"
) -> ForwardOperands:
    """Addresses in DDR for weights and y, before a number is made.

    The input gradient of a transposed convolution is the output of its adjoint, with another `name`.

    Raises:
        CapacityError: DDR is too small.
    """
    g = Geometry.of(shape)
    w = machine.tensor("w", (g.cout, g.cig, g.taps), operand)
    order = (g.groups, g.taps, g.cig, g.cog)
    ordered = machine.tensor("w_ordered", order, operand) if ReorderForward.needed(g) else w
    return ForwardOperands(x, w, ordered, machine.tensor(name, g.made_shape, operand))


def run_forward(
    shape: ConvShape,
    operand: DType,
    machine: Machine,
    tiling: DxTiling,
    operands: ForwardOperands,
    *,
    bias: Buffer | None = None,
    name: str = "",
) -> None:
    """Launch the weights' new order where it differs, then the products, onto a bias or zero."""
    g = Geometry.of(shape)
    operands.x.constant = operands.w.constant = True
    ordered = operands.ordered
    if ordered is operands.w:
        ordered = ordered.reshaped((g.groups, g.taps, g.cig, g.cog))
    else:
        machine.launch(ReorderForward(g, operands.w, ordered))
        ordered.constant = True
    tensors = PanelTensors(operands.x, ordered, operands.y, bias=bias)
    turned, cores = ForwardGeometry.turned(g), len(machine.cores)
    launch = machine.launch(ConvForward(turned, tiling, tensors, operand, cores, name=name))
    launch.useful_macs = shape.useful_macs
