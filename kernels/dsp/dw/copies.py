"""The copies that bring in the columns of a chunk: rows of x, tap by tap, or runs of neighbouring taps at once."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from math import ceil
from typing import NamedTuple

from kernels.dsp.dx.geometry import Axis, Geometry, Span, pieces
from kernels.dsp.taps import TapRun, runs_of, taps_join
from simulator.memory.memories import packed_strides
from simulator.memory.ranges import collapse


@dataclass(frozen=True, slots=True)
class TapCopy:
    """Rows of x that one DMA brings in.

    Attributes:
        place: (image, row, column) of the chunk, the first tap of the block.
        source: (image, plane, row, column) of x; the image counts from the chunk's first.
        size: [images, rows, columns] of outputs, and neighbouring taps of each: these lie side by side in x as in the
            columns.
    """

    place: tuple[int, int, int, int]
    source: tuple[int, int, int, int]
    size: tuple[int, int, int, int]


def joins_taps(geometry: Geometry, channels: int) -> bool:
    """Whether one copy brings in neighbouring taps of a block with so many channels of x."""
    return taps_join(geometry.w, channels == geometry.cin)


@lru_cache(maxsize=1024)
def copies_of(
    geometry: Geometry, span: Span, ib: int, first: int, taps: int, joined: bool, of: int
) -> tuple[TapCopy, ...]:
    """What brings the columns of these taps in, cut further where these are fewer than `of` copies."""
    g, frame = geometry, (ib, span.rows, span.cols, taps)
    found: list[TapCopy] = []
    for row in kernel_rows_of(g, span, first, taps):
        for run in column_runs(g.w, row.kw, row.taps, span.ow, span.cols, joined):
            place = (0, row.rows[0] - span.oh, run.ow - span.ow, row.tap + run.first)
            across = g.w.place(run.ow, row.kw + run.first)
            source = (0, row.plane, g.h.place(row.rows[0], row.kh), across)
            size = (ib, row.rows[1] - row.rows[0], run.end - run.ow, run.taps)
            found += _sliced(g, TapCopy(place, source, size), frame, joined)
    if len(found) < of:
        found = [part for copy in found for part in _cut(g, copy, ceil(of / len(found)))]
    return tuple(found)


class KernelRow(NamedTuple):
    """Taps of a block in one row of the kernel, for the outputs [rows) of a chunk for which it lies in x.

    Attributes:
        tap: the first of the block's, `taps` of them.
        kh, kw: where it lies in the kernel.
        plane: of x.
    """

    tap: int
    taps: int
    kh: int
    kw: int
    plane: int
    rows: tuple[int, int]


def kernel_rows_of(geometry: Geometry, span: Span, first: int, taps: int) -> Iterator[KernelRow]:
    """The rows of the kernel that have taps of [first, first + taps), without those that no output has in x."""
    g, index = geometry, 0
    while index < taps:
        row, kw = divmod(first + index, g.w.kernel)
        here = min(g.w.kernel - kw, taps - index)
        kd, kh = divmod(row, g.h.kernel)
        plane, rows = g.d.place(span.od, kd), _inside(g.h, kh, span.oh, span.rows)
        if 0 <= plane < g.d.size and rows[0] < rows[1]:
            yield KernelRow(index, here, kh, kw, plane, rows)
        index += here


@lru_cache(maxsize=8192)
def column_runs(axis: Axis, kw: int, taps: int, ow: int, cols: int, joined: bool) -> tuple[TapRun, ...]:
    """What of taps [kw, kw + taps) lies in x for outputs [ow, ow + cols).

    A run of outputs for each tap; where taps are joined, runs of outputs that have the same ones.
    """
    inside = [(tap, *_inside(axis, kw + tap, ow, cols)) for tap in range(taps)]
    if joined:
        return tuple(runs_of(inside))
    return tuple(TapRun(tap, 1, low, high) for tap, low, high in inside if low < high)


def _inside(axis: Axis, tap: int, first: int, count: int) -> tuple[int, int]:
    """The outputs of [first, first + count) whose tap lies in the input."""
    low, high = axis.outputs(tap, 0, axis.size)
    return max(low, first), min(high, first + count)


def _sliced(g: Geometry, box: TapCopy, frame: tuple[int, int, int, int], joined: bool) -> list[TapCopy]:
    """The box, or its slices by image, by row or by both, so that each is two-level in x and in the columns."""
    for by_image, by_row in ((False, False), (True, False), (False, True), (True, True)):
        size = (1 if by_image else box.size[0], 1 if by_row else box.size[1], *box.size[2:])
        if _two_level(g, size, frame, joined):
            break
    found = []
    for image, row in product(range(0, box.size[0], size[0]), range(0, box.size[1], size[1])):
        found.append(_part(g, box, (image, size[0]), (row, size[1])))
    return found


def _cut(g: Geometry, box: TapCopy, parts: int) -> list[TapCopy]:
    """At most so many parts: several images each, or some rows of one image, so that each stays two-level."""
    images = pieces(box.size[0], ceil(box.size[0] / parts))
    rows = pieces(
        box.size[1], ceil(box.size[1] * box.size[0] / parts) if parts > box.size[0] else box.size[1]
    )
    return [_part(g, box, *part) for part in product(images, rows)]


def _part(g: Geometry, box: TapCopy, images: tuple[int, int], rows: tuple[int, int]) -> TapCopy:
    """A part of a box: (first, how many) of its images and rows."""
    image, row = box.source[0] + images[0], box.source[2] + rows[0] * g.h.stride
    place = (box.place[0] + images[0], box.place[1] + rows[0], *box.place[2:])
    return TapCopy(place, (image, box.source[1], row, box.source[3]), (images[1], rows[1], *box.size[2:]))


def _two_level(
    g: Geometry, size: tuple[int, int, int, int], frame: tuple[int, int, int, int], joined: bool
) -> bool:
    """Whether a box with these rows is what one DMA moves.

    Where taps are not joined, channels may be a part of x's and of the columns'.
    """
    x = packed_strides((1, g.d.size, g.h.size, g.w.size, g.cin), 1)
    wide = g.cin if joined else 2
    local = packed_strides((*frame[:3], frame[3] * wide), 1)
    # A part of the channels (1 of 2 or more) keeps neighbouring positions apart: the harder case.
    run = size[3] * g.cin if joined else max(1, g.cin // 2) if g.cin > 1 else 1
    steps, own = (x[0], x[2] * g.h.stride, x[3] * g.w.stride, 1), size[3] * wide if joined else 1
    outer = collapse(tuple(zip((*size[:3], run), steps, strict=True)), 1)[1]
    inner = collapse(tuple(zip((*size[:3], own), local, strict=True)), 1)[1]
    return outer and inner
