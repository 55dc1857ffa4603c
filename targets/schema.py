"""A target as checked data (stand-in)."""

from typing import Literal

from pydantic import BaseModel, ConfigDict


class _Table(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Mark(_Table):
    """Where a number comes from."""

    mark: Literal["documented", "derived", "assumed", "override"]
    source: str


class CoreKind(_Table):
    """Cores of one kind in a group."""

    per_group: int


class EngineSpec(_Table):
    """An in-order unit of a core."""

    core: str
    issue: Literal["queued", "blocking"]
    queue_depth: int
    count: int = 1


class MemorySpec(_Table):
    """A storage level."""

    size_bytes: int
    base_address: int
    scope: Literal["core", "chip"]
    core_stride_bytes: int = 0
    align_bytes: int = 64


class LinkSpec(_Table):
    """A shared link."""

    bytes_per_cycle: float | None = None
    gigabytes_per_second: float | None = None
    efficiency: float = 1.0
    bytes_per_cycle_per_core: float = 0.0
    read_cost: float = 1.0
    write_cost: float = 1.0
    burst_bytes: int
    row_overhead_bytes: int = 0


class PortSpec(_Table):
    """A core's port."""

    bytes_per_cycle: float | None = None
    gigabytes_per_second: float | None = None


class PathSpec(_Table):
    """A path of copies."""

    link: str
    direction: Literal["read", "write"]
    port: str
    start_cycles: int
    floor_cycles: int = 0
    overlap: bool


class IssueSpec(_Table):
    """Issue costs."""

    copy_cycles: int
    matmul_cycles: int
    vector_cycles: int
    barrier_cycles: int
    flag_set_cycles: int
    flag_wait_cycles: int


class SyncSpec(_Table):
    """Latencies of barriers and flags."""

    barrier_latency_cycles: int
    barrier_cycles_per_core: int
    flag_latency_cycles: int
    cross_core_flag_latency_cycles: int


class LaunchSpec(_Table):
    """Cost of a launch."""

    cycles: int
    cycles_per_core: int


class MatmulSpec(_Table):
    """Cost of a matrix instruction."""

    kernel_rows: int
    granule_columns: int
    granule_cycles: tuple[float, ...]
    fixed_cycles: int
    call_cycles: int
    flops_per_cycle: float


class VectorSpec(_Table):
    """Cost of a vector instruction."""

    register_bytes: int
    moves_per_cycle: float
    run_cycles: int
    call_cycles: int


class Target(_Table):
    """A chip as data."""

    name: str
    title: str
    family: Literal["dsp", "davinci", "host"]
    clock_mhz: float
    groups: int
    core: dict[str, CoreKind]
    engine: dict[str, EngineSpec]
    memory: dict[str, MemorySpec]
    link: dict[str, LinkSpec]
    port: dict[str, PortSpec]
    path: dict[str, PathSpec]
    issue: IssueSpec
    sync: SyncSpec
    launch: dict[str, LaunchSpec]
    matmul: dict[str, MatmulSpec]
    vector: VectorSpec
    provenance: dict[str, Mark] = {}

    def lanes(self) -> list[str]:
        """Names of the lanes of engines of a core, SCALAR first."""
        many = [
            [f"{name.upper()}{i}" for i in range(spec.count)] if spec.count > 1 else [name.upper()]
            for name, spec in self.engine.items()
        ]
        return ["SCALAR", *(lane for lanes in many for lane in lanes)]

    def us(self, cycles: int) -> float:
        """Microseconds of a number of cycles."""
        return cycles / self.clock_mhz
