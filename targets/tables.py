"""The tables of a target's file that every family has: frozen, checked objects, one class a table.

Units are in the field names; a cycle is one of the target's core clock. Numbers are read strictly: a float is
no integer, a string no number, and infinities are refused.
"""

from fractions import Fraction
from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

Count = Annotated[int, Field(ge=1)]
Natural = Annotated[int, Field(ge=0)]
Rate = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Cost = Annotated[float, Field(ge=2**-10, allow_inf_nan=False)]
Name = Annotated[str, Field(min_length=1)]
Names = Name | Annotated[tuple[Name, ...], Field(min_length=1, strict=False)]
"""One name, or a list of them."""


def names_in(value: str | tuple[str, ...]) -> tuple[str, ...]:
    """The names of a field that takes one or a list; an empty one has none."""
    return ((value,) if value else ()) if isinstance(value, str) else value


def exact(value: float) -> Fraction:
    """The decimal digits of a number as they are written."""
    return Fraction(str(value))


class Table(BaseModel):
    """A table of a target: frozen, strict, and without keys that it does not know."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, validate_default=True)


class Mark(Table):
    """Where a number comes from.

    `documented`: a source says it; `derived`: arithmetic on documented facts of this chip; `assumed`: by
    analogy, the source names the analogue; `override`: the user set it.
    """

    mark: Literal["documented", "derived", "assumed", "override"]
    source: Name


class CoreKind(Table):
    """A kind of core.

    Attributes:
        per_group: how many of it a group has.
        extra: how many more the chip has that are in no group.
        clock_mhz: its own clock, where it is not the target's: its fixed costs are given in cycles of it.
    """

    per_group: Natural
    extra: Count | None = None
    clock_mhz: Rate | None = None


class EngineSpec(Table):
    """An in-order unit of a core.

    Attributes:
        core: the kind of core that has it, or a list of kinds.
        issue: `queued` (the scalar unit goes on) or `blocking` (the scalar unit waits for the end).
        queue_depth: instructions issued and not yet started that it holds.
        count: equal lanes of it in one core.
    """

    core: Names
    issue: Literal["queued", "blocking"]
    queue_depth: Count
    count: Count = 1

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kinds of core that have it."""
        return names_in(self.core)


class MemorySpec(Table):
    """A storage level, per core or shared by the chip.

    Attributes:
        size_bytes: capacity (of each core's own, where the scope is `core`).
        base_address: first address (of core 0).
        scope: `core` or `chip`.
        core_stride_bytes: distance of the same memory of two cores that follow; 0 where every core sees its
            own at the same address.
        align_bytes: what addresses of buffers are rounded up to.
        core: the kind of core that has it, or a list of kinds; empty where every kind has.
    """

    size_bytes: Count
    base_address: Natural
    scope: Literal["core", "chip"]
    core: Literal[""] | Names = ""
    core_stride_bytes: Natural = 0
    align_bytes: Count = 64

    def of_kind(self, kind: str) -> bool:
        """Whether cores of a kind have it."""
        return not self.core or kind in names_in(self.core)


class RoleSpec(Table):
    """The part that a memory plays for the programs of a family, which name parts and not memories.

    Attributes:
        memory: which memory.
        size_bytes: how much of it, where one memory plays several parts; default all of it.
    """

    memory: Name
    size_bytes: Count | None = None


class Bandwidth(Table):
    """A rate in exactly one of two units; a gigabyte is 1e9 bytes.

    Raises:
        ValueError: none or both of the units are given.
    """

    bytes_per_cycle: Rate | None = None
    gigabytes_per_second: Rate | None = None

    @model_validator(mode="after")
    def _one_unit(self) -> Self:
        if (self.bytes_per_cycle is None) == (self.gigabytes_per_second is None):
            given = "neither" if self.bytes_per_cycle is None else "both"
            raise ValueError(f"exactly one of bytes_per_cycle and gigabytes_per_second, not {given}")
        return self

    def exact_bytes_per_cycle(self, clock_mhz: float) -> Fraction:
        """Bytes a cycle of a clock, exactly, from the decimal digits as written."""
        if self.bytes_per_cycle is not None:
            return exact(self.bytes_per_cycle)
        return exact(self.gigabytes_per_second or 0.0) * 1000 / exact(clock_mhz)


class LinkSpec(Bandwidth):
    """A link that its flows share.

    Attributes:
        efficiency: part of the nominal bandwidth that flows can get.
        bytes_per_cycle_per_core: added to the bandwidth for each core of the launch.
        read_cost, write_cost: what a byte costs of the bandwidth, by direction.
        burst_bytes: each contiguous row is charged in whole bursts.
        row_overhead_bytes: charged once more for each row.
    """

    efficiency: Annotated[float, Field(gt=0, le=1)] = 1.0
    bytes_per_cycle_per_core: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 0.0
    read_cost: Cost = 1.0
    write_cost: Cost = 1.0
    burst_bytes: Count
    row_overhead_bytes: Natural = 0


class PortSpec(Bandwidth):
    """What one core can take or give in one direction, over all its lanes that use the port.

    Attributes:
        shares: another port with which it takes turns, so that a core that reads and writes does each for a part of
            the time; empty where both go on at once.
    """

    shares: str = ""


class PathSpec(Table):
    """How a copy between two memories goes; its key in the target is `"source->destination"`.

    Attributes:
        link: the shared link it takes; empty where nobody else is on the way, so that only the port limits it.
        direction: which cost of the link it pays.
        port: the core's port that caps it.
        start_cycles: from the start of a transfer to its first byte.
        floor_cycles: no transfer is shorter, start-up included.
        overlap: the start-up of one transfer runs during the stream of the one before.
        engine: the kind of engine that copies on it.
        idle_cycles: added to the start-up where the engine stood idle before.
        command_bytes: a longer transfer goes as equal commands of at most this size, each with its start-up.
        single_row_start_cycles, single_row_bytes_per_cycle: of a transfer of one contiguous row, where it is slower.
        blocked_bytes_per_cycle: the rate of a transfer that makes fractals of rows, where it is below the port's.
        transposed_start_cycles, transposed_run_cycles: of a transfer that transposes, and of each of its runs:
            powers of two of 16 KB, and what is left.
    """

    link: str = ""
    direction: Literal["read", "write"]
    port: Name
    start_cycles: Natural
    floor_cycles: Natural = 0
    overlap: bool
    engine: Name = "dma"
    idle_cycles: Natural | None = None
    command_bytes: Count | None = None
    single_row_start_cycles: Natural | None = None
    single_row_bytes_per_cycle: Rate | None = None
    blocked_bytes_per_cycle: Rate | None = None
    transposed_start_cycles: Natural | None = None
    transposed_run_cycles: Natural | None = None


class CacheSpec(Table):
    """A cache between a shared memory, whose name its table has, and the cores.

    Attributes:
        size_bytes: capacity.
        block_bytes: what is replaced at once, the block used longest ago first.
        line_bytes: what is fetched and written back at once, at most 1024 of them a block; absent: the whole block.
        link: the link that carries what is resident; what is not takes the link of the path.
    """

    size_bytes: Count
    block_bytes: Count
    line_bytes: Count | None = None
    link: Name

    @property
    def line(self) -> int:
        """The size of a line in bytes."""
        return self.line_bytes or self.block_bytes


class IssueSpec(Table):
    """Cycles of the scalar unit to issue an instruction, by its kind; only a Da Vinci core has loads and fixpipe."""

    copy_cycles: Natural
    matmul_cycles: Natural
    vector_cycles: Natural
    barrier_cycles: Natural
    flag_set_cycles: Natural
    flag_wait_cycles: Natural
    load2d_cycles: Natural | None = None
    load3d_cycles: Natural | None = None
    load3d_setup_cycles: Natural | None = None
    fixpipe_cycles: Natural | None = None


class SyncSpec(Table):
    """Cycles from the last arrival at a barrier, or from the end of a flag's set, to the release."""

    barrier_latency_cycles: Natural
    barrier_cycles_per_core: Natural
    flag_latency_cycles: Natural
    cross_core_flag_latency_cycles: Natural


class LaunchSpec(Table):
    """What one launch costs before its cores start: fixed, and for each core it uses."""

    cycles: Natural
    cycles_per_core: Natural
