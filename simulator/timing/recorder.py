"""From the event model to the trace: one row an instruction, for every core, also those that another stood for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from simulator.results.trace import CACHE_COLUMNS, COLUMNS, COST_COLUMNS, ROW_COLUMNS, Trace
from simulator.timing.engines import CoreState
from simulator.timing.model import CoreClass, LaunchModel


class Codes:
    """Names to numbers, in order of first use."""

    def __init__(self, names: tuple[str, ...] = ()) -> None:
        """Start with these names."""
        self._codes = {name: code for code, name in enumerate(names)}

    def column(self, names: Sequence[str], dtype: str) -> NDArray[Any]:
        """The codes of a list of names; an empty name is -1."""
        codes = self._codes
        for name in dict.fromkeys(names):
            if name and name not in codes:
                codes[name] = len(codes)
        lookup = {**codes, "": -1}
        return np.array([lookup[name] for name in names], dtype)

    def names(self) -> tuple[str, ...]:
        """The names by code."""
        return tuple(self._codes)


Origins = Sequence[tuple[int, ...]]
"""Coordinates of a core's tiles, in order, on the first axes of a kernel."""


class _Places:
    """Which tile of a core each row with coordinates belongs to."""

    def __init__(self, part: dict[str, NDArray[Any]], origins: Origins) -> None:
        """Find the tiles of the core that was recorded."""
        self._axes = [f"#{axis}" for axis in range(len(origins[0]))]
        self._rows = np.flatnonzero(part[self._axes[0]] >= 0)
        coords = np.stack([part[axis][self._rows] for axis in self._axes], axis=1)
        changes = np.flatnonzero((coords[1:] != coords[:-1]).any(axis=1)) + 1
        begins = np.concatenate([[0], changes]) if len(coords) else np.zeros(0, np.int64)
        number = {origin: index for index, origin in enumerate(origins)}
        tiles = np.array([number[tuple(tile)] for tile in coords[begins].tolist()], np.int64)
        self._which = np.repeat(tiles, np.diff([*begins.tolist(), len(coords)]))

    def move(self, part: dict[str, NDArray[Any]], origins: Origins) -> None:
        """Give the rows the coordinates of another core's tiles."""
        targets = np.array(origins, "<i4")
        for place, axis in enumerate(self._axes):
            part[axis] = part[axis].copy()
            part[axis][self._rows] = targets[self._which, place]


class Recorder:
    """Collects the rows of launches and makes a Trace of them."""

    def __init__(self, engines: tuple[str, ...], *, cached: bool = False) -> None:
        """Nothing is recorded; with `cached`, what copies find in a cache will be."""
        self._kept = {**COLUMNS, **(CACHE_COLUMNS if cached else {}), **COST_COLUMNS}
        self._cached = cached
        self._engines = engines
        self._names = Codes()
        self._memories = Codes()
        self._axes: dict[str, None] = {}
        self._parts: list[tuple[dict[str, NDArray[Any]], tuple[str, ...]]] = []
        self._rows = 0

    def add(
        self,
        launch: int,
        model: LaunchModel,
        classes: list[CoreClass],
        axes: tuple[str, ...],
        origins: Mapping[int, Origins],
    ) -> None:
        """Record a launch that has run: the rows of each core, in the order of cores.

        `origins`: the coordinates of the tiles of cores that stood for others, or that others stood for.
        """
        columns = {core.index: self._columns(core, len(axes)) for core in model.cores}
        stood_for = sorted((index, c.cores[0]) for c in classes for index in c.cores)
        first, offset = {}, self._rows
        places: dict[int, _Places] = {}
        blame: dict[int, list[tuple[int, int, int]]] = {}
        for (core, entry), (blamed, row) in model.blame.items():
            blame.setdefault(core, []).append((entry, blamed, row))
        for index, rep in stood_for:
            first[index] = offset
            offset += len(columns[rep]["start"])
        self._axes.update(dict.fromkeys(axes))
        for index, rep in stood_for:
            part = dict(columns[rep])
            size = len(part["start"])
            part["launch"] = np.full(size, launch, "<i2")
            part["core"] = np.full(size, index, "<i2")
            for name in ROW_COLUMNS:
                part[name] = np.where(part[name] >= 0, part[name] + first[index], -1)
            for entry, blamed, row in blame.get(rep, ()):
                part["waited_row"][entry] = first[blamed] + row
            if index != rep and origins.get(index):
                if rep not in places:
                    places[rep] = _Places(columns[rep], origins[rep])
                places[rep].move(part, origins[index])
            self._parts.append((part, axes))
        self._rows = offset

    def _columns(self, core: CoreState, axes: int) -> dict[str, NDArray[Any]]:
        program = core.program
        coords = np.full((len(program), axes), -1, "<i4")
        for width in {len(c) for c in program.coords if c}:
            rows = [i for i, c in enumerate(program.coords) if len(c) == width]
            coords[rows, :width] = [program.coords[i] for i in rows]
        columns = {
            "engine": self._codes_of(core),
            "name": self._names.column(program.name, "<i2"),
            "bytes": np.array(program.moved, "<i8"),
            "source": self._memories.column(program.source, "|i1"),
            "destination": self._memories.column(program.destination, "|i1"),
            "waited_row": np.array(core.waited_row, "<i8"),
            "waited_reason": np.array(core.waited_reason, "|i1"),
        }
        for name in ("issued", "ready", "start", "end"):
            columns[name] = np.array(getattr(core, name), "<i8")
        flow = np.array(core.flow, "<i8")
        columns["flow"] = np.where(flow >= 0, flow, columns["start"])
        columns.update({f"#{axis}": coords[:, axis] for axis in range(axes)})
        columns.update(_cost_columns(core))
        if self._cached:
            columns.update(_cached_columns(core))
        return columns

    def _codes_of(self, core: CoreState) -> NDArray[Any]:
        """The engines of a program's entries as codes of the trace: cores of one kind lack those of others."""
        codes = np.array([self._engines.index(name) for name in core.lane_names], "<i2")
        return codes[np.array(core.program.lane, np.intp)]

    def trace(self) -> Trace:
        """All rows so far."""
        axes = tuple(self._axes)
        columns = {name: self._join(name, dtype) for name, dtype in self._kept.items()}
        columns.update({axis: self._join_axis(axis) for axis in axes})
        return Trace(
            columns,
            engines=self._engines,
            names=self._names.names(),
            memories=self._memories.names(),
            axes=axes,
        )

    def _join(self, name: str, dtype: str) -> NDArray[Any]:
        parts = [part[name] for part, _ in self._parts]
        return np.concatenate(parts).astype(dtype, copy=False) if parts else np.zeros(0, dtype)

    def _join_axis(self, axis: str) -> NDArray[Any]:
        parts = []
        for part, axes in self._parts:
            size = len(part["start"])
            parts.append(part[f"#{axes.index(axis)}"] if axis in axes else np.full(size, -1, "<i4"))
        return np.concatenate(parts) if parts else np.zeros(0, "<i4")


def _cached_columns(core: CoreState) -> dict[str, NDArray[Any]]:
    """What the copies of a core found in a cache; 0 for all else."""
    found = np.zeros((len(CACHE_COLUMNS), len(core.program)), "<i8")
    if core.cached:
        found[:, list(core.cached)] = np.array(list(core.cached.values())).T
    return dict(zip(CACHE_COLUMNS, found, strict=True))


def _cost_columns(core: CoreState) -> dict[str, NDArray[Any]]:
    """What each instruction of a core costs by itself."""
    program, issue = core.program, core.model.target.issue
    costs = [
        (cost.issue_cycles, cost.cycles if cost.path else 0, cost.floor_cycles, cost.charged_bytes)
        for cost in program.cost
    ]
    table = np.array(costs, "<i8").reshape(-1, 4)
    waits = np.array([len(need) for need in program.need], "<i8") * issue.flag_wait_cycles
    signals = np.array(program.sets, "<i8") * issue.flag_set_cycles
    if not core.flags_are_instructions:
        waits, signals = 0 * waits, 0 * signals
    values = (table[:, 0] + waits, signals, *table[:, 1:].T, np.array(core.needed_row, "<i8"))
    return dict(zip(COST_COLUMNS, values, strict=True))
