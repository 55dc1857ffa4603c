"""How the cores divide dx: which panels each of them owns."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from math import gcd
from typing import Protocol

from kernels.dsp.dx.geometry import Geometry, Panel, pieces


class PanelSizes(Protocol):
    """What of a tiling says which panels there are: how dx is divided among the cores, and the sizes of a panel."""

    @property
    def split(self) -> str:
        """What the cores divide."""

    @property
    def images(self) -> int:
        """Images of a panel."""

    @property
    def rows(self) -> int:
        """Rows of a panel."""

    @property
    def cols(self) -> int:
        """Columns of a panel."""

    @property
    def groups(self) -> int:
        """Groups of a panel."""

    @property
    def channels(self) -> int:
        """Channels of a panel's only group."""


GRANULE = 16
"""Channels that a core's share is a multiple of: one step of the micro-kernel's width."""


@dataclass(frozen=True, slots=True)
class Share:
    """What one core owns: (first, count) of images, rows, groups and channels of a group; several of them by rows."""

    images: tuple[int, int]
    rows: tuple[int, int]
    groups: tuple[int, int]
    channels: tuple[int, int]


def shares(geometry: Geometry, split: str, rank: int, count: int) -> tuple[Share, ...]:
    """The shares of core `rank` of `count`; none where there is nothing left for it."""
    whole = Share((0, geometry.n), (0, geometry.h.size), (0, geometry.groups), (0, geometry.cig))
    if 0 in (geometry.n, geometry.cin, geometry.d.size, geometry.h.size, geometry.w.size):
        return ()
    if split == "batch":
        return tuple(
            Share(cut, whole.rows, whole.groups, whole.channels) for cut in _mine(geometry.n, rank, count)
        )
    if split == "rows":
        return tuple(_row_shares(geometry, whole, rank, count))
    if geometry.groups > 1:
        cuts = _mine(geometry.groups, rank, count)
        return tuple(Share(whole.images, whole.rows, cut, whole.channels) for cut in cuts)
    granules = -(-geometry.cig // GRANULE)
    found = []
    for first, size in _mine(granules, rank, count):
        start = first * GRANULE
        found.append(
            Share(whole.images, whole.rows, whole.groups, (start, min(size * GRANULE, geometry.cig - start)))
        )
    return tuple(found)


def _mine(total: int, rank: int, count: int) -> list[tuple[int, int]]:
    """The contiguous piece of ceil(total / count) items that belongs to `rank`, if any is left."""
    size = -(-total // count)
    start = rank * size
    return [(start, min(size, total - start))] if start < total else []


def _row_shares(geometry: Geometry, whole: Share, rank: int, count: int) -> list[Share]:
    """Strips of rows: as many an image as make the strips of all images a multiple of the cores."""
    strips = min(count // gcd(geometry.n, count), geometry.h.size)
    cuts = pieces(geometry.h.size, -(-geometry.h.size // strips))
    total = geometry.n * len(cuts)
    found = []
    for first, size in _mine(total, rank, count):
        for index in range(first, first + size):
            image, strip = divmod(index, len(cuts))
            found.append(Share((image, 1), cuts[strip], whole.groups, whole.channels))
    return found


def panels(geometry: Geometry, tiling: PanelSizes, rank: int, count: int) -> list[Panel]:
    """The panels of core `rank`, in the order in which they are computed: channels outermost, rows innermost."""
    found = []
    for share in shares(geometry, tiling.split, rank, count):
        (n0, n), (h0, h), (g0, g), (c0, c) = share.images, share.rows, share.groups, share.channels
        for gi, gb in pieces(g, tiling.groups):
            for ci, cb in pieces(c, tiling.channels if gb == 1 else c):
                for ni, nb in pieces(n, tiling.images):
                    for d in range(geometry.d.size):
                        for hi, hb in pieces(h, tiling.rows):
                            for wi, wb in pieces(geometry.w.size, tiling.cols):
                                found.append(
                                    Panel(n0 + ni, nb, d, h0 + hi, hb, wi, wb, g0 + gi, gb, c0 + ci, cb)
                                )
    return found


@lru_cache(maxsize=4096)
def in_step(geometry: Geometry, split: str, channels: int, count: int) -> bool:
    """Whether all cores walk the same outputs as often, so that one panel of dy in GSM can serve them all."""
    if split != "channels" or geometry.groups > 1:
        return False
    every = (share for rank in range(count) for share in shares(geometry, split, rank, count))
    return len({len(pieces(share.channels[1], channels)) for share in every}) <= 1
