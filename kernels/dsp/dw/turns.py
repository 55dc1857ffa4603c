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
from math import prod

from kernels.dsp.dw.copies import TapCopy, column_runs, copies_of, joins_taps, kernel_rows_of
from kernels.dsp.dw.shares import Block, Part
from kernels.dsp.dx.geometry import Chunk, Geometry, Span, chunks


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
        joined: whether one copy brings in neighbouring taps.
        sizes: a digest of the sizes of the copies that bring its columns in, in order.
        whole: whether every output has every tap.
    """

    geometry: Geometry
    span: Span
    ib: int
    first: int
    taps: int
    joined: bool
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

    def copies(self, of: int) -> tuple[TapCopy, ...]:
        """What brings its columns in: at least `of` copies, where there are so many images and rows."""
        return copies_of(self.geometry, self.span, self.ib, self.first, self.taps, self.joined, of)

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
    found, joined = False, joins_taps(geometry, block.gb * block.cb)
    for part in share:
        for chunk in _chunks(geometry, part.h, part.hb, part.nb, k):
            plan = _plan(geometry, chunk.span, chunk.ib, block.tap, block.taps, joined)
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
def _plan(geometry: Geometry, span: Span, ib: int, first: int, taps: int, joined: bool) -> TurnPlan | None:
    """The plan of a box of outputs for taps [first, first + taps); None when all of them are absent."""
    copies = copies_of(geometry, span, ib, first, taps, joined, 1)
    if not copies:
        return None
    sizes = array("q", (extent for copy in copies for extent in copy.size))
    # Boxes that never overlap, and fill the chunk's: it has `taps` times its outputs.
    whole = sum(prod(copy.size) for copy in copies) == taps * ib * span.rows * span.cols
    digest = blake2b(sizes.tobytes(), digest_size=16).digest()
    return TurnPlan(geometry, span, ib, first, taps, joined, digest, whole)


def _present(geometry: Geometry, span: Span, first: int, taps: int) -> Iterator[Present]:
    """Those of taps [first, first + taps) that lie in x for any output of the span."""
    g = geometry
    for row in kernel_rows_of(g, span, first, taps):
        rows = slice(row.rows[0] - span.oh, row.rows[1] - span.oh)
        down = _read(g.h.place(row.rows[0], row.kh), row.rows[1] - row.rows[0], g.h.stride)
        for run in column_runs(g.w, row.kw, row.taps, span.ow, span.cols, False):
            cols = slice(run.ow - span.ow, run.end - span.ow)
            across = _read(g.w.place(run.ow, row.kw + run.first), run.end - run.ow, g.w.stride)
            yield Present(row.tap + run.first, rows, cols, row.plane, down, across)


def _read(first: int, count: int, stride: int) -> slice:
    return slice(first, first + (count - 1) * stride + 1, stride)
