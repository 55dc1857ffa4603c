"""The launches of a call: which path it takes, and the kernels of that path."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from kernels.dsp.dx.estimate import PanelSetting
from kernels.dsp.dx.geometry import Geometry
from kernels.dsp.dx.kernel import ConvDx, DxTensors
from kernels.dsp.dx.plan import group_count, plan, setting_for
from kernels.dsp.dx.reorder import Reorder
from kernels.dsp.dx.tiling import DxTiling
from kernels.dsp.places import places
from kernels.errors import TilingError
from kernels.ft.depthwise import SUMS, DepthwiseDx, DepthwiseTensors
from kernels.ft.operands import Operand, Operands
from kernels.ft.parameter import Checked
from kernels.ft.private import PrivateDx, PrivateTensors
from kernels.ft.tilings import (
    Path,
    column_bytes,
    cut_workspace,
    depthwise_tiling,
    planning_target,
    private_tiling,
)
from kernels.shape.shapes import ConvShape
from simulator.device.arrays import BYTE
from simulator.device.device import Device
from simulator.machine import Machine
from simulator.memory.memories import Buffer
from simulator.values.numerics import DType, dtype
from targets.schema import Target

NAMES: dict[Path, str] = {
    "general": "conv_dx",
    "depthwise": "conv_dx_depthwise",
    "1x1": "conv_dx_1x1",
}
"""Launches by path."""


def path_of(shape: ConvShape) -> Path:
    """The path that the vendor's conditions name; the depthwise ones come first where both hold."""
    ones = (1,) * shape.ndim
    if shape.cout == shape.groups == shape.cin and shape.dilation == ones:
        return "depthwise"
    steps = {shape.kernel, shape.dilation, shape.stride}
    if steps == {ones} and shape.groups == 1 and not any(high or low for low, high in shape.padding):
        return "1x1"
    return "general"


@dataclass
class BackpropCall:
    """One call on a machine of its own, whose memories hold the device's arrays.

    Attributes:
        machine: the cores of the call.
        checked, operands, kind: what it was given.
        path: which path it takes.
        tiling: what it was run with; plain values.
        dx: its result.
    """

    machine: Machine
    checked: Checked
    operands: Operands
    kind: DType
    path: Path
    tiling: dict[str, object]
    dx: Buffer

    @property
    def geometry(self) -> Geometry:
        """The geometry as the kernels walk it."""
        return Geometry.of(self.checked.shape)

    @property
    def flops_per_cycle(self) -> float:
        """Peak of a core."""
        half = self.kind.name == "fp16" and self.tiling.get("fp16_accumulate") == "fp16"
        return self.machine.target.matmul[self.kind.name + ("_fp16" if half else "")].flops_per_cycle


def reserve(device: Device, machine: Machine, operands: Operands) -> None:
    """Take what the device's other arrays take, so that no kernel's buffer lies in one."""
    for core in (None, *machine.cores):
        for memory, spec in device.target.memory.items():
            if (spec.scope == "chip") == (core is None):
                used = [
                    (o.address, o.address + o.bytes) for o in operands.each() if o.place == (memory, core)
                ]
                for first, end in device.level((memory, core)).taken:
                    for low, high in without(first, end, used):
                        machine.tensor("array", (high - low,), BYTE, memory=memory, address=low, core=core)


def without(first: int, end: int, used: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """[first, end) without the ranges that are used."""
    found = []
    for low, high in sorted(used):
        if low < end and high > first:
            if low > first:
                found.append((first, low))
            first = high
    return [*found, (first, end)] if first < end else found


def place(
    machine: Machine, operand: Operand, shape: tuple[int, ...], kind: DType, *, first: int = 0
) -> Buffer:
    """A buffer of the machine at an operand's address, `first` bytes behind it, without numbers."""
    memory, core = operand.place
    return machine.tensor(
        operand.name, shape, kind, memory=memory, address=operand.address + first, core=core
    )


def give(machine: Machine, operand: Operand, shape: tuple[int, ...], kind: DType) -> Buffer:
    """A buffer that is only read, with the operand's numbers."""
    buffer = place(machine, operand, shape, kind)
    buffer.constant = True
    if machine.numerics:
        buffer.data = operand.numbers().reshape(shape)
    return buffer


def result(machine: Machine, operand: Operand, shape: tuple[int, ...], kind: DType) -> Buffer:
    """A buffer that is added to: a copy of the operand's numbers, until the call has succeeded."""
    buffer = place(machine, operand, shape, kind)
    if machine.numerics:
        buffer.data = operand.numbers().reshape(shape).copy()
    return buffer


def private_call(
    machine: Machine, checked: Checked, operands: Operands, kind: DType, given: Mapping[str, object]
) -> BackpropCall:
    """Run a call whose operands lie in the core's array memory."""
    g, path = Geometry.of(checked.shape), path_of(checked.shape)
    tiling = private_tiling(path, g, kind, checked.buffer_bytes, given)
    cut = cut_workspace(path, g, kind, checked.buffer_bytes, tiling.channels)
    space, turned = operands.workspace, SUMS if path == "general" else kind
    after = 4 * cut.columns
    sums_at = after + -(-cut.turned * turned.size_bytes // 4) * 4
    tensors = PrivateTensors(
        dy=give(machine, operands.dy, operands.dy.shape, kind),
        w=give(machine, operands.w, (g.cout, g.cig * g.taps), kind),
        dx=result(machine, operands.dx, operands.dx.shape, kind),
        columns=place(machine, space, (cut.columns,), SUMS),
        turned=place(machine, space, (cut.turned,), turned, first=after),
        sums=place(machine, space, (cut.sums,), SUMS, first=sums_at),
    )
    machine.launch(PrivateDx(f"{NAMES[path]}_private", g, tiling, tensors, kind))
    plain = {**tiling.model_dump(), "buffer_bytes": checked.buffer_bytes}
    return BackpropCall(machine, checked, operands, kind, path, plain, tensors.dx)


def shared_call(
    machine: Machine, checked: Checked, operands: Operands, kind: DType, given: Mapping[str, object]
) -> BackpropCall:
    """Run a call whose operands lie in shared memory, on all cores of the machine."""
    run = _depthwise if path_of(checked.shape) == "depthwise" else _products
    return run(machine, checked, operands, kind, given)


def _free_target(machine: Machine) -> Target:
    """The target with as much of each memory as the device's arrays leave."""
    target = machine.target
    return planning_target(target, {name: machine.room_bytes(name) for name in target.memory})


def _depthwise(
    machine: Machine, checked: Checked, operands: Operands, kind: DType, given: Mapping[str, object]
) -> BackpropCall:
    """The depthwise path: one launch."""
    g, cores = Geometry.of(checked.shape), len(machine.cores)
    place(machine, operands.workspace, (operands.workspace.bytes,), BYTE)
    dy = give(machine, operands.dy, operands.dy.shape, kind)
    w = give(machine, operands.w, (g.cout, g.taps), kind)
    dx = result(machine, operands.dx, operands.dx.shape, kind)
    tiling = depthwise_tiling(g, _free_target(machine), kind, cores, given)
    machine.launch(DepthwiseDx(g, tiling, DepthwiseTensors(dy, w, dx), kind))
    plain: dict[str, object] = {"path": "depthwise", **tiling.model_dump()}
    return BackpropCall(machine, checked, operands, kind, "depthwise", plain | _budget(checked), dx)


def _budget(checked: Checked) -> dict[str, object]:
    return {"buffer_bytes": checked.buffer_bytes}


def _products(
    machine: Machine, checked: Checked, operands: Operands, kind: DType, given: Mapping[str, object]
) -> BackpropCall:
    """The general and the 1x1 path: the weights' new order where it differs, then products."""
    shape, path = checked.shape, path_of(checked.shape)
    g, cores = Geometry.of(shape), len(machine.cores)
    half = kind.name == "fp16" and given.get("fp16_accumulate") == "fp16"
    sums = dtype("fp16" if half else "fp32")
    place(machine, operands.workspace, (operands.workspace.bytes,), BYTE)
    dy = give(machine, operands.dy, (g.n, 1, *operands.dy.shape[1:]), kind)
    w = give(machine, operands.w, (g.cout, g.cig, g.taps), kind)
    dx = result(machine, operands.dx, (g.n, 1, *operands.dx.shape[1:]), kind)
    reorders = Reorder.needed(g)
    tap_major = (
        machine.tensor("w_tap_major", (g.cout, g.taps, g.cig), kind)
        if reorders
        else w.reshaped((g.cout, g.taps, g.cig))
    )
    free = _free_target(machine)
    defaults = _defaults(g, free, checked, kind, sums, path, (dy, tap_major))
    tiling = _planned(setting_for(g, free, kind, sums, kind, cores), defaults, given)
    by_workspace = tiling.column_place == "workspace"
    workspace = _workspace(cores, operands.workspace, tiling, sums) if by_workspace else None
    if reorders:
        machine.launch(Reorder(g, w, tap_major))
        tap_major.constant = True
    kernel = ConvDx(g, tiling, DxTensors(dy, tap_major, dx, workspace), kind, cores, accumulate=True)
    kernel.name = NAMES[path]
    machine.launch(kernel)
    plain: dict[str, object] = {"path": path, **tiling.model_dump()}
    return BackpropCall(machine, checked, operands, kind, path, plain | _budget(checked), dx)


def _planned(setting: PanelSetting, defaults: Mapping[str, object], given: Mapping[str, object]) -> DxTiling:
    """The tiling with whole column rows; blocks of columns where whole rows fit no memory of the chip."""
    try:
        return plan(setting, {**defaults, **given})
    except TilingError:
        if defaults["column"] != "rows" or "column" in given:
            raise
        return plan(setting, {**defaults, "column": "blocks", **given})


def _defaults(
    g: Geometry,
    target: Target,
    checked: Checked,
    kind: DType,
    sums: DType,
    path: Path,
    read: tuple[Buffer, Buffer],
) -> dict[str, object]:
    """The fields that the vendor's call fixes: whole column rows within the budget, or none for 1x1.

    What lies in the shared memory already is not copied within it.
    """
    where = places(target)
    fields: dict[str, object] = {}
    if any(buffer.memory == where.shared for buffer in read):
        fields["gsm_holds"] = "none"
    if path == "1x1":
        return {"column": "none", **fields}
    budget = column_bytes(checked.buffer_bytes, kind, sums, where.array_bytes // 2)
    fields |= {"column": "rows", "budget_bytes": budget}
    if g.groups > 1:
        most = budget // 2 // sums.size_bytes // (g.taps * g.cig)
        fields["groups"] = max(1, min(group_count(g.cig, g.groups), most))
    return fields


def _workspace(cores: int, operand: Operand, tiling: DxTiling, sums: DType) -> Buffer:
    """Columns in the workspace: slice i of the cores' equal slices is core i's, with two halves where they fit."""
    half = tiling.budget_bytes // 2
    halves = min(2, operand.bytes // cores // half)
    if not halves:
        raise TilingError(
            "a core's slice of the workspace does not hold half of the column buffer",
            field="budget_bytes",
            got=f"{half} bytes wanted",
            limit=f"{operand.bytes // cores} bytes of {operand.bytes} for {cores} cores",
            remedy="lower budget_bytes, or give a larger workspace_",
        )
    shape = (cores, halves, half // sums.size_bytes)
    return Buffer(operand.place[0], operand.name, operand.address, shape, sums, shared=True)
