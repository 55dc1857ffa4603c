"""Choosing a tiling for the input gradient: the candidates that fit the memories, compared by their estimate."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import NamedTuple

from kernels.dsp.dx.blockings import blockings, halvings
from kernels.dsp.dx.estimate import Blocking, PanelSetting, Placement, estimate
from kernels.dsp.dx.geometry import Geometry
from kernels.dsp.dx.middle import PanelSize, mean_work, middle_panels, panel_count
from kernels.dsp.dx.shares import in_step, shares
from kernels.dsp.dx.tiling import DxTiling, checked
from kernels.dsp.places import default_look_ahead
from kernels.errors import TilingError
from simulator.values.numerics import DType
from targets.schema import Target

SPLITS = ("batch", "rows", "channels")
PANEL_TRIES = 3
"""Heights of a panel that are tried, from the largest that fits."""

TOGETHER = 1024
"""Outputs of small images that a panel takes together, at most."""

SMALL_GROUP = 64
"""Groups of fewer channels than this are taken several at a time, up to twice as many channels."""


NEAR = 1.02
"""Tilings within this factor of the least estimate count as equal;
the one with the fewest products, then panels, is taken."""


class Candidate(NamedTuple):
    """A tiling that fits: its fields, its estimate in cycles, and how many products and panels it takes."""

    values: dict[str, object]
    cycles: float
    products: float
    panels: int


def plan(setting: PanelSetting, given: Mapping[str, object]) -> DxTiling:
    """The tiling with (nearly) the least estimate among those that fit; `given` fields are kept.

    Raises:
        TilingError: a given field is not usable, or nothing fits with it.
    """
    given = {**default_look_ahead(setting.target), **given}
    kept = tuple(sorted((k, v) for k, v in given.items() if (k, v) != ("split", "auto")))
    return (
        _plan(setting, kept)
        if all(isinstance(v, (str, int)) for _, v in kept)
        else _search(setting, dict(kept))
    )


@lru_cache(maxsize=256)
def _plan(setting: PanelSetting, kept: tuple[tuple[str, object], ...]) -> DxTiling:
    return _search(setting, dict(kept))


def candidates(setting: PanelSetting, given: Mapping[str, object]) -> list[Candidate]:
    """Every tiling that is tried and fits; `given` fields are kept.

    Raises:
        TilingError: a given field is not usable.
    """
    given = {
        k: v
        for k, v in {**default_look_ahead(setting.target), **given}.items()
        if (k, v) != ("split", "auto")
    }
    probe = checked({**_FILLER, **given, **_consistent(given)})
    _require_whole_rows(setting.geometry, probe, given)
    return list(_candidates(setting, given, probe))


def _search(setting: PanelSetting, given: Mapping[str, object]) -> DxTiling:
    found = candidates(setting, given)
    if not found:
        raise TilingError(
            "no tiling fits the memories",
            field=next(iter(given), "rows"),
            got=dict(given) or "the default",
            where=setting.target.name,
            remedy="lower rows, cols, channels, groups or budget_bytes, or give fewer fields",
        )
    least = min(candidate.cycles for candidate in found)
    near = [candidate for candidate in found if candidate.cycles <= NEAR * least]
    best = min(near, key=lambda candidate: (candidate.products, candidate.panels, candidate.cycles))
    return checked({**best.values, **given})


_FILLER: dict[str, object] = {
    "split": "batch",
    "weights": "stream",
    "gsm_holds": "dy",
    "images": 1,
    "rows": 1,
    "cols": 1,
    "groups": 1,
    "channels": 1,
    "block_channels": 1,
    "block_taps": 1,
    "k": 1,
    "positions": 1,
}


def _consistent(given: Mapping[str, object]) -> dict[str, object]:
    """The partner of a given `weights` or `gsm_holds`, where only one is given."""
    if "weights" in given and "gsm_holds" not in given:
        return {"gsm_holds": "both" if given["weights"] == "gsm" else "dy"}
    if "gsm_holds" in given and "weights" not in given:
        return {"weights": "gsm" if given["gsm_holds"] in ("w", "both") else "stream"}
    return {}


def _require_whole_rows(g: Geometry, probe: DxTiling, given: Mapping[str, object]) -> None:
    """A whole column row has every channel of its group, so that nothing may cut the channels."""
    if probe.column != "rows":
        return
    field = "channels" if "channels" in given and probe.channels < g.cig else "split"
    if field == "channels" or given.get("split") == "channels":
        raise TilingError(
            "whole column rows have all channels of a group",
            field=field,
            got=getattr(probe, field),
            limit=f"column=rows with all {g.cig} channels",
            remedy="set column=blocks, or leave split and channels to their default",
        )


def _splits(probe: DxTiling) -> tuple[str, ...]:
    """How the cores may divide dx: by channels only where a column row need not be whole."""
    return tuple(split for split in SPLITS if split != "channels" or probe.column != "rows")


def _candidates(setting: PanelSetting, given: Mapping[str, object], probe: DxTiling) -> Iterator[Candidate]:
    """Every tiling that fits."""
    for split in [probe.split] if "split" in given else _splits(probe):
        for size in _panel_sizes(setting, split, given, probe):
            panels = middle_panels(setting, split, size, probe.column == "rows")
            if not panels:
                yield Candidate(
                    _values(split, size, Blocking(1, 1, 1, 1), "stream", False, 1, given), 0.0, 0, 0
                )
                continue
            count = panel_count(setting, split, size)
            for blocking in blockings(setting, panels[0][0], given, probe):
                work = mean_work(setting, panels, blocking, probe.column == "rows")
                for weights, in_gsm, dy_buffers in _placements(setting, split, size, blocking, given, probe):
                    together = in_gsm and in_step(setting.geometry, split, size.channels, setting.cores)
                    place = Placement(split, weights, in_gsm, size.dx_buffers, dy_buffers, count, together)
                    values = _values(split, size, blocking, weights, in_gsm, dy_buffers, given)
                    yield Candidate(values, estimate(setting, work, place), work.products * count, count)


def _values(
    split: str,
    size: PanelSize,
    blocking: Blocking,
    weights: str,
    in_gsm: bool,
    dy_buffers: int,
    given: Mapping[str, object],
) -> dict[str, object]:
    holds = {(True, True): "both", (True, False): "dy", (False, True): "w", (False, False): "none"}
    values: dict[str, object] = {**size._asdict(), **blocking.__dict__}
    values |= {
        "split": split,
        "weights": weights,
        "dy_buffers": dy_buffers,
        "gsm_holds": holds[in_gsm, weights == "gsm"],
    }
    return {**values, **given}


def _panel_sizes(
    setting: PanelSetting, split: str, given: Mapping[str, object], probe: DxTiling
) -> Iterator[PanelSize]:
    """Panels whose sums fit AM beside the columns, the tallest first."""
    g = setting.geometry
    share = next(iter(shares(g, split, 0, setting.cores)), None)
    if share is None:
        yield PanelSize(1, 1, 1, 1, 1, 1)
        return
    groups = probe.groups if "groups" in given else group_count(g.cig, share.groups[1])
    wide = (
        [g.cig]
        if groups > 1 or probe.column == "rows"
        else [max(16, -(-c // 16) * 16) for c in halvings(share.channels[1])]
    )
    wide = [min(c, share.channels[1]) for c in wide]
    for channels in [probe.channels] if "channels" in given else dict.fromkeys(wide):
        tried = 0
        for rows in [probe.rows] if "rows" in given else halvings(share.rows[1]):
            size = _fitting(setting, rows, groups, channels, share.images[1], given, probe)
            if size is None:
                continue
            yield from (size._replace(images=images) for images in halvings(size.images))
            tried += 1
            if tried == PANEL_TRIES and probe.column != "rows":
                break
        if tried and channels <= 128:
            break


def group_count(cig: int, groups: int) -> int:
    """Groups of a panel: one where a group fills the vector unit, else as many as make 128 channels."""
    return 1 if cig >= SMALL_GROUP else min(groups, max(1, 2 * SMALL_GROUP // cig))


def _fitting(
    setting: PanelSetting,
    rows: int,
    groups: int,
    channels: int,
    images: int,
    given: Mapping[str, object],
    probe: DxTiling,
) -> PanelSize | None:
    """The panel of this height with the most columns and images that leaves AM room for columns and weights."""
    g = setting.geometry
    columns = 0 if probe.column == "none" else probe.budget_bytes
    room = setting.places.array_bytes - columns
    whole = rows >= g.h.size and g.d.size == 1
    together = min(images, max(1, TOGETHER // max(1, g.h.out * g.w.out))) if whole else 1
    for cols in [probe.cols] if "cols" in given else (halvings(g.w.size) if rows == 1 else [g.w.size]):
        several = halvings(together if cols >= g.w.size else 1)
        for buffers in [probe.dx_buffers] if "dx_buffers" in given else (2, 1):
            for nb in [probe.images] if "images" in given else several:
                images_here = nb if whole and cols >= g.w.size else 1
                count = images_here * min(rows, g.h.size) * min(cols, g.w.size) * groups * channels
                staged = setting.out_type is not setting.sum_type
                staging = count * setting.out_type.size_bytes if staged else 0
                if count * setting.sum_type.size_bytes * buffers + staging <= 3 * room // 4:
                    return PanelSize(images_here, rows, cols, groups, channels, buffers)
    return None


def _placements(
    setting: PanelSetting,
    split: str,
    size: PanelSize,
    blocking: Blocking,
    given: Mapping[str, object],
    probe: DxTiling,
) -> Iterator[tuple[str, bool, int]]:
    """(weights, dy in GSM, panels of dy) that AM and GSM have room for."""
    g, item, where = setting.geometry, setting.operand.size_bytes, setting.places
    used = size.images * min(size.rows, g.h.size) * min(size.cols, g.w.size) * size.groups * size.channels
    staging = setting.out_type.size_bytes if setting.out_type is not setting.sum_type else 0
    columns = 0 if probe.column == "none" else probe.budget_bytes
    room = (
        where.array_bytes
        - columns
        - used * (setting.sum_type.size_bytes * size.dx_buffers + staging)
        - setting.reserved_bytes
    )
    share = shares(g, split, 0, setting.cores)[0]
    taps = g.taps if probe.column == "rows" else blocking.block_taps
    k = g.cog if size.groups > 1 else blocking.k
    block = 2 * size.groups * k * taps * blocking.block_channels * item
    resident = share.groups[1] * g.cog * g.taps * share.channels[1] * item
    everything = g.cout * g.taps * g.cig * item
    for weights in _weight_places(given, probe):
        if (resident if weights == "am" else block) > room:
            continue
        gsm = where.shared_bytes - (everything if weights == "gsm" else 0) - 4096
        owners = 1 if in_step(g, split, size.channels, setting.cores) else setting.cores
        for in_gsm in [probe.dy_in_gsm] if "gsm_holds" in given else (True, False):
            for buffers in ([probe.dy_buffers] if "dy_buffers" in given else (2, 1)) if in_gsm else (1,):
                if gsm >= 0 and (not in_gsm or _hull_bytes(setting, size) * owners * buffers <= gsm):
                    yield weights, in_gsm, buffers
                    break


def _weight_places(given: Mapping[str, object], probe: DxTiling) -> tuple[str, ...]:
    """Where the weights may lie, by the fields that are given."""
    if "weights" in given or (probe.w_in_gsm and "gsm_holds" in given):
        return (probe.weights,)
    return ("am", "stream") if "gsm_holds" in given else ("am", "gsm", "stream")


def _hull_bytes(setting: PanelSetting, size: PanelSize) -> int:
    """Bytes of dy that the largest panel reads, at most."""
    g = setting.geometry
    return (
        largest_hull(g, size.rows, size.cols) * size.images * size.groups * g.cog * setting.operand.size_bytes
    )


def largest_hull(g: Geometry, rows: int, cols: int) -> int:
    """Places in the largest hull of a panel with these sizes, wherever it lies, and a little room.

    The room, a row and the width of a kernel, keeps panels away that would only just fit: most were slower.
    """
    wide = g.reach(g.w, min(cols, g.w.size)) + (g.w.kernel * g.w.dilation if cols < g.w.size else 0)
    high = g.reach(g.h, min(rows, g.h.size)) + 1
    return min(g.d.out, g.reach(g.d, 1)) * min(g.h.out, high) * min(g.w.out, wide)


def setting_for(
    geometry: Geometry, target: Target, operand: DType, sum_type: DType, out_type: DType, cores: int
) -> PanelSetting:
    """The setting of a call."""
    return PanelSetting(geometry, target, operand, sum_type, cores, out_type=out_type)
