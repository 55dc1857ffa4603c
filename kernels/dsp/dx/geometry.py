"""The arithmetic of a convolution's axes, and the tiles that the input gradient is cut into.

In gather form a core owns rows of dx. For a strip of dx rows, each kernel row (kd, kh) adds the outputs
whose tap falls into
the strip: every pair of an output row and a kernel row belongs to exactly one strip, so that nothing is computed twice.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from kernels.shape.shapes import ConvShape


@dataclass(frozen=True, slots=True)
class Axis:
    """One spatial axis: input and output size, kernel, stride, low pad and dilation."""

    size: int
    out: int
    kernel: int
    stride: int
    low: int
    dilation: int

    def place(self, output: int, tap: int) -> int:
        """The input index that an output reads with a tap; it may lie in the padding."""
        return output * self.stride - self.low + tap * self.dilation

    def outputs(self, tap: int, first: int, last: int) -> tuple[int, int]:
        """Outputs [a, b) whose `tap` falls on an input index in [first, last)."""
        shift = self.low - tap * self.dilation
        least = max(0, -((-first - shift) // self.stride))
        most = min(self.out, -((-last - shift) // self.stride))
        return least, max(least, most)


@dataclass(frozen=True, slots=True)
class Geometry:
    """A plain convolution with three spatial axes (D, H, W), as the kernels walk it."""

    n: int
    cin: int
    cout: int
    groups: int
    d: Axis
    h: Axis
    w: Axis

    @property
    def cig(self) -> int:
        """Input channels of a group."""
        return self.cin // self.groups

    @property
    def cog(self) -> int:
        """Output channels of a group."""
        return self.cout // self.groups

    @property
    def taps(self) -> int:
        """Kernel positions."""
        return self.d.kernel * self.h.kernel * self.w.kernel

    def hull(self, d: int, h: int, hb: int, w: int, wb: int) -> tuple[int, int, int, int, int, int] | None:
        """The box (plane, planes, row, rows, column, columns) of what is read for a panel of the result, if any."""
        return dy_hull(self, (d, h, hb, w, wb))

    @staticmethod
    def reach(axis: Axis, length: int) -> int:
        """Places of what is read in the hull of `length` neighbours of the result along an axis, at most."""
        return (length - 1 + (axis.kernel - 1) * axis.dilation) // axis.stride + 1

    @classmethod
    def of(cls, shape: ConvShape) -> Geometry:
        """The geometry of a checked shape; of a transposed convolution, that of the plain one it is the adjoint of.

        What the plain one reads is then the output of the transposed one, and the other way round.
        """
        s = shape.as_3d()
        large, small = (s.out, s.size) if s.transposed else (s.size, s.out)
        cin, cout = (s.cout, s.cin) if s.transposed else (s.cin, s.cout)
        axes = [
            Axis(large[i], small[i], s.kernel[i], s.stride[i], s.pads[i][0], s.dilation[i]) for i in range(3)
        ]
        return cls(s.n, cin, cout, s.groups, *axes)

    @property
    def read_shape(self) -> tuple[int, ...]:
        """[N, D, H, W, Cin]: what the convolution reads, in the device's layout."""
        return (self.n, self.d.size, self.h.size, self.w.size, self.cin)

    @property
    def made_shape(self) -> tuple[int, ...]:
        """[N, D, H, W, Cout]: what it makes."""
        return (self.n, self.d.out, self.h.out, self.w.out, self.cout)


@dataclass(frozen=True, slots=True)
class Panel:
    """A box of dx that is complete on the chip before it leaves.

    Images [n, n + nb), plane d, rows [h, h + hb), columns [w, w + wb), groups [g, g + gb), channels [c, c
    + cb) of each.
    """

    n: int
    nb: int
    d: int
    h: int
    hb: int
    w: int
    wb: int
    g: int
    gb: int
    c: int
    cb: int


@dataclass(frozen=True, slots=True)
class Span:
    """Output rows [oh, oh + rows) of output plane od, columns [ow, ow + cols)."""

    od: int
    oh: int
    rows: int
    ow: int
    cols: int


@dataclass(frozen=True, slots=True)
class Block:
    """A block of columns: taps [tap, tap + taps) x channels [c, c + cb), a piece [k, k + kb) of the sum over Cout.

    `spans` are the outputs that it adds to its panel.
    """

    tap: int
    taps: int
    c: int
    cb: int
    k: int
    kb: int
    spans: tuple[Span, ...]


@dataclass(frozen=True, slots=True)
class Chunk:
    """Images [i, i + ib) of the panel and a box of outputs: the rows of one product."""

    i: int
    ib: int
    span: Span


@lru_cache(maxsize=8192)
def kernel_rows(geometry: Geometry, d: int, h: int, hb: int) -> tuple[tuple[int, int, int, int, int], ...]:
    """(kd, kh, od, first oh, last oh) of every kernel row that adds to plane d, rows [h, h + hb)."""
    found = []
    for kd in range(geometry.d.kernel):
        od, end = geometry.d.outputs(kd, d, d + 1)
        if od == end:
            continue
        for kh in range(geometry.h.kernel):
            first, last = geometry.h.outputs(kh, h, h + hb)
            if first < last:
                found.append((kd, kh, od, first, last))
    return tuple(found)


@lru_cache(maxsize=8192)
def output_columns(geometry: Geometry, first_tap: int, taps: int, w: int, wb: int) -> tuple[int, int]:
    """The hull [a, b) of the output columns that kernel columns [first_tap, first_tap + taps) add to [w, w + wb)."""
    ranges = [geometry.w.outputs(kw, w, w + wb) for kw in range(first_tap, first_tap + taps)]
    ranges = [r for r in ranges if r[0] < r[1]]
    if not ranges:
        return 0, 0
    return min(r[0] for r in ranges), max(r[1] for r in ranges)


@lru_cache(maxsize=8192)
def dy_hull(
    geometry: Geometry, panel_place: tuple[int, int, int, int, int]
) -> tuple[int, int, int, int, int, int] | None:
    """The box (od, planes, oh, rows, ow, cols) of dy that a panel at (d, h, hb, w, wb) reads, if it reads any."""
    d, h, hb, w, wb = panel_place
    rows = kernel_rows(geometry, d, h, hb)
    first, last = output_columns(geometry, 0, geometry.w.kernel, w, wb)
    if not rows or first == last:
        return None
    od, oh = min(r[2] for r in rows), min(r[3] for r in rows)
    return od, max(r[2] for r in rows) + 1 - od, oh, max(r[4] for r in rows) - oh, first, last - first


def pieces(total: int, most: int) -> list[tuple[int, int]]:
    """[start, size) pieces of at most `most`, as equal as they can be."""
    if total <= 0:
        return []
    count = -(-total // max(1, most))
    base, more = divmod(total, count)
    cuts, start = [], 0
    for index in range(count):
        size = base + (index < more)
        cuts.append((start, size))
        start += size
    return cuts


def chunks(spans: tuple[Span, ...], images: int, positions: int) -> tuple[Chunk, ...]:
    """Boxes of at most `positions` that make up the outputs of a block: whole images, rows or parts of a row."""
    found = []
    for span in spans:
        whole = span.rows * span.cols
        together = max(1, positions // whole) if whole <= positions else 1
        for i, ib in pieces(images, together):
            rows = max(1, positions // span.cols) if ib == 1 else span.rows
            for oh, ohb in pieces(span.rows, rows):
                for ow, owb in pieces(span.cols, positions):
                    found.append(Chunk(i, ib, Span(span.od, span.oh + oh, ohb, span.ow + ow, owb)))
    return tuple(found)


@lru_cache(maxsize=65536)
def chunk_kinds(rows: int, cols: int, images: int, positions: int) -> tuple[tuple[int, int, int], ...]:
    """(outputs, output rows, how many) of the chunks that `chunks` cuts a span of this size into."""
    whole = rows * cols
    together = max(1, positions // whole) if whole <= positions else 1
    found: dict[tuple[int, int], int] = {}
    for ib, image_cuts in piece_kinds(images, together):
        most = max(1, positions // cols) if ib == 1 else rows
        for ohb, row_cuts in piece_kinds(rows, most):
            for owb, col_cuts in piece_kinds(cols, positions):
                kind = (ib * ohb * owb, ib * ohb)
                found[kind] = found.get(kind, 0) + image_cuts * row_cuts * col_cuts
    return tuple((m, runs, count) for (m, runs), count in found.items())


def piece_kinds(total: int, most: int) -> list[tuple[int, int]]:
    """(size, how many) of the pieces that `pieces` makes."""
    if total <= 0:
        return []
    count = -(-total // max(1, most))
    base, more = divmod(total, count)
    return [(size, number) for size, number in ((base + 1, more), (base, count - more)) if number]
