"""What the tables of a target say of each other: names that are not there, rates that are no rates."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, TypeVar

from targets.errors import TargetError
from targets.tables import CacheSpec, PathSpec, RoleSpec, names_in

if TYPE_CHECKING:
    from targets.schema import Target

MOST_LINES = 1024
"""Lines of a cache block: each is a bit of a number."""

UNITS_PER_BYTE = 1 << 16
"""Bandwidths are integers in units of 2**-16 byte a cycle, so that shares of a link are exact."""

SLOWEST = UNITS_PER_BYTE >> 10
"""The least rate of a link or a port: of less, a flow's share would round to nothing."""

Spec = TypeVar("Spec")


def member(table: Mapping[str, Spec], kind: str, name: str) -> Spec:
    """A table by its name.

    Raises:
        TargetError: there is none.
    """
    if name not in table:
        raise unknown(kind, kind, name, table)
    return table[name]


def unknown(what: str, key: str, got: str, known: Iterable[str]) -> TargetError:
    """The error of a name that is not there."""
    return TargetError(f"unknown {what}", key=key, got=repr(got), limit=f"one of {', '.join(known)}")


def broken_references(target: Target) -> Iterator[TargetError]:
    """Every name in a target that refers to a table which is not there."""
    yield from _broken_engines(target)
    for key, path in target.path.items():
        yield from _broken_path(target, key, path)
    for name, port in target.port.items():
        if port.shares and port.shares not in target.port:
            yield unknown("port", f"port.{name}.shares", port.shares, target.port)
    yield from _too_slow(target)
    for name, cache in target.cache.items():
        yield from _broken_cache(target, name, cache)
    for name, role in target.role.items():
        yield from _broken_role(target, name, role)
    if "default" not in target.launch:
        yield TargetError("missing key", key="launch.default", remedy="give the cost of an ordinary launch")


def _broken_cores(target: Target) -> Iterator[TargetError]:
    for name, kind in target.core.items():
        if not kind.per_group and not kind.extra:
            yield TargetError("a kind of core that the chip has none of", key=f"core.{name}.per_group", got=0)
    for name, engine in target.engine.items():
        yield from _unknown_kinds(target, f"engine.{name}.core", engine.kinds)
    for name, memory in target.memory.items():
        yield from _unknown_kinds(target, f"memory.{name}.core", names_in(memory.core))
        if memory.core and memory.scope == "chip":
            yield TargetError("a memory of the chip belongs to no kind of core", key=f"memory.{name}.core")


def _unknown_kinds(target: Target, key: str, kinds: Iterable[str]) -> Iterator[TargetError]:
    for kind in kinds:
        if kind not in target.core:
            yield unknown("core", key, kind, target.core)


def _broken_cache(target: Target, name: str, cache: CacheSpec) -> Iterator[TargetError]:
    key, memory = f"cache.{name}", target.memory.get(name)
    if memory is None or memory.scope != "chip":
        chip = [each for each, spec in target.memory.items() if spec.scope == "chip"]
        yield unknown("memory of the chip", key, name, chip)
    if cache.link not in target.link:
        yield unknown("link", f"{key}.link", cache.link, target.link)
    if cache.block_bytes % cache.line or cache.block_bytes // cache.line > MOST_LINES:
        limit = f"a divisor of block_bytes, at most {MOST_LINES} a block"
        yield TargetError(
            "lines that do not fill a block", key=f"{key}.line_bytes", got=cache.line, limit=limit
        )
    if cache.size_bytes < cache.block_bytes:
        yield TargetError("a cache of no block", key=f"{key}.size_bytes", got=cache.size_bytes)
    for path, spec in target.path.items():
        if name in path.split("->") and not spec.link:
            yield TargetError("a path to a memory with a cache has no link", key=f"path.{path}.link")


def _broken_role(target: Target, name: str, role: RoleSpec) -> Iterator[TargetError]:
    if role.memory not in target.memory:
        yield unknown("memory", f"role.{name}", role.memory, target.memory)
    elif (role.size_bytes or 0) > target.memory[role.memory].size_bytes:
        yield TargetError("a role larger than its memory", key=f"role.{name}.size_bytes", got=role.size_bytes)


def _broken_engines(target: Target) -> Iterator[TargetError]:
    yield from _broken_cores(target)
    lanes = target.lanes()
    for name in target.engine:
        if any(lanes.count(lane) > 1 for lane in target.lanes_of(name)):
            yield TargetError("two engines have lanes of one name", key=f"engine.{name}", got=lanes)


def _broken_path(target: Target, key: str, path: PathSpec) -> Iterator[TargetError]:
    source, arrow, destination = key.partition("->")
    if not arrow:
        yield TargetError("a path is not named after two memories", key=f"path.{key}", limit='"ddr->am"')
    for memory in (source, destination):
        if memory not in target.memory:
            yield unknown("memory", f"path.{key}", memory, target.memory)
    if path.engine not in target.engine:
        yield unknown("engine", f"path.{key}.engine", path.engine, target.engine)
    if path.link and path.link not in target.link:
        yield unknown("link", f"path.{key}.link", path.link, target.link)
    if path.port not in target.port:
        yield unknown("port", f"path.{key}.port", path.port, target.port)


def _too_slow(target: Target) -> Iterator[TargetError]:
    rates = {f"link.{name}": target.link_units(name) for name in target.link}
    rates |= {f"port.{name}": target.port_units(name) for name in target.port}
    for key, units in rates.items():
        if units < SLOWEST:
            got = f"{units / UNITS_PER_BYTE:.2g} bytes in a cycle of {target.clock_mhz:g} MHz"
            yield TargetError(
                "too slow a rate", key=key, got=got, limit=f"at least {SLOWEST / UNITS_PER_BYTE}"
            )
