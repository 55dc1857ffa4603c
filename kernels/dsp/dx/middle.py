"""Sizes of a panel, how many panels a core has, and what one of them costs on average.

The work is that of panels from the middle of dx, where no border shortens them. Where the convolution has a stride,
neighbours differ: of a kernel with one row and a stride of two, every second row of dx has no output at all.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import astuple
from itertools import product
from typing import NamedTuple

from kernels.dsp.dx.estimate import Blocking, PanelSetting, PanelWork, panel_work
from kernels.dsp.dx.geometry import Panel, Span
from kernels.dsp.dx.shares import shares

MOST_NEIGHBOURS = 8
"""Along one axis: of a larger stride, not every place beside it is looked at."""


class PanelSize(NamedTuple):
    """Sizes of a panel, and how many copies of it AM holds."""

    images: int
    rows: int
    cols: int
    groups: int
    channels: int
    dx_buffers: int


def panel_count(setting: PanelSetting, split: str, size: PanelSize) -> int:
    """Panels of the busiest core."""
    total = 0
    for share in shares(setting.geometry, split, 0, setting.cores):
        cuts = (
            (share.images[1], size.images),
            (share.rows[1], size.rows),
            (share.groups[1], size.groups),
            (share.channels[1], size.channels),
            (setting.geometry.w.size, size.cols),
            (setting.geometry.d.size, 1),
        )
        product = 1
        for whole, part in cuts:
            product *= -(-whole // part)
        total += product
    return total


def middle_panels(
    setting: PanelSetting, split: str, size: PanelSize, whole_rows: bool
) -> list[tuple[Panel, int]]:
    """Panels from the middle of dx, and how many of as many neighbours as the stride counts are like each."""
    g = setting.geometry
    share = next(iter(shares(g, split, 0, setting.cores)), None)
    if share is None or g.cog == 0:
        return []
    rows, cols = min(size.rows, share.rows[1]), min(size.cols, g.w.size)
    images, groups = min(size.images, share.images[1]), min(size.groups, share.groups[1])
    channels = min(size.channels, share.channels[1])
    starts = (
        _neighbours(g.d.size, 1, g.d.stride),
        _neighbours(g.h.size, rows, g.h.stride),
        _neighbours(g.w.size, cols, g.w.stride),
    )
    found: dict[object, Panel] = {}
    times: Counter[object] = Counter()
    for d, h, w in product(*starts):
        panel = Panel(0, images, d, h, rows, w, cols, 0, groups, 0, channels)
        kind = tuple(_extents(setting.tap_groups(panel, g.w.kernel, whole_rows)))
        found.setdefault(kind, panel)
        times[kind] += 1
    return [(found[kind], number) for kind, number in times.items()]


def _neighbours(total: int, length: int, stride: int) -> list[int]:
    """Where pieces of a length begin, from the middle on: as many as have every place beside the stride."""
    first = max(0, (total - length) // 2)
    if stride == 1 or length >= total:
        return [first]
    first -= first % length
    starts = range(first, first + min(stride, MOST_NEIGHBOURS) * length, length)
    return [at for at in starts if at + length <= total]


def _extents(groups: Iterable[tuple[int, int, tuple[Span, ...]]]) -> Iterable[tuple[int, ...]]:
    for taps, _, spans in groups:
        yield from ((taps, span.rows, span.cols) for span in spans)


def mean_work(
    setting: PanelSetting, panels: Sequence[tuple[Panel, int]], blocking: Blocking, whole_rows: bool
) -> PanelWork:
    """The work of a panel, on average over these."""
    total = sum(times for _, times in panels)
    each = [(astuple(panel_work(setting, panel, blocking, whole_rows)), times) for panel, times in panels]
    return PanelWork(*(sum(work[i] * times for work, times in each) / total for i in range(len(each[0][0]))))
