"""A core's program, compiled: columns of what the event model needs, one entry an instruction.

Compiling asks every instruction for its cost and derives its hazards. It follows from the order of the program alone.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from copy import copy
from fractions import Fraction
from math import ceil
from typing import NamedTuple

from simulator.errors import ProgramError
from simulator.instructions import (
    BARRIER,
    FLAG_SET,
    FLAG_WAIT,
    OPERATION,
    Barrier,
    Coords,
    Cost,
    FlagSet,
    Instruction,
)
from simulator.memory.ranges import Dims, Range, Runs
from simulator.memory.views import ScatteredView
from simulator.timing.hazards import HazardTracker, Need
from targets.schema import Target
from targets.tables import exact

SCALAR = 0
"""The lane of the scalar unit, where barriers stand."""

NO_NEED: Need = {}


class Lanes:
    """The engines of one core of a target, in order: the scalar unit first, then each kind with its channels."""

    def __init__(self, target: Target, core: str) -> None:
        """Number the engines of a core kind."""
        self.core = core
        self.names: list[str] = ["SCALAR"]
        self.first: dict[str, int] = {"scalar": 0}
        self.count: dict[str, int] = {"scalar": 1}
        self.depth: list[int] = [1]
        self.blocking: list[bool] = [True]
        for kind, spec in target.engine.items():
            if core not in spec.kinds:
                continue
            self.first[kind], self.count[kind] = len(self.names), spec.count
            for channel in range(spec.count):
                self.names.append(kind.upper() + (str(channel) if spec.count > 1 else ""))
                self.depth.append(spec.queue_depth)
                self.blocking.append(spec.issue == "blocking")

    def of(self, kind: str, channel: int) -> int:
        """The lane of an engine kind; channels wrap around where the core has fewer.

        Raises:
            ProgramError: the core has no such engine.
        """
        if kind not in self.first:
            raise ProgramError("no such engine", got=kind, limit=", ".join(self.first))
        return self.first[kind] + channel % self.count[kind]


class Row(NamedTuple):
    """One entry of a program.

    Attributes:
        lane, number: its engine and its number on it.
        cost: issue cycles, time on the engine, path and bytes.
        need: (lane -> number) that has to end first.
        kind: operation, barrier, flag set or wait.
        shared: touches shared memory, so that a barrier waits for it.
        name, moved, source, destination, coords: for the trace.
    """

    lane: int
    number: int
    cost: Cost
    need: Need
    kind: int
    shared: bool
    name: str
    moved: int
    source: str
    destination: str
    coords: Coords


class Span(NamedTuple):
    """What a copy touches of a memory with a cache.

    Attributes:
        range: two levels of bytes.
        outer: (size, stride in bytes) of the axes along which the range is repeated.
        exact: whether it touches all of them.
        adds: it writes what it has read there, so that it needs every line.
        runs: where the range is runs that lie anywhere in it, these.
    """

    range: Range
    outer: Dims
    exact: bool
    adds: bool
    runs: Runs | None = None


class Program:
    """Columns of one core's program.

    Attributes:
        sets: later entries on other engines that wait for this one, so that a flag set follows it.
        key: the barrier or flag of an entry; `cores` those of a barrier that is not for all.
        by_lane: the entries of each engine.
        macs: multiply-adds executed by the whole program.
        spans: on a target with a cache, for a copy on a path to its memory, what it touches there.
        The others are the columns of `Row`.
    """

    def __init__(self, rows: list[Row], by_lane: list[list[int]]) -> None:
        """Take the rows apart."""
        columns = zip(*rows, strict=True) if rows else ((),) * len(Row._fields)
        self.lane: Sequence[int]
        self.number: Sequence[int]
        self.cost: Sequence[Cost]
        self.need: Sequence[Need]
        self.kind: Sequence[int]
        self.shared: Sequence[bool]
        self.name: Sequence[str]
        self.moved: Sequence[int]
        self.source: Sequence[str]
        self.destination: Sequence[str]
        self.coords: Sequence[Coords]
        for name, column in zip(Row._fields, columns, strict=True):
            setattr(self, name, column)
        self.by_lane = by_lane
        self.sets = [0] * len(rows)
        self.key: dict[int, Hashable] = {}
        self.cores: dict[int, tuple[int, ...]] = {}
        self.macs = 0
        self.spans: dict[int, Span] = {}
        for need in self.need:
            for lane, number in need.items():
                self.sets[by_lane[lane][number]] += 1

    def twin(self, coords: Sequence[Coords], spans: dict[int, Span]) -> Program:
        """The same program elsewhere; barriers and flags are still to be named."""
        other = copy(self)
        other.coords, other.spans = coords, spans
        other.key, other.cores = {}, {}
        return other

    def __len__(self) -> int:
        """Entries."""
        return len(self.sets)

    @property
    def has_flags(self) -> bool:
        """Whether the program names other cores by flags."""
        return FLAG_SET in self.kind or FLAG_WAIT in self.kind


class Compiler:
    """Turns instructions into a Program; costs are looked up by signature."""

    def __init__(
        self, target: Target, lanes: Lanes, dropped: frozenset[tuple[str, str]] = frozenset()
    ) -> None:
        """Compile for a core with these lanes."""
        self._target = target
        self._lanes = lanes
        self._dropped = dropped
        self._costs: dict[Hashable, Cost] = {}
        self._lane_of: dict[tuple[str, int], int] = {}
        self._engine = {name: path.engine for name, path in target.path.items()}
        self._cached = _cached_side(target)
        self._slower = _slower(target, lanes.core)

    def compile(self, instructions: Iterable[Instruction]) -> Program:
        """The columns of a program.

        Raises:
            ProgramError: an instruction asks for an engine, a path or a rate that the machine does not have.
        """
        hazards = HazardTracker(len(self._lanes.names), self._dropped)
        by_lane: list[list[int]] = [[] for _ in self._lanes.names]
        rows: list[Row] = []
        named: list[tuple[int, Instruction]] = []
        macs, spans = 0, {}
        for index, instruction in enumerate(instructions):
            cost = self._cost(instruction)
            queue = self._engine[cost.path] if cost.path else instruction.queue
            lane = self._lane(queue, instruction.channel)
            number = len(by_lane[lane])
            by_lane[lane].append(index)
            if cost.path in self._cached:
                spans[index] = self._span(instruction, cost.path)
            if instruction.kind != OPERATION:
                named.append((index, instruction))
            if instruction.kind == BARRIER:
                hazards.forget_shared()
            macs += instruction.macs
            rows.append(self._row(instruction, cost, lane, number, hazards))
        program = Program(rows, by_lane)
        program.macs, program.spans = macs, spans
        for index, instruction in named:
            _name(program, index, instruction)
        return program

    def again(self, program: Program, instructions: Iterable[Instruction]) -> Program:
        """The program of a core of equal timing that differs in addresses, coordinates and flags alone.

        Raises:
            ProgramError: it differs in more.
        """
        coords: list[Coords] = []
        spans: dict[int, Span] = {}
        other = program.twin(coords, spans)
        for index, instruction in enumerate(instructions):
            if index >= len(program) or program.name[index] != instruction.name:
                raise _unlike(program, index, instruction.name)
            coords.append(instruction.coords)
            path = program.cost[index].path
            if path in self._cached:
                spans[index] = self._span(instruction, path)
            if program.moved[index] != instruction.moved or program.kind[index] != instruction.kind:
                raise _unlike(program, index, instruction.name)
            if instruction.kind != OPERATION:
                _name(other, index, instruction)
        if len(coords) < len(program):
            raise _unlike(program, len(coords), "its end")
        return other

    def _span(self, instruction: Instruction, path: str) -> Span:
        """What a copy touches of the memory with a cache."""
        writes = self._cached[path]
        side = instruction.writes[0] if writes else instruction.reads[0]
        adds = writes and any(view is side for view in instruction.reads)
        if isinstance(side, ScatteredView):
            return Span(side.range, (), True, adds, side.runs)
        span, outer = side.levels()
        return Span(span, outer, side.exact or bool(outer), adds)

    def _row(
        self, instruction: Instruction, cost: Cost, lane: int, number: int, hazards: HazardTracker
    ) -> Row:
        reads, writes = instruction.reads, instruction.writes
        need = hazards.add(lane, number, reads, writes) if reads or writes else NO_NEED
        source = destination = ""
        if instruction.moved:
            source, destination = reads[0].buffer.memory, writes[0].buffer.memory
        shared = False
        for view in reads:
            shared = shared or view.buffer.shared
        for view in writes:
            shared = shared or view.buffer.shared
        return Row(
            lane,
            number,
            cost,
            need or NO_NEED,
            instruction.kind,
            shared,
            instruction.name,
            instruction.moved,
            source,
            destination,
            instruction.coords,
        )

    def _lane(self, kind: str, channel: int) -> int:
        found = self._lane_of.get((kind, channel))
        if found is None:
            found = self._lane_of[kind, channel] = self._lanes.of(kind, channel)
        return found

    def _cost(self, instruction: Instruction) -> Cost:
        signature = instruction.signature()
        cost = self._costs.get(signature)
        if cost is None:
            cost = instruction.cost(self._target)
            if self._slower != 1:
                cost = _stretched(cost, self._slower)
            self._costs[signature] = cost
        return cost


def _unlike(program: Program, index: int, got: str) -> ProgramError:
    held = program.name[index] if index < len(program) else "its end"
    return ProgramError(
        "cores of one class with unlike programs",
        where=f"entry {index}",
        got=got,
        limit=held,
        remedy="give them unequal values of core_class",
    )


def _cached_side(target: Target) -> dict[str, bool]:
    """Paths to or from a memory with a cache, and whether they write to it."""
    ends = {key: key.split("->") for key in target.path}
    return {
        key: source not in target.cache
        for key, (source, destination) in ends.items()
        if source in target.cache or destination in target.cache
    }


def _slower(target: Target, kind: str) -> Fraction:
    """Cycles of the target's clock in one of the clock of a kind of core."""
    own = target.core[kind].clock_mhz
    return Fraction(1) if own is None else exact(target.clock_mhz) / exact(own)


def _stretched(cost: Cost, ratio: Fraction) -> Cost:
    """A cost in cycles of a core's own clock, in cycles of the target's, each rounded up."""
    return cost._replace(
        issue_cycles=ceil(cost.issue_cycles * ratio),
        cycles=ceil(cost.cycles * ratio),
        floor_cycles=ceil(cost.floor_cycles * ratio),
        idle_cycles=ceil(cost.idle_cycles * ratio),
    )


def _name(program: Program, index: int, instruction: Instruction) -> None:
    """Note the barrier or flag of an entry."""
    if isinstance(instruction, Barrier):
        program.key[index] = instruction.key
        if instruction.cores is not None:
            program.cores[index] = instruction.cores
    elif isinstance(instruction, FlagSet):
        program.key[index] = instruction.flag
