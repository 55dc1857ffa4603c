"""What a kernel is to the machine: buffers that it asks for, and for each core the instructions of its tiles.

A kernel never sees time. It keeps nothing from one tile to the next: rings of buffers belong to the core.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Protocol, runtime_checkable

from simulator.errors import ProgramError
from simulator.instructions import Instruction
from simulator.memory.memories import Buffer, Memory
from simulator.values.numerics import DType


class Ring:
    """`depth` equal buffers that are used in turn."""

    __slots__ = ("_buffers", "depth")

    def __init__(self, buffers: Sequence[Buffer]) -> None:
        """Use these buffers in turn."""
        self._buffers = tuple(buffers)
        self.depth = len(self._buffers)

    def __getitem__(self, ordinal: int) -> Buffer:
        """The buffer of the step with this ordinal."""
        return self._buffers[ordinal % self.depth]


class Core:
    """What a kernel sees of a core.

    Attributes:
        index: the core's number on the chip.
        rank: its place among the cores of the launch.
        count: how many cores the launch has.
        kind, group, slot: its kind of core, its group (-1 for none), and which of its kind it is there. Rank and count
            are among the cores of its kind.
        rings: the core's own buffers, by name.
    """

    __slots__ = ("count", "group", "index", "kind", "rank", "rings", "slot")

    def __init__(
        self, index: int, rank: int, count: int, *, kind: str = "", group: int = -1, slot: int = 0
    ) -> None:
        """A core without buffers."""
        self.index = index
        self.rank = rank
        self.count = count
        self.kind = kind
        self.group = group
        self.slot = slot
        self.rings: dict[str, Ring] = {}


class Space:
    """Where a launch takes its buffers from: every core's own memories and the shared ones."""

    def __init__(
        self,
        cores: Sequence[Core],
        own: dict[int, dict[str, Memory]],
        shared: dict[str, Memory],
        roles: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        """Hand out buffers for these cores; `roles` are the parts that memories play, by which they may be named."""
        self.cores = tuple(cores)
        self._own = own
        self._shared = shared
        self._roles = roles

    def ring(
        self,
        name: str,
        memory: str,
        size: int,
        dtype: DType,
        *,
        depth: int = 1,
        remedy: str = "",
        kind: str = "",
    ) -> None:
        """Give every core a ring of `depth` buffers of `size` elements, from its own or a shared memory.

        Cores whose kind lacks the memory get none, and with `kind` only the cores of that kind do.

        Raises:
            CapacityError: the memory is too small; `remedy` names the field of the tiling to lower.
            ProgramError: no core of the launch has such a memory.
        """
        memory = self._roles.get(memory, memory)
        having = [
            (core, level)
            for core in self.cores
            if kind in ("", core.kind)
            and (level := self._shared.get(memory) or self._own[core.index].get(memory))
        ]
        if self.cores and not having:
            raise ProgramError("no such memory", where=name, got=memory, limit=self._known())
        for core, level in having:
            label = f"{name} of core {core.index}"
            core.rings[name] = Ring(
                [level.allocate(label, (size,), dtype, remedy=remedy) for _ in range(depth)]
            )

    def _known(self) -> str:
        own = {name: None for core in self.cores for name in self._own[core.index]}
        return ", ".join({**own, **dict.fromkeys(self._shared)})

    def common_ring(
        self, name: str, memory: str, size: int, dtype: DType, *, depth: int = 1, remedy: str = ""
    ) -> None:
        """Give all cores one ring in a shared memory.

        Raises:
            CapacityError: the memory is too small.
        """
        level = self._shared[self._roles.get(memory, memory)]
        ring = Ring([level.allocate(name, (size,), dtype, remedy=remedy) for _ in range(depth)])
        for core in self.cores:
            core.rings[name] = ring


class Kernel(Protocol):
    """The instructions of one launch.

    Attributes:
        name: of the launch, as it is shown.
        kind: of the launch, for its cost.
        axes: names of the tile coordinates that its instructions carry.
    """

    name: str
    kind: str
    axes: tuple[str, ...]

    def core_class(self, rank: int, count: int) -> Hashable | None:
        """Equal for cores whose programs have equal timing; None for a core that takes no part."""

    def setup(self, space: Space) -> None:
        """Ask for the buffers."""

    def program(self, core: Core) -> Iterator[Instruction]:
        """The instructions of a core, in order."""


@runtime_checkable
class HasKinds(Protocol):
    """A kernel that says which kinds of cores it runs on; without it, those of the target's first kind.

    Attributes:
        core_kinds: the kinds. All cores of these kinds in the groups of the launch run `program`.
    """

    core_kinds: tuple[str, ...]


@runtime_checkable
class HasKindClasses(Protocol):
    """A kernel whose kinds of cores do not all take part in the same ranks."""

    def kind_class(self, kind: str, rank: int, count: int) -> Hashable | None:
        """As `core_class`, which it replaces, for the cores of one kind; cores of two kinds are never equal."""


@runtime_checkable
class HasValues(Protocol):
    """A kernel that can also compute its numbers in fewer and larger steps than it is timed in."""

    def values(self, core: Core) -> Iterator[Instruction]:
        """Steps with the results of `program`, and its barriers, to be executed in the order of the program.

        Loads, stores and barriers are those of `program`; a step may do what a whole loop of products does. The result
        is that of the instructions, but for the order in which BLAS sums a product.
        """


@runtime_checkable
class HasOrigins(Protocol):
    """A kernel whose cores of one class differ in the coordinates of their tiles.

    Without it, cores of a kernel that has coordinates are simulated one by one.
    """

    def origins(self, rank: int, count: int) -> Sequence[tuple[int, ...]]:
        """The coordinates of a core's tiles, in order, on the first of the kernel's axes.

        Coordinates on the axes behind them are relative to the tile, and equal for the cores of a class.
        """


@runtime_checkable
class HasKey(Protocol):
    """A kernel whose compiled programs may serve again."""

    def key(self) -> Hashable:
        """Equal for kernels with the same programs on every core: all that they depend on, but no numbers."""
