"""The links of a launch and what flows on them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

import simpy

from simulator.instructions import Cost
from simulator.timing.cache import Cache
from simulator.timing.events import ENDS, Alarm
from simulator.timing.links import UNIT, Flow, SharedLink
from simulator.timing.requests import Request, Route
from targets.schema import Target

if TYPE_CHECKING:
    from simulator.timing.lane import Lane


class Traffic:
    """Shared links, and for each core that needs them the links that are its ports' own."""

    def __init__(
        self,
        env: simpy.Environment,
        target: Target,
        groups: int,
        caches: Mapping[str, Cache],
        look: Callable[[], None],
    ) -> None:
        """Links of a launch on so many groups, without flows; `look` asks for `share` at the end of the cycle."""
        self._env = env
        self._target = target
        self._look = look
        self._caches = caches
        self._links = {name: SharedLink(name, target.link_units(name, groups)) for name in target.link}
        self._own: dict[tuple[int, str], SharedLink] = {}
        self._own_changed: list[SharedLink] = []
        self._ports = {name: target.port_units(name) for name in target.port}
        self._turns = {name: spec.shares or name for name, spec in target.port.items()}
        self._costs = {
            (name, direction): round(getattr(spec, f"{direction}_cost") * UNIT)
            for name, spec in target.link.items()
            for direction in ("read", "write")
        }
        self._routes = self._cached_paths()
        self._arrivals: list[tuple[Lane, int, Cost]] = []
        self._pending: dict[SharedLink, set[int]] = {link: set() for link in self._links.values()}
        self._spare: dict[SharedLink, list[Alarm]] = {link: [] for link in self._links.values()}

    def flow(self, lane: Lane, entry: int, cost: Cost, now: int) -> None:
        """The stream of a copy begins.

        A cache is asked at the end of the cycle, so that the order of the cores says who finds what.
        """
        if cost.path in self._routes:
            self._arrivals.append((lane, entry, cost))
            self._look()
            return
        path = self._target.path[cost.path]
        place, rate, weight = (
            (lane.core.index, self._turns[path.port]),
            self._ports[path.port],
            lane.core.weight,
        )
        if not path.link:
            link = self._own_link(place, weight)
            self.join(link, Flow(cost.charged_bytes * UNIT, place, rate, weight, lane), now)
            return
        factor = self._costs[path.link, path.direction]
        flow = Flow(cost.charged_bytes * factor, place, rate * factor // UNIT, weight, lane)
        self.join(self._links[path.link], flow, now)

    def _own_link(self, place: tuple[int, str], weight: int) -> SharedLink:
        """The link of one port of one core, as wide as the port; for each of the cores that the core stands for."""
        link = self._own.get(place)
        if link is None:
            wide = weight * max(self._ports[name] for name in self._ports if self._turns[name] == place[1])
            link = self._own[place] = SharedLink(f"{place[1]} of core {place[0]}", wide)
            self._pending[link], self._spare[link] = set(), []
        if not link.changed:
            self._own_changed.append(link)
        return link

    def _cached_paths(self) -> dict[str, Route]:
        """The paths that go through a cache."""
        routes = {}
        for key, path in self._target.path.items():
            source, _, destination = key.partition("->")
            memory = source if source in self._caches else destination
            if memory in self._caches:
                cache = self._caches[memory]
                routes[key] = Route(
                    cache,
                    memory == destination,
                    self._links[cache.spec.link],
                    self._costs[cache.spec.link, path.direction],
                    self._links[path.link],
                    self._costs[path.link, "read"],
                    self._costs[path.link, "write"],
                    self._turns[path.port],
                    self._ports[path.port],
                )
        return routes

    def join(self, link: SharedLink, flow: Flow, now: int) -> None:
        """A flow begins on a link."""
        link.join(flow, now)
        self._look()

    def share(self, now: int) -> None:
        """Ask the caches for the streams that began in this cycle, and divide anew what has changed."""
        if self._arrivals:
            arrivals, self._arrivals = sorted(self._arrivals, key=_place), []
            for lane, entry, cost in arrivals:
                Request(self, self._routes[cost.path], lane, entry, cost, now)
        for link in self._links.values():
            if link.changed:
                self._share(link, now)
        if self._own_changed:
            changed, self._own_changed = self._own_changed, []
            for link in changed:
                self._share(link, now)

    def _share(self, link: SharedLink, now: int) -> None:
        end = link.share(now)
        pending = self._pending[link]
        if end is not None and end not in pending:
            pending.add(end)
            spare = self._spare[link]
            alarm = spare.pop() if spare else self._alarm(link)
            alarm.set(end - now)

    def _alarm(self, link: SharedLink) -> Alarm:
        """An alarm for the end of flows; it goes back to the spare ones when it has rung."""

        def ring(now: int) -> None:
            self._spare[link].append(alarm)
            self._flows_end(link, now)

        alarm = Alarm(self._env, ring, ENDS)
        return alarm

    def _flows_end(self, link: SharedLink, now: int) -> None:
        self._pending[link].discard(now)
        known = link.changed
        done = link.ended(now)
        if done and not known and link.name not in self._links:
            self._own_changed.append(link)
        for flow in done:
            if flow.owner is not None:
                flow.owner.flowed(now)
        if done:
            self._look()


def _place(arrival: tuple[Lane, int, Cost]) -> tuple[int, int]:
    lane = arrival[0]
    return lane.core.index, lane.index
