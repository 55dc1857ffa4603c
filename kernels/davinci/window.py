"""The windows of load3d, and how many instructions one stands for."""

from __future__ import annotations

from functools import lru_cache

from kernels.davinci.sides import FRACTAL
from kernels.davinci.tiles import Axes, Box, Chunk, Positions, ceil_to
from simulator.cube import Window

MOST_KERNEL, MOST_STRIDE, MOST_DILATION, MOST_PAD = 255, 63, 255, 255
"""What an instruction of load3d can address (ops-nn, conv3d_backprop_filter_v2, arch35 tiling)."""

NOWHERE = 1 << 40
"""An origin from which no tap reaches the image."""


def window_of(axes: Axes, tile: Positions, box: Box, tap: int, taps: int, unit: int = 0) -> Window:
    """What a tile reads of a box with some plane taps, from (block, tap) pair `unit` on."""
    window = _window(axes, tile, box, tap, taps)
    return window._replace(unit=unit) if unit else window


@lru_cache(maxsize=1024)
def _window(axes: Axes, tile: Positions, box: Box, tap: int, taps: int) -> Window:
    _, height, width = axes
    wide = ceil_to(tile.width, FRACTAL) if tile.padded else tile.width
    first = tile.first // tile.width * wide + tile.first % tile.width
    numbers = [divmod(number, width.kernel) for number in range(tap, tap + taps)]
    origin = (height.start - box.row * height.spread, width.start - box.column * width.spread)
    return Window(
        width=wide,
        first=first,
        taps=tuple((h * height.tap, w * width.tap) for h, w in numbers),
        step=(height.step, width.step),
        origin=(NOWHERE, NOWHERE) if box.empty else origin,
        spread=(height.spread, width.spread),
        by_rows=tile.padded,
    )


def instructions_of(axes: Axes, tile: Positions, chunk: Chunk, steps: int) -> int:
    """Load3d instructions of a K step.

    Whole rows that are padded cannot be skipped between, so that each image row is an instruction. Taps that one
    instruction cannot reach (kernel, dilation or pad too large for its fields) are one instruction each; positions
    whose stride it cannot hold, too.
    """
    _, height, width = axes
    top, bottom = tile.rows
    count = bottom - top + 1 if tile.padded else 1
    if any(_far(axis.kernel, axis.tap, axis.start) for axis in (height, width)):
        count *= min(steps, chunk.taps)
    if max(height.step, width.step) > MOST_STRIDE:
        count *= tile.length
    return count


def _far(kernel: int, tap: int, start: int) -> bool:
    return kernel > MOST_KERNEL or abs(tap) > MOST_DILATION or abs(start) > MOST_PAD
