"""How long the streams of copies take alone, and what a change of rates makes of them. Vectorised over a trace."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from simulator.results.trace import Trace
from targets.schema import UNITS_PER_BYTE, CacheSpec, PathSpec, Target

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Streams:
    """Cycles that each row's bytes need at least, on a target, with nobody beside them; 0 for what is no copy.

    Attributes:
        port: through the core's port.
        link: over the path's link; of a memory with a cache, what was fetched and written back.
        near: over the link of the cache, what was resident.
    """

    port: Floats
    link: Floats
    near: Floats

    @property
    def alone(self) -> Ints:
        """The longest of them, in whole cycles."""
        # A tiny part of a cycle is an error of the division, not a cycle more.
        longest = np.maximum(np.maximum(self.port, self.link), self.near)
        return np.ceil(longest - 1e-6).astype(np.int64)


def paths_of(trace: Trace, target: Target) -> dict[str, Ints]:
    """The rows that go along each path of the target; what moves bytes without one is an instruction like others."""
    memories = trace.memories
    rows = np.flatnonzero((trace["charged"] > 0) | (trace["setup"] > 0))
    pair = trace["source"][rows].astype(np.int64) * len(memories) + trace["destination"][rows]
    found = {}
    for code in np.unique(pair).tolist():
        source, destination = divmod(code, len(memories))
        key = f"{memories[source]}->{memories[destination]}"
        if code >= 0 and key in target.path:
            found[key] = rows[pair == code]
    return found


def cache_of(target: Target, key: str) -> CacheSpec | None:
    """The cache that a path goes through."""
    return next((cache for memory, cache in target.cache.items() if memory in key.split("->")), None)


def streams(trace: Trace, target: Target, groups: Ints) -> Streams:
    """The streams of a trace; `groups`: how many groups of cores each row's launch had, on which links depend."""
    found = Streams(*(np.zeros(len(trace)) for _ in range(3)))
    for key, rows in paths_of(trace, target).items():
        path = target.path[key]
        found.port[rows] = trace["charged"][rows] * UNITS_PER_BYTE / target.port_units(path.port)
        if path.link:
            _over_links(found, trace, target, key, rows, groups[rows])
    return found


def _over_links(found: Streams, trace: Trace, target: Target, key: str, rows: Ints, groups: Ints) -> None:
    path, cache = target.path[key], cache_of(target, key)
    charged, far = trace["charged"][rows].astype(np.float64), target.link[path.link]
    if cache is None or "hit" not in trace.columns():
        found.link[rows] = charged * _cost(target, path.link, path) / _rates(target, path.link, groups)
        return
    moved = np.maximum(trace["bytes"][rows], 1)
    near = charged * trace["hit"][rows] / moved * _cost(target, cache.link, path)
    missed = trace["fetched"][rows] * far.read_cost + trace["evicted"][rows] * far.write_cost
    found.near[rows] = near / _rates(target, cache.link, groups)
    found.link[rows] = missed / _rates(target, path.link, groups)


def _cost(target: Target, link: str, path: PathSpec) -> float:
    """What a byte costs of a link in a path's direction."""
    spec = target.link[link]
    return spec.read_cost if path.direction == "read" else spec.write_cost


def _rates(target: Target, link: str, groups: Ints) -> Floats:
    """Bytes a cycle of a link for each of some numbers of groups."""
    rate = {count: target.link_units(link, count) / UNITS_PER_BYTE for count in np.unique(groups).tolist()}
    return np.array([rate[count] for count in groups.tolist()])


def changed(observed: Ints, before: Streams, after: Streams) -> Floats:
    """What streams that took `observed` cycles take when what they need alone goes from `before` to `after`.

    A stream that took longer than its port asks for was held by the slowest of the links it uses, or shared it, and its
    time goes with that link's; it is never faster than the port and each link allow alone. One that ran at the rate of
    its port keeps that time unless a link becomes slower than the port.
    """
    held_far, held_near = before.link > 0, before.near > 0
    far = np.divide(after.link, before.link, out=np.ones_like(after.link), where=held_far)
    near = np.divide(after.near, before.near, out=np.ones_like(after.near), where=held_near)
    port = np.divide(after.port, before.port, out=np.ones_like(after.port), where=before.port > 0)
    ratio = np.where(held_far, far, np.where(held_near, near, port))
    by_port = observed <= np.ceil(before.port - 1e-6) + 1
    scaled = np.where(by_port & (held_far | held_near), observed * port, observed * ratio)
    found: Floats = np.maximum(
        scaled, np.maximum(after.port, np.maximum(after.link, after.near)) * (before.port > 0)
    )
    return found
