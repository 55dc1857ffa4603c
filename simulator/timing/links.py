"""Shared links: max-min fair division of a bandwidth among the flows that are active, in integers.

Bandwidth, shares and bytes left are integers in units of 2^-16 byte a cycle. Shares are floored and what
is left over is
unused; unequal caps are filled round by round; a flow ends at the ceiling. A link's state changes only when a flow
starts or ends, never because somebody looks, so that equal flows stay equal.
"""

from __future__ import annotations

from collections.abc import Hashable
from typing import Protocol

UNIT = 1 << 16
"""Units of one byte a cycle."""


class Owner(Protocol):
    """Who waits for a flow."""

    def flowed(self, now: int) -> None:
        """The last byte has arrived."""


class Flow:
    """One transfer on a link, or `weight` equal ones of cores that do the same at the same time.

    Attributes:
        left: units left to carry at cycle `since`.
        rate: units a cycle.
        port: what flows of one core and direction share.
        port_rate: the port's bandwidth, in units of the link.
        owner: who is told when the last byte has arrived.
    """

    __slots__ = ("left", "owner", "port", "port_rate", "rate", "since", "weight")

    def __init__(
        self, left: int, port: Hashable, port_rate: int, weight: int = 1, owner: Owner | None = None
    ) -> None:
        """A flow of `left` units that has not joined a link yet."""
        self.left = left
        self.port = port
        self.port_rate = port_rate
        self.weight = weight
        self.owner = owner
        self.rate = 0
        self.since = 0

    def end(self) -> int:
        """The cycle at which the flow ends if nothing changes."""
        return self.since - (-self.left // self.rate) if self.left > 0 else self.since


class SharedLink:
    """A link of `rate` units a cycle and the flows on it."""

    __slots__ = ("_ports", "changed", "flows", "name", "rate")

    def __init__(self, name: str, rate: int) -> None:
        """An idle link."""
        self.name = name
        self.rate = rate
        self.flows: list[Flow] = []
        self.changed = False
        self._ports: dict[Hashable, int] = {}

    def join(self, flow: Flow, now: int) -> None:
        """A flow starts at cycle `now`; rates are divided anew by `share`."""
        flow.since = now
        flow.rate = 0
        self.flows.append(flow)
        self._ports[flow.port] = self._ports.get(flow.port, 0) + 1
        self.changed = True

    def ended(self, now: int) -> list[Flow]:
        """Take out the flows that end at cycle `now`."""
        done = [f for f in self.flows if f.rate and f.end() <= now]
        for flow in done:
            self.flows.remove(flow)
            self._ports[flow.port] -= 1
        self.changed = self.changed or bool(done)
        return done

    def share(self, now: int) -> int | None:
        """Divide the bandwidth at cycle `now`; returns the cycle of the next end, None when the link is idle."""
        self.changed = False
        flows = self.flows
        if not flows:
            return None
        for flow in flows:
            flow.left -= flow.rate * (now - flow.since)
            flow.since = now
        if len(flows) == 1:
            flow = flows[0]
            flow.rate = min(flow.port_rate, self.rate // flow.weight)
            return flow.end()
        self._divide()
        return min(f.end() for f in flows)

    def _divide(self) -> None:
        """Fill the caps round by round."""
        ports = self._ports
        capped = [(f.port_rate // ports[f.port], f) for f in self.flows]
        capacity, weight = self.rate, sum(f.weight for f in self.flows)
        while capped:
            fair = capacity // weight
            above = []
            for cap, flow in capped:
                if cap > fair:
                    above.append((cap, flow))
                    continue
                flow.rate = cap
                capacity -= cap * flow.weight
                weight -= flow.weight
            if len(above) == len(capped):
                for _, flow in above:
                    flow.rate = fair
                return
            capped = above
