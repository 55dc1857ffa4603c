"""The picture of a comparison: time, speed against the peak, and traffic, a line a run."""

from collections.abc import Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from reports.canvas import LEFT, add_axes, new_figure, shortened, write_heading
from reports.colours import BACKGROUND, BUSY, INK
from reports.comparison import Compared, Comparison
from simulator.results.metrics import percent
from simulator.results.summary import amount, duration

_LINE = 46  # pixels a run
_LABELS, _GAP, _PANEL = (
    130,
    40,
    480,
)  # pixels: room for the names beyond the usual margin, between and of panels
_SEEN = 40
"""Times by which the longest bar may be longer than the shortest."""
_TITLE: dict[str, Any] = {"fontsize": 9, "fontweight": "bold", "color": INK, "loc": "left", "pad": 6}
_TIME, _READ, _WRITTEN = "#5b84b1", "#1d6fa5", "#ee8434"


def draw_comparison(comparison: Comparison) -> Figure:
    """Draw three bars a run: its time, GFLOP/s within the peak, and the traffic of its main memory."""
    rows = comparison.rows
    figure = new_figure(_LINE * len(rows))
    panels = [
        add_axes(figure, 0, _LINE * len(rows), left=LEFT + _LABELS + i * (_PANEL + _GAP), width=_PANEL)
        for i in range(3)
    ]
    for axes, title in zip(panels, ("time", "GFLOP/s, within the peak", "traffic"), strict=True):
        _prepare(axes, title, len(rows))
    panels[0].set_yticks(range(len(rows)), [_name(row) for row in rows])
    _draw_time(panels[0], rows)
    _draw_speed(panels[1], rows)
    _draw_traffic(panels[2], rows)
    _write_title(figure, comparison)
    return figure


def _name(row: Compared) -> str:
    cores = f"{row.cores} core" + ("s" if row.cores > 1 else "")
    return f"{shortened(row.label, 34)}\n{row.dtype}, {cores}"


def _prepare(axes: Axes, title: str, lines: int) -> None:
    axes.set_ylim(lines - 0.5, -0.5)
    axes.set_yticks([])
    axes.set_xticks([])
    axes.tick_params(axis="y", length=0)
    axes.spines[["bottom"]].set_visible(False)
    axes.set_title(title, **_TITLE)


def _scale(axes: Axes, greatest: float, least: float = 0.0) -> None:
    """Room for the longest bar and a text behind it; logarithmic where the shortest of the bars could not be seen."""
    if not greatest > _SEEN * least > 0:
        axes.set_xlim(0, 1.42 * greatest if greatest else 1)
        return
    low = least / 3
    axes.set_xscale("log")
    axes.minorticks_off()
    axes.set_xticks([])
    axes.set_xlim(low, low * (greatest / low) ** 1.42)
    axes.set_title(f"{axes.get_title(loc='left')} (logarithmic)", **_TITLE)


def _write(axes: Axes, x: float, line: int, text: str) -> None:
    axes.annotate(
        text, (x, line), (5, 0), textcoords="offset points", fontsize=8, color=INK, ha="left", va="center"
    )


def _draw_time(axes: Axes, rows: Sequence[Compared]) -> None:
    _scale(axes, max(row.time_us for row in rows), min(row.time_us for row in rows))
    for line, row in enumerate(rows):
        axes.barh(line, row.time_us, 0.6, color=_TIME)
        _write(axes, row.time_us, line, f"{duration(row.time_us)}\n{row.cycles:,} cycles")


def _draw_speed(axes: Axes, rows: Sequence[Compared]) -> None:
    greatest = max(max(row.peak_gflops, row.achieved_gflops) for row in rows)
    _scale(axes, greatest, min(row.achieved_gflops for row in rows))
    for line, row in enumerate(rows):
        axes.barh(line, row.peak_gflops, 0.6, color=BACKGROUND)
        axes.barh(line, row.achieved_gflops, 0.6, color=BUSY)
        engine = f"\n{row.engine} busy {percent(row.engine_busy)}" if row.engine else ""
        text = f"{row.achieved_gflops:,.0f} of {row.peak_gflops:,.0f}, {percent(row.share_of_peak)}{engine}"
        _write(axes, row.peak_gflops, line, text)


def _draw_traffic(axes: Axes, rows: Sequence[Compared]) -> None:
    _scale(axes, max(row.read_bytes + row.written_bytes for row in rows))
    for line, row in enumerate(rows):
        axes.barh(line, row.read_bytes, 0.6, color=_READ)
        axes.barh(line, row.written_bytes, 0.6, left=row.read_bytes, color=_WRITTEN)
        text = f"{row.memory}: {amount(row.read_bytes, 'B')} read,\n{amount(row.written_bytes, 'B')} written"
        _write(axes, row.read_bytes + row.written_bytes, line, text)


def _write_title(figure: Figure, comparison: Comparison) -> None:
    shape = " ".join(f"{key}={value}" for key, value in comparison.shape.items()).replace(", ", ",")
    write_heading(figure, f"Comparison: {comparison.operator}", shortened(shape, 200))
