"""Choosing a tiling for the weights' gradient: sizes that fit the memories, compared by a closed-form estimate."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import product
from math import ceil

from kernels.dsp.dw.estimate import estimate
from kernels.dsp.dw.tiling import PREFIX, DwTiling, checked
from kernels.dsp.places import default_look_ahead
from kernels.dsp.setting import Setting
from kernels.errors import TilingError

SPLITS = ("batch", "rows", "channels")
WIDTHS = (384, 288, 192, 96, 64, 48, 32, 16)
"""Input channels of a block that are tried: multiples of the micro-kernel's width, then its parts."""

SUMS = (512, 384, 256, 192, 128, 96, 64, 48, 32, 24, 16, 12, 8, 6, 4, 3, 2, 1)
"""Outputs of a chunk that are tried."""

SUM_TRIES = 3
"""How many of them, from the largest that fits."""

SHORT_SUMS = (128, 64, 48, 32)
"""Tried as well, with strips as wide as fit: of wider rows of dy a smaller part is lost at their ends."""

STRIP_BYTES = 16384
"""Bytes of a strip of dy at most: AM holds three of them."""

SMALL_GROUP = 32
"""Groups of fewer channels than this are taken several at a time."""

GROUP_CHANNELS = 128
"""Channels that several groups have together, at most."""


@dataclass(frozen=True)
class _Given:
    """The fields that are kept, beside a filler for the others."""

    names: frozenset[str]
    probe: DwTiling

    def or_else(self, name: str, tried: list[int]) -> list[int]:
        """The given value, else those that are tried."""
        return [getattr(self.probe, name)] if name in self.names else list(dict.fromkeys(tried))


def plan(setting: Setting, given: Mapping[str, object]) -> DwTiling:
    """The tiling with the least estimate among those that fit; `given` fields are kept.

    Raises:
        TilingError: a given field is not usable, or nothing fits with it.
    """
    given = {**default_look_ahead(setting.target), **given}
    kept = {k: v for k, v in given.items() if (k, v) != ("split", "auto")}
    filler = dict.fromkeys(("groups", "out_channels", "taps", "channels", "k", "rows"), 1)
    checked({"split": "batch", **filler, **kept})
    return _plan(setting, tuple(sorted(kept.items())))


@lru_cache(maxsize=256)
def _plan(setting: Setting, kept: tuple[tuple[str, object], ...]) -> DwTiling:
    best, least = None, 0.0
    for cycles, tiling in candidates(setting, dict(kept)):
        if best is None or cycles < least:
            best, least = tiling, cycles
    if best is None:
        raise TilingError(
            "no tiling fits the memories",
            field=PREFIX + min(dict(kept), default="k"),
            got=dict(kept) or "the default",
            where=setting.target.name,
            remedy="lower dw.k, dw.out_channels, dw.channels, dw.taps or dw.groups, or give fewer fields",
        )
    return best


def candidates(setting: Setting, given: Mapping[str, object]) -> Iterator[tuple[float, DwTiling]]:
    """Every tiling that is tried and fits, behind its estimate in cycles; `given` fields are kept.

    Raises:
        TilingError: a given field is not usable.
    """
    kept = {k: v for k, v in given.items() if (k, v) != ("split", "auto")}
    filler: dict[str, object] = dict.fromkeys(("groups", "out_channels", "taps", "channels", "k", "rows"), 1)
    fields = _Given(frozenset(kept), checked({"split": "batch", **filler, **kept}))
    for tiling in _candidates(setting, fields):
        yield estimate(setting, tiling), tiling


def _candidates(setting: Setting, given: _Given) -> Iterator[DwTiling]:
    """Tilings that fit."""
    g = setting.geometry
    splits = [given.probe.split] if "split" in given.names else SPLITS
    for groups in given.or_else("groups", _groups(setting)):
        several = min(groups, g.groups) > 1
        # With several groups a block has all channels of each, whatever the fields say.
        outs = [max(1, g.cog)] if several else [m for m in _halvings(g.cog) if m >= min(g.cog, 24)]
        ins = [max(1, g.cig)] if several else [max(1, g.cig), *(c for c in WIDTHS if c < g.cig)]
        shapes = product(
            given.or_else("out_channels", [*outs, *_small(g.cog, several)]),
            given.or_else("taps", [g.taps, g.h.kernel * g.w.kernel, g.w.kernel, 1]),
            given.or_else("channels", ins),
        )
        for out_channels, taps, channels in shapes:
            sizes = {"groups": groups, "out_channels": out_channels, "taps": taps, "channels": channels}
            for k, rows in _sums(setting, given, sizes):
                for split in splits:
                    yield given.probe.model_copy(update={**sizes, "k": k, "rows": rows, "split": split})


def _groups(setting: Setting) -> list[int]:
    """Groups that are taken together: several where they are small; one always fits."""
    g = setting.geometry
    if g.groups == 1 or g.cig >= SMALL_GROUP or not g.cig:
        return [1]
    return [min(g.groups, max(1, GROUP_CHANNELS // max(g.cig, g.cog, 1))), min(g.groups, 16), 1]


def _small(cog: int, several: bool) -> list[int]:
    """Blocks of few output channels, for memories that hold no more."""
    return [] if several or cog <= 6 else [6]


def _halvings(total: int) -> list[int]:
    """total, then halves rounded up, down to 1."""
    found = [max(1, total)]
    while found[-1] > 1:
        found.append(-(-found[-1] // 2))
    return found


def _sums(setting: Setting, given: _Given, sizes: Mapping[str, int]) -> Iterator[tuple[int, int]]:
    """(k, rows) that leave everything room: the longest sums, then short ones."""
    g, tries = setting.geometry, 0
    outputs = max(1, g.n * g.d.out * g.h.out * g.w.out)
    kernel_rows = setting.target.matmul[setting.rate].kernel_rows
    several = min(sizes["groups"], g.groups) > 1
    most = max(1, g.cog) if several else min(sizes["out_channels"], max(1, g.cog))
    for k in given.or_else("k", [min(k, outputs) for k in SUMS]):
        if tries >= SUM_TRIES and k not in SHORT_SUMS:
            continue
        longest = min(most, max(1, STRIP_BYTES // (k * setting.operand.size_bytes)))
        parts = _even_parts(most, longest, kernel_rows) if tries < SUM_TRIES else []
        found = False
        for rows in given.or_else("rows", [_even(longest, kernel_rows), *parts]):
            if fits(setting, sizes, k, rows, given.probe.ahead):
                yield k, rows
                found = True
        tries += found


def _even(rows: int, kernel_rows: int) -> int:
    """A whole number of the micro-kernel's rows, where there are that many."""
    return rows // kernel_rows * kernel_rows if rows >= kernel_rows else rows


def _even_parts(most: int, longest: int, kernel_rows: int) -> list[int]:
    """A half, a quarter, an eighth of the rows, up to whole kernels: between more products more copies fit."""
    parts = [ceil(most / cut / kernel_rows) * kernel_rows for cut in (2, 4, 8)]
    return [rows for rows in parts if rows < longest]


def fits(setting: Setting, sizes: Mapping[str, int], k: int, rows: int, ahead: int) -> bool:
    """Whether the rings of a tiling fit AM, SM and GSM."""
    g, where, item = setting.geometry, setting.places, setting.operand.size_bytes
    groups = min(sizes["groups"], g.groups)
    outs = g.cog if groups > 1 else min(sizes["out_channels"], g.cog)
    ins = g.cig if groups > 1 else min(sizes["channels"], g.cig)
    width = groups * min(sizes["taps"], g.taps) * ins
    rows = outs if groups > 1 else min(rows, outs)
    depth, strip = 1 + ahead, _aligned(groups * rows * k * item)
    columns = (depth + (groups > 1)) * _aligned(width * k * item)
    staged = 2 * _aligned(rows * width * 4)
    am = _aligned(outs * width * setting.sum_type.size_bytes) + columns + (depth + 1) * strip
    if setting.operand is not setting.sum_type or setting.sum_type.name == "fp16":
        am += staged
    gsm = depth * strip * setting.cores
    return am <= where.array_bytes and depth * strip <= where.scalar_bytes and gsm <= where.shared_bytes


def _aligned(size: int) -> int:
    return ceil(size / 64) * 64
