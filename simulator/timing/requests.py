"""Copies through a cache: what flows for each of them, over which link, and when."""

from __future__ import annotations

from math import ceil
from typing import TYPE_CHECKING, NamedTuple

from simulator.instructions import Cost
from simulator.timing.cache import Cache, Fetch, Found
from simulator.timing.links import UNIT, Flow, SharedLink

if TYPE_CHECKING:
    from simulator.timing.lane import Lane
    from simulator.timing.traffic import Traffic


class Route(NamedTuple):
    """How the copies of a path go through a cache.

    Attributes:
        cache: the cache of the memory at one end.
        writes: whether they write to that memory.
        near: the link of what is resident.
        near_cost: what a byte costs of it, in units.
        far: the link of the path, to the memory itself.
        fetch_cost, write_cost: what a byte costs of that, by direction.
        port, port_rate: the port of the core and its rate in units.
    """

    cache: Cache
    writes: bool
    near: SharedLink
    near_cost: int
    far: SharedLink
    fetch_cost: int
    write_cost: int
    port: str
    port_rate: int


class Bytes(NamedTuple):
    """What a copy moves on each link.

    Attributes:
        near: over the cache's link.
        fetched: from the memory into the cache, for this copy.
        evicted: from the cache back to the memory, to make room.
    """

    near: int
    fetched: int
    evicted: int


def bytes_of(found: Found, writes: bool, charged: int, line: int, exact: bool) -> Bytes:
    """Bytes on each link for a copy of `charged` bytes that found so many lines.

    A read takes what is resident over the cache's link and the rest, at least whole lines, over the path's; a range
    that is not exact covers more lines than the copy moves, so that only their shares count. A write takes all over
    the cache's link and fetches the lines of which it writes a part.
    """
    evicted = found.evicted * line
    if writes:
        return Bytes(charged, found.missing * line, evicted)
    near = ceil(charged * (found.touched - found.missing) / found.touched)
    fetched = ceil(charged * found.missing / found.touched)
    return Bytes(near, max(fetched, found.missing * line) if exact else fetched, evicted)


class Request:
    """A copy whose stream begins. Its flows run at once, and it ends with the last of them.

    What is resident flows when the fetches of others that bring lines of it have ended. The flows of a read divide the
    port in proportion to their bytes, so that it is never faster than all its bytes through the port; fetches for a
    write, and evictions, do not pass the port.
    """

    __slots__ = ("_awaited", "_held", "_lane", "_near", "_open", "_traffic")

    def __init__(self, traffic: Traffic, route: Route, lane: Lane, entry: int, cost: Cost, now: int) -> None:
        """Look up what is resident, and start what can flow."""
        self._traffic = traffic
        self._lane = lane
        self._near = route.near
        core = lane.core
        span = core.program.spans[entry]
        cache, fetch = route.cache, Fetch(self)
        where, runs = (span.range, span.outer, fetch), span.runs
        found = (
            cache.write(*where, adds=span.adds, runs=runs) if route.writes else cache.read(*where, runs=runs)
        )
        sizes = bytes_of(found, route.writes, cost.charged_bytes, cache.line, span.exact)
        moved = core.program.moved[entry]
        hit = moved if route.writes else moved * (found.touched - found.missing) // max(1, found.touched)
        core.cached[entry] = (hit, sizes.fetched, sizes.evicted)
        self._open = sum(1 for size in sizes if size)
        self._awaited = len(found.awaited)
        self._held: Flow | None = None
        for other in found.awaited:
            other.waiters.append(self)
        self._start(route, sizes, cost.charged_bytes, fetch, now)

    def _start(self, route: Route, sizes: Bytes, charged: int, fetch: Fetch, now: int) -> None:
        place, traffic = (self._lane.core.index, route.port), self._traffic
        if sizes.near:
            rate = route.port_rate * sizes.near // charged * route.near_cost // UNIT
            flow = Flow(sizes.near * route.near_cost, place, max(1, rate), 1, self)
            if self._awaited:
                self._held = flow
            else:
                traffic.join(route.near, flow, now)
        if sizes.fetched:
            rate = route.port_rate * sizes.fetched // charged * route.fetch_cost // UNIT
            wide = route.far.rate if route.writes else max(1, rate)
            owner = (place, "fetch") if route.writes else place
            traffic.join(route.far, Flow(sizes.fetched * route.fetch_cost, owner, wide, 1, fetch), now)
        if sizes.evicted:
            size = sizes.evicted * route.write_cost
            traffic.join(route.far, Flow(size, (place, "evict"), route.far.rate, 1, self), now)

    def flowed(self, now: int) -> None:
        """One of its flows has ended."""
        self._open -= 1
        if not self._open:
            self._lane.flowed(now)

    def arrived(self, now: int) -> None:
        """A fetch that it waited for has ended."""
        self._awaited -= 1
        if not self._awaited and self._held is not None:
            self._traffic.join(self._near, self._held, now)
