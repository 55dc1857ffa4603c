"""Rooflines: points and lines by hand, and the picture."""

import dataclasses
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from reports import tables
from reports.canvas import pixels, write_png
from reports.links import link_bytes, link_rate, row_links, shared_links, sizes_on_links
from reports.load import load
from reports.names import core_label
from reports.roofline import ALL, roofline
from reports.roofline_picture import draw_roofline
from simulator.results.run import LaunchRecord
from simulator.results.trace import COLUMNS, Trace
from targets.loader import load_target
from tests.unit.reports.synthetic import chip, synthetic_run
from tests.unit.simulator.made import TWO_TILES, made_run, made_trace, small_target
from tests.unit.targets.davinci import CACHE, write_split


def test_points_by_hand(tmp_path: Path) -> None:
    """1,800 MACs and 520 bytes in 100 cycles at 1,000 MHz; the DDR carries 8 bytes a cycle, the peak is 384."""
    made_run().save(tmp_path)
    found = roofline(load(tmp_path))
    assert found is not None
    run, launch = found.points
    assert (run.name, launch.name, run.link) == (ALL, "conv dx", "ddr")
    assert (
        (run.flops, run.moved, run.cycles) == (launch.flops, launch.moved, launch.cycles) == (3600, 520, 100)
    )
    assert found.achieved(run) == pytest.approx(36.0)
    assert found.attainable(run) == pytest.approx(8 * 3600 / 520)
    line, height = found.ceiling(ALL)
    assert line == "ddr"
    assert height == pytest.approx(8 * 3600 / 520)


def test_much_work_a_byte_is_bound_by_the_peak(tmp_path: Path) -> None:
    """Beyond the place where the lines meet, the peak is the lowest."""
    made_run(useful_macs=100_000).save(tmp_path)
    found = roofline(load(tmp_path))
    assert found is not None
    line, height = found.ceiling(ALL)
    assert line == "peak"
    assert height == pytest.approx(384.0)


def test_launches_have_their_own_work_and_traffic(tmp_path: Path) -> None:
    """Launches of one name are one point; those without useful work are named, and are in the run's point."""
    names = (("fill", 0), ("conv", 600), ("conv", 400), ("pack", 0))
    launches = [
        LaunchRecord(n, "default", 25 * i, 25 * i + 25, 2, useful_macs=u) for i, (n, u) in enumerate(names)
    ]
    rows = [
        (i, 0, "DMA0", "load", 25 * i, 25 * i, 25 * i + 9, 10 << i, "ddr", "am", -1, "none") for i in range(4)
    ]
    made_run(made_trace(rows), launches=launches, useful_macs=1000).save(tmp_path)
    saved = load(tmp_path)
    assert link_bytes(saved).tolist() == [[10], [20], [40], [80]]
    found = roofline(saved)
    assert found is not None
    assert [(p.name, p.flops, p.cycles, p.moved) for p in found.points] == [
        (ALL, 2000, 100, 150),
        ("conv", 2000, 50, 60),
    ]
    assert found.without == ("fill", "pack")
    text = tables.roofline_table(saved)
    assert text.splitlines()[3] == "| conv | 40.0 | 60 B | 33.33 | ddr | 266.7 | 15 % |"
    assert text.endswith("Without useful work, but in the run's time: fill, pack.")


def test_links_of_rows() -> None:
    """A copy takes the link of its path; what is no copy takes none; a core's own links are left out."""
    target = chip(4)
    assert shared_links(target) == ["ddr", "gsm"]
    assert row_links(made_trace(TWO_TILES), small_target()).tolist() == [0, 0, -1, -1, 0, -1]
    own = {
        name: {**memory, "scope": "core"} for name, memory in small_target().model_dump()["memory"].items()
    }
    changed = small_target().model_validate({**small_target().model_dump(), "memory": own})
    assert shared_links(changed) == []
    assert row_links(made_trace(TWO_TILES), changed).tolist() == [-1] * 6


def test_copies_of_a_memory_with_a_cache_take_two_links(tmp_path: Path) -> None:
    """What was resident crosses the cache's link; what was fetched or written back that of the path."""
    target = load_target(write_split(tmp_path, more=CACHE))
    columns = {name: np.zeros(3, dtype=kind) for name, kind in COLUMNS.items()}
    columns |= {"waited_row": np.full(3, -1), "end": np.array([10, 20, 30]), "bytes": np.array([90, 50, 70])}
    columns |= {"source": np.array([0, 1, 2]), "destination": np.array([1, 0, 3])}
    columns |= {
        "hit": np.array([60, 50, 0]),
        "fetched": np.array([100, 0, 0]),
        "evicted": np.array([0, 200, 0]),
    }
    memories = ("gm", "ub", "l1", "l0a")
    axes = ("hit", "fetched", "evicted")
    trace = Trace(columns, engines=("MTE2",), names=("copy",), memories=memories, axes=axes)
    assert shared_links(target) == ["hbm", "l2"]
    assert sizes_on_links(trace, target).tolist() == [[100, 60], [200, 50], [0, 0]]
    assert link_rate(target, "l2", 2) == pytest.approx(40)


def test_link_rate_is_of_the_cheaper_direction() -> None:
    """Of a link whose reads cost half, half of the bandwidth's bytes would be too low a line."""
    numbers = small_target().model_dump()
    numbers["link"]["ddr"] |= {"read_cost": 0.5, "write_cost": 4.0}
    assert link_rate(small_target().model_validate(numbers), "ddr", 2) == pytest.approx(16.0)
    assert link_rate(chip(4), "gsm", 3) == pytest.approx(32 + 8 * 3)


@pytest.mark.parametrize("cores", [1, 4, 24, 64])
def test_picture_holds_all_its_text(cores: int, tmp_path: Path) -> None:
    """At any number of cores the lines and the run are named, and no text leaves the picture."""
    synthetic_run(cores, 3).save(tmp_path)
    figure = draw_roofline(load(tmp_path))
    write_png(figure)(tmp_path / "picture.png")
    assert (tmp_path / "picture.png").read_bytes()[:4] == b"\x89PNG"
    words = [text.get_text() for text in [*figure.texts, *figure.axes[0].texts]]
    assert {ALL, "conv dx"} <= set(words)
    for start in ("peak of fp16", "ddr: ", "gsm: "):
        assert sum(word.startswith(start) for word in words) == 1
    width, height = pixels(figure)
    for text in [*figure.texts, *figure.axes[0].texts]:
        box = text.get_window_extent()
        assert box.x0 >= 0, text.get_text()
        assert box.x1 <= width, text.get_text()
        assert 0 <= box.y0 <= box.y1 <= height, text.get_text()


def test_many_launches_leave_room_for_the_marks(tmp_path: Path) -> None:
    """The longest launches are in the picture, as many as have room, and their facts end above the marks."""
    run = synthetic_run(4, 6)
    conv = run.launches[1]
    step = conv.cycles // 9
    parts = [
        LaunchRecord(
            f"part {i}", "default", conv.start + step * i, conv.start + step * (i + 1) + 9 * i, 4, 100
        )
        for i in range(9)
    ]
    moved = run.trace.replaced(launch=np.arange(len(run.trace), dtype=np.int16) % 9)
    cycles = max(run.cycles, parts[-1].end)
    dataclasses.replace(run, launches=parts, trace=moved, cycles=cycles).save(tmp_path)
    figure = draw_roofline(load(tmp_path))
    figure.draw_without_rendering()
    names = [text.get_text() for text in figure.texts if text.get_text().startswith("part")]
    assert names == [f"part {i}" for i in (8, 7, 6, 5)]
    boxes = [text.get_window_extent() for text in figure.texts[:-2]]  # behind the facts: title and bound
    facts = [box for box in boxes if box.x0 > 1400]
    assert len(facts) == 11
    assert all(above.y0 >= below.y1 - 2 for above, below in pairwise(facts))


def test_points_lie_inside_the_axes_and_below_the_lines(tmp_path: Path) -> None:
    """What ran cannot be faster than its ceiling, and is seen."""
    synthetic_run(4, 6).save(tmp_path)
    saved = load(tmp_path)
    found = roofline(saved)
    assert found is not None
    axes = draw_roofline(saved).axes[0]
    (left, right), (low, high) = axes.get_xlim(), axes.get_ylim()
    for point in found.points:
        assert left < point.intensity < right
        assert low < found.achieved(point) <= found.attainable(point) < high


def test_run_without_useful_work(tmp_path: Path) -> None:
    """A run that computes no product says so."""
    made_run(useful_macs=0).save(tmp_path)
    saved = load(tmp_path)
    assert roofline(saved) is None
    assert "no useful work" in [text.get_text() for text in draw_roofline(saved).axes[0].texts]
    assert tables.roofline_table(saved) == "No useful work was done."


def test_core_labels() -> None:
    """A core is called by its number where its target has no name for it."""
    assert core_label(small_target(), 3) == "core3"
