"""Lowering of convolution gradients to launches on the DSP family."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from kernels.dsp.dx.estimate import PanelSetting
from kernels.dsp.dx.geometry import Geometry
from kernels.dsp.dx.kernel import ConvDx, DxTensors
from kernels.dsp.dx.plan import plan, setting_for
from kernels.dsp.dx.reorder import Reorder
from kernels.dsp.dx.tiling import DxTiling
from kernels.shape.shapes import ConvShape
from simulator.machine import Machine
from simulator.memory.memories import Buffer, fill_from
from simulator.values.numerics import Array, DType, dtype


@dataclass(frozen=True)
class DxOperands:
    """dx's buffers: dy [N, D, H, W, Cout], w [Cout, Cin / groups, taps], its tap-major twin, dx [N, D, H, W, Cin]."""

    dy: Buffer
    w: Buffer
    tap_major: Buffer
    dx: Buffer
    workspace: Buffer | None


def dx_tiling(
    shape: ConvShape, operand: DType, machine: Machine, given: Mapping[str, object], *, bias: bool = False
) -> DxTiling:
    """The tiling of dx on the machine's cores, chosen where it is not given; with room for a bias if there is one."""
    setting = dx_setting(shape, operand, machine, given)
    return plan(replace(setting, bias=True) if bias else setting, given)


def dx_setting(
    shape: ConvShape, operand: DType, machine: Machine, given: Mapping[str, object]
) -> PanelSetting:
    """What a tiling of dx is chosen for."""
    sum_type = dtype("fp16" if operand.name == "fp16" and given.get("fp16_accumulate") == "fp16" else "fp32")
    cores = len(machine.cores)
    return setting_for(Geometry.of(shape), machine.target, operand, sum_type, operand, cores)


def allocate_dy(shape: ConvShape, operand: DType, machine: Machine) -> Buffer:
    """An address in DDR for dy, [N, D, H, W, Cout].

    Raises:
        CapacityError: DDR is too small.
    """
    return machine.tensor("dy", device_shape(shape, shape.dy_shape), operand)


def device_shape(shape: ConvShape, dims: tuple[int, ...]) -> tuple[int, ...]:
    """[N, C, *sizes] in the device's layout, [N, D, H, W, C]."""
    return (dims[0], *(1,) * (3 - shape.ndim), *dims[2:], dims[1])


def allocate_dx(
    shape: ConvShape,
    operand: DType,
    machine: Machine,
    tiling: DxTiling,
    dy: Buffer | None = None,
    *,
    name: str = "dx",
) -> DxOperands:
    """Addresses in DDR for all that dx needs (beside dy, where that has one), before a number is made.

    The output of a transposed convolution is the dx of its adjoint, with another `name`.

    Raises:
        CapacityError: DDR is too small.
    """
    g = Geometry.of(shape)
    dy = dy or allocate_dy(shape, operand, machine)
    w = machine.tensor("w", (g.cout, g.cig, g.taps), operand)
    tap_major = machine.tensor("w_tap_major", (g.cout, g.taps, g.cig), operand) if Reorder.needed(g) else w
    dx = machine.tensor(name, g.read_shape, operand)
    workspace = None
    if tiling.column_place == "workspace":
        kind = dtype(tiling.fp16_accumulate if operand.name == "fp16" else "fp32")
        half = tiling.budget_bytes // 2 // kind.size_bytes
        workspace = machine.tensor("workspace", (len(machine.cores), 2, half), kind)
    return DxOperands(dy, w, tap_major, dx, workspace)


def run_dx(
    shape: ConvShape,
    operand: DType,
    machine: Machine,
    tiling: DxTiling,
    operands: DxOperands,
    *,
    bias: Buffer | None = None,
    name: str = "",
) -> None:
    """Launch what dx needs: the weights' new order where it differs, then the products, onto a bias or zero."""
    g = Geometry.of(shape)
    operands.dy.constant = operands.w.constant = True
    tap_major = operands.tap_major
    if tap_major is operands.w:
        tap_major = operands.w.reshaped((g.cout, g.taps, g.cig))
    else:
        machine.launch(Reorder(g, operands.w, tap_major))
        tap_major.constant = True
    tensors = DxTensors(operands.dy, tap_major, operands.dx, operands.workspace, bias)
    launch = machine.launch(ConvDx(g, tiling, tensors, operand, len(machine.cores), name=name))
    launch.useful_macs = shape.useful_macs


def put_operands(shape: ConvShape, operands: DxOperands, dy: Array, w: Array) -> None:
    """Place channel-first operands in the device's layouts."""
    put_dy(shape, operands.dy, dy)
    put_w(shape, operands, w)


def put_dy(shape: ConvShape, buffer: Buffer, dy: Array) -> None:
    """Place channel-first dy, or another tensor of the call, in the device's layout."""
    sizes = (1,) * (3 - shape.ndim) + dy.shape[2:]
    fill_from(buffer, np.moveaxis(dy.reshape(*dy.shape[:2], *sizes), 1, -1))


def put_w(shape: ConvShape, operands: DxOperands, w: Array) -> None:
    """Place the weights, whose layout the device shares."""
    g = Geometry.of(shape)
    fill_from(operands.w, w.reshape(g.cout, g.cig, g.taps))


def take_dx(shape: ConvShape, operands: DxOperands) -> Array:
    """dx, channel first, contiguous."""
    return taken(operands.dx, shape.x_shape)


def taken(buffer: Buffer, dims: tuple[int, ...]) -> Array:
    """A result in its shape [N, C, *sizes], contiguous."""
    return np.ascontiguousarray(np.moveaxis(buffer.numbers(), -1, 1)).reshape(dims)
