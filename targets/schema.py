"""What a target is: frozen, checked objects, one class a table of its TOML file.

Units are in the field names; a cycle is one of the target's core clock. Numbers are read strictly: a float is
no integer, a string no number, and infinities are refused.
"""

from collections.abc import Iterable, Iterator, Mapping
from fractions import Fraction
from typing import Annotated, Literal, Self, TypeVar

from pydantic import BaseModel, ConfigDict, Field, model_validator

from targets.errors import TargetError

UNITS_PER_BYTE = 1 << 16
"""Bandwidths are integers in units of 2**-16 byte a cycle, so that shares of a link are exact."""

SCALAR = "SCALAR"
"""The lane of a core's scalar unit, which every core has."""

Count = Annotated[int, Field(ge=1)]
Natural = Annotated[int, Field(ge=0)]
Rate = Annotated[float, Field(gt=0, allow_inf_nan=False)]
Name = Annotated[str, Field(min_length=1)]

Spec = TypeVar("Spec")


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
    """A kind of core, and how many of it a group has."""

    per_group: Count


class EngineSpec(Table):
    """An in-order unit of a core.

    Attributes:
        core: the kind of core that has it.
        issue: `queued` (the scalar unit goes on) or `blocking` (the scalar unit waits for the end).
        queue_depth: instructions issued and not yet started that it holds.
        count: equal lanes of it in one core.
    """

    core: Name
    issue: Literal["queued", "blocking"]
    queue_depth: Count
    count: Count = 1


class MemorySpec(Table):
    """A storage level, per core or shared by the chip.

    Attributes:
        size_bytes: capacity (of each core's own, where the scope is `core`).
        base_address: first address (of core 0).
        scope: `core` or `chip`.
        core_stride_bytes: distance of the same memory of two cores that follow; 0 where every core sees its
            own at the same address.
        align_bytes: what addresses of buffers are rounded up to.
    """

    size_bytes: Count
    base_address: Natural
    scope: Literal["core", "chip"]
    core_stride_bytes: Natural = 0
    align_bytes: Count = 64


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
            return _exact(self.bytes_per_cycle)
        return _exact(self.gigabytes_per_second or 0.0) * 1000 / _exact(clock_mhz)


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
    read_cost: Rate = 1.0
    write_cost: Rate = 1.0
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
        link: the shared link it takes.
        direction: which cost of the link it pays.
        port: the core's port that caps it.
        start_cycles: from the start of a transfer to its first byte.
        floor_cycles: no transfer is shorter, start-up included.
        overlap: the start-up of one transfer runs during the stream of the one before.
    """

    link: Name
    direction: Literal["read", "write"]
    port: Name
    start_cycles: Natural
    floor_cycles: Natural = 0
    overlap: bool


class IssueSpec(Table):
    """Cycles of the scalar unit to issue an instruction, by its kind."""

    copy_cycles: Natural
    matmul_cycles: Natural
    vector_cycles: Natural
    barrier_cycles: Natural
    flag_set_cycles: Natural
    flag_wait_cycles: Natural


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


class MatmulSpec(Table):
    """The micro-kernel of a matrix product of one data type.

    A call computes `kernel_rows` rows of 1, 2, ... granules of columns over k steps, and takes
    `fixed_cycles + k * granule_cycles[granules - 1]` cycles on the engine and `call_cycles` of software.

    A table is named after its data type ("fp32", "fp64"; "fp16_fp16" sums in fp16). The name of a kernel that takes
    its second operand transposed ends in `_nt`, or in `_nt_merged` where its blocks overlap in one loop.

    Attributes:
        kernel_rows: rows of a kernel.
        granule_columns: columns of a granule.
        granule_cycles: cycles a k step of kernels of 1, 2, ... granules.
        fixed_cycles: fill and drain of a kernel.
        call_cycles: software around a kernel.
        once_cycles: added once for all blocks of a product.
        flops_per_cycle: peak of one core (a multiply-add is two).
    """

    kernel_rows: Count
    granule_columns: Count
    granule_cycles: Annotated[tuple[Rate, ...], Field(min_length=1, strict=False)]
    fixed_cycles: Natural
    call_cycles: Natural
    once_cycles: Natural = 0
    flops_per_cycle: Rate


class VectorSpec(Table):
    """The vector unit of a core.

    Attributes:
        register_bytes: size of a vector register.
        moves_per_cycle: registers loaded or stored a cycle.
        run_cycles: added for each contiguous run.
        call_cycles: added for each operation.
    """

    register_bytes: Count
    moves_per_cycle: Rate
    run_cycles: Natural
    call_cycles: Natural


class Target(Table):
    """A chip as data.

    Attributes:
        name: the name it is loaded by.
        title: one line for people.
        family: what kind of programs run on it.
        clock_mhz: clock of the core; the unit of time is one cycle of it.
        groups: groups of cores, what `cores=` counts.
        core, engine, memory, link, port, path, issue, sync, launch, matmul, vector, role: see the classes.
        provenance: mark and source of each number, by its dotted path.

    Raises:
        TargetError: an engine, path or launch table refers to something that is not there.
    """

    name: Name
    title: Name
    family: Literal["dsp", "davinci", "host"]
    clock_mhz: Rate
    groups: Count
    core: Annotated[dict[str, CoreKind], Field(min_length=1)]
    engine: Annotated[dict[str, EngineSpec], Field(min_length=1)]
    memory: Annotated[dict[str, MemorySpec], Field(min_length=1)]
    link: dict[str, LinkSpec]
    port: dict[str, PortSpec]
    path: dict[str, PathSpec]
    issue: IssueSpec
    sync: SyncSpec
    launch: dict[str, LaunchSpec]
    matmul: dict[str, MatmulSpec]
    vector: VectorSpec
    role: dict[str, RoleSpec] = Field(default_factory=dict)
    provenance: dict[str, Mark] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _references_exist(self) -> Self:
        for error in _broken_references(self):
            raise error
        return self

    def lanes(self, core: str | None = None) -> list[str]:
        """Names of the engine lanes of one core, `SCALAR` first, then in the file's order.

        A lane is its engine in upper case, with an index where the engine has several. With `core`, only
        those of that kind of core.
        """
        chosen = (name for name, spec in self.engine.items() if core in (None, spec.core))
        return [SCALAR, *(lane for name in chosen for lane in self._lanes_of(name))]

    def kind_of(self, lane: str) -> str:
        """The kind of a lane: its engine in upper case (`DMA2` is of kind `DMA`, `SCALAR` of its own).

        Raises:
            TargetError: no core has such a lane.
        """
        if lane == SCALAR:
            return SCALAR
        for name in self.engine:
            if lane in self._lanes_of(name):
                return name.upper()
        raise TargetError("unknown lane", key="engine", got=lane, limit=", ".join(self.lanes()))

    def us(self, cycles: int) -> float:
        """Microseconds that a number of core cycles takes."""
        return cycles / self.clock_mhz

    def link_units(self, link: str, cores: int = 1) -> int:
        """Bandwidth of a link in a launch of so many cores, in units of 2**-16 byte a cycle (rounded down).

        It is efficiency x (nominal + cores x bytes_per_cycle_per_core).

        Raises:
            TargetError: the target has no such link.
        """
        spec = _member(self.link, "link", link)
        grown = spec.exact_bytes_per_cycle(self.clock_mhz) + cores * _exact(spec.bytes_per_cycle_per_core)
        return int(grown * _exact(spec.efficiency) * UNITS_PER_BYTE)

    def port_units(self, port: str) -> int:
        """Bandwidth of a core's port, in whole units of 2**-16 byte a cycle (rounded down).

        Raises:
            TargetError: the target has no such port.
        """
        return int(_member(self.port, "port", port).exact_bytes_per_cycle(self.clock_mhz) * UNITS_PER_BYTE)

    def role_bytes(self, role: str) -> int:
        """Bytes of a memory that a part of it has.

        Raises:
            TargetError: the target has no such role.
        """
        spec = _member(self.role, "role", role)
        return spec.size_bytes or self.memory[spec.memory].size_bytes

    def _lanes_of(self, engine: str) -> list[str]:
        count = self.engine[engine].count
        return [engine.upper()] if count == 1 else [f"{engine.upper()}{i}" for i in range(count)]


def _exact(value: float) -> Fraction:
    return Fraction(str(value))


def _member(table: Mapping[str, Spec], kind: str, name: str) -> Spec:
    if name not in table:
        raise _unknown(kind, kind, name, table)
    return table[name]


def _unknown(what: str, key: str, got: str, known: Iterable[str]) -> TargetError:
    return TargetError(f"unknown {what}", key=key, got=repr(got), limit=f"one of {', '.join(known)}")


def _broken_references(target: Target) -> Iterator[TargetError]:
    """Every name in a target that refers to a table which is not there."""
    yield from _broken_engines(target)
    for key, path in target.path.items():
        yield from _broken_path(target, key, path)
    for name, port in target.port.items():
        if port.shares and port.shares not in target.port:
            yield _unknown("port", f"port.{name}.shares", port.shares, target.port)
    for name, role in target.role.items():
        if role.memory not in target.memory:
            yield _unknown("memory", f"role.{name}", role.memory, target.memory)
        elif (role.size_bytes or 0) > target.memory[role.memory].size_bytes:
            yield TargetError(
                "a role larger than its memory", key=f"role.{name}.size_bytes", got=role.size_bytes
            )
    if "default" not in target.launch:
        yield TargetError("missing key", key="launch.default", remedy="give the cost of an ordinary launch")


def _broken_engines(target: Target) -> Iterator[TargetError]:
    for name, engine in target.engine.items():
        if engine.core not in target.core:
            yield _unknown("core", f"engine.{name}.core", engine.core, target.core)
    lanes = target.lanes()
    for name in target.engine:
        if any(lanes.count(lane) > 1 for lane in target._lanes_of(name)):
            yield TargetError("two engines have lanes of one name", key=f"engine.{name}", got=lanes)


def _broken_path(target: Target, key: str, path: PathSpec) -> Iterator[TargetError]:
    source, arrow, destination = key.partition("->")
    if not arrow:
        yield TargetError("a path is not named after two memories", key=f"path.{key}", limit='"ddr->am"')
    for memory in (source, destination):
        if memory not in target.memory:
            yield _unknown("memory", f"path.{key}", memory, target.memory)
    if path.link not in target.link:
        yield _unknown("link", f"path.{key}.link", path.link, target.link)
    if path.port not in target.port:
        yield _unknown("port", f"path.{key}.port", path.port, target.port)
