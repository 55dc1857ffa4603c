"""What all pictures share: figures measured in pixels, titles, axes of time, files."""

import warnings
from collections.abc import Callable, Container, Mapping
from io import BytesIO
from pathlib import Path
from typing import Any

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import FuncFormatter, MaxNLocator

from reports.colours import FAINT, INK
from reports.load import SavedRun

DPI = 120
WIDTH = 1800
LEFT, RIGHT, TOP, BOTTOM = 130, 280, 110, 60
"""Pixels: the width of all pictures, and the margins around the data (the legend is on the right)."""

PLOT_WIDTH = WIDTH - LEFT - RIGHT
NOTES = 34
"""Pixels from the data to the legend and other notes, past labels that stick out."""

CHARACTER = 7.6
"""About as many pixels wide is a character of text of size 8."""


def new_figure(plot_height: int) -> Figure:
    """A figure of so many pixels in height for the data, margins added; not of pyplot's global state."""
    return Figure(figsize=(WIDTH / DPI, (plot_height + TOP + BOTTOM) / DPI), dpi=DPI, facecolor="white")


def legend_height(entries: int) -> int:
    """Pixels that a legend of so many entries takes, its title included."""
    return 21 * (entries + 1) + 6


def pixels(figure: Figure) -> tuple[int, int]:
    """Width and height of a figure's file."""
    width, height = figure.get_size_inches() * figure.dpi
    return round(width), round(height)


def add_axes(figure: Figure, top: float, height: float, *, left: int = LEFT, width: int = PLOT_WIDTH) -> Axes:
    """Axes of so many pixels, `top` pixels below the upper margin, without the upper and right spine."""
    whole_width, whole = pixels(figure)
    below = whole - TOP - top - height
    axes = figure.add_axes((left / whole_width, below / whole, width / whole_width, height / whole))
    axes.tick_params(labelsize=8, colors=INK, length=3)
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set_color(FAINT)
    return axes


def write_heading(figure: Figure, title: str, note: str) -> None:
    """The title of a picture above its data, and a smaller line below the title."""
    height, x = pixels(figure)[1], LEFT / WIDTH
    figure.text(x, 1 - 26 / height, title, fontsize=12, fontweight="bold", color=INK, va="center")
    figure.text(x, 1 - 50 / height, note, fontsize=9, color=FAINT, va="center")


def write_title(figure: Figure, saved: SavedRun, what: str, stretch: tuple[int, int]) -> None:
    """The title, with the stretch of cycles unless it is all of the run, and below it what bounds the run."""
    cores = f"{saved.cores} core" + ("s" if saved.cores > 1 else "")
    run = f"{saved.operator} on {saved.target.name}, {cores}, {saved.record['dtype']}"
    first, last = stretch
    part = "" if stretch == (0, saved.cycles) else f", from {first:,} to {last:,}"
    bound = f"the whole run: {saved.metrics.bound}" if part else saved.metrics.bound
    write_heading(figure, f"{what}: {run}, {saved.cycles:,} cycles{part}", bound)


def add_legend(
    figure: Figure, handles: Mapping[str, str], title: str, top: float = 0, lines: Container[str] = ()
) -> None:
    """A legend to the right of the data: coloured fields, and dashes for the labels in `lines`."""
    patches = [_handle(shortened(label, 24), colour, label in lines) for label, colour in handles.items()]
    legend = figure.legend(
        handles=patches,
        title=title,
        loc="upper left",
        bbox_to_anchor=((WIDTH - RIGHT + NOTES) / WIDTH, 1 - (TOP + top - 6) / pixels(figure)[1]),
        frameon=False,
        fontsize=8,
        title_fontsize=8,
        labelcolor=INK,
        handlelength=1.2,
        handleheight=1.0,
        borderaxespad=0,
        alignment="left",
    )
    legend.get_title().set_fontweight("bold")


def _handle(label: str, colour: str, dashed: bool) -> Artist:
    if dashed:
        return Line2D([], [], color=colour, lw=1.5, ls=(0, (3, 2)), label=label)
    return Patch(facecolor=colour, label=label)


def shortened(text: str, length: int) -> str:
    """A text of at most so many characters."""
    return text if len(text) <= length else f"{text[: length - 2]}.."


def cycles_axis(axes: Axes, start: int, end: int, *, label: bool = True) -> None:
    """The lower axis: cycles from `start` to `end`, with separators."""
    axes.set_xlim(start, max(end, start + 1))
    axes.xaxis.set_major_locator(MaxNLocator(nbins=9, integer=True))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
    if label:
        axes.set_xlabel("cycles", fontsize=9, color=INK)


def time_axis(axes: Axes, saved: SavedRun, end: int) -> None:
    """The upper axis: the same in a unit of time that suits an axis which ends at this cycle."""
    unit, size = _unit(saved.target.us(end))
    scale = saved.target.clock_mhz * size  # cycles in one of the unit
    top = axes.secondary_xaxis("top", functions=(_scaled(1 / scale), _scaled(scale)))
    top.xaxis.set_major_locator(MaxNLocator(nbins=9))
    top.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.6g}"))
    top.tick_params(labelsize=8, colors=FAINT, length=3)
    top.spines["top"].set_color(FAINT)
    top.set_xlabel(unit, fontsize=9, color=FAINT)


def _unit(us: float) -> tuple[str, float]:
    """A unit of time and its microseconds."""
    for unit, size in (("s", 1e6), ("ms", 1e3), ("us", 1.0)):
        if us >= 5 * size:
            return unit, size
    return "ns", 1e-3


def _scaled(factor: float) -> Callable[[Any], Any]:
    return lambda value: value * factor


def png_of(figure: Figure) -> bytes:
    """A figure as a PNG file."""
    file = BytesIO()
    _save(figure, file)
    return file.getvalue()


def write_png(figure: Figure) -> Callable[[Path], None]:
    """A writer of a figure's PNG for `write_aside`."""

    def write(path: Path) -> None:
        _save(figure, path)

    return write


def _save(figure: Figure, file: BytesIO | Path) -> None:
    """Write a figure's PNG.

    Names of layers and kernels are the user's: a glyph that the font lacks is drawn as a box, which is seen in the
    picture. Matplotlib's warning says no more than that, in lines of its own code, so it is left out.
    """
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing from", category=UserWarning)
        figure.savefig(file, format="png", dpi=DPI, metadata={"Software": "tilesim"})
