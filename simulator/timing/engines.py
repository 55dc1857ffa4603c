"""The scalar unit of one core and its engines while time passes: issue, queues, hazards, barriers.

A `CoreState` is a program counter with its lanes. It stands for `weight` equal cores when several run the same program
at the same time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from simulator.instructions import BARRIER, FLAG_SET, FLAG_WAIT, OPERATION
from simulator.results.trace import REASONS
from simulator.timing.events import ISSUES, Alarm
from simulator.timing.lane import Lane
from simulator.timing.program import SCALAR, Lanes, Program

if TYPE_CHECKING:
    from simulator.timing.model import LaunchModel

NONE, ISSUE, DEPENDENCY, ENGINE, BARRIER_WAIT, FLAG = (
    REASONS.index(reason) for reason in ("none", "issue", "dependency", "engine", "barrier", "flag")
)


class CoreState:
    """The scalar unit of one core (or of `weight` equal ones) and its lanes."""

    __slots__ = (
        "_alarm",
        "_later",
        "_set_cycles",
        "_set_issued",
        "_slots",
        "arrived",
        "blocked",
        "cached",
        "end",
        "flow",
        "gate",
        "index",
        "issued",
        "lane_names",
        "lanes",
        "model",
        "needed_row",
        "open_shared",
        "opener",
        "outstanding",
        "pc",
        "program",
        "ready",
        "since",
        "stalled",
        "start",
        "touched",
        "turn",
        "waited_reason",
        "waited_row",
        "weight",
        "worked",
    )

    def __init__(self, model: LaunchModel, index: int, weight: int, program: Program, lanes: Lanes) -> None:
        """A core at the beginning of its program."""
        self.model = model
        self.index = index
        self.weight = weight
        self.program = program
        self.lane_names = lanes.names
        self.lanes = [Lane(self, i, lanes.depth[i], lanes.blocking[i]) for i in range(len(lanes.names))]
        size = len(program)
        self.issued, self.ready, self.start, self.end = [0] * size, [0] * size, [0] * size, [-1] * size
        self.flow = [-1] * size
        self.cached: dict[int, tuple[int, int, int]] = {}
        self._set_issued, self.turn = [0] * size, [0] * size
        self.waited_row: list[int] = [-1] * size
        self.needed_row: list[int] = [-1] * size
        self.waited_reason: list[int] = [NONE] * size
        self.pc = self.outstanding = self.open_shared = self._set_cycles = self.since = 0
        self.blocked = self.worked = self.arrived = self.opener = self.gate = -1
        self.stalled: Lane | None = None
        self.touched = False
        self._alarm = Alarm(model.env, self._on_issue, ISSUES)
        self._later = Alarm(model.env, self.fetch, ISSUES)
        issue = model.target.issue
        self._slots = bool(issue.flag_set_cycles or issue.flag_wait_cycles)

    def touch(self) -> None:
        """Ask for a look at the lanes once the ends of this cycle are done."""
        if not self.touched:
            self.touched = True
            self.model.touch(self)

    def slots(self, entry: int) -> int:
        """Queue slots of an entry: its own, and one for each flag before and after it where flags are instructions."""
        if not self._slots:
            return 1
        return 1 + len(self.program.need[entry]) + self.program.sets[entry]

    def fetch(self, now: int, free: int | None = None) -> None:
        """The scalar unit is free at cycle `free` (default now): issue the next entries until it stalls or waits.

        Operations that cannot find a full queue are issued ahead of time: nothing between now and their issue can
        change when they start.
        """
        program = self.program
        at = now if free is None else free
        while self.pc < len(program):
            entry = self.pc
            lane = self.lanes[program.lane[entry]]
            self.since = at
            room = lane.blocking or lane.used < lane.depth
            if room and not self._slots and program.kind[entry] == OPERATION:
                at += program.cost[entry].issue_cycles
                self._issue(entry, lane, now, at)
                if lane.blocking:
                    return
                continue
            if at > now:
                self._later.set(at - now)
                return
            if self._set_cycles:
                self._alarm.set(self._set_cycles)
                return
            if not lane.blocking and lane.used + self.slots(entry) > max(lane.depth, self.slots(entry)):
                self.stalled = lane
                return
            cycles = program.cost[entry].issue_cycles
            if self._slots:
                cycles += len(program.need[entry]) * self.model.target.issue.flag_wait_cycles
            if cycles:
                self._alarm.set(cycles)
                return
            if not self._enter(entry, now):
                return

    def _issue(self, entry: int, lane: Lane, now: int, at: int) -> None:
        """An operation is issued at cycle `at`; it starts then if its engine and what it needs are free now."""
        self.issued[entry] = at
        self.outstanding += 1
        self.open_shared += self.program.shared[entry]
        self.pc = entry + 1
        if lane.blocking:
            self.blocked = entry
        if not lane.queue and self._may_start(lane, entry, now):
            self._note_start(lane, entry, at)
            lane.start(entry, now, at)
            return
        lane.queue.append(entry)
        lane.used += 1

    def _on_issue(self, now: int) -> None:
        if self._set_cycles:
            self._set_cycles, self._set_issued[self.pc - 1] = 0, now
            self.fetch(now)
        elif self._enter(self.pc, now):
            self.fetch(now)

    def _enter(self, entry: int, now: int) -> bool:
        """The entry is issued; returns whether the scalar unit goes on."""
        program = self.program
        self.issued[entry] = now
        self._set_cycles = program.sets[entry] * self.model.target.issue.flag_set_cycles if self._slots else 0
        self.since = now
        if program.kind[entry] == BARRIER:
            self.arrived = entry
            if not self.open_shared:
                self.model.arrive(self, entry, now)
            return False
        lane = self.lanes[program.lane[entry]]
        lane.queue.append(entry)
        lane.used += self.slots(entry)
        self.outstanding += 1
        self.open_shared += program.shared[entry]
        self.pc = entry + 1
        if lane.blocking:
            self.blocked = entry
        self._start_heads(lane, now)
        return not lane.blocking

    def start_what_can(self, now: int) -> None:
        """Start the heads of the queues, in engine order.

        What an operation's start changes stays inside its core until the links are shared anew at the end of the cycle,
        so that it may start as soon as it can; a flag that cores could take from each other waits for the starts of the
        cycle, in the order of the cores.
        """
        for lane in self.lanes:
            if lane.queue:
                self._start_heads(lane, now)

    def _start_heads(self, lane: Lane, now: int) -> None:
        queue = lane.queue
        while queue and self._may_start(lane, queue[0], now):
            entry = queue.popleft()
            lane.used -= self.slots(entry)
            at = max(now, self.issued[entry])
            self._note_start(lane, entry, at)
            lane.start(entry, now, at)
            if self.stalled is lane:
                self.stalled = None
                self.fetch(now)

    def _may_start(self, lane: Lane, entry: int, now: int) -> bool:
        program = self.program
        if lane.front >= 0 or (lane.back >= 0 and not self._overlaps(lane.back, entry)):
            return False
        need = program.need[entry]
        if need:
            for other, number in need.items():
                if self.lanes[other].done <= number:
                    return False
            if self.model.flag_latency and not self._flags_landed(need, now):
                return False
        if program.kind[entry] != FLAG_WAIT:
            return True
        if not self.model.starting:
            self.touch()
            return False
        return self.model.flag_is_up(program.key[entry], self)

    def _overlaps(self, running: int, entry: int) -> bool:
        """Whether the start-up of a copy may run beside what is on its engine: the stream of a copy, not a flag."""
        cost = self.program.cost
        return cost[entry].overlap and bool(cost[running].path)

    def _flags_landed(self, need: dict[int, int], now: int) -> bool:
        landed = self._last_set(need)[0] + self.model.flag_latency
        if landed > now:
            self.model.look_again(self, landed - now)
        return landed <= now

    def _last_set(self, need: dict[int, int]) -> tuple[int, int]:
        """(cycle, entry) of the latest end, with its flag's set, of what is needed; the lowest lane wins a tie."""
        best = (-1, -1)
        for other in sorted(need):
            entry = self.program.by_lane[other][need[other]]
            ended = max(self.end[entry], self._set_issued[entry])
            if ended > best[0]:
                best = (ended, entry)
        return best

    def _note_start(self, lane: Lane, entry: int, now: int) -> None:
        """Write down what the entry waited for last."""
        issued, need = self.issued[entry], self.program.need[entry]
        self.start[entry] = now
        self.ready[entry] = issued
        reason, row = ISSUE, -1
        landed = -1
        if need:
            ended, of = self._last_set(need)
            landed = ended + self.model.flag_latency
            self.needed_row[entry] = of
            if landed > issued:
                self.ready[entry] = landed
                reason, row = DEPENDENCY, of
        if lane.previous >= 0 and lane.free_since > max(issued, landed):
            reason, row = ENGINE, lane.previous
        if reason == ISSUE and self.gate > self.worked and self.end[self.gate] >= lane.free_since:
            reason, row = BARRIER_WAIT, self.gate
        if self.program.kind[entry] == FLAG_WAIT and now > max(issued, lane.free_since):
            reason, row = FLAG, -1
            self.model.blame[self.index, entry] = self.model.flags[self.program.key[entry]][0][1]
        self.waited_reason[entry], self.waited_row[entry] = reason, row

    def ended(self, entry: int, now: int) -> None:
        """An entry has left its engine."""
        program = self.program
        self.end[entry], self.turn[entry] = now, self.model.next_turn()
        self.outstanding -= 1
        if program.kind[entry] == FLAG_SET:
            self.model.raise_flag(program.key[entry], now, (self.index, entry))
        if program.shared[entry]:
            self.open_shared -= 1
            if self.arrived >= 0 and not self.open_shared:
                self.opener = entry
                self.model.arrive(self, self.arrived, now)
        self.start_what_can(now)
        if self.blocked == entry:
            self.blocked, self.worked = -1, entry
            self.fetch(now)

    def release(self, now: int, arrived: int, latest: int) -> None:
        """The barrier opens: the core was there at `arrived`, the last one at `latest`.

        A core that came last waited for the copy that held it; the others waited for the first of those.
        """
        entry, self.arrived = self.arrived, -1
        self.ready[entry], self.start[entry] = arrived, latest
        self.end[entry], self.turn[entry] = now, self.model.next_turn()
        self.lanes[SCALAR].done += 1
        self.gate = entry
        late = arrived == latest and self.opener >= 0
        self.waited_reason[entry], self.waited_row[entry] = (
            (DEPENDENCY, self.opener) if late else (BARRIER_WAIT, -1)
        )
        self.opener = -1
        self.pc = entry + 1
        self.fetch(now)

    @property
    def flags_are_instructions(self) -> bool:
        """Whether flags between the engines of the core take the scalar unit's time."""
        return self._slots

    @property
    def finished(self) -> bool:
        """Whether the program and all that it issued have ended."""
        return self.pc == len(self.program) and not self.outstanding
