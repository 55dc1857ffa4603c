"""What each copy of a trace moves over the links that cores share, and what these links carry at most.

A copy takes the link of its path. Of a memory with a cache, what was resident takes the cache's link, and what was
fetched for it or written back to make room takes the path's.
"""

import numpy as np
from numpy.typing import NDArray

from reports.load import SavedRun
from simulator.results.trace import Trace
from targets.schema import UNITS_PER_BYTE, Target

Ints = NDArray[np.int64]


def shared_links(target: Target) -> list[str]:
    """Names of the links that lead to a memory of the whole chip, in the target's order."""
    used = {cache.link for cache in target.cache.values()}
    for key, path in target.path.items():
        if any(target.memory[memory].scope == "chip" for memory in key.split("->")):
            used.add(path.link)
    return [link for link in target.link if link in used]


def row_links(trace: Trace, target: Target) -> Ints:
    """For each row the place of its path's link in `shared_links`; -1 where it takes none of them."""
    links = shared_links(target)
    size = len(trace.memories) + 1  # the last place serves -1, no memory
    table = np.full((size, size), -1, dtype=np.int64)
    for i, source in enumerate(trace.memories):
        for j, destination in enumerate(trace.memories):
            path = target.path.get(f"{source}->{destination}")
            if path is not None and path.link in links:
                table[i, j] = links.index(path.link)
    found: Ints = table[trace["source"], trace["destination"]]
    return np.where(trace["bytes"] > 0, found, -1)


def cached_rows(trace: Trace, target: Target) -> dict[str, NDArray[np.bool_]]:
    """Which rows copy from or to a memory with a cache, by memory; none where the trace does not tell hits."""
    if "hit" not in trace.columns():
        return {}
    codes = {memory: trace.memories.index(memory) for memory in target.cache if memory in trace.memories}
    return {memory: (trace["source"] == c) | (trace["destination"] == c) for memory, c in codes.items()}


def sizes_on_links(trace: Trace, target: Target) -> Ints:
    """Bytes that each row moved over each link: [rows, `shared_links`]."""
    links, own = shared_links(target), row_links(trace, target)
    sizes = np.zeros((len(trace), len(links)), dtype=np.int64)
    rows = np.flatnonzero(own >= 0)
    sizes[rows, own[rows]] = trace["bytes"][rows]
    for memory, mask in cached_rows(trace, target).items():
        near, far = links.index(target.cache[memory].link), np.flatnonzero(mask & (own >= 0))
        sizes[far, own[far]] = trace["fetched"][far] + trace["evicted"][far]
        sizes[mask, near] += trace["hit"][mask]
    return sizes


def link_bytes(saved: SavedRun) -> Ints:
    """Bytes that the copies of each launch moved over each link: [launches, `shared_links`]."""
    sizes = sizes_on_links(saved.trace, saved.target)
    total = np.zeros((max(1, len(saved.launches)), sizes.shape[1]), dtype=np.int64)
    np.add.at(total, saved.trace["launch"], sizes)
    return total


def link_rate(target: Target, link: str, cores: int) -> float:
    """Bytes a cycle that a link carries at most in a launch of so many cores, in its cheaper direction.

    It is the bandwidth after its efficiency (`Target.link_units`), divided by the lower cost of the directions of
    the paths that take it.
    """
    spec = target.link[link]
    costs = {"read": spec.read_cost, "write": spec.write_cost}
    directions = {path.direction for path in target.path.values() if path.link == link}
    cost = min(costs[direction] for direction in directions or costs)
    return target.link_units(link, cores) / UNITS_PER_BYTE / cost
