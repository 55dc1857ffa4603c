"""Lowering of the gradients of weights and bias to launches on the DSP family."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from kernels.dsp.dw.bias import ConvDb, outputs_at_a_time
from kernels.dsp.dw.kernel import ConvDw, DwTensors
from kernels.dsp.dw.plan import plan
from kernels.dsp.dw.reduce import Reduce
from kernels.dsp.dw.shares import active
from kernels.dsp.dw.tiling import DbTiling, DwTiling, checked_db
from kernels.dsp.dx.geometry import Geometry
from kernels.dsp.dx.lowering import device_shape, put_dy
from kernels.dsp.dx.reorder import Reorder, Restore
from kernels.dsp.setting import Setting
from kernels.shape.shapes import ConvShape
from simulator.machine import Machine
from simulator.memory.memories import Buffer
from simulator.values.numerics import Array, DType, dtype


@dataclass(frozen=True)
class DwOperands:
    """The buffers of dw beside dy.

    Attributes:
        x: [N, D, H, W, Cin].
        sums: [cores that have any, Cout, taps, Cin / groups].
        tap_major: their total, [1, Cout, taps, Cin / groups]; the sums themselves where one core has all.
        dw: [Cout, Cin / groups, taps]; tap_major itself where the bytes are the same.
    """

    x: Buffer
    sums: Buffer
    tap_major: Buffer
    dw: Buffer


@dataclass(frozen=True)
class DbOperands:
    """The buffers of db beside dy: sums [cores that have any, Cout], and db [1, Cout]; one where one core has all."""

    sums: Buffer
    db: Buffer


def dw_tiling(shape: ConvShape, operand: DType, machine: Machine, given: Mapping[str, object]) -> DwTiling:
    """The tiling of dw on the machine's cores: chosen where it is not given."""
    return plan(dw_setting(shape, operand, machine, given), given)


def dw_setting(shape: ConvShape, operand: DType, machine: Machine, given: Mapping[str, object]) -> Setting:
    """What a tiling of dw is chosen for."""
    half = operand.name == "fp16" and given.get("fp16_accumulate") == "fp16"
    sum_type = dtype("fp16" if half else "fp32")
    return Setting(Geometry.of(shape), machine.target, operand, sum_type, len(machine.cores))


def allocate_dw(shape: ConvShape, operand: DType, machine: Machine, tiling: DwTiling) -> DwOperands:
    """Addresses in DDR for all that dw needs beside dy, before a number is made.

    A transposed convolution is the adjoint of a plain one: the roles of x and dy are exchanged.

    Raises:
        CapacityError: DDR is too small.
    """
    g = Geometry.of(shape)
    x = machine.tensor("x", device_shape(shape, shape.x_shape), operand)
    holders = active(g, tiling.split, len(machine.cores))
    size = (g.cout, g.taps, g.cig)
    tap_major = machine.tensor("dw_tap_major", (1, *size), operand)
    sums = tap_major if holders == 1 else machine.tensor("dw_partial", (holders, *size), dtype("fp32"))
    dw = machine.tensor("dw", (g.cout, g.cig, g.taps), operand) if Reorder.needed(g) else tap_major
    return DwOperands(x, sums, tap_major, dw)


def run_dw(
    shape: ConvShape, operand: DType, machine: Machine, tiling: DwTiling, dy: Buffer, operands: DwOperands
) -> None:
    """Launch what dw needs: the products, the reduction over cores, and the order of the weights where it differs."""
    g = Geometry.of(shape)
    dy.constant = operands.x.constant = True
    made, read = (operands.x, dy) if shape.transposed else (dy, operands.x)
    launch = machine.launch(ConvDw(g, tiling, DwTensors(made, read, operands.sums), operand))
    launch.useful_macs = shape.useful_macs
    if operands.sums is not operands.tap_major:
        machine.launch(Reduce("reduce_dw", operands.sums, operands.tap_major))
    if operands.dw is not operands.tap_major:
        tap_major = operands.tap_major.reshaped((g.cout, g.taps, g.cig))
        machine.launch(Restore(g, tap_major, operands.dw))


def put_x(shape: ConvShape, operands: DwOperands, x: Array) -> None:
    """Place the channel-first input in the device's layout."""
    put_dy(shape, operands.x, x)


def take_dw(shape: ConvShape, operands: DwOperands) -> Array:
    """The gradient of the weights, in their shape."""
    return operands.dw.numbers().reshape(shape.w_shape)


def db_tiling(shape: ConvShape, given: Mapping[str, object]) -> DbTiling:
    """The tiling of db."""
    return checked_db({"k": outputs_at_a_time(shape.cout), **given})


def allocate_db(operand: DType, machine: Machine, dy: Buffer) -> DbOperands:
    """Addresses in DDR for db.

    Raises:
        CapacityError: DDR is too small.
    """
    holders, cout = ConvDb.active(dy, len(machine.cores)), dy.shape[-1]
    db = machine.tensor("db", (1, cout), operand)
    sums = db if holders == 1 else machine.tensor("db_partial", (holders, cout), dtype("fp32"))
    return DbOperands(sums, db)


def run_db(machine: Machine, tiling: DbTiling, dy: Buffer, operands: DbOperands) -> None:
    """Launch what db needs: the sums, and the reduction over cores."""
    dy.constant = True
    machine.launch(ConvDb(dy, operands.sums, tiling.k))
    if operands.sums is not operands.db:
        machine.launch(Reduce("reduce_db", operands.sums, operands.db))


def take_db(operands: DbOperands) -> Array:
    """The gradient of the bias, [Cout]."""
    return operands.db.numbers().reshape(-1)
