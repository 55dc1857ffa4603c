"""A machine: a target brought to life, with memories, and a stream on which kernels are launched one after another."""

from __future__ import annotations

import gc
from collections import Counter
from collections.abc import Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Literal

import simpy

from simulator.errors import ProgramError
from simulator.kernel import Core, HasKey, HasKindClasses, HasKinds, HasOrigins, HasValues, Kernel, Space
from simulator.memory.memories import Buffer, Memory
from simulator.results.run import LaunchRecord
from simulator.results.trace import Trace
from simulator.timing.cache import Cache
from simulator.timing.library import LIBRARY
from simulator.timing.model import CoreClass, LaunchModel
from simulator.timing.program import Compiler, Lanes, Program
from simulator.timing.recorder import Recorder
from simulator.values.completion import DmaMode, Timing, execute
from simulator.values.numerics import DType
from simulator.values.races import RaceCheck
from simulator.values.steps import execute_in_order
from targets.schema import Target

L2 = Literal["cold", "warm"]
"""What the first launch finds in a cache: nothing, or all tensors that were made, the last as far as there is room."""


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
        self,
        target: Target,
        cores: Sequence[int],
        *,
        numerics: bool = True,
        checks: Checks | None = None,
        l2: L2 = "cold",
        traced: bool = True,
    ) -> None:
        """Bring a target to life for launches on `cores`.

        `l2` says what the first launch finds in the caches. With `traced=False` no trace is kept: a stream of many
        launches then takes no more memory than its longest one.

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
        self._lanes = {kind: Lanes(target, kind) for kind in target.core}
        self._shared = {n: Memory(n, s) for n, s in target.memory.items() if s.scope == "chip"}
        self._own = {
            unit.number: {
                name: Memory(name, spec, core=unit.number)
                for name, spec in target.memory.items()
                if spec.scope != "chip" and spec.of_kind(unit.kind)
            }
            for unit in target.units(self.cores)
        }
        self._recorder = Recorder(tuple(target.lanes()), cached=bool(target.cache))
        self._l2 = l2
        self._traced = traced
        self._caches = {name: Cache(spec) for name, spec in target.cache.items()}
        self._roles = {name: role.memory for name, role in target.role.items()}
        self.launches: list[LaunchRecord] = []
        self.cycles = 0
        self.macs = 0

    def tensor(
        self,
        name: str,
        shape: tuple[int, ...],
        dtype: DType,
        *,
        memory: str | None = None,
        address: int | None = None,
        core: int | None = None,
    ) -> Buffer:
        """A buffer that outlives launches, without numbers yet.

        It lies in a shared memory (default the main one), or with `core` in that core's own.

        Raises:
            CapacityError: the memory is too small.
            BoundsError: the address is taken, or outside.
        """
        levels = self._shared if core is None else self._own[core]
        level = levels[self._roles.get(memory or "", memory) or self.target.main_memory]
        return level.allocate(
            name, shape, dtype, address=address, remedy="lower the batch or the sizes of the call", keep=True
        )

    def release(self, buffer: Buffer) -> None:
        """Free a tensor that `tensor` made in a shared memory; the next one may lie there."""
        self._shared[buffer.memory].release(buffer.address)

    def room_bytes(self, memory: str) -> int:
        """Bytes of the largest free range of a memory; of every core's own, the one with the least room."""
        levels = [held[memory] for held in (self._shared, *self._own.values()) if memory in held]
        return min(max((end - start for start, end in level.gaps()), default=0) for level in levels)

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
        if self._l2 == "warm" and not self.launches:
            for name, cache in self._caches.items():
                cache.warm(self._shared[name].taken)
        cores = self._cores_of(kernel)
        members = self._members(kernel, cores)
        active = [cores[index] for group in members for index in group]
        space = Space(sorted(active, key=lambda c: c.index), self._own, self._shared, self._roles)
        kernel.setup(space)
        compilers = {
            kind: Compiler(self.target, lanes, self.checks.dropped) for kind, lanes in self._lanes.items()
        }
        equal: dict[Hashable, Program] = {}
        classes = [
            CoreClass(group, self._program(kernel, core, compilers[core.kind], equal), self._lanes[core.kind])
            for group in members
            for core in [cores[group[0]]]
        ]
        if any(c.program.has_flags for c in classes) and any(len(c.cores) > 1 for c in classes):
            raise ProgramError("cores that use flags cannot share a class", where=kernel.name)
        record = self._simulate(kernel, cores, classes)
        self._values(kernel, cores, classes)
        self._release()
        return record

    def _cores_of(self, kernel: Kernel) -> dict[int, Core]:
        """The cores that a kernel is launched on, by number, in this order.

        Raises:
            ProgramError: the target has no such kind of core.
        """
        kinds = kernel.core_kinds if isinstance(kernel, HasKinds) else tuple(self.target.core)[:1]
        unknown = [kind for kind in kinds if kind not in self.target.core]
        if unknown:
            known = ", ".join(self.target.core)
            raise ProgramError("no such kind of core", where=kernel.name, got=unknown[0], limit=known)
        units = self.target.units(self.cores, kinds)
        counts, ranks = Counter(unit.kind for unit in units), Counter[str]()
        cores = {}
        for number, group, kind, slot in units:
            cores[number] = Core(number, ranks[kind], counts[kind], kind=kind, group=group, slot=slot)
            ranks[kind] += 1
        return cores

    def _program(
        self, kernel: Kernel, core: Core, compiler: Compiler, equal: dict[Hashable, Program]
    ) -> Program:
        """The program of a core, compiled, or from the library where the kernel says what it depends on.

        A cache sees addresses, which a program that is kept does not have: there, cores of one class share the rest.
        """
        if self.target.cache and self.checks.fold:
            kind = (core.kind, _class_key(kernel, core))
            if kind in equal:
                return compiler.again(equal[kind], kernel.program(core))
            return equal.setdefault(kind, compiler.compile(kernel.program(core)))
        if not isinstance(kernel, HasKey) or self.checks.dropped or self.target.cache:
            return compiler.compile(kernel.program(core))
        key = (kernel.key(), core.kind, core.rank, core.count)
        return LIBRARY.program(self.target, key, lambda: compiler.compile(kernel.program(core)))

    def _members(self, kernel: Kernel, cores: Mapping[int, Core]) -> list[tuple[int, ...]]:
        """Cores of equal programs, in the order of their first core; where there is a cache, none are equal."""
        coords_known = not kernel.axes or isinstance(kernel, HasOrigins)
        fold = self.checks.fold and coords_known and not self.target.cache
        groups: dict[Hashable, list[int]] = {}
        for index, core in cores.items():
            key = _class_key(kernel, core)
            if key is not None:
                groups.setdefault((core.kind, key, -1 if fold else index), []).append(index)
        return [tuple(group) for group in groups.values()]

    def _simulate(self, kernel: Kernel, cores: Mapping[int, Core], classes: list[CoreClass]) -> LaunchRecord:
        used = [cores[index] for c in classes for index in c.cores]
        active = len({(core.group, core.slot if core.group < 0 else 0) for core in used})
        spec = self.target.launch.get(kernel.kind, self.target.launch["default"])
        begin = self.cycles + spec.cycles + spec.cycles_per_core * active
        env = simpy.Environment(initial_time=begin)
        self._model = LaunchModel(env, self.target, classes, active, self._caches)
        end = max(begin, self._model.run())
        record = LaunchRecord(name=kernel.name, kind=kernel.kind, start=self.cycles, end=end, cores=active)
        if self._traced:
            origins = self._origins(kernel, cores, classes) if isinstance(kernel, HasOrigins) else {}
            self._recorder.add(len(self.launches), self._model, classes, kernel.axes, origins)
        self.launches.append(record)
        self.cycles = end
        self.macs += sum(c.program.macs * len(c.cores) for c in classes)
        return record

    def issue_cycles(self) -> dict[int, int]:
        """What the scalar unit of each core of the last launch spent on issuing, flags included, by core number."""
        issue = self.target.issue
        return {
            core.index: sum(cost.issue_cycles for cost in core.program.cost)
            + sum(len(need) for need in core.program.need) * issue.flag_wait_cycles
            + sum(core.program.sets) * issue.flag_set_cycles
            for core in self._model.cores
        }

    def _origins(
        self, kernel: HasOrigins, cores: Mapping[int, Core], classes: list[CoreClass]
    ) -> dict[int, Sequence[tuple[int, ...]]]:
        """The tiles' coordinates of each core that shares a class."""
        shared = [core for c in classes if len(c.cores) > 1 for core in c.cores]
        return {core: kernel.origins(cores[core].rank, cores[core].count) for core in shared}

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
        most = max(len(lanes.names) for lanes in self._lanes.values())
        race = RaceCheck(timings, most) if self.checks.races else None
        execute(timings, programs, self.checks.dma, race.observe if race else None, self.numerics)

    def _release(self) -> None:
        """Kernels' buffers go; tensors stay, and all that is in the main memory."""
        for own in self._own.values():
            for memory in own.values():
                memory.release_all()
        for name, memory in self._shared.items():
            if name != self.target.main_memory:
                memory.release_all()

    def trace(self) -> Trace:
        """What every engine did, of all launches so far; empty where none is kept."""
        return self._recorder.trace()


def _class_key(kernel: Kernel, core: Core) -> Hashable | None:
    if isinstance(kernel, HasKindClasses):
        return kernel.kind_class(core.kind, core.rank, core.count)
    return kernel.core_class(core.rank, core.count)
