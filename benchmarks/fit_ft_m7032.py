"""Fit the constants of FT-M7032 that no source gives to all published products at once.

    python benchmarks/fit_ft_m7032.py [rounds] [row ...]

A search along one constant at a time over the simulator itself: each is tried a step up and down, and what lowers the
mean absolute error of all rows is kept; steps halve from round to round. A round over all rows takes about an hour.
"""

from __future__ import annotations

import math
import statistics
import sys

from targets.loader import load_target
from tilesim.validation.rows import MICROKERNEL, Row, read_rows
from tilesim.validation.scores import score_rows

CONSTANTS = {
    "call": ("matmul.fp32.call_cycles", "matmul.fp64.call_cycles", "matmul.fp64_nt.call_cycles"),
    "copy": ("issue.copy_cycles",),
    "DDR": ("link.ddr.efficiency",),
    "write cost": ("link.ddr.write_cost",),
    "read port": ("port.ddr_read.bytes_per_cycle",),
    "write port": ("port.ddr_write.bytes_per_cycle",),
    "GSM": ("link.gsm.bytes_per_cycle",),
    "GSM a core": ("link.gsm.bytes_per_cycle_per_core",),
    "barrier": ("sync.barrier_cycles_per_core",),
    "launch": ("launch.default.cycles_per_core",),
}
"""Ten constants, each with the keys of the target that hold it."""

FIRST_STEP = 0.08


def error(rows: list[Row], values: dict[str, float]) -> float:
    """Mean absolute logarithm of predicted over measured."""
    overrides = {key: _fitting(key, values[name]) for name, keys in CONSTANTS.items() for key in keys}
    scores = score_rows(rows, load_target("ft_m7032", overrides))
    return statistics.fmean(abs(math.log(score.predicted / score.measured)) for score in scores)


def _fitting(key: str, value: float) -> float | int:
    whole = key.endswith(("_cycles", "cycles_per_core"))
    return round(value) if whole else min(value, 1.0) if key.endswith("efficiency") else value


def start() -> dict[str, float]:
    """The constants as the target has them."""
    tables = load_target("ft_m7032").model_dump()
    values = {}
    for name, (key, *_) in CONSTANTS.items():
        found = tables
        for part in key.split("."):
            found = found[part]
        values[name] = float(str(found))
    return values


def search(rows: list[Row], rounds: int) -> None:
    """Print each constant that a round has moved."""
    values = start()
    best = error(rows, values)
    print(f"{len(rows)} rows, mean error {100 * best:.2f} %", flush=True)
    for turn in range(rounds):
        for name in CONSTANTS:
            for factor in (1 + FIRST_STEP / 2**turn, 1 / (1 + FIRST_STEP / 2**turn)):
                trial = {**values, name: values[name] * factor}
                if (found := error(rows, trial)) < best:
                    best, values = found, trial
                    print(f"{name}: {values[name]:.5g}, mean error {100 * best:.2f} %", flush=True)
                    break


def main(rounds: int, names: list[str]) -> None:
    """Fit to all products, or to those named."""
    rows = [row for row in read_rows() if row.kind != MICROKERNEL and (not names or row.name in names)]
    search(rows, rounds)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 3, sys.argv[2:])
