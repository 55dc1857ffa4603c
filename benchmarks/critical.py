"""How near the estimates of what a better chip would save are to runs on that chip.

Ten layers, each with every link, the clock, the start-up of copies and the launch cost 20 % better, the tiling kept:

    python -m benchmarks.critical          all ten
    python -m benchmarks.critical small    the four smallest
"""

from __future__ import annotations

import sys
from statistics import median
from typing import NamedTuple

from kernels.conv_backward import conv_backward
from kernels.shape.shapes import ConvShape
from simulator.results.critical.what_if import usual_changes, what_if
from simulator.results.run import Run
from targets.loader import load_target
from targets.schema import Target


class Layer(NamedTuple):
    """A convolution on a target, and the gradients that are computed."""

    target: str
    dtype: str
    shape: ConvShape
    grads: tuple[str, ...]


def _layer(
    target: str, dtype: str, sizes: tuple[int, int, int, int, int], *grads: str, stride: int = 1
) -> Layer:
    """A layer of n images of cin channels and size x size, cout channels and a square kernel."""
    n, cin, size, cout, kernel = sizes
    shape = ConvShape(
        n=n,
        cin=cin,
        size=(size, size),
        cout=cout,
        kernel=(kernel, kernel),
        stride=stride,
        padding=kernel // 2,
    )
    return Layer(target, dtype, shape, grads)


SMALL = (
    _layer("mt7004", "fp16", (2, 64, 28, 64, 3), "dx", "dw"),
    _layer("mt7004", "fp32", (1, 128, 14, 256, 1), "dx", "dw"),
    _layer("ascend910b1", "fp16", (4, 64, 28, 64, 3), "dx", "dw"),
    _layer("ascend310p3", "fp16", (1, 64, 14, 64, 3), "dx"),
)
"""Some tens of thousand cycles each."""

LARGE = (
    _layer("mt7004", "fp32", (8, 64, 56, 64, 3), "dx", "dw"),
    _layer("mt7004", "fp16", (8, 256, 14, 256, 3), "dx", "dw"),
    _layer("ft78ne", "fp32", (4, 128, 28, 128, 3), "dx", "dw"),
    _layer("ascend910b1", "fp16", (32, 256, 14, 256, 3), "dx", "dw"),
    _layer("ascend910b1", "fp16", (32, 64, 56, 256, 1), "dx", "dw"),
    _layer("ascend910b1", "fp16", (32, 128, 56, 128, 3), "dx", "dw", stride=2),
)
"""Layers of ResNet-50, at batches that fill the chips."""


def timed(layer: Layer, target: Target, tiling: dict[str, object] | None = None) -> Run:
    """A layer's run without values."""
    return conv_backward(
        shape=layer.shape,
        dtype=layer.dtype,
        grads=layer.grads,
        target=target,
        tiling=tiling,
        numerics=False,
    )


def differences(layer: Layer) -> list[float]:
    """Estimate less truth, in points of the run's time, for each change; printed too."""
    run = timed(layer, load_target(layer.target))
    shape = layer.shape
    sizes = f"n={shape.n} cin={shape.cin} {'x'.join(map(str, shape.size))} cout={shape.cout}"
    print(f"{layer.target} {layer.dtype} {sizes} kernel {shape.kernel[0]}: {run.cycles:,} cycles")
    found = []
    for change in usual_changes(run.target):
        saved = 100 * what_if(run.trace, run.target, run.launches, run.cycles, change).saved
        true = 100 * (1 - timed(layer, change.on(run.target), run.tiling).time_us / run.time_us)
        print(f"  {change!s:26} estimate {saved:6.2f} %   run again {true:6.2f} %   off {saved - true:+5.2f}")
        found.append(saved - true)
    return found


def main() -> None:
    """Print every estimate beside its truth, and the median difference."""
    layers = SMALL if "small" in sys.argv[1:] else (*SMALL, *LARGE)
    off = [abs(each) for layer in layers for each in differences(layer)]
    print(
        f"median difference {median(off):.2f} points of the run's time, greatest {max(off):.2f}, of {len(off)}"
    )


if __name__ == "__main__":
    main()
