"""Time the simulator itself: seconds and trace rows a second for a few layers, with and without numerics."""

from __future__ import annotations

import time

import numpy as np

import tilesim as ts

CORES = 4
# images, channels in and out, height and width, taps an axis (odd, padded so that the size stays)
LAYERS = [(2, 64, 56, 3), (4, 128, 28, 3), (4, 256, 14, 1)]


def timed(images: int, channels: int, size: int, taps: int, *, numerics: bool) -> tuple[ts.Run, float]:
    """Return the run of one layer's input gradient on MT7004 and the seconds that simulating it took."""
    random = np.random.default_rng(0)
    dy = random.standard_normal((images, channels, size, size)).astype(np.float16)
    w = random.standard_normal((channels, channels, taps, taps)).astype(np.float16)
    begin = time.perf_counter()
    run = ts.conv_backward(
        dy, w, padding=taps // 2, grads=("dx",), target="mt7004", cores=CORES, numerics=numerics
    )
    return run, time.perf_counter() - begin


def main() -> None:
    """Print one line a layer (images x channels x size x taps) and mode."""
    print(f"{'layer':20} {'numerics':8} {'cycles':>10} {'rows':>8} {'s':>7} {'rows/s':>9}")
    for layer in LAYERS:
        name = " x ".join(str(number) for number in layer)
        for numerics in (False, True):
            run, seconds = timed(*layer, numerics=numerics)
            rows = len(run.trace)
            mode = "on" if numerics else "off"
            print(f"{name:20} {mode:8} {run.cycles:10} {rows:8} {seconds:7.2f} {rows / seconds:9.0f}")


if __name__ == "__main__":
    main()
