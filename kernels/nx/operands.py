"""The pointers of a call (arrays of the device, addresses, NumPy arrays of 8-byte integers) as buffers of a machine."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from kernels.errors import OperandError
from kernels.nx.elements import ELEMENT, Elements, from_elements, to_elements
from simulator.device.arrays import DeviceArray
from simulator.device.device import Device, device_of, in_use
from simulator.errors import BoundsError
from simulator.machine import Machine
from simulator.memory.memories import Buffer, View

Pointer = DeviceArray | int | Elements
"""An array of the device, the address of an element of one, or a NumPy array of int64 that is changed in place."""

OUTPUTS = ("dinput", "dweight", "dbias")


@dataclass(frozen=True)
class Operand:
    """One pointer: a flat buffer, and the element of it that the pointer points to."""

    buffer: Buffer
    first: int
    count: int

    def view(self, shape: tuple[int, ...], first: int = 0) -> View:
        """Packed elements of it from element `first`, in a shape."""
        return self.buffer.dense(shape, self.first + first)


@dataclass
class Pointers:
    """Buffers of the operands of one call on a machine; two pointers into one array share its buffer.

    Attributes:
        operands: those that the call reaches, by name.
    """

    machine: Machine
    operands: dict[str, Operand] = field(default_factory=dict)
    _buffers: dict[int, Buffer] = field(default_factory=dict)
    _numpy: dict[str, Elements] = field(default_factory=dict)

    def also(self, device: Device, name: str, pointer: object, count: int) -> Operand:
        """One more operand, which is no output.

        Raises:
            TilesimError: as `located`.
        """
        return _operand(device, self, name, pointer, count)

    def write_back(self) -> None:
        """Put the outputs into NumPy arrays; a device's arrays have them already."""
        for name in OUTPUTS:
            if name in self._numpy:
                operand = self.operands[name]
                made = to_elements(operand.buffer.numbers()[: operand.count])
                self._numpy[name].reshape(-1)[: operand.count] = made


def device_for(given: Mapping[str, object]) -> Device:
    """The device of the arrays that were given, or the one in use.

    Raises:
        ProgramError: no device is in use, or it was closed.
        OperandError: the arrays are of several devices.
    """
    owners = {id(each.owner): each for each in given.values() if isinstance(each, DeviceArray)}
    if len(owners) > 1:
        raise OperandError("arrays of several devices", argument=" and ".join(given))
    device = device_of(next(iter(owners.values()))) if owners else in_use()
    device.require_open()
    return device


def located(
    device: Device, machine: Machine, given: Mapping[str, object], elements: Mapping[str, int]
) -> Pointers:
    """Buffers for the pointers whose operands have elements; the others are not looked at, as the loops do not.

    Raises:
        OperandError: a pointer is none, or its elements are not 8 bytes.
        BoundsError: no array lies there, or it ends before the operand does.
    """
    found = Pointers(machine)
    for array in device.arrays:
        if array.place == ("ddr", None):
            buffer = machine.tensor(array.name, (array.size,), array.dtype, address=array.address)
            found._buffers[id(array)] = buffer
    for name, count in elements.items():
        if count:
            found.operands[name] = _operand(device, found, name, given[name], count)
    return found


def _operand(device: Device, found: Pointers, name: str, pointer: object, count: int) -> Operand:
    if isinstance(pointer, np.ndarray):
        return _numpy_operand(found, name, pointer, count)
    if isinstance(pointer, int | np.integer) and not isinstance(pointer, bool):
        array, address = device.at(int(pointer)), int(pointer)
    elif isinstance(pointer, DeviceArray):
        array, address = pointer, pointer.address
    else:
        raise OperandError(
            "no array of the device, no address and no NumPy array",
            argument=name,
            got=type(pointer).__name__,
            remedy="place one with Device.array('ddr', shape, 'fp32_i64')",
        )
    if array.dtype.name != ELEMENT.name:
        raise OperandError(
            "an array whose elements are not 8 bytes", argument=name, got=array.dtype.name, limit=ELEMENT.name
        )
    if id(array) not in found._buffers:
        raise OperandError("an array that lies outside the main memory", argument=name, got=repr(array))
    first, rest = divmod(address - array.address, ELEMENT.size_bytes)
    if rest:
        raise BoundsError("an address between two elements", where=name, got=hex(address))
    _require(name, array.size - first, count)
    buffer = found._buffers[id(array)]
    if found.machine.numerics:
        buffer.data = array.data.reshape(-1)  # the array itself: what a step writes is there at once
    return Operand(buffer, first, count)


def _numpy_operand(found: Pointers, name: str, array: Elements, count: int) -> Operand:
    if array.dtype != np.int64 or not array.flags.c_contiguous or not array.flags.writeable:
        raise OperandError(
            "a NumPy array that is no packed, writable int64",
            argument=name,
            got=str(array.dtype),
            limit="int64",
            remedy="use kernels.nx.to_elements",
        )
    _require(name, array.size, count)
    for other, held in found._numpy.items():
        if np.may_share_memory(array, held):
            if array is not held:
                raise OperandError("arrays that overlap", argument=f"{other} and {name}")
            found._numpy[name] = array
            return Operand(found.operands[other].buffer, 0, count)
    buffer = found.machine.tensor(name, (array.size,), ELEMENT)
    if found.machine.numerics:
        buffer.data = from_elements(array).reshape(-1)
        found._numpy[name] = array
    return Operand(buffer, 0, count)


def _require(name: str, have: int, wanted: int) -> None:
    if have < wanted:
        raise BoundsError(
            "an operand that ends before the call does",
            where=name,
            got=f"{have} elements",
            limit=f"{wanted} elements",
        )
