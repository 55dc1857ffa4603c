"""Which tiling the weights' gradient gets: the written rules of the vendor's operators.

- `legacy`, 2-D on A2, A3 and the first generation: M of 8 fractals (or what there is), N the longest that divides a
  core's share evenly and whose sums fit L0C; images and both sides are split so that the fullest core has the fewest
  rounds; sums leave after each chunk of positions.
- `v2`, 3-D on A2 and A3: 128 x 128 x 128, sums double buffered, positions split over the cores.
- `v2_950`: both sides divided evenly into pieces of at most 256, positions split over the cores that are left.

A chunk is as many rows as fit with the strided side double buffered, in even pieces.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import product
from math import ceil

from kernels.davinci.fit import Fields, first_that_fits, fits_l0, fits_l1, halves
from kernels.davinci.image_rules import Setting
from kernels.davinci.sides import FRACTAL
from kernels.davinci.split import largest_divisor, least_rounds
from kernels.davinci.sums import WeightGrid
from kernels.davinci.tiling import WeightTiling, checked, require_multiple
from kernels.davinci.weights import weight_ring_sizes

LEGACY_M, LEGACY_N = 8, 8
"""Fractals of M in a tile of the legacy operator, and of N where no longer one divides a core's share."""

MOST_CHUNKS = 12
"""Chunks of an image, beyond which the legacy operator does not insist on a divisor of its rows."""

PREFIX = "dw."


def plan_weights(setting: Setting, given: Mapping[str, object]) -> WeightTiling:
    """The tiling of dw: by rule, but for the fields that are given.

    Raises:
        TilingError: a field is not usable, or nothing fits with it.
    """
    s = setting.sides
    base: Fields = {
        "rule": setting.rule, "rows": max(1, s.small_size[1]), "columns": max(1, s.small_size[2]),
        "batch": 1, "m_parts": 1, "n_parts": 1,
        "flush": "chunk" if setting.rule == "legacy" else "tile", "l1_a": 2, "l1_b": 2, "l0c": 1, "window": "kernel",
        **{"legacy": _legacy, "v2": _v2, "v2_950": _v2_950}[setting.rule](setting),
    }  # fmt: skip
    base |= given
    checked(WeightTiling, base, PREFIX)
    require_multiple(PREFIX + "m", int(str(base["m"])), FRACTAL)
    require_multiple(PREFIX + "n", int(str(base["n"])), s.c0)

    def fits(fields: Fields) -> bool:
        return _fits(setting, WeightGrid(s, checked(WeightTiling, fields, PREFIX)))

    if s.empty:
        return checked(WeightTiling, base, PREFIX)
    fields = first_that_fits(_lowered(setting, base, given), fits, PREFIX)
    parts = _parts(setting, WeightGrid(s, checked(WeightTiling, fields, PREFIX)))
    return checked(WeightTiling, {**fields, **parts, **given}, PREFIX)


def _sizes(setting: Setting) -> tuple[int, int]:
    """Fractals of both sides of dw of one group and depth tap."""
    s = setting.sides
    units = s.large.blocks * s.plane_taps * s.c0
    return max(1, ceil(s.small.channels / FRACTAL)), max(1, ceil(units / FRACTAL))


def _legacy(setting: Setting) -> Fields:
    """The 2-D operator."""
    s, (wide, long) = setting.sides, _sizes(setting)
    m = min(LEGACY_M, wide)
    copies = s.groups * s.kernel[0]
    _, n_parts = least_rounds((max(1, s.n), long * copies), setting.cores)
    units = s.large.blocks * s.plane_taps
    share = ceil(ceil(units / n_parts) * s.c0 / FRACTAL) if copies == 1 else long
    most = min(setting.sums // m, setting.half_l0 * s.c0 // FRACTAL)
    n = largest_divisor(share, most)
    n = n if n >= LEGACY_N or share <= LEGACY_N else ceil(share / ceil(share / most))
    return {"m": m * FRACTAL, "n": n * FRACTAL, "k": FRACTAL}


def _v2(setting: Setting) -> Fields:
    """The 3-D operator of A2 and A3."""
    wide, long = _sizes(setting)
    return {"m": min(8, wide) * FRACTAL, "n": min(8, long) * FRACTAL, "k": 128, "l0c": 2}


def _v2_950(setting: Setting) -> Fields:
    """The operator of Ascend 950: even pieces of at most 256, for 3 x 3 in multiples of 9 fractals."""
    wide, long = _sizes(setting)
    m = ceil(wide / ceil(wide / 16))
    nine = setting.sides.plane_taps == 9 and long >= 9  # a 3 x 3 kernel
    n = 9 if nine else ceil(long / ceil(long / 16))
    l0c = 2 if 2 * m * n <= setting.sums else 1
    return {"m": m * FRACTAL, "n": n * FRACTAL, "k": 256, "l0c": l0c}


def _parts(setting: Setting, grid: WeightGrid) -> Fields:
    """The cores' shares of positions, N and M, with the fewest rounds."""
    sizes = (max(1, len(grid.pieces)), max(1, len(grid.columns)), max(1, len(grid.rows)))
    if setting.rule == "legacy":
        images = max(1, grid.sides.n * grid.sides.small_size[0])
        sizes = (images if images >= setting.cores else sizes[0], *sizes[1:])
    batch, n_parts, m_parts = least_rounds(sizes, setting.cores)
    return {"batch": batch, "n_parts": n_parts, "m_parts": m_parts}


def _fits(setting: Setting, grid: WeightGrid) -> bool:
    sizes, item, t = weight_ring_sizes(grid), setting.operand.size_bytes, grid.tiling
    buffers = [(sizes["small"] * item, t.l1_a), (sizes["large"] * item, t.l1_b)]
    return fits_l0(setting.target, sizes, item, t.l0c) and fits_l1(setting.target, buffers)


def _lowered(setting: Setting, base: Fields, given: Mapping[str, object]) -> Iterator[Fields]:
    """The fields of the rule, and what is lower, in the order in which it is tried."""
    s = setting.sides
    height, width = max(1, s.small_size[1]), max(1, s.small_size[2])
    rows = _rows(setting, height)
    chunks = [(r, width, depth, "kernel") for r in rows for depth in (2, 1)]
    lines = [(1, columns, depth) for columns in halves(width, 1) for depth in (2, 1)]
    chunks += [(*line, window) for line in lines for window in ("kernel", "tile")]
    sizes = product(
        halves(int(str(base["n"])), s.c0, s.c0), halves(int(str(base["m"])), FRACTAL, FRACTAL), chunks
    )
    for n, m, (r, columns, depth, window) in sizes:
        lower: Fields = {"n": n, "m": m, "rows": r, "columns": columns, "l1_b": depth, "window": window}
        for k in _steps(setting, base, r * columns):
            yield {**base, **lower, "k": k, **given}


def _rows(setting: Setting, height: int) -> list[int]:
    """Rows of a chunk, most first: even pieces; the legacy operator prefers divisors, unless they are too small."""
    even = list(dict.fromkeys(ceil(height / parts) for parts in range(1, height + 1)))
    if setting.rule != "legacy":
        return even
    divisors = [r for r in even if height % r == 0 and r * MOST_CHUNKS >= height]
    return divisors + [r for r in even if r not in divisors]


def _steps(setting: Setting, base: Fields, positions: int) -> list[int]:
    """Steps of positions: as the rule says, or half; of the legacy operator the divisors of a chunk, in sixteens."""
    if setting.rule != "legacy":
        return halves(int(str(base["k"])), FRACTAL, FRACTAL)
    whole = max(1, ceil(positions / FRACTAL))
    most = max(1, int(str(base["k"])) // FRACTAL)
    return [d * FRACTAL for d in range(min(whole, most), 0, -1) if whole % d == 0 or d == 1]
