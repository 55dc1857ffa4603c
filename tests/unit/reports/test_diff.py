"""Differences of saved runs, by hand."""

import json
from pathlib import Path
from typing import Any

import pytest

from reports.diff import Change, Difference, diff, sentence
from reports.load import SavedRun, load
from simulator.results.run import LaunchRecord
from tests.unit.simulator.made import TWO_TILES, made_run, made_trace, small_target


def saved(folder: Path, **changes: Any) -> SavedRun:
    """A run of two tiles with some fields changed, saved and loaded."""
    made_run(**changes).save(folder)
    return load(folder)


def cells(found: Difference) -> dict[tuple[str, str], tuple[object, object]]:
    """Before and after by part and name."""
    return {(c.part, c.name): (c.before, c.after) for c in found.changes}


def test_equal_runs_have_no_difference(tmp_path: Path) -> None:
    """Nothing is named, and no threshold is passed."""
    found = diff(saved(tmp_path / "a"), saved(tmp_path / "b"))
    assert found.changes == ()
    assert not found.beyond(0.0)
    assert sentence(found) == "no difference"


def test_a_slower_run_names_what_changed_and_where(tmp_path: Path) -> None:
    """A number of the target, a field of the tiling, a product of 10 cycles more and a copy of 8 bytes less."""
    slower = list(TWO_TILES)
    slower[3] = (0, 0, "VPU", "product", 60, 70, 100, 0, "", "", 1, "dependency")
    slower[4] = (0, 0, "DMA0", "store", 90, 100, 106, 32, "am", "ddr", 3, "dependency")
    slower[5] = (0, 0, "SCALAR", "barrier", 91, 108, 109, 0, "", "", -1, "barrier")
    target = small_target().model_copy(update={"clock_mhz": 500.0})
    launches = [LaunchRecord("conv dx", "default", 0, 110, 2), LaunchRecord("pack", "default", 110, 130, 2)]
    found = diff(
        saved(tmp_path / "a"),
        saved(
            tmp_path / "b",
            trace=made_trace(slower),
            target=target,
            cycles=130,
            launches=launches,
            tiling={"rows": 8, "order": ("n", "h"), "ahead": 1},
        ),
    )
    assert cells(found) == {
        ("target", "clock_mhz"): (1000.0, 500.0),
        ("tiling", "rows"): (4, 8),
        ("tiling", "column"): ("blocks", None),
        ("tiling", "ahead"): (None, 1),
        ("time", "cycles"): (100, 130),
        ("time", "time"): (0.1, 0.26),
        ("launch", "pack"): (0, 20),
        ("launch", "conv dx"): (100, 110),
        ("engine", "VPU"): (40, 50),
        ("lost", "launch"): (20, 60),
        ("lost", "no work"): (100, 110),
        ("traffic", "ddr write"): (40, 32),
        ("traffic", "am read"): (40, 32),
    }
    assert found.time_change == pytest.approx(1.6)
    assert (found.beyond(1.59), found.beyond(1.61)) == (True, False)
    assert sentence(found) == "0.10 us to 0.26 us, 160 % longer; pack changed most, it is new"


def test_what_was_asked_for_is_named(tmp_path: Path) -> None:
    """Another operator, shape, type or number of cores comes first."""
    found = diff(saved(tmp_path / "a"), saved(tmp_path / "b", cores=1, dtype="fp16", shape={"n": 2}))
    assert [c.name for c in found.changes if c.part == "asked"] == ["shape", "dtype", "cores"]
    assert found.time_change == 0
    assert sentence(found) == "the time is the same, 0.10 us"


def test_a_shorter_run_is_beyond_the_threshold_too(tmp_path: Path) -> None:
    """Better is a change as well."""
    shorter = saved(tmp_path / "b", cycles=99, launches=[LaunchRecord("conv dx", "default", 0, 99, 2)])
    found = diff(saved(tmp_path / "a"), shorter)
    assert found.time_change == pytest.approx(-0.01)
    assert found.beyond(0.009)
    assert sentence(found) == "0.10 us to 0.10 us, 1 % shorter; conv dx changed most, -1.00 %"


def test_record_and_cells_are_plain(tmp_path: Path) -> None:
    """A record is JSON; a change of something to nothing has no ratio."""
    found = diff(saved(tmp_path / "a"), saved(tmp_path / "b", cycles=120, tiling={"rows": 8}))
    record = found.to_dict()
    assert json.loads(json.dumps(record, allow_nan=False)) == record
    assert Change("traffic", "ddr read", 0, 5000, "B").cells() == ["traffic", "ddr read", "0 B", "5 kB", ""]
    assert Change("tiling", "column", "blocks", None).cells() == ["tiling", "column", "blocks", "(none)", ""]
    assert Change("time", "cycles", 100, 90, "cycles").cells()[2:] == ["100", "90", "-10.00 %"]
    assert Change("tiling", "flag", True, False).ratio is None


def test_from_no_time_at_all() -> None:
    """From nothing to something is beyond every threshold."""
    assert Difference((), 0.0, 1.0).beyond(1e9)
    assert not Difference((), 0.0, 0.0).beyond(0)
