"""The inner sizes of a tiling that are tried: blocks of columns, pieces of a sum, and rows of a product."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from kernels.dsp.dx.estimate import Blocking, PanelSetting
from kernels.dsp.dx.geometry import Geometry, Panel
from kernels.dsp.dx.tiling import DxTiling

WIDTHS = (384, 288, 192, 96, 48, 32, 16)
"""Channels of a block that are tried: multiples of the micro-kernel's width, then its parts."""


def halvings(total: int) -> list[int]:
    """total, then halves rounded up, down to 1."""
    found = [max(1, total)]
    while found[-1] > 1:
        found.append(-(-found[-1] // 2))
    return found


def blockings(
    setting: PanelSetting, panel: Panel, given: Mapping[str, object], probe: DxTiling
) -> Iterator[Blocking]:
    """Blocks of columns and pieces of Cout, with as many outputs a product as SM and a half buffer hold."""
    g, item = setting.geometry, setting.operand.size_bytes
    half = probe.budget_bytes // 2 // setting.sum_type.size_bytes
    sm = setting.places.scalar_bytes // 2 // item
    for taps, channels in _block_shapes(setting, panel, given, probe):
        for k in _sum_pieces(g, panel, given, probe):
            most = sm // (panel.gb * setting.depth(taps, k))
            if probe.column != "none":
                most = min(most, half // (panel.gb * taps * channels))
            if "positions" in given:
                most = min(most, probe.positions)
            if most >= 1:
                yield Blocking(taps if probe.column != "rows" else g.w.kernel, channels, k, _even(most))


def _sum_pieces(g: Geometry, panel: Panel, given: Mapping[str, object], probe: DxTiling) -> list[int]:
    """Output channels of one product that are tried."""
    if "k" in given:
        return [min(probe.k, g.cog)]
    least = 1 if probe.column == "rows" else min(g.cog, 32)
    return [g.cog] if panel.gb > 1 else [k for k in halvings(g.cog) if k >= least]


def _even(positions: int) -> int:
    """A whole number of micro-kernel rows, where there are that many."""
    return positions // 6 * 6 if positions >= 6 else positions


def _block_shapes(
    setting: PanelSetting, panel: Panel, given: Mapping[str, object], probe: DxTiling
) -> list[tuple[int, int]]:
    """(taps, channels) of a block."""
    g, width = setting.geometry, setting.width
    if probe.column == "rows":
        return [(g.taps, panel.cb)]
    tried = setting.taps_together(probe.column)
    taps = [min(probe.block_taps, *tried[:1])] if "block_taps" in given else tried
    wide = [panel.cb] if panel.gb > 1 else [panel.cb, *(w for w in WIDTHS if w < panel.cb)]
    wide = [min(probe.block_channels, panel.cb)] if "block_channels" in given else wide
    shapes = ((t, c) for t in taps for c in wide if width(t, c) <= 768 or c <= 16 or len(wide) == 1)
    return list(dict.fromkeys(shapes))
