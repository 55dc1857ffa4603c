"""Plausible runs of cores of two kinds: a cube core and two vector cores a group, with the engines of such chips."""

from pathlib import Path
from typing import Any

import numpy as np

from simulator.results.run import LaunchRecord, Run
from simulator.results.trace import COLUMNS, REASONS, Trace
from targets.loader import load_target
from targets.schema import Target
from tests.unit.targets.davinci import write_split

ENGINES = ("SCALAR", "CUBE", "MTE1", "MTE2", "MTE3", "VECTOR", "FIXPIPE")
NAMES = ("mmad", "load l1", "load l0a", "fix", "load ub", "add", "store", "wait")
MEMORIES = ("gm", "l1", "l0a", "ub")

Row = dict[str, Any]


def split_chip(folder: Path, groups: int) -> Target:
    """A chip of two kinds of cores with so many groups."""
    number = 'groups = {{ value = {}, mark = "assumed", source = "round numbers for timelines by hand" }}'
    return load_target(write_split(folder, {number.format(2): number.format(groups)}))


def split_run(folder: Path, groups: int, tiles: int) -> Run:
    """A run of one launch: the cube core of each group multiplies, its vector cores add; 9 rows a tile and group."""
    rows: list[Row] = []
    for group in range(groups):
        for tile in range(tiles):
            _tile(rows, 3 * group, 500 + 40 * group + 1000 * tile)
    end = max(row["end"] for row in rows) + 50
    columns = {name: np.array([row[name] for row in rows], dtype=dtype) for name, dtype in COLUMNS.items()}
    order = np.argsort(columns["core"], kind="stable")
    place = np.argsort(order, kind="stable")
    columns = {name: column[order] for name, column in columns.items()}
    columns["waited_row"] = np.where(columns["waited_row"] >= 0, place[columns["waited_row"]], -1)
    return Run(
        operator="conv_backward",
        target=split_chip(folder, groups),
        cores=groups,
        dtype="fp16",
        cycles=end,
        launches=[LaunchRecord("conv dx", "default", 0, end, groups, tiles * groups * 40_000)],
        tiling={"rows": 4},
        trace=Trace(columns, engines=ENGINES, names=NAMES, memories=MEMORIES),
        outputs={},
        macs=tiles * groups * 50_000,
        useful_macs=tiles * groups * 40_000,
        peak_flops_per_cycle=512.0 * groups,
        shape={"n": 1, "cin": 16},
        numerics=False,
    )


def _tile(rows: list[Row], cube: int, begin: int) -> None:
    """What a group does for one tile, from the load to the stores of its two vector cores."""
    first = len(rows)
    rows.append(_row(cube, "MTE2", "load l1", begin, 300, 4096, ("gm", "l1")))
    rows.append(_row(cube, "MTE1", "load l0a", begin + 300, 120, 2048, ("l1", "l0a"), first))
    rows.append(_row(cube, "CUBE", "mmad", begin + 420, 400, 0, ("", ""), first + 1))
    rows.append(_row(cube, "FIXPIPE", "fix", begin + 820, 90, 0, ("", ""), first + 2))
    for core in (cube + 1, cube + 2):
        at = len(rows)
        rows.append(_row(core, "MTE2", "load ub", begin + 910, 110, 1024, ("gm", "ub"), first + 3))
        rows.append(_row(core, "VECTOR", "add", begin + 1020, 200, 0, ("", ""), at))
        rows.append(_row(core, "MTE3", "store", begin + 1220, 110, 1024, ("ub", "gm"), at + 1))


def _row(
    core: int,
    engine: str,
    name: str,
    start: int,
    length: int,
    size: int,
    path: tuple[str, str],
    waited: int = -1,
) -> Row:
    return {
        "launch": 0,
        "core": core,
        "engine": ENGINES.index(engine),
        "name": NAMES.index(name),
        "issued": start,
        "ready": start,
        "start": start,
        "flow": start,
        "end": start + length,
        "bytes": size,
        "source": MEMORIES.index(path[0]) if path[0] else -1,
        "destination": MEMORIES.index(path[1]) if path[1] else -1,
        "waited_row": waited,
        "waited_reason": REASONS.index("dependency" if waited >= 0 else "none"),
    }
