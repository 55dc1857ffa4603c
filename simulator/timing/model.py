"""The event model of one launch: cores, links, barriers and flags in one SimPy environment."""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count

import simpy

from simulator.errors import DeadlockError, ProgramError
from simulator.instructions import FLAG_WAIT
from simulator.timing.cache import Cache
from simulator.timing.engines import CoreState
from simulator.timing.events import ENDS, STARTS, Alarm
from simulator.timing.lane import Lane
from simulator.timing.program import Lanes, Program
from simulator.timing.traffic import Traffic
from targets.schema import Target


@dataclass(slots=True)
class _Gathering:
    """Cores that have come to a barrier."""

    entries: list[tuple[CoreState, int]] = field(default_factory=list)
    count: int = 0
    latest: int = -1
    last_core: int = -1


@dataclass(frozen=True, slots=True)
class CoreClass:
    """Cores of one kind that run one program in step: the first stands for all in the event model."""

    cores: tuple[int, ...]
    program: Program
    lanes: Lanes


class LaunchModel:
    """Runs the programs of one launch from cycle `env.now` on.

    Attributes:
        traffic: the links and what flows on them.
        starting: whether the starts of the cycle are being done, in the order of the cores.
        flags: by flag, when it was set and not yet taken, and by which (core, entry).
        blame: (core, entry) of a barrier -> (core, entry) of the one that came last; of a flag's wait -> of its set.
        next_turn: counts the ends of instructions, in the order in which they come.
    """

    def __init__(
        self,
        env: simpy.Environment,
        target: Target,
        classes: Sequence[CoreClass],
        groups: int,
        caches: Mapping[str, Cache],
    ) -> None:
        """Build the cores of `groups` groups and the links; nothing has been issued."""
        self.env = env
        self.target = target
        self.flag_latency = target.sync.flag_latency_cycles
        self.core_count = sum(len(c.cores) for c in classes)
        self.traffic = Traffic(env, target, groups, caches, self.look)
        self.flags: dict[Hashable, deque[tuple[int, tuple[int, int]]]] = {}
        self._flag_waiters: dict[Hashable, list[CoreState]] = {}
        self._barriers: dict[Hashable, _Gathering] = {}
        self.blame: dict[tuple[int, int], tuple[int, int]] = {}
        self.next_turn = count().__next__
        self._touched: list[CoreState] = []
        self.starting = self._pending_look = False
        self._look = Alarm(env, self._starts, STARTS)
        self.cores = [CoreState(self, c.cores[0], len(c.cores), c.program, c.lanes) for c in classes]

    def run(self) -> int:
        """Let every program run to its end; returns the cycle of the last end.

        Raises:
            DeadlockError: nothing can proceed and programs are not finished.
        """
        for core in self.cores:
            core.fetch(self.now)
        self.env.run()
        stuck = [core for core in self.cores if not core.finished]
        if stuck:
            raise DeadlockError(
                max(core.since for core in stuck), tuple(self._complaint(core) for core in stuck)
            )
        return max((max(core.end, default=0) for core in self.cores), default=self.now)

    @property
    def now(self) -> int:
        """The cycle."""
        return int(self.env.now)

    def touch(self, core: CoreState) -> None:
        """Look at a core's lanes when the ends and issues of this cycle are done."""
        self._touched.append(core)
        self.look()

    def look(self) -> None:
        """Do the starts that had to wait, and share the links, when the ends and issues of this cycle are done."""
        if not self._pending_look:
            self._pending_look = True
            self._look.set(0)

    def look_again(self, core: CoreState, delay: int) -> None:
        """Look at a core's lanes `delay` cycles from now: a flag's latency ends then."""
        Alarm(self.env, lambda _: core.touch(), ENDS).set(delay)

    def _starts(self, now: int) -> None:
        """Starts of this cycle, in (core, engine) order, then the links' new shares."""
        self.starting = True
        while self._touched:
            batch = sorted(self._touched, key=_by_index) if len(self._touched) > 1 else self._touched
            self._touched = []
            for core in batch:
                core.touched = False
                core.start_what_can(now)
        self.starting = self._pending_look = False
        self.traffic.share(now)

    def arrive(self, core: CoreState, entry: int, now: int) -> None:
        """A core (and its equals) has come to a barrier.

        Raises:
            ProgramError: the barrier is one of other cores, or of fewer.
        """
        members = core.program.cores.get(entry)
        key = (core.program.key[entry], members)
        if members is not None and core.index not in members:
            raise ProgramError(
                "a core at a barrier of others", where=f"barrier {key[0]}", got=core.index, limit=members
            )
        expected = self.core_count if members is None else len(members)
        gathering = self._barriers.setdefault(key, _Gathering())
        gathering.entries.append((core, now))
        gathering.count += core.weight
        if now > gathering.latest or core.index < gathering.last_core:
            gathering.latest, gathering.last_core = now, core.index
        if gathering.count > expected:
            raise ProgramError(
                "more cores at a barrier than it has", where=f"barrier {key[0]}", limit=str(expected)
            )
        if gathering.count == expected:
            del self._barriers[key]
            sync = self.target.sync
            delay = sync.barrier_latency_cycles + sync.barrier_cycles_per_core * expected
            Alarm(self.env, lambda at: self._release(gathering, at), ENDS).set(delay)

    def _release(self, gathering: _Gathering, now: int) -> None:
        last = next(core for core, _ in gathering.entries if core.index == gathering.last_core)
        blame = (gathering.last_core, last.arrived)
        for core, arrived in gathering.entries:
            entry = core.arrived
            core.release(now, arrived, gathering.latest)
            if core.waited_row[entry] < 0:
                self.blame[core.index, entry] = blame

    def flag_is_up(self, key: Hashable, core: CoreState) -> bool:
        """Whether a flag was set; if not, the core is looked at when it is."""
        if self.flags.get(key):
            return True
        waiters = self._flag_waiters.setdefault(key, [])
        if core not in waiters:
            waiters.append(core)
        return False

    def raise_flag(self, key: Hashable, now: int, setter: tuple[int, int]) -> None:
        """A flag was set, by a (core, entry)."""
        self.flags.setdefault(key, deque()).append((now, setter))
        for core in self._flag_waiters.pop(key, []):
            core.touch()

    def _complaint(self, core: CoreState) -> str:
        """Who waits, for what, since when."""
        who = f"core {core.index}"
        program = core.program
        if core.arrived >= 0:
            key, members = program.key[core.arrived], program.cores.get(core.arrived)
            here = self._barriers.get((key, members), _Gathering())
            return (
                f"{who} SCALAR waits at barrier {key} since cycle {core.since}"
                f" ({here.count} of {self.core_count if members is None else len(members)} cores are there)"
            )
        waiting = [lane for lane in core.lanes if lane.queue]
        if waiting:
            lane = min(waiting, key=lambda each: program.kind[each.queue[0]] != FLAG_WAIT)
            return f"{who} {_lane_complaint(core, lane)}"
        return f"{who} SCALAR stands at entry {core.pc} of {len(program)} since cycle {core.since}"


def _by_index(core: CoreState) -> int:
    return core.index


def _lane_complaint(core: CoreState, lane: Lane) -> str:
    """What the head of a queue waits for."""
    program, entry = core.program, lane.queue[0]
    name = core.lane_names[lane.index]
    since = f"since cycle {max(core.issued[entry], lane.free_since)}"
    if program.kind[entry] == FLAG_WAIT:
        return f"{name} waits for flag {program.key[entry]} {since}"
    return f"{name} waits with {program.name[entry]} {since}"
