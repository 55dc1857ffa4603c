"""Reading saved runs back, and refusing what is none."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from reports.load import load
from simulator.results.files import RunFileError
from targets.errors import TilesimError
from tests.unit.simulator.made import TWO_TILES, made_run, made_trace, small_target


def test_load_gives_the_run_back(tmp_path: Path) -> None:
    """Target, launches, trace, figures and summary are those of the run that was saved."""
    run = made_run()
    run.save(tmp_path)
    saved = load(tmp_path)
    assert saved.target == small_target()
    assert list(saved.launches) == run.launches
    assert saved.trace == run.trace
    assert saved.metrics.utilisation == run.metrics.utilisation
    assert str(saved.summary()) == str(run.summary())
    assert (saved.operator, saved.cores, saved.cycles) == ("conv_backward", 2, 100)


def damage(change: Callable[[dict[str, Any]], object]) -> Callable[[Path], None]:
    """A change of the object in run.json."""

    def apply(folder: Path) -> None:
        record = json.loads((folder / "run.json").read_text())
        change(record)
        (folder / "run.json").write_text(json.dumps(record))

    return apply


@pytest.mark.parametrize(
    ("break_it", "message"),
    [
        (lambda folder: (folder / "run.json").unlink(), "there is no saved run: where .*run.json"),
        (lambda folder: (folder / "run.json").write_text("{"), "not a file of JSON"),
        (lambda folder: (folder / "run.json").write_text("[]"), "not a saved run of tilesim"),
        (
            lambda folder: (folder / "run.json").write_text('{"format": "other"}'),
            "not a saved run of tilesim",
        ),
        (
            damage(lambda record: record.update(format_version=9)),
            "newer tilesim.*got format 9.*limit format 1",
        ),
        (damage(lambda record: record.update(format_version="x")), "damaged.*format_version 'x'"),
        (damage(lambda record: record.pop("target_numbers")), "damaged.*target_numbers"),
        (damage(lambda record: record["target_numbers"].pop("clock_mhz")), "damaged.*clock_mhz"),
        (damage(lambda record: record["launches"][0].pop("kind")), "damaged.*kind"),
        (lambda folder: (folder / "trace.parquet").unlink(), "there is no trace"),
        (
            lambda folder: made_trace(TWO_TILES[:2]).write(folder / "trace.parquet"),
            "belongs to another run.*2 rows",
        ),
    ],
)
def test_what_is_no_run_is_refused(tmp_path: Path, break_it: Callable[[Path], Any], message: str) -> None:
    """Each way to be missing, foreign, newer or damaged has an error that names the file and the reason."""
    made_run().save(tmp_path)
    break_it(tmp_path)
    with pytest.raises(RunFileError, match=message):
        load(tmp_path)


def test_missing_directory_is_refused(tmp_path: Path) -> None:
    """A path that is not there, or is a file, is no saved run."""
    (tmp_path / "file").write_text("")
    for name in ("none", "file"):
        with pytest.raises(RunFileError, match="there is no saved run"):
            load(tmp_path / name)


@pytest.mark.parametrize("stretch", [(-1, 5), (50, 50), (60, 50), (0, 101)])
def test_stretches_outside_are_refused(tmp_path: Path, stretch: tuple[int, int]) -> None:
    """A stretch that is empty, reversed or beyond the run is an error with the run's limits."""
    made_run().save(tmp_path)
    with pytest.raises(TilesimError, match=r"not a stretch of the run.*limit 0 to 100"):
        load(tmp_path).window(*stretch)


def test_stretches_default_to_the_run(tmp_path: Path) -> None:
    """Either end may be left out."""
    made_run().save(tmp_path)
    saved = load(tmp_path)
    assert (saved.window(), saved.window(end=7), saved.window(start=7)) == ((0, 100), (0, 7), (7, 100))


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("cycles", "abc"),
        ("cycles", 1),
        ("cycles", True),
        ("cores", -1),
        ("tiling", [1]),
        ("shape", None),
        ("time_us", float("nan")),
        ("time_us", -1.0),
    ],
)
def test_a_value_that_cannot_be_is_damage(tmp_path: Path, key: str, value: object) -> None:
    """Of any key that reports compute with."""
    made_run().save(tmp_path)
    record = json.loads((tmp_path / "run.json").read_text(encoding="utf-8"))
    (tmp_path / "run.json").write_text(json.dumps(record | {key: value}), encoding="utf-8")
    with pytest.raises(TilesimError, match=r"the saved run is damaged.*" + key):
        load(tmp_path)
