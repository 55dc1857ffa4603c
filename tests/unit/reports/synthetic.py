"""Plausible runs of any size: tiles that are loaded ahead, computed on a blocking VPU and stored."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from simulator.results.run import LaunchRecord, Run
from simulator.results.trace import COLUMNS, REASONS, Trace
from targets.schema import Target
from tests.unit.simulator.made import small_target

ENGINES = ("SCALAR", "VPU", "DMA0", "DMA1", "DMA2", "DMA3")
NAMES = ("barrier", "load dy", "load w", "matmul", "col2im", "store dx", "zero dx")
MEMORIES = ("ddr", "gsm", "am", "sm")

Row = dict[str, Any]


def chip(groups: int) -> Target:
    """A DSP with four DMA channels a core, and a DDR and a GSM that all cores share."""
    numbers = small_target(groups).model_dump()
    numbers["name"], numbers["title"], numbers["clock_mhz"] = "dsp64", "a DSP of many cores", 1800.0
    numbers["engine"]["dma"]["count"] = 4
    numbers["memory"]["gsm"] = {**numbers["memory"]["ddr"], "size_bytes": 6 << 20, "base_address": 1 << 40}
    numbers["memory"]["sm"] = {**numbers["memory"]["am"], "size_bytes": 1 << 16, "base_address": 1 << 30}
    numbers["link"] = {
        "ddr": {"gigabytes_per_second": 40.0 + 21.0 * groups, "efficiency": 0.9, "burst_bytes": 64},
        "gsm": {"bytes_per_cycle": 32.0, "bytes_per_cycle_per_core": 8.0, "burst_bytes": 64},
    }
    read, write = numbers["path"]["ddr->am"], numbers["path"]["am->ddr"]
    numbers["path"] = {"ddr->am": read, "am->ddr": write, "gsm->sm": {**read, "link": "gsm"}}
    return Target.model_validate(numbers)


def synthetic_run(cores: int, tiles: int, seed: int = 0, idle: int = 0) -> Run:
    """A run of two launches on so many cores with so many tiles each; the last `idle` cores get none.

    It has 5 rows a tile and core, and 2 more a core.
    """
    target = chip(max(cores, 4))
    draw = np.random.default_rng(seed)
    rows: list[Row] = []
    first_end = _fill_launch(rows, cores - idle)
    busy = [list(_core(core, tiles, first_end + 800, cores, draw)) for core in range(cores - idle)]
    end = max(row["end"] for core in busy for row in core)
    for own in busy:
        offset = len(rows)
        for row in own:
            row["waited_row"] += offset if row["waited_row"] >= 0 else 0
        rows.extend([*own, _barrier(own, end)])
    launches = [
        LaunchRecord("zero dx", "default", 0, first_end, cores),
        LaunchRecord("conv dx", "default", first_end, end + 60, cores, tiles * (cores - idle) * 130_000),
    ]
    return _run(target, _trace(rows), launches, cores, tiles * (cores - idle))


def _fill_launch(rows: list[Row], cores: int) -> int:
    """A launch that fills dx with zeros; returns its end."""
    for core in range(cores):
        end = 700 + 40 * core + 900
        row = _row(0, core, "DMA2", "zero dx", 600, 700, end, 16384, ("am", "ddr"))
        rows.append(row)
    return int(max(row["end"] for row in rows)) + 100


def _core(core: int, tiles: int, begin: int, cores: int, draw: np.random.Generator) -> Iterator[Row]:
    """The rows of one core in program order: loads run one tile ahead; memory is slower with more cores."""
    free = dict.fromkeys(ENGINES, begin + 17 * core)
    slow = 0.5 + 0.45 * min(cores, 8) / 4
    stored, index = [begin] * 2, 0
    for tile in range(tiles):
        loads = []
        for engine, name, size, path in (
            ("DMA0", "load dy", 24576, ("ddr", "am")),
            ("DMA1", "load w", 8192, ("gsm", "sm")),
        ):
            start = max(free[engine], stored[tile % 2] - 2400)
            length = int((120 + size / 16 * slow) * draw.uniform(0.9, 1.15))
            free[engine] = start + length
            loads.append((index, free[engine]))
            yield _row(1, core, engine, name, start - 9, start, free[engine], size, path)
            index += 1
        waited, ready = max(loads, key=lambda load: load[1])
        start = max(free["VPU"] + 4, ready)
        reason = (waited, "dependency") if ready >= free["VPU"] + 4 else (-1, "issue")
        free["VPU"] = start + int(1500 * draw.uniform(0.97, 1.03))
        yield _row(1, core, "VPU", "matmul", start, start, free["VPU"], 0, ("", ""), *reason)
        begun = free["VPU"] + 4
        free["VPU"] = begun + 420
        yield _row(1, core, "VPU", "col2im", begun, begun, free["VPU"], 0, ("", ""), -1, "issue")
        start = max(free["DMA2"], free["VPU"])
        free["DMA2"] = start + int(90 + 6144 / 16 * slow)
        stored[tile % 2] = free["DMA2"]
        yield _row(
            1,
            core,
            "DMA2",
            "store dx",
            start,
            start,
            free["DMA2"],
            6144,
            ("am", "ddr"),
            index + 1,
            "dependency",
        )
        index += 3


def _barrier(own: list[Row], end: int) -> Row:
    arrival = max(row["end"] for row in own)
    return _row(
        1, own[0]["core"], "SCALAR", "barrier", arrival, arrival, end + 30, 0, ("", ""), -1, "barrier"
    )


def _row(
    launch: int, core: int, engine: str, name: str, issued: int, start: int, end: int, size: int,
    path: tuple[str, str], waited: int = -1, reason: str = "none",
) -> Row:  # fmt: skip
    return {
        "launch": launch,
        "core": core,
        "engine": ENGINES.index(engine),
        "name": NAMES.index(name),
        "issued": issued,
        "ready": start,
        "start": start,
        "flow": start,
        "end": end,
        "bytes": size,
        "source": MEMORIES.index(path[0]) if path[0] else -1,
        "destination": MEMORIES.index(path[1]) if path[1] else -1,
        "waited_row": waited,
        "waited_reason": REASONS.index(reason),
    }


def _trace(rows: list[Row]) -> Trace:
    columns = {name: np.array([row[name] for row in rows], dtype=dtype) for name, dtype in COLUMNS.items()}
    return Trace(columns, engines=ENGINES, names=NAMES, memories=MEMORIES)


def _run(target: Target, trace: Trace, launches: list[LaunchRecord], cores: int, tiles: int) -> Run:
    return Run(
        operator="conv_backward",
        target=target,
        cores=cores,
        dtype="fp16",
        cycles=launches[-1].end,
        launches=launches,
        tiling={"column": "blocks", "rows": 14, "cin": 96, "ahead": 1},
        trace=trace,
        outputs={},
        macs=tiles * 140_000,
        useful_macs=tiles * 130_000,
        peak_flops_per_cycle=192.0 * cores,
        shape={"n": 32, "cin": 256, "size": (14, 14), "cout": 256, "kernel": (3, 3), "padding": 1},
        numerics=False,
    )
