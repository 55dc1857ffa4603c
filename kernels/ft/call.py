"""The vendor's calls: checks first, then one launch on the cores of the mask, then dx is written."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from kernels.errors import OperandError
from kernels.ft.operands import Given, located
from kernels.ft.parameter import STRUCT_BYTES, ConvParameter, checked
from kernels.ft.paths import BackpropCall, private_call, reserve, shared_call
from kernels.gradient_fields import given_fields
from kernels.host_memory import require_host_memory
from simulator.device.arrays import DeviceArray
from simulator.device.device import Device, cores_of_mask, device_of, in_use
from simulator.errors import ProgramError
from simulator.results.run import Run
from simulator.values.numerics import DType, dtype

PLATFORMS = {"ft78ne": ("fp32",), "mt7004": ("fp16", "fp32")}
"""The chips that have the call, and its data types on each; a variant's name begins with its chip's."""

Params = ConvParameter | int
"""A structure, or the address of one on the device."""


@dataclass(frozen=True)
class _Asked:
    """A call as one core makes it; equal for cores that mean the same."""

    name: str
    operands: tuple[tuple[str, object], ...]
    fields: tuple[tuple[str, object], ...]
    mask: object
    tiling: tuple[tuple[str, object], ...]


def fp_conv2d_backprop_input_s(
    dy: Given,
    w: Given,
    dx: Given,
    conv_param: Params,
    core_mask: int,
    *,
    tiling: Mapping[str, object] | None = None,
) -> Run:
    """Dx += the input gradient, in fp32, with operands in shared memory (GSM or SMC, or DDR), on the cores of a mask.

    Args:
        dy: gradient of the output, [batch, out_h, out_w, out_channel].
        w: weights, OIHW: [out_channel, in_channel / group, kernel_h, kernel_w].
        dx: gradient of the input, [batch, in_h, in_w, in_channel]; it is added to, so set it to zero before.
        conv_param: the geometry, the workspace and its budget.
        core_mask: bit i is core i.
        tiling: fields of the tiling to keep; the others are chosen. Columns are whole column rows by default.

    Each of dy, w and dx is an array of the device, or an address: of its array, or inside one.

    Returns:
        The run; its `dx` is a copy of the array.

    Raises:
        TilesimError: an argument is refused, and nothing was written.
    """
    return _shared("fp_conv2d_backprop_input_s", "fp32", (dy, w, dx), conv_param, core_mask, tiling)


def hp_conv2d_backprop_input_s(
    dy: Given,
    w: Given,
    dx: Given,
    conv_param: Params,
    core_mask: int,
    *,
    tiling: Mapping[str, object] | None = None,
) -> Run:
    """Dx += the input gradient, in fp16, as `fp_conv2d_backprop_input_s`; sums are fp32 and rounded once.

    Raises:
        TilesimError: an argument is refused, and nothing was written.
    """
    return _shared("hp_conv2d_backprop_input_s", "fp16", (dy, w, dx), conv_param, core_mask, tiling)


def fp_conv2d_backprop_input_p(
    dy: Given, w: Given, dx: Given, conv_param: Params, *, tiling: Mapping[str, object] | None = None
) -> Run:
    """Dx += the input gradient, in fp32, on one core with operands and workspace in its own AM or L2.

    The core is the one that calls, or outside `Device.spmd` the one whose memory it is. Arguments are those of
    `fp_conv2d_backprop_input_s`.

    Raises:
        TilesimError: an argument is refused, and nothing was written.
    """
    return _private("fp_conv2d_backprop_input_p", "fp32", (dy, w, dx), conv_param, tiling)


def hp_conv2d_backprop_input_p(
    dy: Given, w: Given, dx: Given, conv_param: Params, *, tiling: Mapping[str, object] | None = None
) -> Run:
    """Dx += the input gradient, in fp16, as `fp_conv2d_backprop_input_p`; sums are fp32 and rounded once.

    Raises:
        TilesimError: an argument is refused, and nothing was written.
    """
    return _private("hp_conv2d_backprop_input_p", "fp16", (dy, w, dx), conv_param, tiling)


Three = tuple[Given, Given, Given]


def _shared(
    name: str,
    kind: str,
    given: Three,
    param: Params,
    core_mask: int,
    tiling: Mapping[str, object] | None,
) -> Run:
    """A call of all cores of a mask: inside a team it is made once all of them have come."""
    device = _device_of(given)
    cores = _cores(device, core_mask)
    _require_member(device, cores)
    asked = _asked(name, given, _structure(device, param), core_mask, tiling)

    def act(brought: Mapping[int, object]) -> object:
        _require_same(brought)
        return _run_shared(device, asked, dtype(kind), cores)

    run = device.meet("call", frozenset(cores), asked, name, act)
    assert isinstance(run, Run)  # noqa: S101  # what act returned
    return run


def _private(name: str, kind: str, given: Three, param: Params, tiling: Mapping[str, object] | None) -> Run:
    """A call of one core."""
    device = _device_of(given)
    asked = _asked(name, given, _structure(device, param), None, tiling)
    operand = _supported(device, dtype(kind), name)
    target = device.target
    fields = checked(dict(asked.fields), operand.size_bytes)
    memories = (target.role["array"].memory,)
    operands = located(device, dict(asked.operands), fields, operand, memories)
    owners = {o.place[1] for o in operands.each()}
    if len(owners) > 1:
        raise OperandError(
            "operands in the memories of several cores",
            argument="dy",
            where=name,
            got=sorted(map(str, owners)),
        )
    core = next(iter(owners))
    machine = device.machine((device.core if core is None else core,))
    reserve(device, machine, operands)
    call = private_call(machine, fields, operands, operand, dict(asked.tiling))
    return _finish(device, call)


def _run_shared(device: Device, asked: _Asked, kind: DType, cores: tuple[int, ...]) -> Run:
    """Check, run, write."""
    operand = _supported(device, kind, asked.name)
    fields = checked(dict(asked.fields), operand.size_bytes)
    role = device.target.role
    memories = (role["shared"].memory, role["main"].memory)
    operands = located(device, dict(asked.operands), fields, operand, memories)
    if device.numerics:
        require_host_memory(3 * (operands.dy.bytes + operands.dx.bytes + operands.w.bytes))
    machine = device.machine(cores)
    reserve(device, machine, operands)
    return _finish(device, shared_call(machine, fields, operands, operand, dict(asked.tiling)))


def _finish(device: Device, call: BackpropCall) -> Run:
    """Write dx, and note the run."""
    machine, outputs = call.machine, {}
    if machine.numerics:
        place = call.operands.dx.numbers()
        place[...] = call.dx.numbers().reshape(place.shape)
        outputs = {"dx": place.copy()}
    run = Run(
        operator="conv2d_backprop_input",
        target=machine.target,
        cores=len(machine.cores),
        dtype=call.kind.name,
        cycles=machine.cycles,
        launches=machine.launches,
        tiling=call.tiling,
        trace=machine.trace(),
        outputs=outputs,
        macs=machine.macs,
        useful_macs=call.checked.shape.useful_macs,
        peak_flops_per_cycle=call.flops_per_cycle * len(machine.cores),
        shape=call.checked.shape.to_dict(),
        numerics=machine.numerics,
    )
    return device.keep(run, machine.cores)


# -- arguments -----------------------------------------------------------------------------------------------


def _device_of(given: Three) -> Device:
    """The device of the arrays that were given, or for plain addresses the one in use."""
    device = next((device_of(each) for each in given if isinstance(each, DeviceArray)), None) or in_use()
    device.require_open()
    return device


def _structure(device: Device, param: object) -> ConvParameter:
    """The structure that was given, or that lies at the address."""
    if isinstance(param, ConvParameter):
        return param
    if isinstance(param, int | np.integer) and not isinstance(param, bool):
        found = ConvParameter()
        object.__setattr__(found, "_fields", device.struct(int(param), STRUCT_BYTES, "ConvParameter"))
        return found
    raise OperandError(
        "conv_param is no ConvParameter and no address of one", argument="conv_param", got=repr(param)
    )


def _asked(
    name: str, given: Three, param: ConvParameter, mask: object, tiling: Mapping[str, object] | None
) -> _Asked:
    """The call as values; fields are those at the time of the call."""
    operands = tuple(zip(("dy", "w", "dx"), given, strict=True))
    return _Asked(name, operands, tuple(param.fields().items()), mask, tuple(given_fields(tiling).items()))


def _cores(device: Device, core_mask: object) -> tuple[int, ...]:
    """The cores of a mask."""
    try:
        return cores_of_mask(core_mask, device.target)
    except ProgramError as error:
        raise OperandError(
            error.what, argument="core_mask", where=error.where, got=error.got, limit=error.limit
        ) from None


def _require_member(device: Device, cores: tuple[int, ...]) -> None:
    """A core that calls inside a team belongs to the mask of its call."""
    if device.team is not None and device.core not in cores:
        raise OperandError(
            "a core makes a call whose core_mask leaves it out",
            argument="core_mask",
            where=f"core {device.core}",
            got=f"cores {', '.join(map(str, cores))}",
        )


def _require_same(brought: Mapping[int, object]) -> None:
    """All cores make the same call."""
    first, *others = sorted(brought.items())
    for core, asked in others:
        if asked != first[1]:
            assert isinstance(asked, _Asked)  # noqa: S101  # what the calls bring
            assert isinstance(first[1], _Asked)  # noqa: S101  # as above
            raise OperandError(
                "the cores make different calls",
                argument=(differing := _difference(first[1], asked)),
                where=f"cores {first[0]} and {core}",
                got=f"another {differing}",
                remedy="give every core the same arguments; set conv_param before a sys_bar",
            )


def _difference(one: _Asked, other: _Asked) -> str:
    """The first argument in which two calls differ."""
    if one.name != other.name:
        return "function"
    for (name, mine), (_, theirs) in zip(one.operands, other.operands, strict=True):
        if mine != theirs:
            return name
    if one.fields != other.fields:
        mine, theirs = dict(one.fields), dict(other.fields)
        return "conv_param." + next(n for n in {**mine, **theirs} if mine.get(n) != theirs.get(n))
    return "core_mask" if one.mask != other.mask else "tiling"


def _supported(device: Device, kind: DType, name: str) -> DType:
    """The data type, where the chip has the call in it."""
    target = device.target
    known = next((types for chip, types in PLATFORMS.items() if target.name.startswith(chip)), ())
    if kind.name not in known:
        raise OperandError(
            f"{name} does not run on this chip",
            argument="dtype",
            where=target.name,
            got=kind.name,
            limit=", ".join(known) or f"chips: {', '.join(PLATFORMS)}",
        )
    return kind
