"""Cycles of a long product from shorter ones: what repeats is run a few times, and extended by what one more costs.

Panels of A between barriers repeat exactly. Columns, and steps of k inside a panel, do once their loads run ahead. So
the cycles of a product are linear in the number of pieces along each axis, beside a ragged one.
"""

from __future__ import annotations

from collections.abc import Callable
from math import lcm
from typing import NamedTuple

from kernels.dsp.places import places
from kernels.dsp.product.tiling import GemmTiling, Problem

Sizes = tuple[int, int, int]
"""M, N and K."""

MOST_TILES = 1500
"""A tiles of a core up to which a product is simulated as it is."""


class Repeat(NamedTuple):
    """What repeats along an axis.

    Attributes:
        size: of one piece.
        kept: pieces of the shorter of two products.
        more: pieces that the longer one has more.
    """

    size: int
    kept: int
    more: int

    def spare(self, total: int) -> int:
        """Pieces that need not be run."""
        return max(0, total // self.size - self.kept - self.more)


FENCED = (1, 1)
"""Kept and more of pieces between barriers: nothing of one reaches into the next."""

FLOWING = (2, 2)
"""The same of others: the first has nothing before it, and rings of two buffers repeat after two."""


def steady_cycles(
    cycles: Callable[[Sizes], float], sizes: Sizes, repeats: tuple[Repeat, Repeat, Repeat]
) -> float:
    """Cycles of a product of `sizes`, from products with few pieces along each axis."""
    for axis, repeat in enumerate(repeats):
        spare = repeat.spare(sizes[axis])
        if spare:
            longer = _without(sizes, axis, spare * repeat.size)
            shorter = _without(longer, axis, repeat.more * repeat.size)
            first, second = (steady_cycles(cycles, each, repeats) for each in (shorter, longer))
            return second + (second - first) * spare / repeat.more
    return cycles(sizes)


def _without(sizes: Sizes, axis: int, less: int) -> Sizes:
    m, n, k = (size - less if place == axis else size for place, size in enumerate(sizes))
    return m, n, k


def repeats_of(problem: Problem, tiling: GemmTiling) -> tuple[Repeat, Repeat, Repeat]:
    """What repeats along M, N and K: pieces of what every core walks.

    Along N and K in whole bursts, so that rows of a shorter product straddle as few of them as those of the whole.
    """
    p, t = problem, tiling
    cores = len(p.shares(t))
    by_m, by_n = (cores, 1) if t.split == "m" else (1, cores)
    burst = places(p.target).ddr(p.target).burst_bytes // p.operand.size_bytes
    panels_m, panels_k = t.M_G * by_m < p.m, p.k > t.K_G
    alike = t.meets and p.accumulate  # else the first panel of k loads no c, and the last one rounds
    return (
        Repeat((t.M_G if panels_m else t.M_A) * by_m, *(FENCED if panels_m and t.meets else FLOWING)),
        Repeat(lcm(t.N_A * by_n, burst), *FLOWING),
        Repeat(lcm(t.K_G if panels_k else t.K_A, burst), *(FENCED if panels_k and alike else FLOWING)),
    )


def tiles(problem: Problem, tiling: GemmTiling) -> float:
    """A tiles that a core multiplies, about."""
    p, t = problem, tiling
    return p.m / t.M_S * max(1, p.n / t.N_A) * max(1, p.k / t.K_A) / p.cores
