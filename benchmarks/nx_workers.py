"""Where does forking stop paying? The fast nx backward by workers, over the serial one, for layers of four sizes.

    python -m benchmarks.nx_workers [--target nx_host] [--out DIR]

It prints the table and writes `forking.png` (docs/forking.md shows both for nx_host). The serial backward is taken as
two thirds of a training step, as the page of the fast one says, and the rest of the step as unchanged.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from matplotlib.figure import Figure

from kernels.nx import nx_f32_conv2d_backward
from kernels.operators import run_operator
from kernels.shape.shapes import ConvShape
from reports.canvas import PLOT_WIDTH, add_axes, add_legend, new_figure, write_png
from reports.colours import COMPUTING, FAINT, INK
from simulator.device.device import Device
from simulator.results.files import write_aside
from simulator.results.run import Run
from targets.loader import load_target
from targets.schema import Target

WORKERS = (1, 2, 4, 8, 16)
MANY = (*WORKERS, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512)
"""Where the best number of workers is looked for."""

BACKWARD_SHARE = 2 / 3
"""Of a training step with the serial backward, as the page says."""

LAYERS = {  # 3 x 3 with pads of 1
    "64 channels, 56 x 56": ConvShape(1, 64, (56, 56), 64, (3, 3), 1, 1),
    "32 channels, 28 x 28": ConvShape(1, 32, (28, 28), 32, (3, 3), 1, 1),
    "16 channels, 14 x 14": ConvShape(1, 16, (14, 14), 16, (3, 3), 1, 1),
    "8 channels, 7 x 7": ConvShape(1, 8, (7, 7), 8, (3, 3), 1, 1),
}
PICTURE = "forking.png"
HEIGHT = 520


@dataclass(frozen=True)
class Study:
    """One layer: milliseconds of the serial call, and of the fast one by workers; the run with the most of WORKERS."""

    serial: float
    fast: Mapping[int, float]
    best: int
    widest: Run

    def speed_up(self, workers: int) -> float:
        """The serial time over the fast one."""
        return self.serial / self.fast[workers]

    def step(self, workers: int) -> float:
        """How many times as fast a training step is."""
        return 1 / (1 - BACKWARD_SHARE + BACKWARD_SHARE / self.speed_up(workers))


def fast(shape: ConvShape, target: Target, workers: int) -> Run:
    """The fast call, timed only."""
    return run_operator("conv2d_backward_fast", shape=shape, target=target, cores=workers, numerics=False)


def serial_ms(shape: ConvShape, target: Target) -> float:
    """Milliseconds of the serial call."""
    sizes = (shape.x_shape, shape.w_shape, shape.dy_shape, shape.x_shape, shape.w_shape, (shape.cout,))
    (height, width), (kh, kw) = shape.size, shape.kernel
    with Device(target, numerics=False) as device:
        x, w, *others = (device.array("ddr", dims, "fp32_i64") for dims in sizes)
        geometry = (shape.cout, kh, kw, shape.stride[0], shape.padding[0][0])
        nx_f32_conv2d_backward(x, 1, shape.cin, height, width, w, *geometry, *others)
    return device.runs[-1].time_us / 1e3


def studied(shape: ConvShape, target: Target) -> Study:
    """Time one layer; the best number of workers is that of a host with as many cores as it takes."""
    wide = load_target(target.name, {"groups": MANY[-1]})
    times = {workers: fast(shape, wide, workers).time_us / 1e3 for workers in MANY}
    best = min(times, key=times.__getitem__)
    return Study(serial_ms(shape, target), times, best, fast(shape, target, WORKERS[-1]))


def show(studies: Mapping[str, Study]) -> None:
    """Print the tables."""
    heads = "".join(f"{f'{n} workers':>12}" for n in WORKERS)
    print(f"{'layer':30}{'serial ms':>11}{heads}   best number")
    for name, study in studies.items():
        times = "".join(f"{study.fast[n]:12.2f}" for n in WORKERS)
        print(f"{name:30}{study.serial:11.2f}{times}   {study.best}")
        print(f"{'  times as fast':41}{''.join(f'{study.speed_up(n):12.2f}' for n in WORKERS)}")
        print(f"{'  training step':41}{''.join(f'{study.step(n):12.2f}' for n in WORKERS)}")
    first = next(iter(studies.values())).widest
    print(
        "\n"
        + ", ".join(f"{each.name} {first.target.us(each.cycles) / 1e3:.2f} ms" for each in first.launches)
    )


def drawn(studies: Mapping[str, Study], title: str) -> Figure:
    """Speed-up over the serial call by workers, both on logarithmic axes; the ideal is one more line."""
    figure = new_figure(HEIGHT)
    axes = add_axes(figure, 0, HEIGHT, width=PLOT_WIDTH)
    shown = [n for n in MANY if n <= 64]
    axes.plot(shown, shown, color=FAINT, linestyle="--", linewidth=1)
    for colour, study in zip(COMPUTING, studies.values(), strict=False):
        axes.plot(shown, [study.speed_up(n) for n in shown], color=colour, marker="o", linewidth=2)
    axes.axhline(1, color=INK, linewidth=0.8)
    axes.set_xscale("log", base=2)
    axes.set_yscale("log", base=2)
    axes.set_xticks(shown, [str(n) for n in shown])
    axes.set_yticks([0.25, 0.5, 1, 2, 4, 8, 16, 32, 64], ["1/4", "1/2", "1", "2", "4", "8", "16", "32", "64"])
    axes.set_ylim(0.125, 80)
    axes.set_xlabel("workers that are forked for each product", fontsize=9, color=INK)
    axes.set_ylabel("times as fast as the serial backward", fontsize=9, color=INK)
    axes.grid(visible=True, color="#e3e7eb", linewidth=0.6)
    figure.text(130 / 1800, 0.95, title, fontsize=12, fontweight="bold", color=INK, va="center")
    colours = dict(zip(studies, COMPUTING, strict=False))
    add_legend(figure, {**colours, "as many as workers": FAINT}, "layers", lines={"as many as workers"})
    return figure


def main(arguments: Sequence[str] | None = None) -> None:
    """Print and draw."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--target", default="nx_host")
    parser.add_argument("--out", type=Path, help=f"directory for {PICTURE}")
    asked = parser.parse_args(arguments)
    target = load_target(asked.target)
    studies = {name: studied(shape, target) for name, shape in LAYERS.items()}
    show(studies)
    if asked.out:
        title = f"nx_f32_conv2d_backward_fast on {target.name}: where forking stops paying"
        write_aside({asked.out / PICTURE: write_png(drawn(studies, title))})


if __name__ == "__main__":
    main()
