"""The timeline: what every engine of every core did, coloured by instruction."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import PolyCollection
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure
from numpy.typing import NDArray

from reports.canvas import (
    CHARACTER,
    NOTES,
    PLOT_WIDTH,
    RIGHT,
    TOP,
    WIDTH,
    add_axes,
    add_legend,
    cycles_axis,
    legend_height,
    new_figure,
    pixels,
    shortened,
    time_axis,
    write_title,
)
from reports.colours import BACKGROUND, FAINT, INK, OTHER, ink_on, instruction_colours
from reports.lanes import Lane, Layout, layout
from reports.load import SavedRun
from reports.names import core_label
from reports.raster import coverage, painted
from simulator.results.trace import Trace

_LINE = 19  # pixels of a line of small text
_STRIP = 20  # pixels of the strip of launches
_BELOW = 28  # where the first lane begins
_SHARP = 1500  # up to so many instructions each is a box of its own


@dataclass(frozen=True)
class _Rows:
    """Rows of a trace that a timeline shows: their lane, name and times."""

    lane: NDArray[np.int64]
    name: NDArray[np.int64]
    start: NDArray[np.int64]
    end: NDArray[np.int64]


def draw_timeline(saved: SavedRun, start: int | None = None, end: int | None = None) -> Figure:
    """Draw a run's timeline, or a stretch of it: lanes by core and engine, cycles below, time above.

    Up to eight cores each engine has a lane; of more cores each has a stripe for what computes and thinner
    ones below for what moves data. Many instructions are summed up by columns of pixels.

    Raises:
        TilesimError: the stretch is empty or outside the run.
    """
    first, last = saved.window(start, end)
    lanes = layout(saved, _BELOW)
    trace = saved.shown if lanes.detailed else saved.trace  # a stripe of many cores is of what computes
    colours = instruction_colours(trace)
    stripes = [] if lanes.detailed else _stripes(lanes.moving)
    beside = legend_height(len(_legend(colours)))
    figure = new_figure(max(round(lanes.height), beside + _LINE * len(stripes)))
    axes = add_axes(figure, 0, lanes.height)
    axes.set_ylim(lanes.height, 0)
    rows = _shown(trace, lanes, first, last)
    _draw_rows(axes, rows, lanes, _name_colours(trace, colours), (first, last))
    if lanes.detailed and len(rows.lane) <= _SHARP:
        inks = [ink_on(colours.get(name, OTHER)) for name in trace.names]
        _write_names(axes, rows, lanes, trace.names, inks, (first, last))
    _draw_launches(axes, saved, first, last)
    _label_lanes(axes, lanes, saved)
    cycles_axis(axes, first, last)
    time_axis(axes, saved, last)
    write_title(figure, saved, "Timeline", (first, last))
    add_legend(figure, _legend(colours), "instructions")
    _explain_stripes(figure, stripes, beside)
    return figure


def _shown(trace: Trace, lanes: Layout, first: int, last: int) -> _Rows:
    """Rows that take time within a stretch and have a lane."""
    lane_of = np.full((int(trace["core"].max(initial=0)) + 1, len(trace.engines)), -1)
    for index, lane in enumerate(lanes.lanes):
        if lane.core < len(lane_of):
            lane_of[lane.core, list(lane.engines)] = index
    lane = lane_of[trace["core"], trace["engine"]]
    inside = (trace["end"] > first) & (trace["start"] < last) & (trace["end"] > trace["start"]) & (lane >= 0)
    shown = np.flatnonzero(inside)
    shown = shown[
        np.argsort(trace["start"][shown], kind="stable")
    ]  # what begins later is drawn over the others
    columns = (trace[name][shown].astype(np.int64) for name in ("name", "start", "end"))
    return _Rows(lane[shown], *columns)


def _name_colours(trace: Trace, colours: dict[str, str]) -> NDArray[np.float64]:
    """[names, 3], red, green and blue."""
    return np.array([to_rgb(colours.get(name, OTHER)) for name in trace.names]).reshape(-1, 3)


def _draw_rows(
    axes: Axes, rows: _Rows, lanes: Layout, colours: NDArray[np.float64], window: tuple[int, int]
) -> None:
    first, last = window
    for lane in lanes.lanes:
        axes.axhspan(
            lane.top + _inset(lane), lane.top + lane.height - _inset(lane), color=BACKGROUND, lw=0, zorder=0
        )
    if lanes.detailed and len(rows.lane) <= _SHARP:
        axes.add_collection(_boxes(rows, lanes.lanes, colours), autolim=False)
        return
    for lane, painted_row in zip(lanes.lanes, _image(rows, len(lanes.lanes), colours, window), strict=True):
        extent = (first, last, lane.top + lane.height - _inset(lane), lane.top + _inset(lane))
        axes.imshow(painted_row[None], extent=extent, aspect="auto", interpolation="nearest", zorder=1)


def _inset(lane: Lane) -> float:
    """Pixels that set a lane off from its neighbours."""
    return 1 if lane.height > 5 else 0.5 if lane.height > 3 else 0


def _boxes(rows: _Rows, lanes: Sequence[Lane], colours: NDArray[np.float64]) -> PolyCollection:
    """A box for each row, set off from its neighbours, over those that began before."""
    top = np.array([lane.top + _inset(lane) for lane in lanes])[rows.lane]
    bottom = np.array([lane.top + lane.height - _inset(lane) for lane in lanes])[rows.lane]
    x = np.stack([rows.start, rows.end, rows.end, rows.start], axis=1)
    y = np.stack([top, top, bottom, bottom], axis=1)
    boxes = np.stack([x, y], axis=2) if len(x) else np.zeros((0, 4, 2))
    return PolyCollection(
        list(boxes), facecolors=colours[rows.name], edgecolors="white", linewidths=0.4, zorder=1
    )


def _image(
    rows: _Rows, lanes: int, colours: NDArray[np.float64], window: tuple[int, int]
) -> NDArray[np.float64]:
    """[lanes, columns of pixels, 3]: what the rows paint."""
    first, last = window
    names, scale = len(colours), np.float64(PLOT_WIDTH / (last - first))
    busy = coverage(
        rows.lane * names + rows.name,
        (rows.start - first) * scale,
        (rows.end - first) * scale,
        lanes * names,
        PLOT_WIDTH,
    )
    by_name = np.moveaxis(busy.reshape(lanes, names, PLOT_WIDTH), 1, 2)
    return painted(by_name, colours, np.array(to_rgb(BACKGROUND)))


def _write_names(
    axes: Axes, rows: _Rows, lanes: Layout, names: Sequence[str], inks: Sequence[str], window: tuple[int, int]
) -> None:
    """Names inside the boxes that are wide enough for them."""
    first, last = window
    start, end = np.maximum(rows.start, first), np.minimum(_covered_from(rows), last)
    width = (end - start) * PLOT_WIDTH / max(1, last - first)
    needed = np.array([(len(name) + 1) * CHARACTER for name in names])
    # A name that fits into a few of its boxes only would look as if the others were something else.
    usual = {code: np.quantile(width[rows.name == code], 0.2) for code in np.unique(rows.name).tolist()}
    for i in np.flatnonzero(width > needed[rows.name]):
        name = names[rows.name[i]]
        if usual[rows.name[i]] > needed[rows.name[i]]:
            lane = lanes.lanes[rows.lane[i]]
            middle = ((start[i] + end[i]) / 2, lane.top + lane.height / 2)
            axes.text(*middle, name, fontsize=7, color=inks[rows.name[i]], ha="center", va="center", zorder=3)


def _covered_from(rows: _Rows) -> NDArray[np.int64]:
    """The end of what can be seen of each row: where the next of its lane begins, if that is before its own end."""
    order = np.lexsort((np.arange(len(rows.lane)), rows.start, rows.lane))
    end = rows.end.copy()
    before, after = order[:-1], order[1:]
    same = rows.lane[before] == rows.lane[after]
    end[before[same]] = np.minimum(end[before[same]], rows.start[after[same]])
    return end


def _draw_launches(axes: Axes, saved: SavedRun, first: int, last: int) -> None:
    """A strip with a field a launch, and a line where the next begins."""
    for i, launch in enumerate(saved.launches):
        begin, end = max(launch.start, first), min(launch.end, last)
        if begin >= end:
            continue
        shade = "#d5dce3" if i % 2 else "#e4e9ee"
        axes.fill_between([begin, end], 0, _STRIP, color=shade, lw=0, zorder=1)
        room = int((end - begin) * PLOT_WIDTH / max(1, last - first) / CHARACTER) - 1
        if room >= min(len(launch.name), 6):
            x = (begin + end) / 2
            axes.text(
                x, _STRIP / 2, shortened(launch.name, room), fontsize=8, color=INK, ha="center", va="center"
            )
        if begin > first:
            axes.axvline(begin, color=FAINT, lw=0.7, ls=(0, (4, 3)), zorder=2)


def _label_lanes(axes: Axes, lanes: Layout, saved: SavedRun) -> None:
    """Engines beside their lanes and cores beside those; of many cores as many numbers as have room."""
    tops: dict[int, list[Lane]] = {}
    for lane in lanes.lanes:
        tops.setdefault(lane.core, []).append(lane)
    middles = {core: (own[0].top + own[-1].top + own[-1].height) / 2 for core, own in tops.items()}
    if lanes.detailed:
        ticks = [(lane.top + lane.height / 2, lane.label) for lane in lanes.lanes]
        for core, middle in middles.items():
            axes.annotate(
                core_label(saved.target, core).replace(".", "\n"),
                (0, middle),
                xycoords=("axes fraction", "data"),
                xytext=(-56, 0),
                textcoords="offset points",
                rotation=90,
                fontsize=8 if len(saved.target.core) == 1 else 7,
                fontweight="bold",
                color=INK,
                ha="center",
                va="center",
            )
    else:
        pitch = (lanes.height - _BELOW) / len(middles)
        step = math.ceil(13 / pitch)  # a line of text takes 13 pixels
        ticks = [(middle, core_label(saved.target, core)) for core, middle in list(middles.items())[::step]]
    axes.set_yticks([0.5 * _STRIP, *(at for at, _ in ticks)], ["launch", *(label for _, label in ticks)])
    axes.tick_params(axis="y", length=0)
    axes.spines["left"].set_visible(False)


def _legend(colours: dict[str, str]) -> dict[str, str]:
    """Names with their colours; those without one of their own together."""
    own = {name: colour for name, colour in colours.items() if colour != OTHER}
    rest = len(colours) - len(own)
    return {**own, **({f"{rest} others": OTHER} if rest else {})}


def _stripes(moving: Mapping[str, Sequence[str]]) -> list[str]:
    """Lines that say which stripe of a core is what."""
    return [
        line
        for kind, names in moving.items()
        for line in (f"of each {kind}, top down:", "computes or waits", *names)
    ]


def _explain_stripes(figure: Figure, lines: Sequence[str], top: int) -> None:
    """The lines below the legend, which takes `top` pixels."""
    figure.text(
        (WIDTH - RIGHT + NOTES) / WIDTH,
        1 - (TOP + top) / pixels(figure)[1],
        "\n".join(lines),
        fontsize=8,
        color=FAINT,
        va="top",
        linespacing=1.4,
    )
