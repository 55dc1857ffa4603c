"""The numbers of a launch in the larger steps that its kernel offers.

Inside a core the order of the program is the one that hazards are derived from; between barriers the cores of a program
without races touch nothing of each other. So the result does not depend on who runs when.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from simulator.errors import DeadlockError
from simulator.instructions import Barrier, Instruction


def execute_in_order(programs: Mapping[int, Iterator[Instruction]]) -> None:
    """Execute programs core by core, each up to its next barrier, until all have ended.

    Raises:
        DeadlockError: every core waits at a barrier, and none is complete.
    """
    running = dict(programs)
    waiting: dict[int, Barrier] = {}
    while running:
        free = [core for core in running if core not in waiting]
        if not free:
            raise DeadlockError(0, tuple(f"core {c} waits at barrier {b.key}" for c, b in waiting.items()))
        for core in free:
            barrier = _run_to_barrier(running[core])
            if barrier is None:
                del running[core]
            else:
                waiting[core] = barrier
        _open_barriers(waiting, set(programs))


def _run_to_barrier(program: Iterator[Instruction]) -> Barrier | None:
    for instruction in program:
        if isinstance(instruction, Barrier):
            return instruction
        instruction.execute()
    return None


def _open_barriers(waiting: dict[int, Barrier], everyone: set[int]) -> None:
    """Let the cores go whose barrier is complete."""
    for core, barrier in list(waiting.items()):
        members = everyone if barrier.cores is None else set(barrier.cores)
        here = [m for m in members if m in waiting and waiting[m].key == barrier.key]
        if core in waiting and len(here) == len(members):
            for member in members:
                del waiting[member]
