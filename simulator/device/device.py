"""A device: a target with named arrays at addresses, on which the vendors' own calls run.

Memory is hostile here too: an array that is given no data holds NaN, two arrays never overlap, and an address at which
no array lies is refused.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from inspect import Parameter, signature
from pathlib import Path
from types import TracebackType
from typing import Self

import numpy as np
import numpy.typing as npt

from simulator.device.arrays import DeviceArray, Place, Storage
from simulator.device.team import Act, Team
from simulator.errors import ProgramError
from simulator.machine import Checks, Machine
from simulator.memory.memories import Memory
from simulator.results.run import Run
from targets.loader import load_target
from targets.schema import Target


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
        self._storage = Storage(self.target)
        self._closed = False
        self._clocks = [0] * self.target.groups
        self._team: Team | None = None
        self._here = threading.local()

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
        self._closed = True

    def require_open(self) -> None:
        """Refuse a device that was closed.

        Raises:
            ProgramError: its `with` block has ended.
        """
        if self._closed:
            remedy = "make calls inside its `with` block"
            raise ProgramError("a device that was closed", where=self.target.name, remedy=remedy)

    # -- arrays ----------------------------------------------------------------------------------------------

    def array(
        self,
        memory: str,
        shape: Sequence[int] | int,
        dtype: str = "fp32",
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
            BoundsError: the address lies outside the memory, in another array, or between two elements.
            CapacityError: the memory is too small.
            ProgramError: the target has no such memory or core, or data do not fit.
        """
        self.require_open()
        if core is None:
            named = None if address is None else self._storage.holding(address, self.core, memory)
            core = self.core if named is None or named[1] is None else named[1]
        place = self._storage.named(memory, core)
        label = name or f"{memory} array {len(self._storage.arrays)}"
        return self._storage.place(self, label, place, shape, dtype, address, data)

    @property
    def arrays(self) -> tuple[DeviceArray, ...]:
        """What is there, in the order in which it was placed."""
        return tuple(self._storage.arrays)

    def free(self, array: DeviceArray) -> None:
        """Take an array away.

        Raises:
            ProgramError: it is not there.
        """
        self._storage.free(array)

    def at(self, address: int, core: int | None = None) -> DeviceArray:
        """The array in which an address lies, as `core` (default: the one that calls) sees it.

        Raises:
            BoundsError: no array lies there.
        """
        return self._storage.at(address, self.core if core is None else core)

    def memory_at(self, address: int, core: int | None = None) -> Place:
        """The memory in which an address lies, and whose it is.

        Raises:
            BoundsError: it lies in none.
        """
        return self._storage.memory_at(address, self.core if core is None else core)

    def lying_at(self, address: int, place: Place) -> DeviceArray | None:
        """The array of a memory in which an address lies."""
        return self._storage.lying_at(address, place)

    def level(self, place: Place) -> Memory:
        """The memory at a place, with what arrays and structures take of it."""
        return self._storage.level(place)

    def struct(self, address: int, size_bytes: int, name: str = "struct") -> dict[str, object]:
        """The fields of the structure at an address, which is placed there when it is first named.

        Raises:
            BoundsError: the address lies outside the memories, or in an array.
        """
        self.require_open()
        return self._storage.struct(address, size_bytes, name, self.core)

    # -- cores -----------------------------------------------------------------------------------------------

    @property
    def core(self) -> int:
        """The core that calls: the one whose function this is, or core 0."""
        found: int | None = getattr(self._here, "core", None)
        return 0 if found is None else found

    @property
    def team(self) -> Team | None:
        """The team that the caller belongs to, None outside `spmd`."""
        return self._team if hasattr(self._here, "core") else None

    @property
    def cycles(self) -> int:
        """What the calls so far have taken: of the core that is furthest."""
        return max(self._clocks)

    def spmd(self, function: Callable[..., object], core_mask: int) -> tuple[object, ...]:
        """Run a function once a core of the mask: bit i is core i.

        A function whose first parameter has no default, or is called core_mask, is given the mask.

        Returns:
            What each of them returned, in the order of the cores.

        Raises:
            DeadlockError: cores wait for others that never come.
            ProgramError: the mask is 0 or names cores that the target lacks, or a team runs already.
        """
        self.require_open()
        if self._team is not None:
            raise ProgramError("a team inside a team", where="spmd")
        arguments = (core_mask,) if _takes_mask(function) else ()

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
            ProgramError: outside a team, or for a number of cores that the chip lacks.
        """
        where = f"barrier {number}"
        if self.team is None:
            raise ProgramError("a barrier outside spmd", where=where, remedy="use Device.spmd")
        most = self.target.groups
        if not 1 <= count <= most:
            what = "a barrier for a number of cores that the chip lacks"
            raise ProgramError(what, where=where, got=count, limit=f"1 to {most}")
        sync = self.target.sync
        latency = sync.barrier_latency_cycles + count * sync.barrier_cycles_per_core
        cycles = self.target.issue.barrier_cycles + latency
        self.meet(("barrier", number), count, None, where, lambda here: self.spend(tuple(here), cycles))

    def spend(self, cores: Sequence[int], cycles: int) -> None:
        """Cores are at one time, and take so many cycles together."""
        now = max(self._clocks[core] for core in cores) + cycles
        for core in cores:
            self._clocks[core] = now

    def machine(self, cores: Sequence[int]) -> Machine:
        """A machine of these cores, whose memories are empty: the call puts in it what it needs to see."""
        return Machine(self.target, cores, numerics=self.numerics, checks=self.checks)

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


def device_of(array: DeviceArray) -> Device:
    """The device that an array was placed on."""
    assert isinstance(array.owner, Device)  # noqa: S101  # Device.array says so
    return array.owner


def cores_of_mask(mask: object, target: Target) -> tuple[int, ...]:
    """The cores of a mask: bit i is core i.

    Raises:
        ProgramError: it is no mask, is 0, or names cores that the target lacks.
    """
    whole = int(mask) if isinstance(mask, int | np.integer) and not isinstance(mask, bool) else None
    if whole is None or not 0 < whole < 1 << target.groups:
        raise ProgramError(
            "a core mask without cores, or with cores that the target does not have",
            where=target.name,
            got=repr(mask) if whole is None else bin(whole),
            limit=f"0b1 to {bin((1 << target.groups) - 1)}",
        )
    return tuple(core for core in range(target.groups) if whole >> core & 1)


def _takes_mask(function: Callable[..., object]) -> bool:
    """Whether a function's first parameter has to be given, or is called core_mask."""
    kinds = (Parameter.POSITIONAL_ONLY, Parameter.POSITIONAL_OR_KEYWORD)
    first = next((p for p in signature(function).parameters.values() if p.kind in kinds), None)
    return first is not None and (first.default is Parameter.empty or first.name == "core_mask")
