"""What a tiling of a DSP kernel is chosen for: the layer, the chip, its types and cores, and the rates that follow."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

from kernels.dsp.dx.geometry import Geometry
from kernels.dsp.places import Places, copy_cycles, places
from simulator.timing.links import UNIT
from simulator.values.numerics import DType
from targets.schema import Target


@dataclass(frozen=True)
class Setting:
    """A call, as far as its tiling depends on it.

    Targets are compared by identity: their tables cannot be hashed.
    """

    geometry: Geometry
    target: Target = field(compare=False)
    operand: DType
    sum_type: DType
    cores: int
    target_id: int = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "target_id", id(self.target))

    @cached_property
    def places(self) -> Places:
        """The memories of the target."""
        return places(self.target)

    @cached_property
    def copy_cycles(self) -> float:
        """What one copy takes of a core's time."""
        return copy_cycles(self.target)

    @property
    def barrier_cycles(self) -> int:
        """From the last arrival at a barrier of all cores to the release."""
        sync = self.target.sync
        return sync.barrier_latency_cycles + sync.barrier_cycles_per_core * self.cores

    @cached_property
    def ports(self) -> tuple[float, float]:
        """Bytes a cycle that a core reads from the main memory and writes to it."""
        read, write = (self.target.port_units(p) for p in (self.places.read_port, self.places.write_port))
        return read / UNIT, write / UNIT

    @cached_property
    def links(self) -> list[tuple[float, float]]:
        """Bytes a cycle of the links of the main and the shared memory, with 0, 1, 2, ... cores running."""
        main, shared = self.places.main_link, self.places.shared_link
        units = self.target.link_units
        return [(units(main, run) / UNIT, units(shared, run) / UNIT) for run in range(self.cores + 1)]

    @property
    def rate(self) -> str:
        """The target's matrix rate."""
        return self.operand.name + ("_fp16" if self.sum_type.name == "fp16" else "")
