"""How dw is cut into blocks, and how the cores divide the blocks or the outputs that are summed."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from math import gcd

from kernels.dsp.dw.tiling import DwTiling
from kernels.dsp.dx.geometry import Geometry, pieces


@dataclass(frozen=True, slots=True)
class Block:
    """A part of dw: groups [g, g + gb), of each output channels [k, k + kb) and input channels [c, c + cb).

    Taps are [tap, tap + taps). With several groups, all output and input channels of each.
    """

    g: int
    gb: int
    k: int
    kb: int
    tap: int
    taps: int
    c: int
    cb: int

    @property
    def width(self) -> int:
        """Columns of a product, for each group."""
        return self.taps * self.cb

    @property
    def size(self) -> tuple[int, int, int, int]:
        """Its extents."""
        return self.gb, self.kb, self.taps, self.cb


@dataclass(frozen=True, slots=True)
class Part:
    """Outputs of a core: images [n, n + nb), rows [h, h + hb) of every output plane."""

    n: int
    nb: int
    h: int
    hb: int


def blocks(geometry: Geometry, tiling: DwTiling) -> list[Block]:
    """Every block of dw: groups outermost, then output channels, input channels, and taps."""
    g, t = geometry, tiling
    if 0 in (g.cog, g.cig):
        return []
    found = []
    for gi, gb in pieces(g.groups, t.groups):
        outs = pieces(g.cog, t.out_channels if gb == 1 else g.cog)
        ins = pieces(g.cig, t.channels if gb == 1 else g.cig)
        for (k, kb), (c, cb), (tap, taps) in product(outs, ins, pieces(g.taps, t.taps)):
            found.append(Block(gi, gb, k, kb, tap, taps, c, cb))
    return found


@lru_cache(maxsize=1024)
def parts(geometry: Geometry, split: str, rank: int, count: int) -> tuple[Part, ...] | None:
    """The outputs of core `rank` of `count`; None where there is nothing left for it.

    Where there are no outputs at all, the first core has an empty part: its dw is zero.
    """
    g = geometry
    if split == "channels":
        return (Part(0, g.n, 0, g.h.out),)
    if 0 in (g.n, g.d.out, g.h.out, g.w.out):
        return () if rank == 0 else None
    if split == "batch":
        cut = mine(g.n, rank, count)
        return (Part(*cut, 0, g.h.out),) if cut else None
    strips = pieces(g.h.out, -(-g.h.out // min(count // gcd(g.n, count), g.h.out)))
    cut = mine(g.n * len(strips), rank, count)
    if cut is None:
        return None
    return tuple(
        Part(index // len(strips), 1, *strips[index % len(strips)]) for index in range(cut[0], sum(cut))
    )


def mine(total: int, rank: int, count: int) -> tuple[int, int] | None:
    """The contiguous piece of ceil(total / count) items that belongs to `rank`, if any is left."""
    size = -(-total // count)
    start = rank * size
    return (start, min(size, total - start)) if start < total else None


@lru_cache(maxsize=1024)
def active(geometry: Geometry, split: str, count: int) -> int:
    """Cores that hold sums of every block: 1 where no reduction is needed."""
    if split == "channels":
        return 1
    return sum(parts(geometry, split, rank, count) is not None for rank in range(count))
