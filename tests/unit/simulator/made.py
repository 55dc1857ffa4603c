"""Targets, traces and runs made by hand, small enough to compute their figures on paper."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from simulator.results.run import LaunchRecord, Run
from simulator.results.trace import COLUMNS, REASONS, Trace
from targets.schema import Target

ENGINES = ("SCALAR", "VPU", "DMA0", "DMA1")
NAMES = ("barrier", "load", "product", "store")
MEMORIES = ("ddr", "am")

Row = tuple[Any, ...]
"""launch, core, engine, name, issued, start, end, bytes, source, destination, waited row, reason."""


def small_target(groups: int = 4) -> Target:
    """A chip with one VPU and two DMA channels a core, at 1,000 MHz, whose DDR carries 8 bytes a cycle."""
    mark = {"mark": "assumed", "source": "made for tests"}
    return Target.model_validate(
        {
            "name": "small",
            "title": "a small DSP",
            "family": "dsp",
            "clock_mhz": 1000.0,
            "groups": groups,
            "core": {"dsp": {"per_group": 1}},
            "engine": {
                "vpu": {"core": "dsp", "issue": "blocking", "queue_depth": 1},
                "dma": {"core": "dsp", "issue": "queued", "queue_depth": 8, "count": 2},
            },
            "memory": {
                "ddr": {"size_bytes": 1 << 30, "base_address": 0, "scope": "chip"},
                "am": {"size_bytes": 1 << 19, "base_address": 0, "scope": "core"},
            },
            "link": {"ddr": {"bytes_per_cycle": 8.0, "burst_bytes": 64}},
            "port": {"dma_in": {"bytes_per_cycle": 16.0}, "dma_out": {"bytes_per_cycle": 16.0}},
            "path": {
                "ddr->am": _path("read", "dma_in"),
                "am->ddr": _path("write", "dma_out"),
            },
            "issue": dict.fromkeys(("copy_cycles", "matmul_cycles", "vector_cycles", "barrier_cycles"), 1)
            | {"flag_set_cycles": 1, "flag_wait_cycles": 1},
            "sync": dict.fromkeys(
                (
                    "barrier_latency_cycles",
                    "barrier_cycles_per_core",
                    "flag_latency_cycles",
                    "cross_core_flag_latency_cycles",
                ),
                1,
            ),
            "launch": {"default": {"cycles": 10, "cycles_per_core": 0}},
            "matmul": {"fp32": _matmul()},
            "vector": {"register_bytes": 128, "moves_per_cycle": 4.0, "run_cycles": 20, "call_cycles": 7},
            "provenance": {
                "clock_mhz": mark,
                "link.ddr.bytes_per_cycle": mark,
                "path.ddr->am.start_cycles": mark,
            },
        }
    )


def _path(direction: str, port: str) -> dict[str, object]:
    return {"link": "ddr", "direction": direction, "port": port, "start_cycles": 30, "overlap": True}


def _matmul() -> dict[str, object]:
    return {
        "kernel_rows": 6,
        "granule_columns": 16,
        "granule_cycles": (1.5, 2.25),
        "fixed_cycles": 27,
        "call_cycles": 30,
        "flops_per_cycle": 192.0,
    }


def made_trace(rows: Sequence[Row], axes: Sequence[str] = ()) -> Trace:
    """A trace of rows as in `Row`, tile coordinates at their end; an instruction is ready when it starts."""
    table = list(zip(*rows, strict=True)) if rows else [()] * (12 + len(axes))
    launch, core, engine, name, issued, start, end, size, source, destination, waited, reason = table[:12]
    columns = {
        "launch": launch,
        "core": core,
        "engine": [ENGINES.index(value) for value in engine],
        "name": [NAMES.index(value) for value in name],
        "issued": issued,
        "ready": start,
        "start": start,
        "end": end,
        "bytes": size,
        "source": [_memory(value) for value in source],
        "destination": [_memory(value) for value in destination],
        "waited_row": waited,
        "waited_reason": [REASONS.index(value) for value in reason],
        **dict(zip(axes, table[12:], strict=True)),
    }
    arrays = {name: np.array(values, dtype=COLUMNS.get(name, "<i4")) for name, values in columns.items()}
    return Trace(arrays, engines=ENGINES, names=NAMES, memories=MEMORIES, axes=axes)


def _memory(name: str) -> int:
    return MEMORIES.index(name) if name else -1


TWO_TILES: tuple[Row, ...] = (
    # core 0: two tiles; the VPU waits for each load, the second load is on the other channel
    (0, 0, "DMA0", "load", 10, 10, 40, 240, "ddr", "am", -1, "none"),
    (0, 0, "DMA1", "load", 12, 12, 70, 240, "ddr", "am", -1, "none"),
    (0, 0, "VPU", "product", 13, 40, 60, 0, "", "", 0, "dependency"),
    (0, 0, "VPU", "product", 60, 70, 90, 0, "", "", 1, "dependency"),
    (0, 0, "DMA0", "store", 90, 90, 96, 40, "am", "ddr", 3, "dependency"),
    (0, 0, "SCALAR", "barrier", 91, 98, 99, 0, "", "", -1, "barrier"),
)
"""One launch of 100 cycles on one core; programs begin at cycle 10. Of the VPU's 100 cycles 40 are busy, 10
go to the launch, 30 + 10 to the waits for DMA0 and DMA1, 10 to the end."""


def made_run(trace: Trace | None = None, cores: int = 2, cycles: int = 100, **changes: Any) -> Run:
    """A run of `TWO_TILES`, asked for on two cores, the second idle."""
    fields: dict[str, Any] = {
        "operator": "conv_backward",
        "target": small_target(),
        "cores": cores,
        "dtype": "fp32",
        "cycles": cycles,
        "launches": [LaunchRecord("conv dx", "default", 0, cycles, cores, useful_macs=1800)],
        "tiling": {"rows": 4, "order": ("n", "h"), "column": "blocks"},
        "trace": made_trace(TWO_TILES) if trace is None else trace,
        "outputs": {"dx": np.zeros((1, 2))},
        "macs": 2000,
        "useful_macs": 1800,
        "peak_flops_per_cycle": 384.0,
        "shape": {"n": 1, "cin": 16, "kernel": (3, 3)},
        "max_error": {"dx": 1e-6},
        "tolerance": {"dx": 1e-5},
    }
    return Run(**{**fields, **changes})
