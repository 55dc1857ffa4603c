"""A machine: a target brought to life, with memories, and a stream on which kernels are launched one after another."""

from __future__ import annotations

import gc
from collections.abc import Hashable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Literal

import simpy

from simulator.errors import ProgramError
from simulator.kernel import Core, HasKey, HasOrigins, HasValues, Kernel, Space
from simulator.memory.memories import Buffer, Memory
from simulator.results.run import LaunchRecord
from simulator.results.trace import Trace
from simulator.timing.library import LIBRARY
from simulator.timing.model import CoreClass, LaunchModel
from simulator.timing.program import Compiler, Lanes, Program
from simulator.timing.recorder import Recorder
from simulator.values.completion import DmaMode, Timing, execute
from simulator.values.numerics import DType
from simulator.values.races import RaceCheck
from simulator.values.steps import execute_in_order
from targets.schema import Target


@dataclass(frozen=True, kw_only=True)
class Checks:
    """How a run is watched; the defaults cost nothing.

    Attributes:
        dma: when a copy lands ("modelled", "early", "late").
        values: "tiles" lets a kernel that can compute its numbers in larger steps than its instructions; "instructions"
            executes every instruction when it completes, as the other checks do.
        races: raise RaceError when two cores touch the same bytes of shared memory with nothing between.
        dropped: (memory, kind) of derived hazards to overlook, kind "raw", "war" or "waw".
        fold: simulate cores of equal programs as one; the trace is the same.
    """

    dma: DmaMode = "modelled"
    values: Literal["tiles", "instructions"] = "tiles"
    races: bool = False
    dropped: frozenset[tuple[str, str]] = frozenset()
    fold: bool = True

    @property
    def by_instruction(self) -> bool:
        """Whether every instruction is executed by itself."""
        return self.values == "instructions" or self.dma != "modelled" or self.races or bool(self.dropped)


@contextmanager
def _without_collector() -> Iterator[None]:
    """Python's cycle collector pauses: a launch makes many small objects, and no cycles among them."""
    enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


class Machine:
    """Cores, memories and a stream.

    Attributes:
        cycles: the end of the last launch.
        launches: what was launched, with start and end.
        macs: multiply-adds that were executed, with padding.
    """

    def __init__(
        self, target: Target, cores: Sequence[int], *, numerics: bool = True, checks: Checks | None = None
    ) -> None:
        """Bring a target to life for launches on `cores`.

        Raises:
            ProgramError: the target has no such core.
        """
        bad = [core for core in cores if not 0 <= core < target.groups]
        if bad or not cores or len(set(cores)) != len(cores):
            raise ProgramError(
                "cores that the target does not have",
                where=target.name,
                got=list(cores),
                limit=f"0 to {target.groups - 1}",
            )
        self.target = target
        self.cores = tuple(sorted(cores))
        self.numerics = numerics
        self.checks = checks or Checks()
        kind = next(iter(target.core))
        self._lanes = Lanes(target, kind)
        self._shared = {n: Memory(n, s) for n, s in target.memory.items() if s.scope == "chip"}
        self._own = {
            core: {n: Memory(n, s, core=core) for n, s in target.memory.items() if s.scope != "chip"}
            for core in self.cores
        }
        self._roles = {name: role.memory for name, role in target.role.items()}
        self.main_memory = self._roles.get("main", "ddr")
        self._recorder = Recorder(tuple(self._lanes.names))
        self.launches: list[LaunchRecord] = []
        self.cycles = 0
        self.macs = 0

    def tensor(
        self,
        name: str,
        shape: tuple[int, ...],
        dtype: DType,
        *,
        memory: str = "",
        address: int | None = None,
    ) -> Buffer:
        """A buffer in a shared memory (default the main one) that outlives launches, without numbers yet.

        Raises:
            CapacityError: the memory is too small.
            BoundsError: the address is taken, or outside.
        """
        level = self._shared[self._roles.get(memory, memory) or self.main_memory]
        return level.allocate(
            name, shape, dtype, address=address, remedy="lower the batch or the sizes of the call", keep=True
        )

    def launch(self, kernel: Kernel) -> LaunchRecord:
        """Run a kernel on the cores, after what was launched before.

        Raises:
            CapacityError: its buffers do not fit.
            DeadlockError: its programs wait for each other.
            RaceError: the race check found one.
        """
        with _without_collector():
            return self._launch(kernel)

    def _launch(self, kernel: Kernel) -> LaunchRecord:
        members = self._members(kernel)
        cores = {index: Core(index, rank, len(self.cores)) for rank, index in enumerate(self.cores)}
        active = [cores[index] for group in members for index in group]
        space = Space(sorted(active, key=lambda c: c.rank), self._own, self._shared, self._roles)
        kernel.setup(space)
        compiler = Compiler(self.target, self._lanes, self.checks.dropped)
        classes = [CoreClass(group, self._program(kernel, cores[group[0]], compiler)) for group in members]
        if any(c.program.has_flags for c in classes) and any(len(c.cores) > 1 for c in classes):
            raise ProgramError("cores that use flags cannot share a class", where=kernel.name)
        record = self._simulate(kernel, classes)
        self._values(kernel, cores, classes)
        self._release()
        return record

    def _program(self, kernel: Kernel, core: Core, compiler: Compiler) -> Program:
        """The program of a core, compiled, or from the library where the kernel says what it depends on."""
        if not isinstance(kernel, HasKey) or self.checks.dropped:
            return compiler.compile(kernel.program(core))
        key = (kernel.key(), core.rank, core.count)
        return LIBRARY.program(self.target, key, lambda: compiler.compile(kernel.program(core)))

    def _members(self, kernel: Kernel) -> list[tuple[int, ...]]:
        """Cores of equal programs, in the order of their first core."""
        count = len(self.cores)
        fold = self.checks.fold and (not kernel.axes or isinstance(kernel, HasOrigins))
        groups: dict[Hashable, list[int]] = {}
        for rank, index in enumerate(self.cores):
            key = kernel.core_class(rank, count)
            if key is not None:
                groups.setdefault(key if fold else (key, rank), []).append(index)
        return [tuple(group) for group in groups.values()]

    def _simulate(self, kernel: Kernel, classes: list[CoreClass]) -> LaunchRecord:
        active = sum(len(c.cores) for c in classes)
        spec = self.target.launch.get(kernel.kind, self.target.launch["default"])
        begin = self.cycles + spec.cycles + spec.cycles_per_core * active
        self._model = LaunchModel(simpy.Environment(initial_time=begin), self.target, self._lanes, classes)
        end = max(begin, self._model.run())
        record = LaunchRecord(name=kernel.name, kind=kernel.kind, start=self.cycles, end=end, cores=active)
        origins = self._origins(kernel, classes) if isinstance(kernel, HasOrigins) else {}
        self._recorder.add(len(self.launches), self._model, classes, kernel.axes, origins)
        self.launches.append(record)
        self.cycles = end
        self.macs += sum(c.program.macs * len(c.cores) for c in classes)
        return record

    def _origins(self, kernel: HasOrigins, classes: list[CoreClass]) -> dict[int, Sequence[tuple[int, ...]]]:
        """The tiles' coordinates of each core that shares a class."""
        shared = [core for c in classes if len(c.cores) > 1 for core in c.cores]
        return {core: kernel.origins(self.cores.index(core), len(self.cores)) for core in shared}

    def _values(self, kernel: Kernel, cores: dict[int, Core], classes: list[CoreClass]) -> None:
        if not (self.numerics or self.checks.races):
            return
        if isinstance(kernel, HasValues) and not self.checks.by_instruction:
            execute_in_order({i: kernel.values(cores[i]) for c in classes for i in sorted(c.cores)})
            return
        states = {core.index: core for core in self._model.cores}
        timings = {
            index: Timing(c.program, state.start, state.end, state.turn)
            for c in classes
            for state in [states[c.cores[0]]]
            for index in c.cores
        }
        programs = {index: kernel.program(cores[index]) for index in timings}
        race = RaceCheck(timings, len(self._lanes.names)) if self.checks.races else None
        execute(timings, programs, self.checks.dma, race.observe if race else None, self.numerics)

    def _release(self) -> None:
        """Kernels' buffers go; tensors stay, and all that is in the main memory."""
        for own in self._own.values():
            for memory in own.values():
                memory.release_all()
        for name, memory in self._shared.items():
            if name != self.main_memory:
                memory.release_all()

    def trace(self) -> Trace:
        """What every engine did, of all launches so far."""
        return self._recorder.trace()
