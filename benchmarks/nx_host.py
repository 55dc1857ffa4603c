"""The fast nx backward on this computer beside its prediction: ten layers of networks, one image each.

A C program with the steps of the page (`benchmarks/nx_backward.c`) is compiled with the system's compiler and forks a
worker a core; `tilesim calibrate` measures the operations first. Two times are shown: by the clock on the wall, right
on a computer with nothing else to do, and by the processor's: the parent's time and in each product the longest of the
workers', which other programs disturb less, but which leaves out forks and waiting. For the smallest layers the direct
loop of one process is timed, too, for how much faster the forked program is.

    python -m benchmarks.nx_host [--repeats 3] [--out DIR]
"""

from __future__ import annotations

import argparse
import os
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

import numpy as np

from benchmarks.nx_workers import serial_ms
from kernels.operators import run_operator
from kernels.shape.shapes import ConvShape
from simulator.results.run import Run
from targets.loader import load_target
from targets.schema import Target
from tests.case_table import load_cases
from tilesim.calibration.compiler import compiled, output
from tilesim.calibration.measure import measured, this_computer
from tilesim.calibration.target_file import target_text
from tilesim.validation.picture import keep_scatter

SOURCE = Path(__file__).with_name("nx_backward.c")
LEAST, MOST, LAYERS = 1e6, 3e8, 10
DIRECT = 4
"""Layers for which the direct loop is timed."""


@dataclass(frozen=True)
class Row:
    """One layer: multiply-adds of a product, and times of the whole call in milliseconds."""

    name: str
    macs: int
    wall: float
    processor: float
    predicted: float
    products: float

    @property
    def error(self) -> float:
        """Predicted over wall time, minus 1."""
        return self.predicted / self.wall - 1

    @property
    def processor_error(self) -> float:
        """Predicted over the processor's time, minus 1."""
        return self.predicted / self.processor - 1


def layers() -> list[tuple[str, ConvShape]]:
    """Ten layers whose multiply-adds are nearest to ten numbers in equal ratios; the first of equal ones."""
    plain: dict[int, tuple[str, ConvShape]] = {}
    for case in load_cases("networks"):
        s = case.shape
        square = s.ndim == 2 and len(set(s.stride)) == 1 and len({p for pads in s.padding for p in pads}) == 1
        if square and s.groups == 1 and not s.transposed and set(s.dilation) == {1}:
            one = ConvShape(1, s.cin, s.size, s.cout, s.kernel, s.stride, s.padding)
            if LEAST <= one.useful_macs <= MOST:
                plain.setdefault(one.useful_macs, (case.layer, one))
    chosen: list[tuple[str, ConvShape]] = []
    for wanted in np.geomspace(LEAST, MOST, LAYERS):
        macs = min(plain, key=lambda each: abs(np.log(each / wanted)))
        chosen.append(plain.pop(macs))
    return sorted(chosen, key=lambda each: each[1].useful_macs)


def timed(program: Path, shape: ConvShape, workers: int, repeats: int) -> tuple[float, float]:
    """Milliseconds on the wall and of the processor, each of its fastest repeat."""
    (height, width), (kh, kw) = shape.size, shape.kernel
    sizes = (shape.cin, height, width, shape.cout, kh, kw, shape.stride[0], shape.padding[0][0])
    lines = output([str(program), *map(str, (*sizes, workers, repeats))]).splitlines()
    steps = [[float(word) for word in line.split()[1:]] for line in lines]
    wall, processor = np.array(steps).reshape(repeats, -1, 2).sum(axis=1).min(axis=0) / 1e6
    return float(wall), float(processor)


def predicted(shape: ConvShape, target: Target) -> Run:
    """The run of the prediction."""
    return run_operator("conv2d_backward_fast", shape=shape, target=target, numerics=False)


def rank_correlation(a: Sequence[float], b: Sequence[float]) -> float:
    """Spearman's: the correlation of the ranks; there are no ties among times."""
    ranks = np.stack([np.argsort(np.argsort(each)) for each in (a, b)])
    return float(np.asarray(np.corrcoef(ranks))[0, 1])


def calibrated(folder: Path) -> Target:
    """The target of this computer, measured now."""
    base, computer = load_target("nx_host"), this_computer()
    ns = measured(computer.cores, computer.cache_bytes or base.memory["cache"].size_bytes)
    path = folder / "this_computer.toml"
    path.write_text(target_text(base, path.stem, computer, ns, datetime.now(UTC).date()), encoding="utf-8")
    return load_target(path)


def rows(target: Target, program: Path, repeats: int) -> list[Row]:
    """Measure and predict every layer."""
    found = []
    spec = target.host_core
    for name, shape in layers():
        wall, processor = timed(program, shape, target.groups, repeats)
        run = predicted(shape, target)
        cycles = 2 * shape.useful_macs * (spec.multiply_cycles + spec.add_cycles) / target.groups
        found.append(
            Row(name, shape.useful_macs, wall, processor, run.time_us / 1e3, cycles / target.clock_mhz / 1e3)
        )
    return found


def show(found: Sequence[Row]) -> None:
    """Print the table and what it comes to."""
    print(f"{'layer':42}{'MACs':>12}{'wall ms':>10}{'cpu ms':>10}{'predicted':>10}{'wall %':>8}{'cpu %':>8}")
    for row in found:
        errors = f"{100 * row.error:8.1f}{100 * row.processor_error:8.1f}"
        times = f"{row.wall:10.1f}{row.processor:10.1f}{row.predicted:10.1f}"
        print(f"{row.name[:40]:42}{row.macs:12,}{times}{errors}")
    guess = [row.predicted for row in found]
    for clock, took in (("wall", [r.wall for r in found]), ("processor", [r.processor for r in found])):
        off = relative(guess, took)
        naive = relative([row.products for row in found], took)
        print(
            f"{clock}: median error {100 * np.median(off):.1f} %, largest {100 * max(off):.1f} %, "
            f"rank correlation {rank_correlation(guess, took):.3f}; "
            f"the products alone: median {100 * np.median(naive):.1f} %"
        )


def show_speed_ups(target: Target, program: Path, repeats: int) -> None:
    """Print how many times as fast the forked program is as the direct loop, by the processor's time and predicted."""
    for name, shape in layers()[:DIRECT]:
        serial, fast = (timed(program, shape, workers, repeats)[1] for workers in (0, target.groups))
        told = serial_ms(shape, target) / (predicted(shape, target).time_us / 1e3)
        print(f"{name[:40]:42}direct loop {serial:8.1f} ms, {serial / fast:.2f} times, predicted {told:.2f}")


def relative(guess: Sequence[float], times: Sequence[float]) -> list[float]:
    """Absolute errors, as shares of the times."""
    return [abs(g / t - 1) for g, t in zip(guess, times, strict=True)]


def main() -> None:
    """Calibrate, run, compare."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--out", type=Path, help="directory for a picture of predicted over measured times")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        print(f"load {os.getloadavg()[0]:.1f} before")
        target = calibrated(folder)
        program = compiled(SOURCE, folder)
        found = rows(target, program, asked.repeats)
        print(f"load {os.getloadavg()[0]:.1f} after, {target.groups} workers")
        show(found)
        show_speed_ups(target, program, asked.repeats)
    if asked.out:
        points = [("nx_host, wall time", row.wall, row.error) for row in found]
        keep_scatter(asked.out, points, "nx backward on this computer", "ms")


if __name__ == "__main__":
    main()
