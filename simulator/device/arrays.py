"""Arrays at addresses, and the memories of a device that hold them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import prod
from typing import Any

import numpy as np
import numpy.typing as npt

from simulator.errors import BoundsError, ProgramError
from simulator.memory.memories import Memory
from simulator.values.numerics import Array, DType, dtype, poisoned
from targets.schema import Target

Place = tuple[str, int | None]
"""A memory's name, and the core whose own it is (None for a shared one)."""

BYTE = DType("byte", np.dtype(np.uint8), 1, 0.0)
"""What memory that nobody computes with is counted in."""


class DeviceArray:
    """A named array of a device.

    Attributes:
        owner, name: whose it is, and what it is called.
        memory, core: where it lies; `core` is None in a shared memory.
        address: its first byte.
        shape, dtype: how it is seen.
    """

    def __init__(
        self, owner: object, name: str, place: Place, address: int, shape: tuple[int, ...], kind: DType
    ) -> None:
        """Describe an array; `Device.array` is how one is made."""
        self.owner = owner
        self.name = name
        self.memory, self.core = place
        self.address = address
        self.shape = shape
        self.dtype = kind
        self._data: Array | None = None

    @property
    def data(self) -> npt.NDArray[Any]:
        """The numbers, to read and to write; NaN where nothing was written."""
        if self._data is None:
            self._data = poisoned(prod(self.shape), self.dtype).reshape(self.shape)
        return self._data

    @data.setter
    def data(self, values: npt.ArrayLike) -> None:
        fitted = _fitting(values, self)
        self.data[...] = fitted

    @property
    def place(self) -> Place:
        """Its memory, and whose that is."""
        return self.memory, self.core

    @property
    def size(self) -> int:
        """Elements."""
        return prod(self.shape)

    @property
    def bytes(self) -> int:
        """Size in bytes."""
        return self.size * self.dtype.size_bytes

    @property
    def end(self) -> int:
        """One past the last byte."""
        return self.address + self.bytes

    def __repr__(self) -> str:
        """Name, type, shape and place."""
        return f"<{self.name}: {self.dtype.name} {list(self.shape)} in {self.memory} at {self.address:#x}>"


def _fitting(values: npt.ArrayLike, array: DeviceArray) -> Array:
    """Values in an array's type and shape, a scalar spread over it."""
    given = np.asarray(values)
    if given.ndim and given.shape != array.shape:
        raise ProgramError(
            "data of another shape", where=array.name, got=f"{given.shape}", limit=f"{array.shape}"
        )
    with np.errstate(over="ignore"):
        return np.broadcast_to(given.astype(array.dtype.storage), array.shape)


class Storage:
    """The memories of all cores of a target, and what lies in them."""

    def __init__(self, target: Target) -> None:
        """Empty memories."""
        self.target = target
        self.arrays: list[DeviceArray] = []
        self._levels = dict(_levels(target))
        self._structs: dict[tuple[Place, int], dict[str, object]] = {}

    def level(self, place: Place) -> Memory:
        """The memory at a place."""
        return self._levels[place]

    def place(
        self,
        owner: object,
        name: str,
        where: Place,
        shape: Sequence[int] | int,
        kind: str,
        address: int | None,
        data: npt.ArrayLike | None,
    ) -> DeviceArray:
        """A new array.

        Raises:
            BoundsError: the address lies outside the memory, in another array, or between two elements.
            CapacityError: the memory is too small.
            ProgramError: a shape, type or data that are none.
        """
        made = DeviceArray(owner, name, where, 0, _sizes(shape), dtype(kind))
        item = made.dtype.size_bytes
        if address is not None and address % item:
            raise BoundsError(
                "an address between two elements", where=name, got=hex(address), limit=f"multiples of {item}"
            )
        values = None if data is None else _fitting(data, made)
        remedy = "free an array, or make it smaller"
        level = self.level(where)
        found = level.allocate(name, made.shape, made.dtype, address=address, keep=True, remedy=remedy)
        made.address = found.address
        self.arrays.append(made)
        if values is not None:
            made.data[...] = values
        return made

    def free(self, array: DeviceArray) -> None:
        """Take an array away.

        Raises:
            ProgramError: it is not there.
        """
        if array not in self.arrays:
            raise ProgramError("an array that is not on the device", where=array.name)
        self.arrays.remove(array)
        self.level(array.place).release(array.address)

    def named(self, memory: str, core: int) -> Place:
        """The memory of that name; of the cores' own, that of `core`.

        Raises:
            ProgramError: the target has no such memory or core.
        """
        target = self.target
        if memory not in target.memory:
            raise ProgramError(
                "no such memory", where=target.name, got=memory, limit=", ".join(target.memory)
            )
        if (memory, None) in self._levels:
            return memory, None
        if not 0 <= core < target.groups:
            raise ProgramError("no such core", where=target.name, got=core, limit=f"0 to {target.groups - 1}")
        return memory, core

    def holding(self, address: int, core: int, memory: str | None = None) -> Place | None:
        """The place whose range has the address: where several cores have one there, that of `core`."""
        found = [
            place
            for place, level in self._levels.items()
            if memory in (None, place[0]) and level.base <= address < level.base + level.spec.size_bytes
        ]
        own = [place for place in found if place[1] in (None, core)]
        return next(iter(own or found), None)

    def memory_at(self, address: int, core: int) -> Place:
        """The memory in which an address lies, as `core` sees it, and whose it is.

        Raises:
            BoundsError: it lies in none.
        """
        found = self.holding(address, core)
        if found is None:
            ranges = {
                f"{m.name} {m.base:#x} to {m.base + m.spec.size_bytes:#x}" for m in self._levels.values()
            }
            raise BoundsError(
                "an address outside every memory",
                where=self.target.name,
                got=hex(address),
                limit="; ".join(sorted(ranges)),
            )
        return found

    def lying_at(self, address: int, place: Place) -> DeviceArray | None:
        """The array of a memory in which an address lies."""
        here = (a for a in self.arrays if a.place == place and a.address <= address < a.end)
        return next(here, None)

    def at(self, address: int, core: int) -> DeviceArray:
        """The array in which an address lies, as `core` sees it.

        Raises:
            BoundsError: no array lies there.
        """
        place = self.memory_at(address, core)
        found = self.lying_at(address, place)
        if found is None:
            raise BoundsError(
                "no array lies at this address",
                where=place[0],
                got=hex(address),
                limit="; ".join(repr(a) for a in self.arrays if a.place == place) or "no array",
                remedy="place one there with Device.array",
            )
        return found

    def struct(self, address: int, size_bytes: int, name: str, core: int) -> dict[str, object]:
        """The fields of the structure at an address, which is placed there when it is first named.

        Raises:
            BoundsError: the address lies outside the memories, or in an array.
        """
        place = self.memory_at(address, core)
        held = self._structs.get((place, address))
        if held is None:
            self.level(place).allocate(name, (size_bytes,), BYTE, address=address, keep=True)
            held = self._structs[place, address] = {}
        return held


def _levels(target: Target) -> Iterator[tuple[Place, Memory]]:
    for name, spec in target.memory.items():
        for core in (None,) if spec.scope == "chip" else range(target.groups):
            yield (name, core), Memory(name, spec, core=core or 0)


def _sizes(shape: Sequence[int] | int) -> tuple[int, ...]:
    """A shape as a tuple of sizes."""
    given: tuple[object, ...] = (shape,) if isinstance(shape, int | np.integer) else tuple(shape)
    whole = [int(n) for n in given if isinstance(n, int | np.integer) and not isinstance(n, bool) and n >= 1]
    if len(whole) != len(given):
        raise ProgramError("a shape that is none", got=f"{given}", limit="sizes of 1 and more")
    return tuple(whole)
