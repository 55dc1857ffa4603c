"""Lowering of convolution gradients to launches on the DSP family."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

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


def dx_tiling(shape: ConvShape, operand: DType, machine: Machine, given: Mapping[str, object]) -> DxTiling:
    """The tiling of dx on the machine's cores: chosen where it is not given."""
    sum_type = dtype("fp16" if operand.name == "fp16" and given.get("fp16_accumulate") == "fp16" else "fp32")
    cores = len(machine.cores)
    return plan(setting_for(Geometry.of(shape), machine.target, operand, sum_type, operand, cores), given)


def allocate_dy(shape: ConvShape, operand: DType, machine: Machine) -> Buffer:
    """An address in DDR for dy, [N, D, H, W, Cout].

    Raises:
        CapacityError: DDR is too small.
    """
    s = shape.as_3d()
    return machine.tensor("dy", (s.n, *s.out, s.cout), operand)


def allocate_dx(
    shape: ConvShape, operand: DType, machine: Machine, tiling: DxTiling, dy: Buffer | None = None
) -> DxOperands:
    """Addresses in DDR for all that dx needs (beside dy, where that has one), before a number is made.

    Raises:
        CapacityError: DDR is too small.
    """
    s, g = shape.as_3d(), Geometry.of(shape)
    dy = dy or allocate_dy(shape, operand, machine)
    w = machine.tensor("w", (g.cout, g.cig, g.taps), operand)
    tap_major = machine.tensor("w_tap_major", (g.cout, g.taps, g.cig), operand) if Reorder.needed(g) else w
    dx = machine.tensor("dx", (g.n, *s.size, g.cin), operand)
    workspace = None
    if tiling.column_place == "workspace":
        kind = dtype(tiling.fp16_accumulate if operand.name == "fp16" else "fp32")
        half = tiling.budget_bytes // 2 // kind.size_bytes
        workspace = machine.tensor("workspace", (len(machine.cores), 2, half), kind)
    return DxOperands(dy, w, tap_major, dx, workspace)


def run_dx(
    shape: ConvShape, operand: DType, machine: Machine, tiling: DxTiling, operands: DxOperands
) -> None:
    """Launch what dx needs: the weights' new order where it differs, then the products."""
    g = Geometry.of(shape)
    operands.dy.constant = operands.w.constant = True
    tap_major = operands.tap_major
    if tap_major is operands.w:
        tap_major = operands.w.reshaped((g.cout, g.taps, g.cig))
    else:
        machine.launch(Reorder(g, operands.w, tap_major))
        tap_major.constant = True
    tensors = DxTensors(operands.dy, tap_major, operands.dx, operands.workspace)
    launch = machine.launch(ConvDx(g, tiling, tensors, operand, len(machine.cores)))
    launch.useful_macs = shape.useful_macs


def put_operands(shape: ConvShape, operands: DxOperands, dy: Array, w: Array) -> None:
    """Place channel-first operands in the device's layouts."""
    put_dy(shape, operands.dy, dy)
    put_w(shape, operands, w)


def put_dy(shape: ConvShape, buffer: Buffer, dy: Array) -> None:
    """Place channel-first dy in the device's layout."""
    s = shape.as_3d()
    fill_from(buffer, np.moveaxis(dy.reshape(s.n, s.cout, *s.out), 1, -1))


def put_w(shape: ConvShape, operands: DxOperands, w: Array) -> None:
    """Place the weights, whose layout the device shares."""
    g = Geometry.of(shape)
    fill_from(operands.w, w.reshape(g.cout, g.cig, g.taps))


def take_dx(shape: ConvShape, operands: DxOperands) -> Array:
    """dx, channel first, contiguous."""
    return np.ascontiguousarray(np.moveaxis(operands.dx.numbers(), -1, 1)).reshape(shape.x_shape)
