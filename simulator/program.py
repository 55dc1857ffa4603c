"""A core's program, compiled: columns of what the event model needs, one entry an instruction.

Compiling asks every instruction for its cost and derives its hazards. It follows from the order of the program alone.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field

from simulator.errors import ProgramError
from simulator.hazards import HazardTracker, Need
from simulator.instructions import Barrier, Coords, Copy, Cost, FlagSet, FlagWait, Instruction
from targets.schema import Target

SCALAR = 0
"""The lane of the scalar unit, where barriers stand."""

OPERATION, BARRIER, FLAG_SET, FLAG_WAIT = range(4)
"""Kinds of entries."""

NO_NEED: Need = {}


class Lanes:
    """The engines of one core of a target, in order: the scalar unit first, then each kind with its channels."""

    def __init__(self, target: Target, core: str) -> None:
        """Number the engines of a core kind."""
        self.names: list[str] = ["SCALAR"]
        self.first: dict[str, int] = {"scalar": 0}
        self.count: dict[str, int] = {"scalar": 1}
        self.depth: list[int] = [1]
        self.blocking: list[bool] = [True]
        for kind, spec in target.engine.items():
            if spec.core != core:
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


@dataclass(slots=True)
class Program:
    """Columns of one core's program.

    Attributes:
        lane, number: the engine of each entry and its number on it.
        cost: issue cycles, time on the engine, path and bytes.
        need: (lane -> number) that has to end first.
        sets: later entries on other engines that wait for this one, so that a flag set follows it.
        kind: operation, barrier, flag set or wait; `key` names the barrier or flag.
        shared: touches shared memory, so that a barrier waits for it.
        name, moved, source, destination, coords: for the trace.
        macs: multiply-adds executed by the whole program.
    """

    lane: list[int] = field(default_factory=list)
    number: list[int] = field(default_factory=list)
    cost: list[Cost] = field(default_factory=list)
    need: list[Need] = field(default_factory=list)
    sets: list[int] = field(default_factory=list)
    kind: list[int] = field(default_factory=list)
    key: dict[int, Hashable] = field(default_factory=dict)
    cores: dict[int, tuple[int, ...]] = field(default_factory=dict)
    shared: list[bool] = field(default_factory=list)
    name: list[str] = field(default_factory=list)
    moved: list[int] = field(default_factory=list)
    source: list[str] = field(default_factory=list)
    destination: list[str] = field(default_factory=list)
    coords: list[Coords] = field(default_factory=list)
    by_lane: list[list[int]] = field(default_factory=list)
    macs: int = 0

    def __len__(self) -> int:
        """Entries."""
        return len(self.lane)

    @property
    def has_flags(self) -> bool:
        """Whether the program names other cores by flags."""
        return FLAG_SET in self.kind or FLAG_WAIT in self.kind


class Compiler:
    """Turns instructions into a Program; costs are looked up by signature."""

    def __init__(self, target: Target, lanes: Lanes, dropped: frozenset[tuple[str, str]] = frozenset()) -> None:
        """Compile for a core with these lanes."""
        self._target = target
        self._lanes = lanes
        self._dropped = dropped
        self._costs: dict[Hashable, Cost] = {}

    def compile(self, instructions: Iterable[Instruction]) -> Program:
        """The columns of a program.

        Raises:
            ProgramError: an instruction asks for an engine, a path or a rate that the machine does not have.
        """
        program = Program(by_lane=[[] for _ in self._lanes.names])
        hazards = HazardTracker(len(self._lanes.names), self._dropped)
        for instruction in instructions:
            self._enter(program, hazards, instruction)
        return program

    def _enter(self, program: Program, hazards: HazardTracker, instruction: Instruction) -> None:
        lane = self._lanes.of(instruction.queue, instruction.channel)
        index, number = len(program.lane), len(program.by_lane[lane])
        need = NO_NEED
        if isinstance(instruction, Barrier):
            hazards.forget_shared()
        elif instruction.reads or instruction.writes:
            need = hazards.add(lane, number, instruction.reads, instruction.writes)
            for other, awaited in need.items():
                program.sets[program.by_lane[other][awaited]] += 1
        program.by_lane[lane].append(index)
        program.lane.append(lane)
        program.number.append(number)
        program.need.append(need)
        program.sets.append(0)
        program.cost.append(self._cost(instruction))
        program.name.append(instruction.name)
        program.coords.append(instruction.coords)
        program.macs += instruction.macs
        program.shared.append(any(v.buffer.shared for v in (*instruction.reads, *instruction.writes)))
        self._enter_kind(program, index, instruction)

    def _cost(self, instruction: Instruction) -> Cost:
        signature = instruction.signature()
        cost = self._costs.get(signature)
        if cost is None:
            cost = self._costs[signature] = instruction.cost(self._target)
        return cost

    @staticmethod
    def _enter_kind(program: Program, index: int, instruction: Instruction) -> None:
        kind, moved, source, destination = OPERATION, 0, "", ""
        if isinstance(instruction, Copy):
            moved = instruction.src.range.bytes
            source, destination = instruction.src.buffer.memory, instruction.dst.buffer.memory
        elif isinstance(instruction, Barrier):
            kind = BARRIER
            program.key[index] = instruction.key
            if instruction.cores is not None:
                program.cores[index] = instruction.cores
        elif isinstance(instruction, FlagSet):
            kind = FLAG_WAIT if isinstance(instruction, FlagWait) else FLAG_SET
            program.key[index] = instruction.flag
        program.kind.append(kind)
        program.moved.append(moved)
        program.source.append(source)
        program.destination.append(destination)
