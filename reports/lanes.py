"""Which lanes a timeline shows: every engine of a few cores, thinner stripes for each of many."""

from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from reports.load import SavedRun
from reports.names import kind_label
from simulator.results.metrics import asked_cores

FEW = 8
"""Up to so many cores every engine has a lane."""


@dataclass(frozen=True)
class Lane:
    """A horizontal stripe of a timeline.

    Attributes:
        core: whose it is.
        engines: codes of the engines it shows.
        label: text beside it, empty where the core's label stands for all.
        top, height: pixels below the upper edge of the data.
    """

    core: int
    engines: tuple[int, ...]
    label: str
    top: float
    height: float


@dataclass(frozen=True)
class Layout:
    """All lanes, and the pixels that they take.

    Attributes:
        lanes: from top to bottom.
        height: pixels of all of them.
        detailed: every engine has a lane with its name; otherwise a core has a stripe for what computes or
            waits, and thinner ones below for what moves data.
        moving: the names of the thin stripes, from top to bottom, by the name of the kind of core.
    """

    lanes: tuple[Lane, ...]
    height: float
    detailed: bool
    moving: Mapping[str, tuple[str, ...]]


def layout(saved: SavedRun, below: float = 0) -> Layout:
    """The lanes of a run's cores, idle ones too, from `below` pixels on."""
    cores = asked_cores(saved.trace, saved.target, saved.cores)
    few = len(cores) <= FEW
    engines, gap = _detailed(saved, len(cores)) if few else _stripes(saved, len(cores))
    parts = {kind: _parts_of(saved, engines, kind) for kind in saved.target.core}
    lanes, top = [], below
    for core in cores:
        for part in parts[saved.target.unit(core).kind]:
            lanes.append(Lane(core, part.engines, part.label, top, part.height))
            top += part.height
        top += gap
    moving = {
        kind_label(saved.target, kind): tuple(part.label for part in own[1:]) for kind, own in parts.items()
    }
    return Layout(tuple(lanes), top - gap, few, {} if few else moving)


@dataclass(frozen=True)
class _Part:
    """One of the stripes that a core has."""

    engines: tuple[int, ...]
    label: str
    height: float


def _parts_of(saved: SavedRun, parts: Sequence[_Part], kind: str) -> list[_Part]:
    """The parts that a kind of core has, with those of their engines that it has."""
    lanes = saved.target.lanes(kind)
    own = {code for code, lane in enumerate(saved.trace.engines) if lane in lanes}
    kept = [_only(part, own, saved.trace.engines) for part in parts]
    return [part for part in kept if part.engines] or [_Part((0,), "", parts[0].height)]


def _only(part: _Part, codes: Container[int], names: Sequence[str]) -> _Part:
    """A part with some of its engines, and their names where it has a label."""
    engines = tuple(code for code in part.engines if code in codes)
    return replace(part, engines=engines, label="/".join(names[i] for i in engines) if part.label else "")


def _detailed(saved: SavedRun, cores: int) -> tuple[list[_Part], float]:
    """A part for each engine that has rows on any core, and the gap between cores."""
    codes = [int(code) for code in np.unique(saved.shown["engine"])] or [0]
    height, gap = {1: (34, 0), 2: (26, 12)}.get(cores, (19, 10))
    return [_Part((code,), saved.trace.engines[code], height) for code in codes], gap


def _stripes(saved: SavedRun, cores: int) -> tuple[list[_Part], float]:
    """A part for what computes or waits and thinner ones for what moves data, and the gap between cores."""
    moved = np.bincount(saved.trace["engine"], saved.trace["bytes"], minlength=len(saved.trace.engines))
    moving = [code for code, size in enumerate(moved.tolist()) if size]
    computing = tuple(code for code in range(len(moved)) if code not in moving)
    height, thin, gap = (12, 5, 7) if cores <= 32 else (8, 3, 4)
    if cores > 96:
        return [_Part(computing, "", 5), _Part(tuple(moving), "all that move", 2)], 2
    return [
        _Part(computing, "", height),
        *(_Part((code,), saved.trace.engines[code], thin) for code in moving),
    ], gap
