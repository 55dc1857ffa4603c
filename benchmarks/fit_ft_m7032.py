"""Fit the constants of FT-M7032 that no source gives to the published products.

    python benchmarks/fit_ft_m7032.py [workers]

In stages: one or two constants by the rows that fix them, all stages again until nothing moves. A stage is a least
squares fit of log(predicted / measured) over the simulator itself, by Gauss and Newton. Rows that no rule explains must
not bend the others, so that errors beyond two percent count by their size, not by its square. The search begins at
round numbers and walks on values that the target file can hold, three digits or whole cycles, so that it ends at the
same ones wherever it is run.
"""

from __future__ import annotations

import math
import os
import statistics
import sys
import time
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from targets.loader import load_target
from tilesim.validation.blocking import SHORT_K
from tilesim.validation.rows import MICROKERNEL, Row, read_rows
from tilesim.validation.scores import score_rows

CONSTANTS: dict[str, tuple[float, tuple[str, ...]]] = {
    "call": (30, ("matmul.fp32.call_cycles", "matmul.fp64.call_cycles", "matmul.fp64_nt.call_cycles")),
    "copy": (40, ("issue.copy_cycles",)),
    "read port": (16, ("port.ddr_read.bytes_per_cycle",)),
    "write port": (5, ("port.ddr_write.bytes_per_cycle",)),
    "DDR": (0.94, ("link.ddr.efficiency",)),
    "write cost": (1.1, ("link.ddr.write_cost",)),
    "barrier": (5000, ("sync.barrier_cycles_per_core",)),
    "launch": (20000, ("launch.default.cycles_per_core",)),
    "GSM": (24, ("link.gsm.bytes_per_cycle",)),
    "GSM a core": (5, ("link.gsm.bytes_per_cycle_per_core",)),
}
"""Ten constants: where the search begins, and the keys of the target that hold each."""

NAMES = tuple(CONSTANTS)


class Stage(NamedTuple):
    """Constants, and the rows that fix them."""

    names: tuple[str, ...]
    holds: Callable[[Row], bool]


STAGES = (
    Stage(("call", "copy"), lambda r: r.cores == 1 and (r.kind == "gemm" or r.k <= SHORT_K)),
    Stage(("read port", "write port"), lambda r: r.cores == 1 and r.kind == "gemm-skinny"),
    Stage(("DDR",), lambda r: r.cores > 1 and r.kind == "gemm-skinny" and r.k > SHORT_K),
    Stage(("write cost",), lambda r: r.cores > 1 and r.kind == "gemm" and r.mode == "NN"),
    Stage(("barrier", "launch"), lambda r: r.cores > 1 and r.kind == "gemm-skinny" and r.k <= SHORT_K),
    Stage(("GSM", "GSM a core"), lambda r: r.cores > 1 and r.mode[1] == "T"),
)
"""In the order in which one needs the other."""

DIGITS = 3
PROBE = 0.04
"""How far a constant is moved to see what it does."""

LONGEST_STEP = 0.4
"""How far (in its logarithm) a constant may go in one turn."""

TOLERATED = 0.02
"""The error beyond which a row counts by the size of its error."""

MOST_TURNS, MOST_ROUNDS = 5, 4

Values = dict[str, float]
Vector = npt.NDArray[np.float64]
Errors = Callable[[list[Values]], list[Vector]]


def allowed(name: str, value: float) -> float:
    """The nearest value that the target file can hold."""
    digits = DIGITS - 1 - math.floor(math.log10(value))
    if _whole(name):
        return max(1, round(value, min(0, digits)))
    return min(1.0, round(value, digits)) if name == "DDR" else round(value, digits)


def _whole(name: str) -> bool:
    return all(key.endswith(("_cycles", "cycles_per_core")) for key in CONSTANTS[name][1])


def row_errors(task: tuple[Sequence[Row], Values]) -> list[float]:
    """log(predicted / measured) of some rows."""
    rows, values = task
    laid = {
        key: int(value) if _whole(name) else value
        for name, value in values.items()
        for key in CONSTANTS[name][1]
    }
    scores = score_rows(rows, load_target("ft_m7032", laid))
    return [math.log(score.predicted / score.measured) for score in scores]


def loss(errors: Vector) -> float:
    """Half the square of small errors, the size of large ones, in units of the tolerated error."""
    return float(np.mean(np.sqrt(1 + (errors / TOLERATED) ** 2) - 1))


def step(errors: Vector, slopes: Vector) -> Vector:
    """How far the logarithms of constants should go: slopes [rows, constants] are what a probe did to each row."""
    weight = 1 / np.sqrt(1 + (errors / TOLERATED) ** 2)
    normal = slopes.T @ (weight[:, None] * slopes)
    damping = 1e-4 * np.trace(normal) * np.eye(len(normal))  # what no row feels stays where it is
    found: Vector = -np.linalg.solve(normal + damping, slopes.T @ (weight * errors))
    return found * min(1.0, LONGEST_STEP / float(np.max(np.abs(found)) or 1))


def probe(values: Values, name: str) -> Values:
    """A constant a little larger, or smaller where it cannot grow."""
    grown = allowed(name, values[name] * (1 + PROBE))
    return {**values, name: grown if grown > values[name] else allowed(name, values[name] / (1 + PROBE))}


def walked(values: Values, names: Sequence[str], by: Vector) -> Values:
    """The allowed values nearest to a step."""
    return values | {
        name: allowed(name, values[name] * math.exp(d)) for name, d in zip(names, by, strict=True)
    }


def fit_stage(stage: Stage, values: Values, errors_of: Errors) -> Values:
    """Turns of Gauss and Newton until neither a step nor a part of it lowers the loss."""
    for _ in range(MOST_TURNS):
        probes = [probe(values, name) for name in stage.names]
        errors, *moved = errors_of([values, *probes])
        change = [
            math.log(trial[name] / values[name]) for name, trial in zip(stage.names, probes, strict=True)
        ]
        slopes = np.stack([(new - errors) / by for new, by in zip(moved, change, strict=True)], axis=1)
        by = step(errors, slopes)
        trials = [walked(values, stage.names, by * part) for part in (1.0, 0.3)]
        found = [loss(each) for each in errors_of(trials)]
        if min(found) >= loss(errors):
            break
        values = trials[found.index(min(found))]
    return values


class Simulator:
    """Errors of rows, one set of values a process; what was asked before is remembered."""

    def __init__(self, pool: ProcessPoolExecutor) -> None:
        """Use the processes of a pool."""
        self._pool = pool
        self._known: dict[Hashable, Vector] = {}

    def errors(self, rows: Sequence[Row], trials: Sequence[Values]) -> list[Vector]:
        """log(predicted / measured) of each row, for each of some sets of values."""
        names = tuple(row.name for row in rows)
        asked = {(names, tuple(values.items())): values for values in trials}
        new = {key: values for key, values in asked.items() if key not in self._known}
        found = self._pool.map(row_errors, [(rows, values) for values in new.values()])
        self._known.update({key: np.array(each) for key, each in zip(new, found, strict=True)})
        return [self._known[names, tuple(values.items())] for values in trials]


def fit(rows: Sequence[Row], simulator: Simulator) -> Values:
    """Rounds of all stages until none moves a constant."""
    values = {name: float(begin) for name, (begin, _) in CONSTANTS.items()}
    for turn in range(MOST_ROUNDS):
        before = values
        for stage in STAGES:
            chosen = [row for row in rows if stage.holds(row)]
            values = fit_stage(stage, values, partial(simulator.errors, chosen))
            shown = ", ".join(f"{name} {values[name]:g}" for name in stage.names)
            print(f"round {turn + 1}, {len(chosen)} rows: {shown}", flush=True)
        if values == before:
            break
    return values


def held() -> Values:
    """The constants as the target file has them."""
    tables = load_target("ft_m7032").model_dump()

    def look(key: str) -> float:
        found = tables
        for part in key.split("."):
            found = found[part]
        return float(str(found))

    return {name: look(keys[0]) for name, (_, keys) in CONSTANTS.items()}


def main(workers: int) -> None:
    """Fit, and print the constants beside those of the target file, and the errors of all rows with either."""
    began = time.perf_counter()
    rows = [row for row in read_rows() if row.kind != MICROKERNEL]
    known = held()
    with ProcessPoolExecutor(workers) as pool:
        simulator = Simulator(pool)
        found = fit(rows, simulator)
        both = simulator.errors(rows, [found, known])
    print(f"\n{'constant':12} {'fitted':>9} {'in the file':>12}")
    for name, value in found.items():
        print(
            f"{name:12} {value:9g} {known[name]:12g}{'' if math.isclose(value, known[name]) else '  differs'}"
        )
    for label, errors in zip(("fitted", "in the file"), both, strict=True):
        sizes = [100 * float(abs(each)) for each in np.expm1(errors)]
        print(
            f"{label}: median {statistics.median(sizes):.2f} %, mean {statistics.fmean(sizes):.2f} %"
            f", loss {loss(errors):.3f}"
        )
    print(f"{len(rows)} rows, {time.perf_counter() - began:.0f} s on {workers} processes")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else os.cpu_count() or 1)
