"""Where a network's time goes: bars of the picture, rows of the table."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from matplotlib.patches import Rectangle

from reports.networks.memory import held
from reports.networks.picture import COLOURS, MOST_BARS, bars_of, draw_network
from reports.networks.times import LayerTime, LayerWork, NetworkTimes, TargetTimes


def made(cycles: Sequence[int], which: Sequence[int], targets: int = 1, refused: str = "") -> NetworkTimes:
    """A network of layers whose distinct ones take so many cycles, a third of them dx."""
    distinct = [LayerTime({"dx": n // 3, "dw": n - n // 3}, 1000) for n in cycles]
    distinct += [LayerTime(refused=refused)] if refused else []
    layers = [LayerWork(f"layer{i}", {}, "1x16x8x8 by 16x16x3x3 p1", 500) for i in range(len(which))]
    times = [
        TargetTimes(f"chip{i}", 4, "fp16", 1000.0, 900.0, False, tuple(distinct), tuple(which))
        for i in range(targets)
    ]
    return NetworkTimes("net.onnx", tuple(layers), tuple(times))


@pytest.mark.parametrize(("layers", "targets"), [(1, 1), (160, 2), (MOST_BARS, 1), (53, 7)])
def test_a_layer_has_a_bar_on_each_target(layers: int, targets: int) -> None:
    """Its width is its time, cut into dx and dw, in one scale a target; names stand at the left of each row."""
    network = made([3 * (i + 1) for i in range(layers)], range(layers), targets)
    figure = draw_network(network)
    assert len(figure.axes) == targets
    for place, axes in enumerate(figure.axes):
        bars = [each for each in axes.patches if isinstance(each, Rectangle)]
        widths = [each.get_width() for each in bars]
        assert widths[:layers] == pytest.approx([(i + 1) / 1000 for i in range(layers)])
        assert widths[layers:] == pytest.approx([2 * (i + 1) / 1000 for i in range(layers)])
        assert axes.get_xlim()[1] > 3 * layers / 1000
        named = [label.get_text() for label in axes.get_yticklabels()]
        assert bool(named[0]) == (place % 3 == 0)
    assert len(figure.legends[0].get_texts()) == 2 < len(COLOURS)


def test_labels_do_not_overlap() -> None:
    """Lines are as far apart as letters are high, however many there are."""
    figure = draw_network(made([9] * 160, range(160)))
    (axes,) = figure.axes
    height = axes.get_window_extent().height / 160
    points = float(axes.get_yticklabels()[0].get_fontsize())
    assert height >= points * figure.dpi / 72


def test_equal_layers_of_a_long_network_share_a_bar() -> None:
    """Of more kinds than there is room for, the greatest have one and the rest one together; nothing is lost."""
    few = made([30, 60, 90], [i % 3 for i in range(3000)])
    assert [sum(bar.layers.values()) for bar in bars_of(few)] == [1000, 1000, 1000]
    assert bars_of(few)[0].label.startswith("1,000 x layer0")
    many = made([3 * i for i in range(1, 401)], [i % 400 for i in range(800)])
    bars = bars_of(many)
    assert len(bars) == MOST_BARS
    assert bars[-1].label == f"{2 * (400 - MOST_BARS + 1):,} others"
    times = many.targets[0]
    assert sum(sum(bar.cycles(times).values()) for bar in bars) == times.total
    assert min(next(iter(bar.layers)) for bar in bars[:-1]) > max(bars[-1].layers)
    draw_network(many)


def test_a_refused_layer_says_why() -> None:
    """In place of a bar, and in place of figures in the table."""
    network = made([30], [0, 1, 0], refused="nothing fits: where memory am")
    texts = [text.get_text() for text in draw_network(network).axes[0].texts]
    assert texts[1].startswith("refused: nothing fits")
    lines = str(network).splitlines()
    assert [line.split()[:2] for line in lines[2:4]] == [["layer0", "2"], ["layer1", "1"]]
    assert lines[3].endswith("refused: nothing fits: where memory am")
    assert network.targets[0].total == 60


def test_shares_and_rates_of_the_table() -> None:
    """A row's share is that of all the layers it stands for."""
    row = str(made([300, 600], [0, 1, 0, 0])).splitlines()[2].split("  ")
    cells = [cell.strip() for cell in row if cell.strip()]
    assert cells == [
        "layer0",
        "3",
        "1x16x8x8 by 16x16x3x3 p1",
        "100",
        "200",
        "0.30 us",
        "6.7",
        "0.7 %",
        "60 %",
    ]


def test_memory_is_counted_backwards() -> None:
    """Gradients of weights add up; dy, dx and workspaces are those of one layer at a time."""
    first = {"dy": 100, "x": 7, "dw": 10, "dw_sums": 20}
    last = {"dy": 30, "x": 100, "w": 5, "dx": 100, "dw_tap_major": 40, "dw_partial": 80, "db": 1}
    found = held([first, last])
    assert (found.weight_gradients, found.image_gradients) == (51, 130)
    assert (found.workspaces, found.workspaces_of_all) == (80, 100)
    assert found.peak == max(41 + 130 + 80, 51 + 100 + 20)
