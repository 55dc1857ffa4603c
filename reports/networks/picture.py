"""Where a network's time goes: a bar for each layer on each target, cut into forward, dx and dw."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from reports.canvas import LEFT, PLOT_WIDTH, add_axes, add_legend, new_figure, write_heading
from reports.colours import INK
from reports.networks.rows import shortened
from reports.networks.times import PARTS, LayerWork, NetworkTimes, TargetTimes
from simulator.results.metrics import percent
from simulator.results.summary import duration

COLOURS = {"forward": "#7cc3ec", "dx": "#1d6fa5", "dw": "#ee8434", "db": "#9b2c6f"}
REFUSED = "#d1495b"

LINE, GAP, HEAD = 15, 40, 44
"""Pixels: a bar's line, the distance between blocks of panels, and a panel's own title."""

MOST_BARS = 200
"""Layers that have a bar of their own. Of more, equal ones share a bar; if these are too many, one has the rest."""

ACROSS = 3
"""Panels beside each other; more stand below."""

_NAMES, _BETWEEN = 440, 40
_CHARACTER, _BOLD = 6.4, 9.5
"""About as many pixels wide is a character of a label, and of a panel's title."""

_LEAST = 34
"""Characters of a name that stand before its sizes are cut."""

_TEXT = 190
"""About as many pixels, as a part of what bars have, does the text behind the longest bar need."""


@dataclass(frozen=True)
class Bar:
    """A line of the picture: layers that are shown as one.

    Attributes:
        label: name and sizes.
        layers: how many of each layer, by its place in the network.
    """

    label: str
    layers: Mapping[int, int]

    def cycles(self, times: TargetTimes) -> dict[str, int]:
        """Cycles by part on a target."""
        found: Counter[str] = Counter()
        for place, count in self.layers.items():
            for part, cycles in times.layer(place).cycles.items():
                found[part] += count * cycles
        return dict(found)

    def refused(self, times: TargetTimes) -> str:
        """Why the target runs none of it."""
        return times.layer(next(iter(self.layers))).refused if len(self.layers) == 1 else ""


def draw_network(network: NetworkTimes) -> Figure:
    """Draw a panel for each target with a bar for each layer in the order of the network."""
    bars = bars_of(network)
    block = HEAD + LINE * len(bars) + GAP
    rows = [network.targets[i : i + ACROSS] for i in range(0, len(network.targets), ACROSS)]
    figure = new_figure(block * len(rows))
    width = (PLOT_WIDTH + LEFT - _NAMES - _BETWEEN * (len(rows[0]) - 1)) // len(rows[0])
    for number, row in enumerate(rows):
        for place, times in enumerate(row):
            left = _NAMES + place * (width + _BETWEEN)
            axes = add_axes(figure, number * block + HEAD, LINE * len(bars), left=left, width=width)
            _draw(axes, times, bars, width)
            axes.set_yticks(range(len(bars)), [bar.label for bar in bars] if place == 0 else [""] * len(bars))
    _write_title(figure, network)
    parts = [part for part in PARTS if any(part in times.cycles for times in network.targets)]
    add_legend(figure, {part: COLOURS[part] for part in parts}, "part", top=HEAD)
    return figure


def bars_of(network: NetworkTimes) -> list[Bar]:
    """A bar for each layer; of too many, one for each kind that takes long, and one for the rest."""
    if len(network.layers) <= MOST_BARS:
        return [Bar(_label(layer, 1), {place: 1}) for place, layer in enumerate(network.layers)]
    kinds = Counter(_kinds(network))
    first = {kind: place for place, kind in reversed(list(enumerate(_kinds(network))))}
    bars = [
        Bar(_label(network.layers[first[kind]], count), {first[kind]: count}) for kind, count in kinds.items()
    ]
    if len(bars) <= MOST_BARS:
        return bars
    ranked = sorted(bars, key=lambda bar: -_weight(network, bar))
    own = {id(bar) for bar in ranked[: MOST_BARS - 1]}
    rest = {place: count for bar in ranked[MOST_BARS - 1 :] for place, count in bar.layers.items()}
    others = Bar(f"{sum(rest.values()):,} others", rest)
    return [*(bar for bar in bars if id(bar) in own), others]


def _kinds(network: NetworkTimes) -> list[tuple[int, ...]]:
    """For each layer, its place among the distinct ones of every target."""
    return list(zip(*(times.which for times in network.targets), strict=True))


def _weight(network: NetworkTimes, bar: Bar) -> float:
    """The greatest share that a bar has on a target."""
    return max(times.share(sum(bar.cycles(times).values())) for times in network.targets)


def _label(layer: LayerWork, count: int) -> str:
    """How many, name and sizes, as far as there is room."""
    room = int((_NAMES - 40) / _CHARACTER)
    many = f"{count:,} x " if count > 1 else ""
    name = shortened(layer.name, max(_LEAST, room - 2 - len(many) - len(layer.sizes)))
    return f"{many}{name}  {shortened(layer.sizes, room - 2 - len(many) - len(name))}"


def _draw(axes: Axes, times: TargetTimes, bars: Sequence[Bar], width: int) -> None:
    """The bars of a target: a stack of parts each, with share and time behind it."""
    cycles = [bar.cycles(times) for bar in bars]
    longest = max(times.us(sum(each.values())) for each in cycles) or 1.0
    axes.set_xlim(0, longest * (1 + _TEXT / width))
    axes.set_ylim(len(bars) - 0.5, -0.5)
    axes.tick_params(axis="y", length=0, labelsize=7)
    axes.tick_params(axis="x", labelbottom=False, length=0)
    axes.spines["bottom"].set_visible(False)
    left = [0.0] * len(bars)
    for part in PARTS:
        sizes = [times.us(each.get(part, 0)) for each in cycles]
        if any(sizes):
            axes.barh(range(len(bars)), sizes, 0.72, left=left, color=COLOURS[part])
        left = [a + b for a, b in zip(left, sizes, strict=True)]
    for line, (bar, each) in enumerate(zip(bars, cycles, strict=True)):
        why, total = bar.refused(times), sum(each.values())
        text = f"{percent(times.share(total))}  {duration(times.us(total))}"
        _write(axes, left[line], line, f"refused: {shortened(why, width // 8)}" if why else text, bool(why))
    axes.set_title(_title(times, width), fontsize=9, fontweight="bold", color=INK, loc="left", pad=5)


def _title(times: TargetTimes, width: int) -> str:
    """Two lines: the target and its time, and how it was used."""
    room = int(width / _BOLD)
    less = f", without {times.refused:,} refused" if times.refused else ""
    time = duration(times.us(times.total))
    first = f"{shortened(times.target, max(12, room - 2 - len(time)))}: {time}"
    return f"{first}\n{shortened(f'{times.cores} cores, {times.dtype}{less}', room)}"


def _write(axes: Axes, x: float, line: int, text: str, refused: bool) -> None:
    colour = REFUSED if refused else INK
    axes.annotate(
        text, (x, line), (4, 0), textcoords="offset points", fontsize=7, color=colour, ha="left", va="center"
    )


def _write_title(figure: Figure, network: NetworkTimes) -> None:
    what = "a training step" if network.step else "backward"
    title = f"Where the time goes: {what} of {network.model}, {len(network.layers):,} convolutions"
    missing = sum(network.others.values())
    note = f"one bar a convolution, from input to output; {missing:,} other operators are not simulated"
    write_heading(figure, title, note)
