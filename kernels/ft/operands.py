"""Where the operands of a call lie: arrays or plain addresses, in the memories that the call reads."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import prod

import numpy as np

from kernels.errors import OperandError
from kernels.ft.parameter import Checked
from kernels.shape.layout import channel_last
from kernels.shape.shapes import ConvShape
from simulator.device.arrays import DeviceArray, Place
from simulator.device.device import Device
from simulator.errors import BoundsError
from simulator.memory.ranges import Range, overlaps
from simulator.values.numerics import Array, DType

Given = DeviceArray | int
"""An array of the device, or the address of one."""

AXES = {"dy": "[batch, out_h, out_w, out_channel]", "dx": "[batch, in_h, in_w, in_channel]"}


@dataclass(frozen=True, slots=True)
class Operand:
    """One operand of a call.

    Attributes:
        name: dy, w, dx or workspace_.
        place: its memory, and whose it is.
        address: its first byte.
        shape: as the call sees it.
        array: the array in which it lies, from element `first`; None for free memory (a workspace).
    """

    name: str
    place: Place
    address: int
    shape: tuple[int, ...]
    item_bytes: int
    array: DeviceArray | None
    first: int = 0

    @property
    def bytes(self) -> int:
        """Size in bytes."""
        return prod(self.shape) * self.item_bytes

    @property
    def range(self) -> Range:
        """The bytes."""
        return Range(self.address, 1, self.bytes, self.bytes)

    def numbers(self) -> Array:
        """The numbers where they lie, in the call's shape."""
        assert self.array is not None  # noqa: S101  # only a workspace has none, and nobody asks for its numbers
        flat = self.array.data.reshape(-1)[self.first : self.first + prod(self.shape)]
        return np.asarray(flat.reshape(self.shape))


@dataclass(frozen=True, slots=True)
class Operands:
    """The operands of a call."""

    dy: Operand
    w: Operand
    dx: Operand
    workspace: Operand

    def each(self) -> tuple[Operand, ...]:
        """All of them."""
        return (self.dy, self.w, self.dx, self.workspace)


def located(
    device: Device, given: Mapping[str, object], checked: Checked, kind: DType, memories: tuple[str, ...]
) -> Operands:
    """The operands dy, w and dx that were given, and the workspace.

    Args:
        device: where they lie.
        given: by name.
        checked: the geometry and the workspace.
        kind: the data type of the call.
        memories: where the call reads its operands.

    Raises:
        OperandError: an operand of another type, layout or size, in a memory that the call does not read, or that
            overlaps another one.
        BoundsError: an address outside every memory, or at which no array lies.
    """
    shape = checked.shape
    arrays = [a for a in (*given.values(), checked.workspace) if isinstance(a, DeviceArray)]
    core = next((a.core for a in arrays if a.core is not None), None)
    wanted = {"dy": channel_last(shape.dy_shape), "w": shape.w_shape, "dx": channel_last(shape.x_shape)}
    found = {
        name: _operand(_array_of(device, name, given[name], memories, core), name, wanted[name], kind, shape)
        for name in wanted
    }
    workspace = _workspace(device, checked, memories, core)
    operands = Operands(**found, workspace=workspace)
    _require_own(device, operands)
    _require_apart(operands)
    return operands


def _operand(
    found: tuple[DeviceArray, int], name: str, wanted: tuple[int, ...], kind: DType, shape: ConvShape
) -> Operand:
    """An operand whose elements are there."""
    array, address = found
    if array.dtype is not kind:
        raise OperandError(
            f"{name} is of another data type", argument=name, got=array.dtype.name, limit=kind.name
        )
    first, odd = divmod(address - array.address, kind.size_bytes)
    if odd:
        raise OperandError(
            f"the address of {name} lies between two elements", argument=name, got=hex(address)
        )
    if first == 0 and len(array.shape) > 1:
        _require_shape(name, array.shape, wanted, shape)
    elif array.size - first < prod(wanted):
        raise OperandError(
            f"{name} is too small: the memory behind its address ends",
            argument=name,
            got=f"{array.size - first} elements of {array!r} from {address:#x}",
            limit=f"{prod(wanted)} elements",
        )
    return Operand(name, array.place, address, wanted, kind.size_bytes, array, first)


def _array_of(
    device: Device, name: str, given: object, memories: tuple[str, ...], core: int | None
) -> tuple[DeviceArray, int]:
    """The array that was given, or in which the address lies as `core` sees it, in a memory that the call reads."""
    if isinstance(given, DeviceArray):
        if given not in device.arrays:
            raise OperandError(f"{name} is not an array of this device", argument=name, got=repr(given))
        _require_memory(name, given.memory, memories, hex(given.address))
        return given, given.address
    address = _address(name, given)
    _require_memory(name, device.memory_at(address, core)[0], memories, hex(address))
    return device.at(address, core), address


def _address(name: str, given: object) -> int:
    if isinstance(given, int | np.integer) and not isinstance(given, bool):
        return int(given)
    raise OperandError(f"{name} is no array and no address", argument=name, got=repr(given))


def _require_memory(name: str, memory: str, memories: tuple[str, ...], got: str) -> None:
    if memory not in memories:
        raise OperandError(
            f"{name} lies in a memory that this call does not read",
            argument=name,
            got=f"{got} in {memory}",
            limit=" or ".join(memories),
            remedy="calls that end in _s read shared memory, those in _p the core's own array memory",
        )


def _require_own(device: Device, operands: Operands) -> None:
    """Inside a team a core reaches only its own memory."""
    for operand in operands.each():
        owner = operand.place[1]
        if device.team is not None and owner not in (None, device.core):
            raise OperandError(
                f"{operand.name} lies in the memory of another core",
                argument=operand.name,
                got=f"core {owner}",
                limit=f"core {device.core}",
            )


def _require_shape(name: str, got: tuple[int, ...], wanted: tuple[int, ...], shape: ConvShape) -> None:
    """The shape of an array, with the layout that was meant where it is a known other one."""
    if got == wanted:
        return
    if name == "w":
        cout, cig, kh, kw = shape.w_shape
        layouts = {"OHWI": (cout, kh, kw, cig), "HWIO": (kh, kw, cig, cout), "IOHW": (cig, cout, kh, kw)}
        meant = next((layout for layout, sizes in layouts.items() if got == sizes), None)
        orders = {"OHWI": (0, 3, 1, 2), "HWIO": (3, 2, 0, 1), "IOHW": (1, 0, 2, 3)}
        raise OperandError(
            f"w is {meant}; the call reads OIHW" if meant else "w has another shape than OIHW",
            argument="w",
            got=list(got),
            limit=f"{list(wanted)}: [out_channel, in_channel / group, kernel_h, kernel_w]",
            remedy=f"transpose it with axes {orders[meant]}" if meant else "",
        )
    channel_first = (wanted[0], wanted[3], *wanted[1:3])
    what = f"{name} is NCHW; the call reads NHWC" if got == channel_first else f"{name} has another shape"
    raise OperandError(what, argument=name, got=list(got), limit=f"{list(wanted)}: {AXES[name]}")


def _workspace(device: Device, checked: Checked, memories: tuple[str, ...], core: int | None) -> Operand:
    """The workspace: an array, part of one, or free memory behind an address."""
    given, name, wanted = checked.workspace, "workspace_", checked.workspace_bytes
    start = given.address if isinstance(given, DeviceArray) else given
    if start % 4:
        raise OperandError(
            "workspace_ lies between two floats", argument=name, got=hex(start), limit="multiples of 4"
        )
    if isinstance(given, DeviceArray):
        array, address = _array_of(device, name, given, memories, core)
        place: Place = array.place
    else:
        address = given
        place = device.memory_at(address, core)
        _require_memory(name, place[0], memories, hex(address))
        held = device.lying_at(address, place)
        if held is None:
            return _free_workspace(device, place, address, wanted)
        array = held
    if array.end - address < wanted:
        raise _too_small(array.end - address, wanted, repr(array))
    return Operand(name, place, address, (array.end - address,), 1, array)


def _free_workspace(device: Device, place: Place, address: int, wanted: int) -> Operand:
    """Memory behind an address at which no array lies."""
    level = device.level(place)
    if address + wanted > level.base + level.spec.size_bytes:
        raise _too_small(level.base + level.spec.size_bytes - address, wanted, f"{place[0]} ends there")
    try:
        level.check_place("workspace_", address, wanted)
    except BoundsError as error:
        raise OperandError(
            "workspace_ overlaps another buffer",
            argument="workspace_",
            where=place[0],
            got=error.got,
            limit=error.limit,
            remedy="give it buffer_size_ x 4 bytes of its own",
        ) from None
    return Operand("workspace_", place, address, (wanted,), 1, None)


def _too_small(got: int, wanted: int, where: str) -> OperandError:
    return OperandError(
        "workspace_ is too small",
        argument="workspace_",
        where=where,
        got=f"{got} bytes",
        limit=f"{wanted} bytes: buffer_size_ x 4",
    )


def _require_apart(operands: Operands) -> None:
    """No two operands share a byte."""
    every = operands.each()
    for index, one in enumerate(every):
        for other in every[index + 1 :]:
            if one.place == other.place and overlaps(one.range, other.range):
                raise OperandError(
                    f"{other.name} overlaps {one.name}",
                    argument=other.name,
                    where=one.place[0],
                    got=f"{other.address:#x} + {other.bytes} bytes",
                    limit=f"{one.name} lies at {one.address:#x} to {one.address + one.bytes:#x}",
                )
