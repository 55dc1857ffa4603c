"""A device: a target with named arrays at addresses, on which the vendors' own calls run.

Memory is hostile here too: an array that is given no data holds NaN, two arrays never overlap, and an address at which no
array lies is refused.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from inspect import signature
from math import prod
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from simulator.errors import BoundsError, MachineError, ProgramError
from simulator.machine import Checks, Machine
from simulator.memory.memories import Memory
from simulator.results.run import Run
from simulator.team import Act, Team
from simulator.values.numerics import Array, DType, dtype, poisoned
from targets.loader import load_target
from targets.schema import Target

Place = tuple[str, int | None]
"""A memory's name, and the core whose own it is (None for a shared one)."""


class DeviceArray:
    """A named array of a device.

    Attributes:
        device, name: whose it is, and what it is called.
        memory, core: where it lies; `core` is None in a shared memory.
        address: its first byte.
        shape, dtype: how it is seen.
    """

    def __init__(
        self, device: Device, name: str, place: Place, address: int, shape: tuple[int, ...], kind: DType
    ) -> None:
        """Describe an array; `Device.array` is how one is made."""
        self.device = device
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
        self.data[...] = _fitting(values, self)

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


class Device:
    """A target whose arrays outlive calls.

    Attributes:
        target: the chip.
        runs: what was run, in order.
        numerics: whether calls compute, or only take time.
        checks: how runs are watched.
    """

    def __init__(
        self, target: str | Path | Target, *, numerics: bool = True, checks: Checks | None = None
    ) -> None:
        """A device without arrays; `target` is a name, a TOML file, or a Target."""
        self.target = target if isinstance(target, Target) else load_target(target)
        self.numerics = numerics
        self.checks = checks
        self.runs: list[Run] = []
        self.closed = False
        self._memories: dict[Place, Memory] = dict(self._levels())
        self._arrays: list[DeviceArray] = []
        self._structs: dict[tuple[Place, int], dict[str, object]] = {}
        self._clocks = [0] * self.target.groups
        self._team: Team | None = None
        self._here = threading.local()

    def _levels(self) -> Iterator[tuple[Place, Memory]]:
        for name, spec in self.target.memory.items():
            for core in (None,) if spec.scope == "chip" else range(self.target.groups):
                yield (name, core), Memory(name, spec, core=core or 0)

    # -- as a context ----------------------------------------------------------------------------------------

    def __enter__(self) -> Self:
        """Make this the device that plain addresses belong to."""
        _IN_USE.append(self)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the device: its arrays can still be read."""
        _IN_USE.remove(self)
        self.closed = True

    def require_open(self) -> None:
        """Refuse a device that was closed.

        Raises:
            ProgramError: its `with` block has ended.
        """
        if self.closed:
            raise ProgramError(
                "a device that was closed",
                where=self.target.name,
                remedy="make calls inside its `with` block",
            )

    # -- arrays ----------------------------------------------------------------------------------------------

    def array(
        self,
        memory: str,
        shape: Sequence[int] | int,
        dtype: str = "fp32",  # the vendors' word for it
        address: int | None = None,
        data: npt.ArrayLike | None = None,
        *,
        name: str = "",
        core: int | None = None,
    ) -> DeviceArray:
        """Place an array.

        Args:
            memory: the name of a memory of the target.
            shape: row-major; a one-dimensional array is raw memory.
            dtype: of its elements.
            address: its first byte; default behind what is there.
            data: an array of that shape, or one number for all; default NaN.
            name: for messages; default the memory and a number.
            core: whose own memory; default the core that the address names, the one that calls, or core 0.

        Raises:
            BoundsError: the address lies outside the memory, or in another array.
            CapacityError: the memory is too small.
            ProgramError: the target has no such memory or core, or data do not fit.
        """
        self.require_open()
        kind, sizes = _kind(dtype), _sizes(shape)
        place = self._place(memory, address, core)
        label = name or f"{memory} array {len(self._arrays)}"
        level = self._memories[place]
        if address is not None and address % kind.size_bytes:
            raise BoundsError(
                "an address between two elements",
                where=label,
                got=hex(address),
                limit=f"multiples of {kind.size_bytes}",
            )
        made = DeviceArray(self, label, place, 0, sizes, kind)
        values = None if data is None else _fitting(data, made)
        found = level.allocate(
            label, sizes, kind, address=address, keep=True, remedy="free an array, or make it smaller"
        )
        made.address = found.address
        self._arrays.append(made)
        if values is not None:
            made.data[...] = values
        return made

    def _place(self, memory: str, address: int | None, core: int | None) -> Place:
        """The memory of that name; of the cores' own, the one meant."""
        if memory not in self.target.memory:
            raise ProgramError(
                "no such memory", where=self.target.name, got=memory, limit=", ".join(self.target.memory)
            )
        if (memory, None) in self._memories:
            return memory, None
        if core is None and address is not None:
            found = self._holding(address, memory)
            core = found[1] if found else None
        core = self.core if core is None else core
        if not 0 <= core < self.target.groups:
            raise ProgramError(
                "no such core", where=self.target.name, got=core, limit=f"0 to {self.target.groups - 1}"
            )
        return memory, core

    @property
    def arrays(self) -> tuple[DeviceArray, ...]:
        """What is there, in the order in which it was placed."""
        return tuple(self._arrays)

    def free(self, array: DeviceArray) -> None:
        """Take an array away.

        Raises:
            ProgramError: it is not there.
        """
        if array not in self._arrays:
            raise ProgramError("an array that is not on the device", where=array.name)
        self._arrays.remove(array)
        self._memories[array.memory, array.core].release(array.address)

    def at(self, address: int, core: int | None = None) -> DeviceArray:
        """The array in which an address lies, as `core` (default: the one that calls) sees it.

        Raises:
            BoundsError: no array lies there.
        """
        memory, owner = self.memory_at(address, core)
        for array in self._arrays:
            if (array.memory, array.core) == (memory, owner) and array.address <= address < array.end:
                return array
        raise BoundsError(
            "no array lies at this address",
            where=memory,
            got=hex(address),
            limit="; ".join(repr(a) for a in self._arrays if a.memory == memory) or "no array",
            remedy="place one there with Device.array",
        )

    def memory_at(self, address: int, core: int | None = None) -> Place:
        """The memory in which an address lies, and whose it is.

        Raises:
            BoundsError: it lies in none.
        """
        found = self._holding(address, None, core)
        if found is None:
            ranges = {
                f"{m.name} {m.base:#x} to {m.base + m.spec.size_bytes:#x}" for m in self._memories.values()
            }
            raise BoundsError(
                "an address outside every memory",
                where=self.target.name,
                got=hex(address),
                limit="; ".join(sorted(ranges)),
            )
        return found

    def level(self, place: Place) -> Memory:
        """The memory at a place."""
        return self._memories[place]

    def _holding(self, address: int, memory: str | None, core: int | None = None) -> Place | None:
        """The place whose range has the address: where several cores have one there, the core's own."""
        core = self.core if core is None else core
        found = [
            place
            for place, level in self._memories.items()
            if memory in (None, place[0]) and level.base <= address < level.base + level.spec.size_bytes
        ]
        own = [place for place in found if place[1] in (None, core)]
        return next(iter(own or found), None)

    def struct(self, address: int, size_bytes: int, name: str = "struct") -> dict[str, object]:
        """The fields of the structure at an address, which is placed there when it is first named.

        Raises:
            BoundsError: the address lies outside the memories, or in an array.
        """
        self.require_open()
        place = self.memory_at(address)
        held = self._structs.get((place, address))
        if held is None:
            byte = DType("byte", np.dtype(np.uint8), 1, 0.0)
            self._memories[place].allocate(name, (size_bytes,), byte, address=address, keep=True)
            held = self._structs[place, address] = {}
        return held

    # -- cores -----------------------------------------------------------------------------------------------

    @property
    def core(self) -> int:
        """The core that calls: the one whose function this is, or core 0."""
        found: int | None = getattr(self._here, "core", None)
        return 0 if found is None else found

    @property
    def team(self) -> Team | None:
        """The team that the caller belongs to, None outside `spmd`."""
        return self._team if getattr(self._here, "core", None) is not None else None

    @property
    def cycles(self) -> int:
        """What the calls so far have taken: of the core that is furthest."""
        return max(self._clocks)

    def spmd(self, function: Callable[..., object], core_mask: int) -> tuple[object, ...]:
        """Run a function once a core of the mask, with the core mask if it takes an argument.

        Returns what each of them returned, in the order of the cores.

        Raises:
            DeadlockError: cores wait for others that never come.
            ProgramError: the mask is 0 or names cores that the target lacks, or a team runs already.
        """
        self.require_open()
        if self._team is not None:
            raise ProgramError("a team inside a team", where="spmd")
        arguments = (core_mask,) if _takes_one(function) else ()

        def work(core: int) -> object:
            self._here.core = core
            return function(*arguments)

        self._team = Team(cores_of_mask(core_mask, self.target), lambda: self.cycles)
        try:
            return self._team.run(work)
        finally:
            self._team = None

    def meet(self, key: object, needed: frozenset[int] | int, brings: object, what: str, act: Act) -> object:
        """Act once, when all cores have come; outside a team at once."""
        team = self.team
        if team is None:
            return act({self.core: brings})
        return team.meet(self.core, key, needed, brings, what, act)

    def barrier(self, number: int, count: int) -> None:
        """Wait for `count` cores of the team; costs what a barrier of the target costs.

        Raises:
            ProgramError: outside a team, or for a number of cores that the team does not have.
        """
        if self.team is None:
            raise ProgramError("a barrier outside spmd", where=f"barrier {number}", remedy="use Device.spmd")
        if not 1 <= count <= self.target.groups:
            raise ProgramError(
                "a barrier for a number of cores that the chip lacks",
                where=f"barrier {number}",
                got=count,
                limit=f"1 to {self.target.groups}",
            )
        sync, issue = self.target.sync, self.target.issue.barrier_cycles
        cycles = issue + sync.barrier_latency_cycles + count * sync.barrier_cycles_per_core
        what = f"barrier {number}"
        self.meet(("barrier", number), count, None, what, lambda brought: self.spend(tuple(brought), cycles))

    def spend(self, cores: Sequence[int], cycles: int) -> None:
        """Cores are at one time, and take so many cycles together."""
        now = max(self._clocks[core] for core in cores) + cycles
        for core in cores:
            self._clocks[core] = now

    def machine(self, cores: Sequence[int]) -> Machine:
        """A machine of these cores whose memories hold, at their addresses, nothing yet."""
        return Machine(self.target, cores, numerics=self.numerics, checks=self.checks)

    def taken(self, place: Place) -> tuple[tuple[int, int, str], ...]:
        """(first, end, name) of the ranges that arrays and structures take of a memory."""
        return self._memories[place].taken

    def keep(self, run: Run, cores: Sequence[int]) -> Run:
        """Note a run on these cores."""
        self.runs.append(run)
        self.spend(cores, run.cycles)
        return run


_IN_USE: list[Device] = []
"""Devices whose `with` blocks are open, the innermost last."""


def in_use() -> Device:
    """The device that plain addresses belong to.

    Raises:
        ProgramError: no `with Device(...)` block is open.
    """
    if not _IN_USE:
        raise ProgramError("no device is in use", remedy="call inside `with Device(...):`")
    return _IN_USE[-1]


def cores_of_mask(mask: object, target: Target) -> tuple[int, ...]:
    """The cores of a mask: bit i is core i.

    Raises:
        ProgramError: the mask is 0 or names cores that the target lacks.
    """
    whole = isinstance(mask, int | np.integer) and not isinstance(mask, bool)
    if not whole or not 0 < int(str(mask)) < 1 << target.groups:
        raise ProgramError(
            "a core mask without cores, or with cores that the chip lacks",
            where=target.name,
            got=bin(int(str(mask))) if whole else repr(mask),
            limit=f"0b1 to {bin((1 << target.groups) - 1)}",
        )
    return tuple(core for core in range(target.groups) if int(str(mask)) >> core & 1)


def _kind(name: str) -> DType:
    """A data type by name, as `dtype` finds it."""
    return dtype(name)


def _sizes(shape: Sequence[int] | int) -> tuple[int, ...]:
    """A shape as a tuple of sizes."""
    given = (shape,) if isinstance(shape, int | np.integer) else tuple(shape)
    if not all(isinstance(n, int | np.integer) and not isinstance(n, bool) and n >= 1 for n in given):
        raise ProgramError("a shape that is none", got=f"{given}", limit="sizes of 1 and more")
    return tuple(int(n) for n in given)


def _takes_one(function: Callable[..., object]) -> bool:
    """Whether a function can be called with one argument."""
    try:
        signature(function).bind(0)
    except TypeError:
        return False
    except ValueError as error:
        raise MachineError("a function whose arguments cannot be told", got=repr(function)) from error
    return True
