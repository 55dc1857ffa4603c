"""What is known of a chunk of outputs before its program runs: which rows of x are its columns, tap by tap.

A chunk is a box of outputs, [images, 1, rows, columns]; the columns of a block are im2col(x): one row an output, one
group of channels a tap. Taps that fall into the padding are absent.
"""

from __future__ import annotations

from array import array
from collections.abc import Iterator
from dataclasses import dataclass
from functools import lru_cache
from hashlib import blake2b
from itertools import product
from math import prod

from kernels.dsp.dw.shares import Block, Part
from kernels.dsp.dx.geometry import Axis, Chunk, Geometry, Span, chunks
from simulator.memory.memories import packed_strides
from simulator.memory.ranges import collapse


@dataclass(frozen=True, slots=True)
class TapCopy:
    """Rows of x that one DMA brings in: of `size` [images, rows, columns].

    Attributes:
        place: (image, row, column) of the chunk, the tap of the block.
        source: (image, plane, row, column) of x; the image counts from the chunk's first.
    """

    place: tuple[int, int, int, int]
    source: tuple[int, int, int, int]
    size: tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class Present:
    """The outputs of a chunk for which a tap of the block lies in x, and where: its plane, rows and columns of x."""

    tap: int
    rows: slice
    cols: slice
    plane: int
    rows_of_x: slice
    cols_of_x: slice


@dataclass(frozen=True, slots=True)
class TurnPlan:
    """A chunk of outputs with the columns of one range of taps.

    A kernel has up to millions of taps and a core lists them all: what there is of each tap is made when asked for.

    Attributes:
        geometry: of the layer.
        span: its outputs.
        ib: its images.
        first: the first tap.
        taps: how many, present or not.
        count: how many copies bring its columns in.
        sizes: a digest of the copies' sizes, in order.
        whole: whether every output has every tap.
    """

    geometry: Geometry
    span: Span
    ib: int
    first: int
    taps: int
    count: int
    sizes: bytes
    whole: bool

    @property
    def box(self) -> tuple[int, int, int]:
        """Its images, rows and columns."""
        return self.ib, self.span.rows, self.span.cols

    @property
    def outputs(self) -> int:
        """The length of its products' sums."""
        return self.ib * self.span.rows * self.span.cols

    @property
    def copies(self) -> tuple[TapCopy, ...]:
        """What brings its columns in."""
        return _copies(self.geometry, self.span, self.ib, self.first, self.taps)

    @property
    def present(self) -> Iterator[Present]:
        """The taps that any of its outputs has."""
        return _present(self.geometry, self.span, self.first, self.taps)

    def key(self) -> tuple[object, ...]:
        """What the cost of its instructions depends on, beside the block."""
        return self.box, self.sizes, self.whole


@dataclass(frozen=True, slots=True)
class Turn:
    """One chunk under one block: the block's place in the core's list, the chunk's plan, its first image.

    A block that no output adds to has one turn without a plan.
    """

    block: int
    plan: TurnPlan | None
    n: int


def turns(geometry: Geometry, block: Block, index: int, share: tuple[Part, ...], k: int) -> Iterator[Turn]:
    """The chunks of a core under one block, without those that none of its taps reaches."""
    found = False
    for part in share:
        for chunk in _chunks(geometry, part.h, part.hb, part.nb, k):
            plan = _plan(geometry, chunk.span, chunk.ib, block.tap, block.taps)
            if plan is not None:
                found = True
                yield Turn(index, plan, part.n + chunk.i)
    if not found:
        yield Turn(index, None, 0)


@lru_cache(maxsize=256)
def _chunks(geometry: Geometry, h: int, hb: int, images: int, k: int) -> tuple[Chunk, ...]:
    """The boxes of at most `k` outputs that make up a part."""
    if 0 in (hb, images, geometry.w.out):
        return ()
    spans = tuple(Span(od, h, hb, 0, geometry.w.out) for od in range(geometry.d.out))
    return chunks(spans, images, k)


@lru_cache(maxsize=65536)
def _plan(geometry: Geometry, span: Span, ib: int, first: int, taps: int) -> TurnPlan | None:
    """The plan of a box of outputs for taps [first, first + taps); None when all of them are absent."""
    copies = _copies(geometry, span, ib, first, taps)
    if not copies:
        return None
    sizes = array("q", (extent for copy in copies for extent in copy.size))
    # Boxes of one tap each, all of them, that fill the chunk's: the chunk has `taps` times its outputs.
    whole = sum(map(prod, (copy.size for copy in copies))) == taps * ib * span.rows * span.cols
    digest = blake2b(sizes.tobytes(), digest_size=16).digest()
    return TurnPlan(geometry, span, ib, first, taps, len(copies), digest, whole)


@lru_cache(maxsize=1024)
def _copies(geometry: Geometry, span: Span, ib: int, first: int, taps: int) -> tuple[TapCopy, ...]:
    """What brings the columns of these taps in."""
    g = geometry
    found: list[TapCopy] = []
    for tap in _present(g, span, first, taps):
        place = (0, tap.rows.start, tap.cols.start, tap.tap)
        source = (0, tap.plane, tap.rows_of_x.start, tap.cols_of_x.start)
        size = (ib, tap.rows.stop - tap.rows.start, tap.cols.stop - tap.cols.start)
        found += _sliced(g, TapCopy(place, source, size), (ib, span.rows, span.cols, taps))
    return tuple(found)


def _present(geometry: Geometry, span: Span, first: int, taps: int) -> Iterator[Present]:
    """Those of taps [first, first + taps) that lie in x for any output of the span."""
    g = geometry
    for index in range(taps):
        kd, rest = divmod(first + index, g.h.kernel * g.w.kernel)
        kh, kw = divmod(rest, g.w.kernel)
        plane = g.d.place(span.od, kd)
        top, bottom = _inside(g.h, kh, span.oh, span.rows)
        left, right = _inside(g.w, kw, span.ow, span.cols)
        if not 0 <= plane < g.d.size or top >= bottom or left >= right:
            continue
        rows, cols = slice(top - span.oh, bottom - span.oh), slice(left - span.ow, right - span.ow)
        down = _read(g.h.place(top, kh), bottom - top, g.h.stride)
        across = _read(g.w.place(left, kw), right - left, g.w.stride)
        yield Present(index, rows, cols, plane, down, across)


def _read(first: int, count: int, stride: int) -> slice:
    return slice(first, first + (count - 1) * stride + 1, stride)


def _inside(axis: Axis, tap: int, first: int, count: int) -> tuple[int, int]:
    """The outputs of [first, first + count) whose tap lies in the input."""
    low, high = axis.outputs(tap, 0, axis.size)
    return max(low, first), min(high, first + count)


def _sliced(g: Geometry, box: TapCopy, frame: tuple[int, int, int, int]) -> list[TapCopy]:
    """The box, or its slices by image, by row or by both, so that each is two-level in x and in the columns."""
    for by_image, by_row in ((False, False), (True, False), (False, True), (True, True)):
        size = (1 if by_image else box.size[0], 1 if by_row else box.size[1], box.size[2])
        if _two_level(g, size, frame):
            break
    found = []
    for image, row in product(range(0, box.size[0], size[0]), range(0, box.size[1], size[1])):
        place = (image, box.place[1] + row, *box.place[2:])
        source = (image, box.source[1], box.source[2] + row * g.h.stride, box.source[3])
        found.append(TapCopy(place, source, size))
    return found


def _two_level(g: Geometry, size: tuple[int, int, int], frame: tuple[int, int, int, int]) -> bool:
    """Whether a box with these rows is what one DMA moves: channels may be a part of x's and of the columns'."""
    x = packed_strides((1, g.d.size, g.h.size, g.w.size, g.cin), 1)
    steps = (x[0], x[2] * g.h.stride, x[3] * g.w.stride)
    local = packed_strides((*frame, 2), 1)
    # A part of the channels (1 of 2 or more) keeps neighbouring positions apart: the harder case.
    apart = max(1, g.cin // 2) if g.cin > 1 else 1
    outer = collapse(((size[0], steps[0]), (size[1], steps[1]), (size[2], steps[2]), (apart, 1)), 1)[1]
    inner = collapse(((size[0], local[0]), (size[1], local[1]), (size[2], local[2]), (1, 1)), 1)[1]
    return outer and inner
