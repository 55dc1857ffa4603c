"""Traffic of the memories over time, beside what their links can carry."""

from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, MaxNLocator
from numpy.typing import NDArray

from reports.canvas import (
    NOTES,
    TOP,
    WIDTH,
    add_axes,
    add_legend,
    cycles_axis,
    new_figure,
    pixels,
    time_axis,
    write_title,
)
from reports.colours import FAINT, INK
from reports.load import SavedRun
from reports.raster import coverage
from reports.rates import Pieces, pieces
from simulator.results.summary import amount
from targets.schema import Target

READ, WRITE, LIMIT = "#1d6fa5", "#ee8434", "#b3263a"
_BINS = 360
_PANEL, _GAP = 170, 44  # pixels


@dataclass(frozen=True)
class Traffic:
    """Bytes a cycle of one memory, over bins of time.

    Attributes:
        memory: its name.
        edges: cycles, one more than bins.
        read, write: bytes a cycle in each bin.
        read_limit, write_limit: bytes a cycle that its link can carry; None when it is not one link's alone.
    """

    memory: str
    edges: NDArray[np.float64]
    read: NDArray[np.float64]
    write: NDArray[np.float64]
    read_limit: float | None
    write_limit: float | None


def traffic_over_time(saved: SavedRun, start: int | None = None, end: int | None = None) -> list[Traffic]:
    """Traffic of each memory that has any, of all cores; a copy's bytes flow as its link divided itself (`rates`).

    Raises:
        TilesimError: the stretch is empty or outside the run.
    """
    first, last = saved.window(start, end)
    bins = max(1, min(_BINS, last - first))
    edges = np.linspace(first, max(last, first + 1), bins + 1)
    result, parts = [], pieces(saved)
    for code, memory in enumerate(saved.trace.memories):
        read, write = (_rate(saved, parts, column, code, edges) for column in ("source", "destination"))
        if read.any() or write.any():
            limits = (link_limit(saved.target, memory, side, saved.cores) for side in ("read", "write"))
            result.append(Traffic(memory, edges, read, write, *limits))
    return result


def _rate(
    saved: SavedRun, parts: Pieces, column: str, code: int, edges: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Bytes a cycle in each bin of copies whose source or destination is a memory."""
    mine = saved.trace[column][parts.row] == code
    scale = np.float64((len(edges) - 1) / (edges[-1] - edges[0]))
    begin, stop = ((at[mine] - edges[0]) * scale for at in (parts.start, parts.end))
    row = np.zeros(len(begin), dtype=np.int64)
    rate = coverage(row, begin, stop, 1, len(edges) - 1, parts.rate[mine])[0]
    return np.asarray(np.maximum(rate, 0), dtype=np.float64)


def link_limit(target: Target, memory: str, side: str, cores: int) -> float | None:
    """Bytes a cycle that a memory can be read or written with, when all its traffic takes one link.

    Only of memories that the chip's cores share, and that no cache stands before.

    Args:
        target: the chip.
        memory: name of the memory.
        side: "read" (the memory is the source of paths) or "write".
        cores: groups of the launch.
    """
    own = [(key.partition("->"), path) for key, path in target.path.items()]
    touching = {path.link for (source, _, destination), path in own if memory in (source, destination)}
    chosen = [path for (source, _, to), path in own if (source if side == "read" else to) == memory]
    shared = memory in target.memory and target.memory[memory].scope == "chip" and memory not in target.cache
    if not shared or len(touching) != 1 or not chosen or not chosen[0].link:
        return None
    link = target.link[chosen[0].link]
    cost = min(link.read_cost if path.direction == "read" else link.write_cost for path in chosen)
    return target.link_units(chosen[0].link, cores) / 65536 / cost


def draw_traffic(saved: SavedRun, start: int | None = None, end: int | None = None) -> Figure:
    """Draw bytes a cycle over time for each memory: reads up, writes down, the link's limit as a line.

    Raises:
        TilesimError: the stretch is empty or outside the run.
    """
    first, last = saved.window(start, end)
    panels = traffic_over_time(saved, start, end)
    count = max(1, len(panels))
    figure = new_figure(count * (_PANEL + _GAP) - _GAP)
    for i in range(count):
        axes = add_axes(figure, i * (_PANEL + _GAP), _PANEL)
        cycles_axis(axes, first, last, label=i == count - 1)
        if i == 0:
            time_axis(axes, saved, last)
        if panels:
            _draw_panel(figure, axes, panels[i], saved)
        else:
            axes.set_yticks([])
            axes.text(0.5, 0.5, "no copies", transform=axes.transAxes, ha="center", color=FAINT)
    write_title(figure, saved, "Traffic", (first, last))
    handles = {"read": READ, "written": WRITE, "limit of the link": LIMIT}
    add_legend(figure, handles, "copies", top=18 - TOP, lines=("limit of the link",))
    return figure


def _draw_panel(figure: Figure, axes: Axes, traffic: Traffic, saved: SavedRun) -> None:
    axes.stairs(traffic.read, traffic.edges, fill=True, color=READ, lw=0, zorder=2)
    axes.stairs(-traffic.write, traffic.edges, fill=True, color=WRITE, lw=0, zorder=2)
    axes.axhline(0, color=INK, lw=0.8, zorder=3)
    up = _side(axes, traffic.read, traffic.read_limit, 1)
    down = _side(axes, traffic.write, traffic.write_limit, -1)
    axes.set_ylim(-max(down, 0.12 * up), max(up, 0.12 * down))
    axes.yaxis.set_major_locator(MaxNLocator(nbins=6))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{abs(value):g}"))
    axes.grid(axis="y", color="#e4e9ee", zorder=0)
    axes.set_ylabel("bytes / cycle", fontsize=8, color=INK)
    _write_facts(figure, axes, traffic, saved)


def _write_facts(figure: Figure, axes: Axes, traffic: Traffic, saved: SavedRun) -> None:
    """The memory's name, its bytes in the stretch and its limits, to the right of its panel."""
    length, clock = float(traffic.edges[-1] - traffic.edges[0]), saved.target.clock_mhz / 1e3
    lines = []
    for word, rate, limit in (
        ("read", traffic.read, traffic.read_limit),
        ("written", traffic.write, traffic.write_limit),
    ):
        mean = float(rate.mean())
        if not mean:
            continue
        lines.append(f"{amount(mean * length, 'B')} {word}")
        lines.append(f"  mean {_figure(mean)} B/cycle = {_figure(mean * clock)} GB/s")
        if limit is not None:
            lines.append(f"  limit {_figure(limit)} B/cycle = {_figure(limit * clock)} GB/s")
    place, x = axes.get_position(), axes.get_position().x1 + NOTES / WIDTH
    figure.text(x, place.y1, traffic.memory, fontsize=8, fontweight="bold", color=INK, va="top")
    below = place.y1 - 20 / pixels(figure)[1]
    figure.text(x, below, "\n".join(lines), fontsize=8, color=INK, va="top", linespacing=1.35)


def _figure(value: float) -> str:
    """Three figures, more before the point when there are more."""
    return f"{value:,.0f}" if value >= 99.95 else f"{value:.3g}"


def _side(axes: Axes, rate: NDArray[np.float64], limit: float | None, sign: int) -> float:
    """Draw the limit of one side and return how far its axis reaches; a limit far off is only named."""
    peak = float(rate.max(initial=0.0))
    if limit is None or limit > 4 * peak:
        return 1.25 * peak
    axes.axhline(sign * limit, color=LIMIT, lw=1.2, ls=(0, (5, 3)), zorder=4)
    return 1.25 * max(peak, limit)
