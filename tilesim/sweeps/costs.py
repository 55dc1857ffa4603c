"""What the chip of a point costs, as plain counts: no area is made up out of them."""

from __future__ import annotations

from reports.links import shared_links
from targets.schema import Target
from targets.tables import exact

COST = "cost."
"""How the columns of costs begin."""


def costs(target: Target, cores: int, peak_flops_per_cycle: float) -> dict[str, float | int]:
    """The costs of a chip that has only the groups of cores of the call.

    - `cost.onchip_bytes`: memories but the main one, those of a core once for each core that has it, and caches.
    - `cost.mac_lanes`: multiply-adds a cycle of the data type: peak_flops_per_cycle / 2.
    - `cost.LINK_gbs`: for each link that cores share, its bandwidth in 1e9 bytes a second, after its efficiency.
    """
    found: dict[str, float | int] = {
        f"{COST}onchip_bytes": onchip_bytes(target, cores),
        f"{COST}mac_lanes": peak_flops_per_cycle / 2,
    }
    return found | {f"{COST}{link}_gbs": gigabytes(target, link, cores) for link in shared_links(target)}


def gigabytes(target: Target, link: str, cores: int) -> float:
    """Bandwidth of a link in a launch of so many cores, in 1e9 bytes a second: `Target.link_units` not rounded."""
    spec = target.link[link]
    nominal = spec.exact_bytes_per_cycle(target.clock_mhz) + cores * exact(spec.bytes_per_cycle_per_core)
    return float(nominal * exact(spec.efficiency) * exact(target.clock_mhz) / 1000)


def onchip_bytes(target: Target, cores: int) -> int:
    """Bytes of all memories and caches of a chip of so many groups, the main memory left out."""
    units = target.units(range(cores))
    total = sum(cache.size_bytes for cache in target.cache.values())
    for name, memory in target.memory.items():
        if name == target.main_memory:
            continue
        chip = memory.scope == "chip"
        total += memory.size_bytes * (1 if chip else sum(memory.of_kind(unit.kind) for unit in units))
    return total
