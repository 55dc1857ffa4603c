"""How often each step of the page does what: counts that a target turns into cycles.

A line of 64 bytes that a step comes back to stays in the cache as long as the lines between fit there with it; then
each is exchanged once, else at every visit. What is written is fetched first and written back later: it counts twice.
"""

from __future__ import annotations

from dataclasses import dataclass

from kernels.nx.elements import ELEMENT
from kernels.nx.geometry import Geometry
from simulator.host import Work
from targets.schema import Target

ITEM = ELEMENT.size_bytes
LINE = 64


@dataclass(frozen=True)
class Counter:
    """Counts the work of steps on a computer with a cache and pages of some size."""

    cache_bytes: int
    page_bytes: int

    @classmethod
    def of(cls, target: Target) -> Counter:
        """For a host target."""
        return cls(target.memory["cache"].size_bytes, target.host_core.page_bytes)

    def pages(self, elements: int) -> int:
        """Pages of a mapping of so many elements."""
        return -(-ITEM * elements // self.page_bytes)

    def missed(self, lines_a_pass: int, visits: int) -> int:
        """Visits that find their line gone, where so many others are visited before each comes again."""
        return visits if lines_a_pass * LINE > self.cache_bytes else 0

    def moves(self, elements: int, step: int) -> tuple[int, int]:
        """(near, far) moves of so many elements to places `step` elements apart: far ones have a page of their own."""
        return (0, elements) if step * ITEM >= self.page_bytes else (elements, 0)

    def transpose(self, rows: int, columns: int) -> Work:
        """A [rows, columns] matrix into a fresh mapping, turned: each row is scattered over `columns` lines."""
        moved = rows * columns
        near, far = self.moves(moved, rows)
        return Work(
            moves=near,
            scatters=far,
            lines=self.missed(columns, moved),
            pages=self.pages(moved),
            bytes=3 * ITEM * moved,
        )

    def im2col(self, g: Geometry, oh: int) -> Work:
        """One row of outputs: each scatters its K taps, one row of the transposed columns apart.

        They come from as many rows of the input as there are channels and kernel rows, which are fetched from pages of
        their own where a channel is that large.
        """
        taps = g.ow * g.k if g.has_taps else 0
        read = g.c_in * min(g.kh, g.stride) * g.w if g.reads_input else 0
        total = self.pages(g.k * g.m) if taps else 0
        near, far = self.moves(taps, g.m)
        fetched = self.moves(g.ow * g.c_in * g.kh, g.h * g.w)[1] if read else 0
        return Work(
            moves=near,
            scatters=far + fetched,
            taps=taps,
            lines=self.missed(g.k, taps),
            pages=total * (oh + 1) // g.oh - total * oh // g.oh,
            bytes=ITEM * (2 * taps + read),
        )

    def product(self, rows: int, of: int, n: int, k: int, *, fresh: bool) -> Work:
        """`rows` of the `of` rows of one worker's product with all n rows of length k of the other operand.

        That operand is read anew for each row, unless it stays in the cache.
        """
        right = ITEM * n * k
        passes = rows * right if right > self.cache_bytes else right * rows // of
        return Work(
            multiplies=rows * n * k,
            adds=rows * n * k,
            moves=rows * n,
            pages=self.pages(rows * n) if fresh else 0,
            bytes=passes + ITEM * rows * (k + 2 * n),
        )

    def bias(self, rows: int, m: int) -> Work:
        """Sums of rows."""
        return Work(adds=rows * m, bytes=ITEM * rows * m)

    def accumulate(self, elements: int) -> Work:
        """Sums of two arrays."""
        return Work(adds=elements, moves=elements, bytes=3 * ITEM * elements)

    def zero(self, elements: int) -> Work:
        """Stores."""
        return Work(moves=elements, bytes=2 * ITEM * elements)

    def col2im(self, g: Geometry, oh: int) -> Work:
        """One row of outputs: an add for each tap that lies inside the input."""
        taps = g.ow * g.k if g.has_taps else 0
        added = g.c_in * g.present_in_row(oh) if taps else 0
        written = g.c_in * min(g.kh, g.stride) * g.w if g.reads_input else 0
        return Work(
            adds=added,
            moves=added,
            taps=taps,
            lines=self.missed(g.c_in * g.kh, added) if added else 0,
            bytes=ITEM * (taps + 2 * written),
        )

    def serial(self, g: Geometry) -> Work:
        """One output channel of the serial backward: two products and two sums for each tap inside the input."""
        taps = g.m * g.k if g.has_taps else 0
        pairs = g.c_in * g.present() if taps else 0
        images = 3 * ITEM * (g.n_in if g.reads_input else 0)
        held = images <= self.cache_bytes
        return Work(
            multiplies=2 * pairs,
            adds=2 * pairs + g.m,
            moves=2 * pairs,
            taps=taps,
            bytes=(0 if held else images) + ITEM * (g.m + (3 * g.k if pairs else 0)),
        )
