"""Where a network's time goes: a bar for each layer on each target, cut into forward, dx and dw."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from reports.canvas import LEFT, PLOT_WIDTH, TOP, WIDTH, add_axes, add_legend, new_figure, pixels
from reports.colours import FAINT, INK
from reports.network import PARTS, LayerWork, NetworkTimes, TargetTimes
from reports.network_rows import shortened
from simulator.results.metrics import percent
from simulator.results.summary import duration

COLOURS = {"forward": "#7cc3ec", "dx": "#1d6fa5", "dw": "#ee8434", "db": "#9b2c6f"}
REFUSED = "#d1495b"

LINE, GAP, HEAD = 15, 40, 30
"""Pixels: a bar's line, the distance between blocks of panels, and a panel's own title."""

MOST_BARS = 200
"""Layers that have a bar of their own; of more, those that take longest have one, and one bar has the rest."""

ACROSS = 3
"""Panels beside each other; more stand below."""

_NAMES, _BETWEEN = 230, 40
_ROOM = 1.3
"""The longest bar leaves room for its text."""


def draw_network(network: NetworkTimes) -> Figure:
    """Draw a panel for each target with a bar for each layer in the order of the network."""
    chosen, rest = _chosen(network)
    lines = len(chosen) + bool(rest)
    block = HEAD + LINE * lines + GAP
    rows = [network.targets[i : i + ACROSS] for i in range(0, len(network.targets), ACROSS)]
    figure = new_figure(block * len(rows))
    for number, row in enumerate(rows):
        width = (PLOT_WIDTH + LEFT - _NAMES - _BETWEEN * (len(row) - 1)) // len(row)
        for place, times in enumerate(row):
            left = _NAMES + place * (width + _BETWEEN)
            axes = add_axes(figure, number * block + HEAD, LINE * lines, left=left, width=width)
            _draw(axes, times, chosen, rest, width)
            names = [_label(network.layers[i]) for i in chosen] + [f"{len(rest):,} others"] * bool(rest)
            axes.set_yticks(range(lines), names if place == 0 else [])
    _write_title(figure, network)
    parts = [part for part in PARTS if any(part in times.cycles for times in network.targets)]
    add_legend(figure, {part: COLOURS[part] for part in parts}, "part", top=HEAD)
    return figure


def _label(layer: LayerWork) -> str:
    return shortened(layer.name, 34)


def _chosen(network: NetworkTimes) -> tuple[list[int], list[int]]:
    """Layers with a bar of their own, in order, and the others."""
    count = len(network.layers)
    if count <= MOST_BARS:
        return list(range(count)), []

    def weight(place: int) -> float:
        return max(times.share(times.layer(place).total) for times in network.targets)

    own = set(sorted(range(count), key=lambda place: -weight(place))[: MOST_BARS - 1])
    return sorted(own), [place for place in range(count) if place not in own]


def _draw(axes: Axes, times: TargetTimes, chosen: Sequence[int], rest: Sequence[int], width: int) -> None:
    """The bars of a target: a stack of parts each, with time and share behind it."""
    bars = [dict(times.layer(place).cycles) for place in chosen]
    if rest:
        bars.append({part: sum(times.layer(i).cycles.get(part, 0) for i in rest) for part in times.cycles})
    longest = max(times.us(sum(bar.values())) for bar in bars) or 1.0
    axes.set_xlim(0, longest * (_ROOM if width > 600 else _ROOM + 0.3))
    axes.set_ylim(len(bars) - 0.5, -0.5)
    axes.tick_params(axis="y", length=0, labelsize=7)
    axes.tick_params(axis="x", labelbottom=False, length=0)
    axes.spines["bottom"].set_visible(False)
    left = [0.0] * len(bars)
    for part in PARTS:
        sizes = [times.us(bar.get(part, 0)) for bar in bars]
        if any(sizes):
            axes.barh(range(len(bars)), sizes, 0.72, left=left, color=COLOURS[part])
        left = [a + b for a, b in zip(left, sizes, strict=True)]
    for line, bar in enumerate(bars):
        cycles = sum(bar.values())
        why = times.layer(chosen[line]).refused if line < len(chosen) else ""
        text = f"{percent(times.share(cycles))}  {duration(times.us(cycles))}"
        _write(axes, left[line], line, f"refused: {shortened(why, width // 8)}" if why else text, bool(why))
    total = f"{times.target}: {duration(times.us(times.total))}, {times.cores} cores, {times.dtype}"
    less = f", without {times.refused:,} refused" if times.refused else ""
    axes.set_title(total + less, fontsize=9, fontweight="bold", color=INK, loc="left", pad=5)


def _write(axes: Axes, x: float, line: int, text: str, refused: bool) -> None:
    colour = REFUSED if refused else INK
    axes.annotate(
        text, (x, line), (4, 0), textcoords="offset points", fontsize=7, color=colour, ha="left", va="center"
    )


def _write_title(figure: Figure, network: NetworkTimes) -> None:
    height = pixels(figure)[1]
    what = "a training step" if network.step else "backward"
    title = f"Where the time goes: {what} of {network.model}, {len(network.layers):,} convolutions"
    x = LEFT / WIDTH
    figure.text(x, 1 - 26 / height, title, fontsize=12, fontweight="bold", color=INK, va="center")
    missing = sum(network.others.values())
    note = f"one bar a convolution, from input to output; {missing:,} other operators are not simulated"
    figure.text(x, 1 - (TOP - 60) / height, note, fontsize=9, color=FAINT, va="center")
