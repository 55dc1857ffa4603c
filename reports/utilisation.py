"""How busy every engine of every core is, and where the time of the main compute engine goes."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter
from numpy.typing import NDArray

from reports.canvas import PLOT_WIDTH, add_axes, add_legend, legend_height, new_figure, write_title
from reports.colours import BACKGROUND, BUSY, INK, reason_colours
from reports.lanes import FEW
from reports.load import SavedRun
from reports.names import core_label
from simulator.results.intervals import busy_cycles, clip
from simulator.results.metrics import asked_cores, percent
from simulator.results.stalls import StallTable

_BUSY_ELSEWHERE = "#5b84b1"
_MAIN_HEIGHT, _LANE_HEIGHT, _GAP, _NAMED_GAP = 190, 78, 28, 50  # pixels of panels over many cores
_BAR, _CORE_GAP = 24, 62  # pixels of bars of few cores


@dataclass(frozen=True)
class Usage:
    """Shares of a stretch of time.

    Attributes:
        cores: ids of the cores, idle ones too.
        labels: what they are called.
        groups: the group of each, or for one in none its own number behind those.
        lanes: names of the engine lanes, SCALAR first.
        busy: [core, lane], shares of 1; not a number where a core has no such lane.
        table: the losses of the main compute engine; None when nothing ran, or for a part of the run.
    """

    cores: tuple[int, ...]
    labels: tuple[str, ...]
    groups: tuple[int, ...]
    lanes: tuple[str, ...]
    busy: NDArray[np.float64]
    table: StallTable | None

    def lanes_of(self, core: int) -> list[int]:
        """The lanes that the core at a place has."""
        return np.flatnonzero(~np.isnan(self.busy[core])).tolist()


def usage(saved: SavedRun, start: int | None = None, end: int | None = None) -> Usage:
    """How busy every lane of every core was in a stretch of the run.

    Raises:
        TilesimError: the stretch is empty or outside the run.
    """
    first, last = saved.window(start, end)
    whole = (first, last) == (0, saved.cycles)
    trace = saved.shown if whole else clip(saved.shown, first, last)
    cores, lanes = asked_cores(saved.trace, saved.target, saved.cores), saved.target.lanes()
    units = [saved.target.unit(core) for core in cores]
    own = {
        kind: [0.0 if lane in saved.target.lanes(kind) else np.nan for lane in lanes]
        for kind in saved.target.core
    }
    busy = np.array([own[unit.kind] for unit in units]).reshape(len(cores), len(lanes))
    found = busy_cycles(trace) / max(1, last - first)
    for row, core in enumerate(trace.cores()):
        for column, lane in enumerate(trace.engines):
            if not np.isnan(busy[cores.index(core), lanes.index(lane)]):
                busy[cores.index(core), lanes.index(lane)] = found[row, column]
    labels = tuple(core_label(saved.target, core) for core in cores)
    groups = tuple(unit.group if unit.group >= 0 else unit.number for unit in units)
    table = saved.metrics.stall_table if whole else None
    return Usage(tuple(cores), labels, groups, tuple(lanes), busy, table)


def draw_utilisation(saved: SavedRun, start: int | None = None, end: int | None = None) -> Figure:
    """Draw the busy share of every engine of every core, in a stretch of the run.

    For the whole run, the bars of the main compute engine also show what it lost its other time to.

    Raises:
        TilesimError: the stretch is empty or outside the run.
    """
    shares = usage(saved, start, end)
    figure = _few(shares) if len(shares.cores) <= FEW else _many(shares)
    write_title(figure, saved, "Utilisation", saved.window(start, end))
    _add_legends(figure, shares)
    return figure


def _few(shares: Usage) -> Figure:
    """A panel a core, with a horizontal bar an engine."""
    height = _BAR * max(len(shares.lanes_of(core)) for core in range(len(shares.cores)))
    columns = 1 if len(shares.cores) <= 2 else 2
    rows = math.ceil(len(shares.cores) / columns)
    both_legends = legend_height(1 + len(_reasons(shares))) + legend_height(1)
    figure = new_figure(max(rows * (height + _CORE_GAP) - _CORE_GAP, both_legends))
    width = (PLOT_WIDTH - 110 * (columns - 1)) // columns
    for i, label in enumerate(shares.labels):
        row, column = divmod(i, columns)
        axes = add_axes(
            figure, row * (height + _CORE_GAP), height, left=130 + column * (width + 110), width=width
        )
        axes.set_title(label, fontsize=8, fontweight="bold", color=INK, loc="left", pad=4)
        _core_bars(axes, shares, i)
    return figure


def _core_bars(axes: Axes, shares: Usage, core: int) -> None:
    lanes = shares.lanes_of(core)
    axes.set_xlim(0, 1)
    axes.set_ylim(max(len(shares.lanes_of(i)) for i in range(len(shares.cores))) - 0.4, -0.6)
    axes.set_yticks(range(len(lanes)), [shares.lanes[lane] for lane in lanes])
    axes.xaxis.set_major_formatter(_PERCENT)
    axes.tick_params(axis="y", length=0)
    for lane, index in enumerate(lanes):
        name, share = shares.lanes[index], float(shares.busy[core, index])
        axes.barh(lane, 1, 0.72, color=BACKGROUND, zorder=0)
        axes.barh(lane, share, 0.72, color=_colour(shares, name), zorder=2)
        if _is_main(shares, name):
            _stack(axes, shares, core, lane, share)
        inside = share > 0.9 or _is_main(shares, name)
        x, side, colour = (share - 0.006, "right", "white") if inside else (share + 0.006, "left", INK)
        if not inside or share > 0.06:
            axes.text(x, lane, percent(share), fontsize=8, color=colour, ha=side, va="center", zorder=3)


def _stack(axes: Axes, shares: Usage, core: int, lane: int, begin: float) -> None:
    """What the main engine's lane lost, after its busy time."""
    for reason, lost in _losses(shares).items():
        if lost[core] > 0:
            axes.barh(lane, lost[core], 0.72, left=begin, color=_reasons(shares)[reason], zorder=1)
            if lost[core] > 0.05:
                x = begin + lost[core] / 2
                axes.text(
                    x, lane, percent(float(lost[core])), fontsize=7, color=INK, ha="center", va="center"
                )
            begin += lost[core]


def _many(shares: Usage) -> Figure:
    """A panel an engine, the main one first and taller, with a bar a core."""
    lanes = sorted(
        range(len(shares.lanes)), key=lambda lane: (not _is_main(shares, shares.lanes[lane]), lane)
    )
    heights = [_MAIN_HEIGHT if _is_main(shares, shares.lanes[lane]) else _LANE_HEIGHT for lane in lanes]
    gap = _NAMED_GAP if _differs(shares) else _GAP
    figure = new_figure(sum(heights) + gap * len(lanes) - gap)
    top = 0
    for lane, height in zip(lanes, heights, strict=True):
        axes = add_axes(figure, top, height)
        _lane_bars(axes, shares, lane, last=lane == lanes[-1])
        top += height + gap
    return figure


def _lane_bars(axes: Axes, shares: Usage, lane: int, *, last: bool) -> None:
    having = np.flatnonzero(~np.isnan(shares.busy[:, lane]))
    count, name = len(having), shares.lanes[lane]
    x, share = np.arange(count), shares.busy[having, lane]
    mean = float(share.mean()) if count else 0.0
    axes.set_xlim(-0.7, count - 0.3)
    axes.set_ylim(0, 1)
    axes.set_yticks([0, 0.5, 1])
    axes.yaxis.set_major_formatter(_PERCENT)
    axes.grid(axis="y", color=BACKGROUND, zorder=0)
    _label_groups(axes, [shares.groups[core] for core in having], named=last or _differs(shares))
    axes.set_title(f"{name}: {percent(mean)} on average", fontsize=9, color=INK, loc="left", pad=4)
    axes.bar(x, share, 0.8, color=_colour(shares, name), zorder=2)
    if _is_main(shares, name):
        below = share.copy()
        for reason, lost in _losses(shares).items():
            axes.bar(x, lost[having], 0.8, bottom=below, color=_reasons(shares)[reason], zorder=2)
            below += lost[having]
    axes.axhline(mean, color=INK, lw=0.8, ls=(0, (4, 3)), zorder=3)
    if last:
        axes.set_xlabel("group of cores" if _differs(shares) else "core", fontsize=9, color=INK)


def _differs(shares: Usage) -> bool:
    """Whether cores differ in the lanes that they have, so that a panel has other bars than the next."""
    return bool(np.isnan(shares.busy).any())


def _label_groups(axes: Axes, groups: Sequence[int], *, named: bool) -> None:
    """A tick at the first core of each group, as many as have room."""
    first = [i for i, group in enumerate(groups) if i == 0 or groups[i - 1] != group]
    step = 1 if len(first) <= 32 else 2 if len(first) <= 64 else 8
    axes.set_xticks(first[::step], [str(groups[i]) if named else "" for i in first[::step]])


_PERCENT = FuncFormatter(lambda value, _: f"{100 * value:.0f} %")


def _is_main(shares: Usage, lane: str) -> bool:
    """Whether a lane is the main engine's only one, whose losses can be shown with it."""
    return shares.table is not None and shares.table.engine == lane


def _colour(shares: Usage, lane: str) -> str:
    return BUSY if _is_main(shares, lane) else _BUSY_ELSEWHERE


def _losses(shares: Usage) -> dict[str, NDArray[np.float64]]:
    """Shares of time that the main engine lost to each reason, one a core of the picture."""
    if shares.table is None:
        return {}
    rows = {core: row for row, core in enumerate(shares.table.cores)}
    lost = np.zeros((len(shares.cores), len(shares.table.reasons)))
    for i, core in enumerate(shares.cores):
        if core in rows:
            lost[i] = shares.table.lost[rows[core]] / max(1, shares.table.cycles)
    return dict(zip(shares.table.reasons, lost.T, strict=True))


def _reasons(shares: Usage) -> dict[str, str]:
    return reason_colours(shares.table.reasons if shares.table else ())


def _add_legends(figure: Figure, shares: Usage) -> None:
    main = next((lane for lane in shares.lanes if _is_main(shares, lane)), None)
    if main is None:
        add_legend(figure, {"busy": _BUSY_ELSEWHERE}, "engines")
        return
    add_legend(figure, {"busy": BUSY, **_reasons(shares)}, f"time of {main}")
    top = legend_height(1 + len(_reasons(shares))) + 12
    add_legend(figure, {"busy": _BUSY_ELSEWHERE}, "other engines", top)
