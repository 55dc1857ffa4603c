"""Reports of chips whose groups have cores of several kinds, at 1, 4, 24 and 64 groups."""

from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from matplotlib.figure import Figure

from kernels.conv_backward import conv_backward
from kernels.shape.shapes import ConvShape
from reports import tables
from reports.canvas import pixels
from reports.lanes import layout
from reports.load import SavedRun, load
from reports.names import core_label, kind_label
from reports.perfetto import write_perfetto
from reports.roofline_picture import draw_roofline
from reports.timeline import draw_timeline
from reports.traffic import draw_traffic
from reports.utilisation import draw_utilisation, usage
from tests.unit.reports.parsed import parse
from tests.unit.reports.split import split_run

Draw = Callable[[SavedRun], Figure]


@pytest.fixture(scope="module")
def saved_runs(tmp_path_factory: pytest.TempPathFactory) -> dict[int, SavedRun]:
    """Saved runs by their number of groups."""
    runs = {}
    for groups in (1, 2, 4, 24, 64):
        folder = tmp_path_factory.mktemp(f"groups{groups}")
        split_run(folder, groups, 4).save(folder / "run")
        runs[groups] = load(folder / "run")
    return runs


def texts(figure: Figure) -> list[str]:
    """Text that stands free in a figure or its axes."""
    inside = [text for axes in figure.axes for text in axes.texts]
    return [text.get_text() for text in [*figure.texts, *inside]]


def test_names(saved_runs: dict[int, SavedRun]) -> None:
    """Cores have the names of the tools, and kinds what is common to them."""
    target = saved_runs[2].target
    assert [core_label(target, core) for core in (0, 2, 4)] == [
        "core0.cubecore0",
        "core0.veccore1",
        "core1.veccore0",
    ]
    assert [kind_label(target, kind) for kind in target.core] == ["cubecore", "veccore"]


@pytest.mark.parametrize("groups", [1, 2])
def test_few_cores_have_the_lanes_of_their_kind(saved_runs: dict[int, SavedRun], groups: int) -> None:
    """A vector core has no lane for a cube."""
    lanes = layout(saved_runs[groups]).lanes
    for core in range(3 * groups):
        cube = ["CUBE", "MTE1", "MTE2", "FIXPIPE"]
        expected = cube if core % 3 == 0 else ["MTE2", "MTE3", "VECTOR"]
        assert [lane.label for lane in lanes if lane.core == core] == expected
    figure = draw_timeline(saved_runs[groups])
    figure.draw_without_rendering()
    names = [text for text in figure.axes[0].texts if text.get_text().startswith("core")]
    assert len(names) == 3 * groups
    boxes = [text.get_window_extent() for text in names]
    assert not any(a.overlaps(b) for a, b in pairwise(boxes))


@pytest.mark.parametrize("groups", [4, 24, 64])
def test_stripes_of_many_cores_are_of_their_kind(saved_runs: dict[int, SavedRun], groups: int) -> None:
    """Thin stripes are explained for each kind, and hold only engines that it has."""
    saved = saved_runs[groups]
    found = layout(saved)
    lanes = {lane for part in found.lanes if part.core % 3 for lane in part.engines}
    names = {saved.trace.engines[code] for code in lanes}
    assert names <= set(saved.target.lanes("aiv"))
    text = next(text for text in texts(draw_timeline(saved)) if "top down" in text)
    moving = {"cubecore": ["MTE1", "MTE2"], "veccore": ["MTE2", "MTE3"]}
    for kind, engines in moving.items():
        listed = "/".join(engines) if groups == 64 else "\n".join(engines)
        assert f"of each {kind}, top down:\ncomputes or waits\n{listed}" in text


def test_the_explanation_stands_below_a_long_legend(tmp_path: Path) -> None:
    """Few cores with many instructions: the picture is as high as what stands beside the data."""
    shape = ConvShape(n=1, cin=64, size=(14, 14), cout=64, kernel=(3, 3), padding=1)
    run = conv_backward(shape=shape, dtype="fp16", target="ascend910b1", cores=4, numerics=False)
    run.save(tmp_path / "run")
    figure = draw_timeline(load(tmp_path / "run"))
    figure.draw_without_rendering()
    legend = figure.legends[0].get_window_extent()
    lines = next(text for text in figure.texts if "top down" in text.get_text()).get_window_extent()
    assert lines.y1 <= legend.y0
    assert lines.y0 >= 0


@pytest.mark.parametrize("groups", [1, 2, 4, 24, 64])
@pytest.mark.parametrize("draw", [draw_timeline, draw_utilisation, draw_traffic])
def test_labels_do_not_overlap(saved_runs: dict[int, SavedRun], groups: int, draw: Draw) -> None:
    """Labels of an axis overlap neither one another nor the title of the next axes, and all are in the picture."""
    figure = draw(saved_runs[groups])
    figure.draw_without_rendering()
    titles = [axes._left_title.get_window_extent() for axes in figure.axes if axes._left_title.get_text()]  # type: ignore[attr-defined]
    for axes in figure.axes:
        for axis in (axes.yaxis, axes.xaxis):
            boxes = [label.get_window_extent() for label in axis.get_ticklabels() if label.get_text()]
            assert not any(a.overlaps(b) for a, b in pairwise(boxes))
            assert not any(box.overlaps(title) for box in boxes for title in titles)
            assert all(box.x0 >= 0 and box.y0 >= 0 for box in boxes)
    assert pixels(figure)[1] < 2100


def test_usage_has_gaps_where_a_core_has_no_engine(saved_runs: dict[int, SavedRun]) -> None:
    """The cube's share of a vector core is no number, and its cell is empty."""
    found = usage(saved_runs[1])
    cube, vector = found.lanes.index("CUBE"), found.lanes.index("VECTOR")
    assert found.busy[0, cube] == pytest.approx(4 * 400 / saved_runs[1].cycles)
    assert np.isnan(found.busy[1:, cube]).all()
    assert np.isnan(found.busy[0, vector])
    row = next(line for line in tables.cores_table(found).splitlines() if "veccore1" in line)
    assert row.count("|  |") == 2  # two pairs of empty cells beside each other: CUBE, MTE1 and then FIXPIPE
    assert len(draw_utilisation(saved_runs[1]).axes) == 3


def test_roofline_counts_only_what_crosses_shared_links(saved_runs: dict[int, SavedRun]) -> None:
    """Copies inside a core are on no link."""
    table = tables.roofline_table(saved_runs[1])
    assert f"| the run | {2 * 160 / saved_runs[1].cycles * 1000:,.1f} | 32.77 kB |" in table
    draw_roofline(saved_runs[1])


def test_perfetto_has_a_process_for_each_core(saved_runs: dict[int, SavedRun], tmp_path: Path) -> None:
    """Processes and threads are named as the tools name them."""
    write_perfetto(saved_runs[2], tmp_path / "x.pftrace")
    found = parse(tmp_path / "x.pftrace")
    assert found.threads[:4] == [("core0.cubecore0", lane) for lane in ("CUBE", "MTE1", "MTE2", "FIXPIPE")]
    assert [place for place in found.threads if place[0] == "core1.veccore1"] == [
        ("core1.veccore1", lane) for lane in ("MTE2", "MTE3", "VECTOR")
    ]
    assert len(found.lanes()) == len(saved_runs[2].trace)
    assert list(found.counters) == ["hbm bandwidth", "hbm active transfers"]
