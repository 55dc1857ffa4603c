"""What can go wrong while a machine is built or run.

```
TilesimError                 (targets.errors)
└── MachineError
    ├── CapacityError        a memory, or the host, is too small
    ├── BoundsError          an access outside a buffer
    ├── ProgramError         a kernel asked for what the machine does not have
    ├── DeadlockError        nothing can proceed and programs are not finished
    └── RaceError            two cores touch the same bytes with nothing between
```
"""

from __future__ import annotations

from targets.errors import TilesimError


class MachineError(TilesimError):
    """Any fault of a machine, its memories or the programs that run on it."""


class CapacityError(MachineError):
    """A memory is too small for what a tiling wants.

    Attributes:
        memory: the name of the memory, or "host" for the computer that simulates.
        wanted_bytes: what was asked for.
        free_bytes: what was left.
    """

    def __init__(
        self, what: str, *, memory: str, wanted_bytes: int, free_bytes: int, remedy: str = ""
    ) -> None:
        """Build the message from the sizes."""
        super().__init__(
            what,
            where=f"memory {memory}",
            got=f"{wanted_bytes} bytes wanted",
            limit=f"{free_bytes} bytes free",
            remedy=remedy,
        )
        self.memory = memory
        self.wanted_bytes = wanted_bytes
        self.free_bytes = free_bytes


class BoundsError(MachineError):
    """An access that leaves its buffer."""


class ProgramError(MachineError):
    """A kernel asked for an engine, a path or a rate that the machine does not have."""


class DeadlockError(MachineError):
    """Nothing can proceed and programs are not finished.

    Attributes:
        waiting: one sentence for each core that waits: who, for what, since when.
    """

    def __init__(self, cycle: int, waiting: tuple[str, ...]) -> None:
        """Build the message from the sentences."""
        super().__init__(
            "deadlock: nothing can proceed",
            where=f"cycle {cycle}",
            got="; ".join(waiting),
            remedy="let every core of the launch reach the same barriers and set each flag that is waited for",
        )
        self.cycle = cycle
        self.waiting = waiting


class RaceError(MachineError):
    """Two cores touch the same bytes of a shared memory, one writes, and nothing orders them."""
