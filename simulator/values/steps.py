"""The numbers of a launch in the larger steps that its kernel offers, on as many processors as this computer has.

Inside a core the order of the program is the one that hazards are derived from; between barriers the cores of a program
without races touch nothing of each other. So the result does not depend on who runs when.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from concurrent.futures import Executor, ThreadPoolExecutor
from contextlib import ExitStack
from functools import lru_cache

from threadpoolctl import ThreadpoolController

from simulator.errors import DeadlockError
from simulator.instructions import Barrier, Instruction

LARGE_MACS = 30_000_000
"""A launch of fewer multiply-adds is executed in one thread: its steps are too short to gain from two."""


@lru_cache(maxsize=1)
def _blas() -> ThreadpoolController:
    return ThreadpoolController()


def execute_in_order(programs: Mapping[int, Iterator[Instruction]], macs: int) -> None:
    """Execute programs core by core, each up to its next barrier, until all have ended.

    BLAS is held to one thread: products are many and short, cores run beside each other instead, and the bits do not
    depend on how many processors there are.

    Raises:
        DeadlockError: every core waits at a barrier, and none is complete.
    """
    workers = min(len(programs), os.cpu_count() or 1)
    with ExitStack() as stack:
        stack.enter_context(_blas().limit(limits=1))
        pool = (
            stack.enter_context(ThreadPoolExecutor(workers)) if workers > 1 and macs >= LARGE_MACS else None
        )
        _execute(programs, pool)


def _execute(programs: Mapping[int, Iterator[Instruction]], pool: Executor | None) -> None:
    running = dict(programs)
    waiting: dict[int, Barrier] = {}
    while running:
        free = [core for core in running if core not in waiting]
        if not free:
            raise DeadlockError(0, tuple(f"core {c} waits at barrier {b.key}" for c, b in waiting.items()))
        streams = [running[core] for core in free]
        stops = pool.map(_run_to_barrier, streams) if pool else map(_run_to_barrier, streams)
        for core, barrier in zip(free, stops, strict=True):
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
