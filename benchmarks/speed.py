"""Time the simulator itself: seconds and instructions a second for a few layers, with and without numerics."""

from __future__ import annotations

import time

import tilesim as ts

CORES = 4
LAYERS = {
    "64 channels, 56x56, 3x3": ts.ConvShape(n=2, cin=64, size=(56, 56), cout=64, kernel=(3, 3), padding=1),
    "128 channels, 28x28, 3x3": ts.ConvShape(n=4, cin=128, size=(28, 28), cout=128, kernel=(3, 3), padding=1),
    "256 channels, 14x14, 1x1": ts.ConvShape(n=4, cin=256, size=(14, 14), cout=256, kernel=(1, 1)),
}


def timed(shape: ts.ConvShape, *, numerics: bool) -> tuple[ts.Run, float]:
    """Return the run of one layer on MT7004 and the seconds that simulating it took."""
    begin = time.perf_counter()
    run = ts.conv_backward(
        shape=shape, dtype="fp16", grads=("dx",), target="mt7004", cores=CORES, numerics=numerics
    )
    return run, time.perf_counter() - begin


def main() -> None:
    """Print one line a layer and mode."""
    print(f"{'layer':26} {'numerics':8} {'cycles':>10} {'rows':>8} {'seconds':>8} {'rows/s':>10}")
    for name, shape in LAYERS.items():
        for numerics in (False, True):
            run, seconds = timed(shape, numerics=numerics)
            rows = len(run.trace)
            print(
                f"{name:26} {'on' if numerics else 'off':8} {run.cycles:10} {rows:8} {seconds:8.2f} "
                f"{rows / seconds:10.0f}"
            )


if __name__ == "__main__":
    main()
