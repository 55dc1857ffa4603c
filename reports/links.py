"""Which shared link each copy of a trace takes, and what these links carry."""

import numpy as np
from numpy.typing import NDArray

from reports.load import SavedRun
from simulator.results.trace import Trace
from targets.schema import UNITS_PER_BYTE, Target


def shared_links(target: Target) -> list[str]:
    """Names of the links that lead to a memory of the whole chip, in the target's order."""
    used = {
        path.link
        for key, path in target.path.items()
        if any(target.memory[memory].scope == "chip" for memory in key.split("->"))
    }
    return [link for link in target.link if link in used]


def row_links(trace: Trace, target: Target) -> NDArray[np.int64]:
    """For each row the place of its copy's link in `shared_links`; -1 where it takes none of them."""
    links = shared_links(target)
    size = len(trace.memories) + 1  # the last place serves -1, no memory
    table = np.full((size, size), -1, dtype=np.int64)
    for i, source in enumerate(trace.memories):
        for j, destination in enumerate(trace.memories):
            path = target.path.get(f"{source}->{destination}")
            if path is not None and path.link in links:
                table[i, j] = links.index(path.link)
    found: NDArray[np.int64] = table[trace["source"], trace["destination"]]
    return found


def link_bytes(saved: SavedRun) -> NDArray[np.int64]:
    """Bytes that the copies of each launch moved over each link: [launches, `shared_links`]."""
    trace, links = saved.trace, shared_links(saved.target)
    link, count = row_links(trace, saved.target), max(1, len(saved.launches))
    rows = np.flatnonzero(link >= 0)
    cell = trace["launch"][rows].astype(np.int64) * len(links) + link[rows]
    total = np.zeros(count * len(links), dtype=np.int64)
    np.add.at(total, cell, trace["bytes"][rows])
    return total.reshape(count, len(links))


def link_rate(target: Target, link: str, cores: int) -> float:
    """Bytes a cycle that a link carries at most in a launch of so many cores, in its cheaper direction.

    It is the bandwidth after its efficiency (`Target.link_units`), divided by the lower cost of the directions of
    the paths that take it.
    """
    spec = target.link[link]
    directions = {path.direction for path in target.path.values() if path.link == link}
    costs = {"read": spec.read_cost, "write": spec.write_cost}
    cost = min((costs[direction] for direction in directions), default=1.0)
    return target.link_units(link, cores) / UNITS_PER_BYTE / cost
