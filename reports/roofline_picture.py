"""The picture of a roofline: work a byte to the right, GFLOP/s up, both logarithmic."""

import math

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator

from reports.canvas import NOTES, PLOT_WIDTH, WIDTH, add_axes, new_figure, shortened, write_title
from reports.colours import FAINT, INK
from reports.load import SavedRun
from reports.roofline import ALL, Point, Roofline, roofline
from simulator.results.metrics import percent

_HEIGHT = 620
_LINES = ("#1d6fa5", "#3fa7a0", "#5a4fa2", "#94bf6a", "#2e7d5b")
_FILLS = (INK, "#d1495b", "#ee8434", "#9b2c6f", "#8c5a2b", "#f4c430")
_MARKS = ("o", "s", "^", "D", "v", "P")
_LINE = 16  # pixels of a line of text


def draw_roofline(saved: SavedRun) -> Figure:
    """Draw the peak, a line for each shared link, and the points of the run and of its longest launches."""
    figure = new_figure(_HEIGHT)
    axes = add_axes(figure, 0, _HEIGHT)
    found = roofline(saved)
    if found is None or not _drawn(found):
        axes.set_axis_off()
        axes.text(0.5, 0.5, "no useful work", transform=axes.transAxes, ha="center", color=FAINT)
    else:
        _draw(figure, axes, found, saved)
    write_title(figure, saved, "Roofline", (0, saved.cycles))
    return figure


def _draw(figure: Figure, axes: Axes, found: Roofline, saved: SavedRun) -> None:
    _set_limits(axes, found)
    axes.grid(which="major", color="#e4e9ee", zorder=0)
    _draw_peak(axes, found, saved)
    for link, colour in zip(found.rates, _LINES, strict=False):
        _draw_link(axes, found, link, colour)
    for name, colour in _coloured(found).items():
        _draw_points(axes, found, name, colour)
    _write_facts(figure, axes, found)


def _drawn(found: Roofline) -> list[Point]:
    """Points with a place: their link carried something."""
    return [point for point in found.points if point.moved]


def _coloured(found: Roofline) -> dict[str, str]:
    """A colour for the run and for the launches with the most work; a run of one such launch is its own."""
    launches = [name for name in found.names if name != ALL]
    if len(launches) == 1 and not found.without:
        return {ALL: _FILLS[0]}
    length = {point.name: point.cycles for point in found.points}
    longest = sorted(launches, key=lambda name: -length[name])[: _most(found) - 1]
    return dict(zip([ALL, *longest], _FILLS, strict=False))


def _most(found: Roofline) -> int:
    """How many names have a colour, and room for their facts beside the picture."""
    links = len(found.rates)
    return min(len(_FILLS), int((_HEIGHT / _LINE - 1.5 * links - 1) / _lines_of(2 + links)))


def _lines_of(facts: int) -> float:
    """Lines of a name with so many facts below it, and of the gap behind them."""
    return facts + 2.3


def _set_limits(axes: Axes, found: Roofline) -> None:
    """Room for every point, and for the place where each line meets the peak."""
    points = _drawn(found)
    x = [point.intensity for point in points] + [found.peak / rate for rate in found.rates.values()]
    y = [found.achieved(point) for point in points] + [found.gflops(found.peak)]
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlim(min(x) / 3, max(x) * 4)
    axes.set_ylim(min(min(y) / 2.5, max(y) / 12), max(y) * 1.8)
    for axis in (axes.xaxis, axes.yaxis):
        axis.set_major_locator(LogLocator(subs=(1, 2, 5), numticks=20))
        axis.set_minor_locator(LogLocator(subs=(), numticks=1))
        axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.6g}"))
    axes.set_xlabel("useful operations for each byte over the link (FLOP/byte)", fontsize=9, color=INK)
    axes.set_ylabel("GFLOP/s", fontsize=9, color=INK)


def _draw_peak(axes: Axes, found: Roofline, saved: SavedRun) -> None:
    peak = found.gflops(found.peak)
    cores = f"{saved.cores} core" + ("s" if saved.cores > 1 else "")
    axes.axhline(peak, color=INK, lw=1.6, zorder=2)
    text = f"peak of {saved.record['dtype']}, {cores}: {peak:,.4g} GFLOP/s"
    place = (0.99, peak * 1.04)
    axes.text(*place, text, fontsize=8, color=INK, ha="right", transform=axes.get_yaxis_transform())


def _draw_link(axes: Axes, found: Roofline, link: str, colour: str) -> None:
    """A line up to the peak, with its name along it near the lower end."""
    rate, peak = found.gflops(found.rates[link]), found.gflops(found.peak)
    left, right = axes.get_xlim()
    low, high = axes.get_ylim()
    meets = peak / rate
    axes.plot([left, meets], [left * rate, peak], color=colour, lw=1.6, zorder=2)
    axes.plot([meets, meets], [low, peak], color=colour, lw=0.7, ls=(0, (2, 3)), zorder=1)
    start = max(left, low / rate)
    slope = _HEIGHT / math.log10(high / low) / (PLOT_WIDTH / math.log10(right / left))
    x = start * (meets / start) ** 0.12
    axes.text(
        x, x * rate * 1.08, f"{link}: {rate:,.4g} GB/s", fontsize=8, color=colour,
        rotation=math.degrees(math.atan(slope)), rotation_mode="anchor", ha="left", va="bottom", zorder=4,
    )  # fmt: skip


def _draw_points(axes: Axes, found: Roofline, name: str, colour: str) -> None:
    """The points of one name at their links, joined: they are the same work at the same speed."""
    links = list(found.rates)
    own = [point for point in _drawn(found) if point.name == name]
    axes.plot(
        [point.intensity for point in own], [found.achieved(point) for point in own], color=colour, lw=0.8,
        ls=(0, (1, 2)), zorder=3,
    )  # fmt: skip
    for point in own:
        link = links.index(point.link) % len(_MARKS)
        axes.plot(
            [point.intensity], [found.achieved(point)], marker=_MARKS[link], ms=10 if name == ALL else 8,
            mfc=colour, mec=_LINES[link % len(_LINES)], mew=2, zorder=5,
        )  # fmt: skip


def _write_facts(figure: Figure, axes: Axes, found: Roofline) -> None:
    """To the right: each name with its colour, speed and ceiling; below, what the marks are."""
    place = axes.get_position()
    x, y = place.x1 + NOTES / WIDTH, place.y1
    line = _LINE / (figure.get_size_inches()[1] * figure.dpi)
    for name, colour in _coloured(found).items():
        figure.text(x, y, shortened(name, 28), fontsize=8, fontweight="bold", color=colour, va="top")
        facts = facts_of(found, name)
        figure.text(x, y - line, "\n".join(facts), fontsize=8, color=INK, va="top", linespacing=1.35)
        y -= line * _lines_of(len(facts))
    words = ("circle", "square", "triangle", "diamond", "wedge", "plus")
    marks = [f"{word}: bytes over {link}" for word, link in zip(words, found.rates, strict=False)]
    figure.text(x, place.y0, "\n".join(marks), fontsize=8, color=FAINT, va="bottom", linespacing=1.4)


def facts_of(found: Roofline, name: str) -> list[str]:
    """Speed, share of the ceiling and which line that is, and operations a byte at each link."""
    own = [point for point in found.points if point.name == name]
    achieved = found.achieved(own[0])
    line, height = found.ceiling(name)
    return [
        f"{achieved:,.4g} GFLOP/s",
        f"{percent(achieved / height)} of the {line if line == 'peak' else line + ' line'}",
        *(f"{point.intensity:,.4g} FLOP/byte of {point.link}" for point in own if point.moved),
    ]
