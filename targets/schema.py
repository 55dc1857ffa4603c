"""What a target is: its tables together, checked against each other, and what follows from them."""

from collections.abc import Iterable, Mapping
from typing import Annotated, Literal, NamedTuple, Self

from pydantic import Field, model_validator

from targets.checks import UNITS_PER_BYTE, broken_references, member
from targets.davinci import CubeSpec, FixpipeSpec, Load2dSpec, Load3dSpec, VectorClassSpec
from targets.dsp import MatmulSpec, VectorSpec
from targets.errors import TargetError
from targets.host import HostSpec
from targets.tables import (
    CacheSpec,
    CoreKind,
    Count,
    EngineSpec,
    IssueSpec,
    LaunchSpec,
    LinkSpec,
    Mark,
    MemorySpec,
    Name,
    PathSpec,
    PortSpec,
    Rate,
    RoleSpec,
    SyncSpec,
    Table,
    exact,
)

__all__ = [
    "MAIN_MEMORIES",
    "SCALAR",
    "UNITS_PER_BYTE",
    "CacheSpec",
    "CoreKind",
    "CubeSpec",
    "EngineSpec",
    "FixpipeSpec",
    "HostSpec",
    "IssueSpec",
    "LaunchSpec",
    "LinkSpec",
    "Load2dSpec",
    "Load3dSpec",
    "Mark",
    "MatmulSpec",
    "MemorySpec",
    "PathSpec",
    "PortSpec",
    "RoleSpec",
    "SyncSpec",
    "Table",
    "Target",
    "Unit",
    "VectorClassSpec",
    "VectorSpec",
]

SCALAR = "SCALAR"
"""The lane of a core's scalar unit, which every core has."""

MAIN_MEMORIES = ("ddr", "gm")
"""What the memory that holds the tensors of a call may be called."""

OWN_TABLES = {"dsp": ("matmul", "vector"), "host": ("host",)}
"""Tables that every target of a family has."""

TOOL_NAMES = {"aic": "cubecore", "aiv": "veccore"}
"""What the vendor's tools call kinds of cores in a trace; others go by the name in the file."""


class Unit(NamedTuple):
    """One core of the chip.

    Attributes:
        number: counts the cores, group by group, in a group by kind in the order of the file; those in no group follow.
        group: its group, -1 for none.
        kind: its kind of core.
        slot: which of its kind in the group, or among those in no group.
    """

    number: int
    group: int
    kind: str
    slot: int


class Target(Table):
    """A chip as data.

    Attributes:
        name: the name it is loaded by.
        title: one line for people.
        family: what kind of programs run on it.
        clock_mhz: clock of the core; the unit of time is one cycle of it.
        groups: groups of cores, what `cores=` counts, on all dies.
        dies: dies that the groups lie on; absent: one.
        core, engine, memory, link, port, path, cache, issue, sync, launch, matmul, vector: see the classes; only
            a DSP has the last two.
        cube, load2d, load3d, fixpipe, vector_class: see the classes; only a Da Vinci target has them.
        host: see the class; only a host has it.
        provenance: mark and source of each number, by its dotted path.

    Raises:
        TargetError: an engine, path or launch table refers to something that is not there.
    """

    name: Name
    title: Name
    family: Literal["dsp", "davinci", "host"]
    clock_mhz: Rate
    groups: Count
    dies: Count | None = None
    core: Annotated[dict[str, CoreKind], Field(min_length=1)]
    engine: Annotated[dict[str, EngineSpec], Field(min_length=1)]
    memory: Annotated[dict[str, MemorySpec], Field(min_length=1)]
    link: dict[str, LinkSpec]
    port: dict[str, PortSpec]
    path: dict[str, PathSpec]
    cache: dict[str, CacheSpec] = Field(default_factory=dict)
    issue: IssueSpec
    sync: SyncSpec
    launch: dict[str, LaunchSpec]
    matmul: dict[str, MatmulSpec] = Field(default_factory=dict)
    vector: VectorSpec | None = None
    cube: dict[str, CubeSpec] = Field(default_factory=dict)
    load2d: dict[str, Load2dSpec] = Field(default_factory=dict)
    load3d: dict[str, Load3dSpec] = Field(default_factory=dict)
    fixpipe: dict[str, FixpipeSpec] = Field(default_factory=dict)
    vector_class: dict[str, VectorClassSpec] = Field(default_factory=dict)
    host: HostSpec | None = None
    role: dict[str, RoleSpec] = Field(default_factory=dict)
    provenance: dict[str, Mark] = Field(default_factory=dict)

    @model_validator(mode="before")
    @classmethod
    def _family_is_complete(cls, tables: object) -> object:
        if isinstance(tables, Mapping):
            for name in OWN_TABLES.get(str(tables.get("family")), ()):
                if tables.get(name) is None:
                    raise TargetError("missing key", key=name)
        return tables

    @model_validator(mode="after")
    def _references_exist(self) -> Self:
        for error in broken_references(self):
            raise error
        return self

    def lanes(self, core: str | None = None) -> list[str]:
        """Names of the engine lanes of one core, `SCALAR` first, then in the file's order.

        A lane is its engine in upper case, with an index where the engine has several. With `core`, only
        those of that kind of core.
        """
        chosen = (name for name, spec in self.engine.items() if core is None or core in spec.kinds)
        return [SCALAR, *(lane for name in chosen for lane in self.lanes_of(name))]

    def kind_of(self, lane: str) -> str:
        """The kind of a lane: its engine in upper case (`DMA2` is of kind `DMA`, `SCALAR` of its own).

        Raises:
            TargetError: no core has such a lane.
        """
        if lane == SCALAR:
            return SCALAR
        for name in self.engine:
            if lane in self.lanes_of(name):
                return name.upper()
        raise TargetError("unknown lane", key="engine", got=lane, limit=", ".join(self.lanes()))

    @property
    def main_memory(self) -> str:
        """The name of the memory that holds the tensors of a call.

        Raises:
            TargetError: the target has none.
        """
        names = (self.role["main"].memory,) if "main" in self.role else MAIN_MEMORIES
        for name in names:
            if name in self.memory:
                return name
        raise TargetError("no main memory", key="memory", limit=f"one of {', '.join(MAIN_MEMORIES)}")

    @property
    def vector_unit(self) -> VectorSpec:
        """The vector unit of a DSP core.

        Raises:
            TargetError: the target has no such table.
        """
        if self.vector is None:
            raise TargetError("missing key", key="vector", remedy="only targets of the family dsp have it")
        return self.vector

    @property
    def host_core(self) -> HostSpec:
        """What the steps of a program cost on a host core.

        Raises:
            TargetError: the target has no such table.
        """
        if self.host is None:
            raise TargetError("missing key", key="host", remedy="only targets of the family host have it")
        return self.host

    @property
    def cores_per_group(self) -> int:
        """Cores of all kinds in one group."""
        return sum(kind.per_group for kind in self.core.values())

    def units(self, groups: Iterable[int], kinds: Iterable[str] | None = None) -> list[Unit]:
        """The cores of some groups, in the order of their numbers, of some kinds or of all.

        Of the cores in no group, each group that is asked for brings one more.
        """
        wanted = tuple(self.core if kinds is None else kinds)
        asked = list(groups)
        found = []
        for kind in wanted:
            spec, first = member(self.core, "core", kind), self._first_of(kind)
            found += [
                Unit(group * self.cores_per_group + first + slot, group, kind, slot)
                for group in asked
                for slot in range(spec.per_group)
            ]
            beyond = self.groups * self.cores_per_group + self._first_of(kind, "extra")
            found += [Unit(beyond + slot, -1, kind, slot) for slot in range(min(spec.extra or 0, len(asked)))]
        return sorted(found)

    def unit(self, number: int) -> Unit:
        """The core with a number.

        Raises:
            TargetError: the chip has fewer.
        """
        for unit in self.units(range(self.groups)):
            if unit.number == number:
                return unit
        raise TargetError("unknown core", got=number)

    def core_name(self, number: int) -> str:
        """What the tools call a core: "core0", or "core0.veccore1" where the chip has several kinds."""
        unit = self.unit(number)
        if len(self.core) == 1 and self.cores_per_group == 1:
            return f"core{unit.group}"
        kind = f"{TOOL_NAMES.get(unit.kind, unit.kind)}{unit.slot}"
        return kind if unit.group < 0 else f"core{unit.group}.{kind}"

    def _first_of(self, kind: str, field: Literal["per_group", "extra"] = "per_group") -> int:
        """How many cores of the kinds before this one a group, or the rest of the chip, has."""
        before = list(self.core)[: list(self.core).index(kind)]
        return sum(getattr(self.core[name], field) or 0 for name in before)

    def us(self, cycles: int) -> float:
        """Microseconds that a number of core cycles takes."""
        return cycles / self.clock_mhz

    def link_units(self, link: str, cores: int = 1) -> int:
        """Bandwidth of a link in a launch of so many cores, in units of 2**-16 byte a cycle (rounded down).

        It is efficiency x (nominal + cores x bytes_per_cycle_per_core).

        Raises:
            TargetError: the target has no such link.
        """
        spec = member(self.link, "link", link)
        grown = spec.exact_bytes_per_cycle(self.clock_mhz) + cores * exact(spec.bytes_per_cycle_per_core)
        return int(grown * exact(spec.efficiency) * UNITS_PER_BYTE)

    def port_units(self, port: str) -> int:
        """Bandwidth of a core's port, in whole units of 2**-16 byte a cycle (rounded down).

        Raises:
            TargetError: the target has no such port.
        """
        return int(member(self.port, "port", port).exact_bytes_per_cycle(self.clock_mhz) * UNITS_PER_BYTE)

    def role_bytes(self, role: str) -> int:
        """Bytes of a memory that a part of it has.

        Raises:
            TargetError: the target has no such role.
        """
        spec = member(self.role, "role", role)
        return spec.size_bytes or self.memory[spec.memory].size_bytes

    def lanes_of(self, engine: str) -> list[str]:
        """The lanes of an engine."""
        count = self.engine[engine].count
        return [engine.upper()] if count == 1 else [f"{engine.upper()}{i}" for i in range(count)]
