"""A forward convolution in the roles of the input gradient's panels: y is what a panel is of, x what is read.

An output has a tap where that tap reads inside x. Outputs of one row that have the same taps stand side by side, so
that a block of taps cuts the columns of a panel into a few runs, and no product ever sees the padding.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Self

from kernels.dsp.dx.geometry import Axis, Geometry
from kernels.dsp.taps import TapRun, runs_of, taps_join

Hull = tuple[int, int, int, int, int, int]
"""(plane, planes, row, rows, column, columns) of a box."""


@dataclass(frozen=True, slots=True)
class ForwardGeometry(Geometry):
    """`size` of an axis are outputs and `out` inputs; `cin` are the channels of y and `cout` those of x."""

    @classmethod
    def turned(cls, plain: Geometry) -> Self:
        """The roles exchanged."""
        return cls(plain.n, plain.cout, plain.cin, plain.groups, *map(_turned, (plain.d, plain.h, plain.w)))

    def hull(self, d: int, h: int, hb: int, w: int, wb: int) -> Hull | None:
        """The box of x that the outputs of a panel read, if they read any."""
        return input_hull(self, d, h, hb, w, wb)

    @staticmethod
    def reach(axis: Axis, length: int) -> int:
        """Places of x in the hull of `length` neighbouring outputs along an axis."""
        return (length - 1) * axis.stride + (axis.kernel - 1) * axis.dilation + 1


def _turned(axis: Axis) -> Axis:
    return Axis(axis.out, axis.size, axis.kernel, axis.stride, axis.low, axis.dilation)


def having(axis: Axis, tap: int, first: int, count: int) -> tuple[int, int]:
    """The outputs [a, b) of [first, first + count) for which a tap reads inside x."""
    low, high = _turned(axis).outputs(tap, 0, axis.out)
    low = max(low, first)
    return low, max(low, min(high, first + count))


@lru_cache(maxsize=8192)
def input_rows(g: ForwardGeometry, d: int, h: int, hb: int) -> tuple[tuple[int, int, int, int], ...]:
    """(kd, kh, first, end) of every kernel row that reads x for outputs of plane d, rows [h, h + hb)."""
    planes = [kd for kd in range(g.d.kernel) if 0 <= g.d.place(d, kd) < g.d.out]
    rows = [(kh, *having(g.h, kh, h, hb)) for kh in range(g.h.kernel)]
    return tuple((kd, kh, first, end) for kd in planes for kh, first, end in rows if first < end)


@lru_cache(maxsize=8192)
def tap_runs(g: ForwardGeometry, kw: int, taps: int, w: int, wb: int) -> tuple[TapRun, ...]:
    """The runs of output columns in [w, w + wb) with equal taps of [kw, kw + taps), the ones with most taps first."""
    ranges = [(tap, *having(g.w, kw + tap, w, wb)) for tap in range(taps)]
    return tuple(sorted(runs_of(ranges), key=lambda run: (-run.taps, run.ow)))


def joins_taps(g: ForwardGeometry, groups: int, channels: int) -> bool:
    """Whether one copy brings in neighbouring taps of a product with so many channels of x, of so many groups."""
    return taps_join(g.w, groups == g.groups == 1 and channels == g.cout)


@lru_cache(maxsize=8192)
def input_hull(g: ForwardGeometry, d: int, h: int, hb: int, w: int, wb: int) -> Hull | None:
    """The box of x that outputs of plane d, rows [h, h + hb), columns [w, w + wb) read, if they read any."""
    rows = input_rows(g, d, h, hb)
    columns = [(tap, *having(g.w, tap, w, wb)) for tap in range(g.w.kernel)]
    columns = [c for c in columns if c[1] < c[2]]
    if not rows or not columns:
        return None
    planes = [g.d.place(d, kd) for kd, *_ in rows]
    down = [g.h.place(o, kh) for _, kh, first, end in rows for o in (first, end - 1)]
    right = [g.w.place(o, tap) for tap, first, end in columns for o in (first, end - 1)]
    box = [(min(places), max(places) + 1 - min(places)) for places in (planes, down, right)]
    return (*box[0], *box[1], *box[2])
