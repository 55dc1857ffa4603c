"""Which tiling dx and forward get: the written rules of the vendor's operators, never a search by time.

Three sets of rules (ops-nn, conv/**; profiles of Conv2D and Conv2DBackpropInput):

- `legacy`, the 2-D operators of A2, A3 and of the first generation. dx: whole image rows, each padded to fractals;
  N is the largest power of two that divides the channels, in sixteens, while the sums fit L0C; K steps of 4 fractals;
  chunks of 32 channels. Forward: consecutive positions; weights K step by K step, straight to L0B where
  the chip has the path and an image is one tile.
- `v2`, the 3-D operators of A2 and A3: 256 x 128 (M >= N) or 128 x 256, K 128 bytes.
- `v2_950`: 512 x 128 and K 64 bytes for kernels above 1 x 1, else 256 x 256 and 128 bytes.

What a rule says is lowered, in a fixed order, until the memories hold it: chunks first, then double buffers in L1, then
positions, then channels.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from typing import Literal

from kernels.davinci.added_bias import BUFFERS, bias_fits, has_table
from kernels.davinci.fit import SUM_BYTES, Fields, first_that_fits, fits_l0, fits_l1, halves
from kernels.davinci.grid import Grid
from kernels.davinci.image import ring_sizes, widest
from kernels.davinci.sides import FRACTAL, Sides
from kernels.davinci.split import largest_divisor, power_of_two_divisor
from kernels.davinci.tiles import ceil_to
from kernels.davinci.tiling import ImageTiling, checked, require_multiple
from kernels.errors import TilingError
from simulator.values.numerics import DType
from targets.schema import Target

Rule = Literal["legacy", "v2", "v2_950"]

MOST_M = 16
"""Fractals of M in one tile where an image does not fit whole."""

LEGACY_K = 4
"""Fractals of a K step of the legacy operators."""

LEGACY_CHANNELS = 32
"""Source channels of an L1 chunk of the legacy operators."""


@dataclass(frozen=True)
class Setting:
    """What a tiling is chosen for."""

    sides: Sides
    target: Target
    operand: DType
    ndim: int
    cores: int
    bias: bool = False

    @property
    def rule(self) -> Rule:
        """Which operators the product has: by the ways out of L0C, and by the number of axes."""
        if "l0c->ub" in self.target.path and f"l0c->{self.target.main_memory}" in self.target.path:
            return "v2_950"
        return "v2" if self.ndim > 2 and self.split else "legacy"  # 2-D has operators of its own

    @property
    def converts(self) -> bool:
        """Whether the kernels take tensors in layouts of the cube only.

        Ascend 950 takes plain 2-D tensors; the published 3-D calls list conversions there too.
        """
        return self.rule != "v2_950" or self.ndim > 2  # 3-D

    @property
    def split(self) -> bool:
        """Whether cubes write to main memory themselves."""
        return f"l0c->{self.target.main_memory}" in self.target.path

    @property
    def sums(self) -> int:
        """Fractals (16 x 16 sums) that L0C holds."""
        return self.target.memory["l0c"].size_bytes // (FRACTAL * FRACTAL * 4)

    @property
    def half_l0(self) -> int:
        """Fractals (512 bytes) that half of L0A, or of L0B, holds."""
        return min(self.target.memory[name].size_bytes for name in ("l0a", "l0b")) // 1024


def plan_image(
    setting: Setting, way: Literal["gather", "scatter"], given: Mapping[str, object], prefix: str = ""
) -> ImageTiling:
    """The tiling of one side: by rule, but for the fields that are given.

    Raises:
        TilingError: a field is not usable, or nothing fits with it.
    """
    base = {**_base(setting, way), **given}
    checked(ImageTiling, base, prefix)
    for field in ("k", "channels"):
        require_multiple(prefix + field, int(str(base[field])), setting.sides.c0)
    require_multiple(prefix + "n", int(str(base["n"])), FRACTAL)
    if way == "scatter" and base["weights"] != "chunk":
        what = "weights that are turned on their way come in chunks"
        raise TilingError(what, field=prefix + "weights", got=base["weights"], limit="chunk")

    def fits(fields: Fields) -> bool:
        return _fits(setting, Grid(setting.sides, way, checked(ImageTiling, fields, prefix)))

    if setting.sides.empty:
        return checked(ImageTiling, base, prefix)
    fields = first_that_fits(_lowered(setting, base, given), fits, prefix or "tiling")
    fields = _enough_tasks(setting, way, fields, given)
    return checked(ImageTiling, fields, prefix)


def _enough_tasks(
    setting: Setting, way: Literal["gather", "scatter"], fields: Fields, given: Mapping[str, object]
) -> Fields:
    """Halve the longer of M and N while the tiles are at most half of the cores."""
    while True:
        grid = Grid(setting.sides, way, checked(ImageTiling, fields))
        longer = sorted(("m", "n"), key=lambda field: -_number(fields, field))
        field = next((f for f in longer if f not in given and _number(fields, f) > FRACTAL), None)
        if field is None or 2 * grid.count > setting.cores:
            return fields
        fields = {**fields, field: ceil_to(_number(fields, field) // 2, FRACTAL)}


def _base(setting: Setting, way: Literal["gather", "scatter"]) -> Fields:
    """What the rule says."""
    grid = {"legacy": _legacy, "v2": _v2, "v2_950": _v2_950}[setting.rule](setting, way)
    common: Fields = {
        "rule": setting.rule, "taps": setting.sides.plane_taps, "channels": LEGACY_CHANNELS, "split": "tiles",
        "l1_a": 2, "l1_b": 2, "l0c": 1, "weights": "chunk",
    }  # fmt: skip
    return {**common, **grid}


def _targets(setting: Setting, way: Literal["gather", "scatter"]) -> tuple[int, int, int]:
    """Fractals of channels, height and width of the side that is computed."""
    side = setting.sides.small if way == "gather" else setting.sides.large
    return max(1, ceil_to(side.channels, FRACTAL) // FRACTAL), max(1, side.size[1]), max(1, side.size[2])


def _legacy(setting: Setting, way: Literal["gather", "scatter"]) -> Fields:
    """The 2-D operators."""
    wide, height, width = _targets(setting, way)
    c0 = setting.sides.c0
    if way == "scatter":
        rows = ceil_to(width, FRACTAL) // FRACTAL
        m = height * rows if height * rows <= MOST_M else max(1, MOST_M // rows) * min(rows, MOST_M)
        n = power_of_two_divisor(wide, max(1, setting.sums // m))
        n = min(n, setting.half_l0 // LEGACY_K)
        return {"walk": "rows", "m": m * FRACTAL, "n": n * FRACTAL, "k": LEGACY_K * c0}
    whole = ceil_to(height * width, FRACTAL) // FRACTAL
    n = largest_divisor(wide, MOST_M if whole > MOST_M else min(MOST_M, setting.sums // whole))
    m = whole if whole <= MOST_M else min(MOST_M, setting.sums // n)
    straight = f"{setting.target.main_memory}->l0b" in setting.target.path and whole <= MOST_M
    ways: Fields = {"split": "axes", "weights": "l0b" if straight else "step"}
    return {"walk": "flat", "m": m * FRACTAL, "n": n * FRACTAL, "k": LEGACY_K * c0, **ways}


def _v2(setting: Setting, way: Literal["gather", "scatter"]) -> Fields:
    """The 3-D operators of A2 and A3."""
    wide, height, width = _targets(setting, way)
    long = height * width >= wide * FRACTAL
    m, n = (256, 128) if long else (128, 256)
    return {
        "walk": "flat", "m": m, "n": min(n, wide * FRACTAL), "k": 4 * setting.sides.c0,
    }  # fmt: skip


def _v2_950(setting: Setting, way: Literal["gather", "scatter"]) -> Fields:
    """The operators of Ascend 950, and what is taken for those of 310B."""
    wide, _, _ = _targets(setting, way)
    c0, point = setting.sides.c0, setting.sides.plane_taps == 1
    m, n, steps = (256, 256, 4) if point else (512, 128, 2)
    m = min(m, setting.sums * FRACTAL * FRACTAL // n)
    l0c = 2 if 2 * m * n <= setting.sums * FRACTAL * FRACTAL else 1
    return {"walk": "flat", "m": m, "n": min(n, wide * FRACTAL), "k": steps * c0, "l0c": l0c}


def _fits(setting: Setting, grid: Grid) -> bool:
    """Whether a core holds a tiling."""
    sizes, item, t = ring_sizes(grid), setting.operand.size_bytes, grid.tiling
    buffers = [(sizes["image"] * item, t.l1_a)]
    if t.weights != "l0b":
        buffers.append((sizes["weights"] * item, t.l1_b))
    if setting.bias:
        if has_table(setting.target):
            buffers.append((widest(grid) * SUM_BYTES, BUFFERS))
        if not bias_fits(setting.target, widest(grid), sizes["sums"], item):
            return False
    return fits_l0(setting.target, sizes, item, t.l0c) and fits_l1(setting.target, buffers)


def _lowered(setting: Setting, base: Fields, given: Mapping[str, object]) -> Iterator[Fields]:
    """The fields of the rule, and what is lower, in the order in which it is tried."""
    c0, kernel = setting.sides.c0, setting.sides.kernel
    row, taps = kernel[2], setting.sides.plane_taps
    chunks = [(channels, taps) for channels in halves(_number(base, "channels"), c0, c0)]
    chunks += [(c0, rows * row) for rows in halves(kernel[1], 1)[1:]]
    chunks += [(c0, count) for count in halves(row, 1)[1:]]
    ms = halves(_number(base, "m"), 1)
    ns = halves(_number(base, "n"), FRACTAL, FRACTAL)
    for n, m, depth, (channels, count) in product(ns, ms, (2, 1), chunks):
        lower: Fields = {"n": n, "m": m, "l1_a": depth, "l1_b": depth, "channels": channels, "taps": count}
        yield {**base, **lower, **given}


def _number(fields: Fields, name: str) -> int:
    return int(str(fields[name]))
