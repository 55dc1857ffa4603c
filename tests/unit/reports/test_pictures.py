"""Pictures for 1, 4, 24 and 64 cores, and what stands in them."""

import struct
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from matplotlib.figure import Figure

from reports.canvas import new_figure, pixels, png_of, write_heading, write_png
from reports.colours import instruction_colours, reason_colours
from reports.load import SavedRun, load
from reports.timeline import draw_timeline
from reports.traffic import draw_traffic, link_limit, traffic_over_time
from reports.utilisation import draw_utilisation, usage
from simulator.results.trace import Trace
from tests.unit.reports.synthetic import chip, synthetic_run
from tests.unit.simulator.made import made_run, made_trace

Draw = Callable[[SavedRun], Figure]


@pytest.fixture(scope="module")
def saved_runs(tmp_path_factory: pytest.TempPathFactory) -> dict[int, SavedRun]:
    """Saved runs by their number of cores; the last core of 4 is idle."""
    runs = {}
    for cores, tiles, idle in ((1, 8, 0), (4, 10, 1), (24, 12, 0), (64, 12, 3)):
        folder = tmp_path_factory.mktemp(f"cores{cores}")
        synthetic_run(cores, tiles, idle=idle).save(folder)
        runs[cores] = load(folder)
    return runs


def labels(figure: Figure) -> list[str]:
    """Labels of the vertical axis of the first axes."""
    return [label.get_text() for label in figure.axes[0].get_yticklabels()]


def texts(figure: Figure) -> list[str]:
    """All text of a figure that stands free, in its axes or as their titles."""
    inside = [text for axes in figure.axes for text in [*axes.texts, axes.title, axes._left_title]]  # type: ignore[attr-defined]
    return [text.get_text() for text in [*figure.texts, *inside]]


def legend_labels(figure: Figure) -> list[str]:
    """What the legends name."""
    return [text.get_text() for legend in figure.legends for text in legend.get_texts()]


@pytest.mark.parametrize("cores", [1, 4, 24, 64])
@pytest.mark.parametrize("draw", [draw_timeline, draw_utilisation, draw_traffic])
def test_files_are_pngs_of_the_figure_size(
    saved_runs: dict[int, SavedRun], cores: int, draw: Draw, tmp_path: Path
) -> None:
    """Every picture is a PNG, 1800 pixels wide, and of a height that a screen can scroll."""
    figure = draw(saved_runs[cores])
    write_png(figure)(tmp_path / "picture.png")
    data = (tmp_path / "picture.png").read_bytes()
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    assert struct.unpack(">II", data[16:24]) == pixels(figure)
    assert pixels(figure)[0] == 1800
    assert 250 < pixels(figure)[1] < 1700


def test_timeline_of_few_cores_names_every_engine(saved_runs: dict[int, SavedRun]) -> None:
    """Four cores have five lanes each, an idle one too, and the cores' names."""
    figure = draw_timeline(saved_runs[4])
    assert labels(figure) == ["launch", *("SCALAR", "VPU", "DMA0", "DMA1", "DMA2") * 4]
    assert {"core0", "core1", "core2", "core3"} <= set(texts(figure))


@pytest.mark.parametrize("cores", [24, 64])
def test_timeline_of_many_cores_names_every_core(saved_runs: dict[int, SavedRun], cores: int) -> None:
    """Each of many cores has one label, and a note says what its stripes are."""
    figure = draw_timeline(saved_runs[cores])
    assert labels(figure) == ["launch", *(f"core{core}" for core in range(cores))]
    assert any("computes or waits\nDMA0\nDMA1\nDMA2" in text for text in texts(figure))


def test_timeline_of_very_many_cores_leaves_labels_out(tmp_path: Path) -> None:
    """Labels of 128 cores would overlap, so every second is left out."""
    synthetic_run(128, 1).save(tmp_path)
    assert labels(draw_timeline(load(tmp_path)))[1:4] == ["core0", "core2", "core4"]


@pytest.mark.parametrize("cores", [1, 4, 24, 64])
@pytest.mark.parametrize("draw", [draw_timeline, draw_utilisation, draw_traffic])
def test_labels_do_not_overlap(saved_runs: dict[int, SavedRun], cores: int, draw: Draw) -> None:
    """Labels of an axis do not overlap one another or a legend, and no text reaches beyond the picture."""
    figure = draw(saved_runs[cores])
    figure.draw_without_rendering()
    for axes in figure.axes:
        for axis in (axes.yaxis, axes.xaxis):
            boxes = [label.get_window_extent() for label in axis.get_ticklabels() if label.get_text()]
            assert not any(a.overlaps(b) for a, b in pairwise(boxes))
            for legend in figure.legends:
                assert not any(legend.get_window_extent().overlaps(box) for box in boxes)
    for text in [*figure.texts, *(text for legend in figure.legends for text in legend.get_texts())]:
        box = text.get_window_extent()
        assert box.x0 >= 0
        assert box.y0 >= 0
        assert box.x1 <= pixels(figure)[0]
        assert box.y1 <= pixels(figure)[1]


def test_long_legends_have_room(tmp_path: Path) -> None:
    """Many instructions and reasons on one core make the pictures higher; no legend is cut off."""
    names = tuple(f"op{i}" for i in range(20))
    reasons = ("issue", "engine", "barrier", "flag", "dependency", "dependency", "dependency")
    rows = [(0, 0, "VPU", "product", 9 * i, 9 * i, 9 * i + 5, 0, "", "", -1, "none") for i in range(20)]
    rows = [(*row[:10], i % 3 - 1, reasons[i % 7]) for i, row in enumerate(rows)]
    rows += [(0, 0, "DMA0", "load", 0, 0, 5, 64, "ddr", "am", -1, "none")] * 8
    trace = made_trace(rows)
    lists = {**trace.lists(), "names": names}
    made_run(Trace({**trace.columns(), "name": np.arange(28) % 20}, **lists), cores=1, cycles=200).save(
        tmp_path
    )
    for figure in (draw_timeline(load(tmp_path)), draw_utilisation(load(tmp_path))):
        figure.draw_without_rendering()
        assert all(legend.get_window_extent().y0 >= 0 for legend in figure.legends)


def test_timeline_legend_and_launches(saved_runs: dict[int, SavedRun]) -> None:
    """The legend names what computes, moves and waits, in this order; the strip names launches."""
    figure = draw_timeline(saved_runs[1])
    assert legend_labels(figure) == [
        "matmul",
        "col2im",
        "load dy",
        "load w",
        "store dx",
        "zero dx",
        "barrier",
    ]
    assert {"zero dx", "conv dx"} <= set(texts(figure))


def test_timeline_boxes_have_the_times(tmp_path: Path) -> None:
    """Of few instructions each is a box from its start to its end, in the lane of its engine."""
    made_run(cores=1).save(tmp_path)
    axes = draw_timeline(load(tmp_path)).axes[0]
    boxes = [np.asarray(path.vertices) for c in axes.collections for path in c.get_paths() if len(path) == 5]
    found = [(int(corners[0, 0]), int(corners[1, 0])) for corners in boxes]
    assert set(found) >= {(10, 40), (12, 70), (40, 60), (70, 90), (90, 96), (98, 99)}


def test_names_of_copies_that_overlap_stand_beside_each_other(tmp_path: Path) -> None:
    """A copy that starts up while the one before streams is drawn over it, and both names stay readable."""
    rows = [(0, 0, "DMA0", "load", 0, 100 * i, 100 * i + 150, 64, "ddr", "am", -1, "none") for i in range(5)]
    made_run(made_trace(rows), cores=1, cycles=600).save(tmp_path)
    figure = draw_timeline(load(tmp_path))
    figure.draw_without_rendering()
    names = [text for text in figure.axes[0].texts if text.get_text() == "load"]
    assert [text.get_position()[0] for text in names] == [50, 150, 250, 350, 475]
    boxes = [text.get_window_extent() for text in names]
    assert not any(a.overlaps(b) for a, b in pairwise(boxes))


def test_timeline_of_a_stretch(saved_runs: dict[int, SavedRun]) -> None:
    """The axis spans the stretch, in cycles below and in time above."""
    figure = draw_timeline(saved_runs[4], 5000, 9000)
    figure.draw_without_rendering()
    axes = figure.axes[0]
    assert axes.get_xlim() == (5000, 9000)
    top = axes.child_axes[0]
    assert top.get_xlim() == pytest.approx((5000 / 1800, 9000 / 1800))


def test_a_large_trace_is_drawn_as_images(tmp_path: Path) -> None:
    """200,000 instructions on 24 cores are images and not boxes, which would take minutes."""
    run = synthetic_run(24, 1700)
    assert len(run.trace) > 200_000
    run.save(tmp_path)
    saved = load(tmp_path)
    for draw in (draw_timeline, draw_utilisation, draw_traffic):
        write_png(draw(saved))(tmp_path / "picture.png")
    axes = draw_timeline(saved).axes[0]
    assert len(axes.images) == 24 * 4
    assert sum(len(c.get_paths()) for c in axes.collections) < 10


def test_large_picture_has_the_colour_of_what_ran(tmp_path: Path) -> None:
    """A lane that computes all the time is painted in the colour of what it computes."""
    row = (0, 0, "VPU", "product", 0, 0, 1, 0, "", "", -1, "none")
    one = made_trace([row])
    many = Trace.concat([one.replaced(start=one["start"] + i, end=one["end"] + i) for i in range(3000)])
    made_run(many, cores=1, cycles=3000).save(tmp_path)
    image = np.asarray(draw_timeline(load(tmp_path)).axes[0].images[0].get_array())
    red, green, blue = (round(255 * float(value)) for value in image[0, 700])
    assert f"#{red:02x}{green:02x}{blue:02x}" == instruction_colours(many)["product"]


def test_pictures_of_an_empty_run(tmp_path: Path) -> None:
    """A run without instructions has pictures too."""
    made_run(made_trace([]), cycles=0, launches=[]).save(tmp_path)
    for draw in (draw_timeline, draw_utilisation, draw_traffic):
        write_png(draw(load(tmp_path)))(tmp_path / "picture.png")


def test_usage_by_core_and_lane(tmp_path: Path) -> None:
    """Busy shares of the whole run and of a stretch, with the idle core's zeros."""
    made_run().save(tmp_path)
    whole, part = usage(load(tmp_path)), usage(load(tmp_path), 40, 80)
    assert (whole.cores, whole.lanes) == ((0, 1), ("SCALAR", "VPU", "DMA0", "DMA1"))
    assert whole.busy.tolist() == [[0.01, 0.4, 0.36, 0.58], [0, 0, 0, 0]]
    assert part.busy[0].tolist() == [0, 0.75, 0, 0.75]
    assert whole.table is not None
    assert part.table is None


@pytest.mark.parametrize(("cores", "panels"), [(1, 1), (4, 4), (24, 6), (64, 6)])
def test_utilisation_panels(saved_runs: dict[int, SavedRun], cores: int, panels: int) -> None:
    """Few cores have a panel each; of many cores each engine has one, the main one first."""
    figure = draw_utilisation(saved_runs[cores])
    assert len(figure.axes) == panels
    assert legend_labels(figure)[0] == "busy"
    if cores > 8:
        assert any(text.startswith("VPU: ") for text in texts(figure))
        assert figure.axes[0].get_title(loc="left").startswith("VPU: ")
    else:
        assert labels(figure) == ["SCALAR", "VPU", "DMA0", "DMA1", "DMA2", "DMA3"]


def test_traffic_over_time_by_hand(tmp_path: Path) -> None:
    """Bytes a cycle of two loads that overlap and of a store, cycle by cycle."""
    made_run(cores=1).save(tmp_path)
    ddr, am = traffic_over_time(load(tmp_path))
    # 240 bytes over 10..40 on one channel, 240 over 12..70 on the other; 40 bytes over 90..96. The link's shares are
    # 8 to cycle 12, 4 and 4 to 40, 8 to 70; each copy has its own bytes.
    first, second = 240 / (8 * 2 + 4 * 28), 240 / (4 * 28 + 8 * 30)
    assert ddr.read[[9, 11, 20, 60, 80]] == pytest.approx([0, 8 * first, 4 * (first + second), 8 * second, 0])
    assert ddr.write[[89, 93, 97]] == pytest.approx([0, 40 / 6, 0])
    assert am.write == pytest.approx(ddr.read)
    assert (ddr.read_limit, ddr.write_limit, am.write_limit) == (8.0, 8.0, None)


def test_traffic_keeps_all_bytes(saved_runs: dict[int, SavedRun]) -> None:
    """The areas of the picture are the bytes of the trace."""
    saved = saved_runs[24]
    for panel in traffic_over_time(saved):
        width = panel.edges[1] - panel.edges[0]
        moved = saved.metrics.traffic_bytes[panel.memory]
        assert (panel.read.sum() * width, panel.write.sum() * width) == pytest.approx(
            (moved["read"], moved["write"])
        )


def test_link_limits() -> None:
    """A limit has its efficiency and the cores' part; a memory of a core, or of no path, has none."""
    target = chip(4)
    assert link_limit(target, "ddr", "read", 4) == pytest.approx(0.9 * (40 + 21 * 4) / 1.8, abs=1e-4)
    assert link_limit(target, "gsm", "read", 4) == 32 + 8 * 4
    assert link_limit(target, "gsm", "write", 4) is None
    assert link_limit(target, "am", "read", 4) is None


def test_limit_that_is_far_off_does_not_squash_the_traffic(tmp_path: Path) -> None:
    """A limit beyond four times the peak is named beside the panel and not drawn."""
    row = (0, 0, "DMA0", "load", 0, 0, 100, 50, "ddr", "am", -1, "none")
    made_run(made_trace([row]), cores=1).save(tmp_path)
    figure = draw_traffic(load(tmp_path))
    assert figure.axes[0].get_ylim()[1] == pytest.approx(1.25 * 0.5)
    assert any("limit 8 B/cycle" in text for text in texts(figure))


def test_colours_are_told_apart() -> None:
    """Each name has a colour of its own, except that those beyond the palette share one."""
    names = [f"op{i}" for i in range(9)]
    trace = made_trace(
        [(0, 0, "VPU", "product", i, i, i + 9 - i % 9, 0, "", "", -1, "none") for i in range(9)]
    )
    many = Trace({**trace.columns(), "name": np.arange(9)}, **{**trace.lists(), "names": tuple(names)})
    colours = instruction_colours(many)
    assert list(colours) == names
    assert len({colours[name] for name in names[:6]}) == 6
    assert len({colours[name] for name in names[6:]}) == 1


def test_reasons_keep_their_colours() -> None:
    """A reason has the same colour whatever stands beside it; waits for lanes differ from one another."""
    few, more = reason_colours(("barrier",)), reason_colours(("waits for DMA1", "barrier", "waits for DMA0"))
    assert few["barrier"] == more["barrier"]
    assert len(set(more.values())) == 3


def test_a_glyph_that_the_font_lacks_is_no_warning(tmp_path: Path) -> None:
    """Warnings are errors here: a name of the user's may have any glyph, and is drawn with a box for it."""
    figure = new_figure(100)
    write_heading(figure, "\u5c42 1", "")
    assert png_of(figure).startswith(b"\x89PNG")
    write_png(figure)(tmp_path / "picture.png")
    assert (tmp_path / "picture.png").read_bytes() == png_of(figure)
