"""The numbers of a launch in the larger steps that its kernel offers.

Inside a core the order of the program is the one that hazards are derived from; between barriers the cores of a program
without races touch nothing of each other. So the result does not depend on who runs when.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterator, Mapping

from simulator.errors import DeadlockError
from simulator.instructions import Barrier, FlagSet, FlagWait, Instruction


def execute_in_order(programs: Mapping[int, Iterator[Instruction]]) -> None:
    """Execute programs core by core, each up to its next barrier or flag that is not up, until all have ended.

    Raises:
        DeadlockError: every core waits at a barrier or for a flag, and none is complete.
    """
    running = dict(programs)
    waiting: dict[int, Barrier] = {}
    awaited: dict[int, FlagWait] = {}
    flags: Counter[Hashable] = Counter()
    while running:
        free = [
            core
            for core in running
            if core not in waiting and (core not in awaited or flags[awaited[core].flag])
        ]
        if not free:
            raise DeadlockError(0, _complaints(waiting, awaited))
        for core in free:
            held = awaited.pop(core, None)
            stop = held if held is not None and not _lower(flags, held) else _run(running[core], flags)
            if stop is None:
                del running[core]
            elif isinstance(stop, Barrier):
                waiting[core] = stop
            else:
                awaited[core] = stop
        _open_barriers(waiting, set(programs))


def _run(program: Iterator[Instruction], flags: Counter[Hashable]) -> Barrier | FlagWait | None:
    """Execute a program up to where it has to wait."""
    for instruction in program:
        if isinstance(instruction, Barrier):
            return instruction
        if isinstance(instruction, FlagWait):
            if not _lower(flags, instruction):
                return instruction
        elif isinstance(instruction, FlagSet):
            flags[instruction.flag] += 1
        else:
            instruction.execute()
    return None


def _lower(flags: Counter[Hashable], wait: FlagWait) -> bool:
    """Take a flag down if it is up."""
    if not flags[wait.flag]:
        return False
    flags[wait.flag] -= 1
    return True


def _complaints(waiting: Mapping[int, Barrier], awaited: Mapping[int, FlagWait]) -> tuple[str, ...]:
    at_barriers = [f"core {core} waits at barrier {barrier.key}" for core, barrier in waiting.items()]
    return (*at_barriers, *(f"core {core} waits for flag {wait.flag}" for core, wait in awaited.items()))


def _open_barriers(waiting: dict[int, Barrier], everyone: set[int]) -> None:
    """Let the cores go whose barrier is complete."""
    for core, barrier in list(waiting.items()):
        members = everyone if barrier.cores is None else set(barrier.cores)
        here = [m for m in members if m in waiting and waiting[m].key == barrier.key]
        if core in waiting and len(here) == len(members):
            for member in members:
                del waiting[member]
