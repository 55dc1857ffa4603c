"""The table of a sweep and its pictures: fronts, choices of axes, what fails to be drawn."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reports.sweeps.front import best_by, pareto_front, values_of
from reports.sweeps.pictures import View, chosen_view, draw_sweep
from reports.sweeps.table import SweepTable
from reports.sweeps.words import size, text
from simulator.results.files import RunFileError
from targets.errors import TilesimError

CALL = {
    "operator": "gemm",
    "target": "mt7004",
    "shape": "m=8,n=8,k=8",
    **dict.fromkeys(("dtype", "grads", "cores")),
    "tiling": {},
    "overrides": {"groups": "8"},
}


def table_of(rows: Sequence[dict[str, Any]], *varied: str) -> SweepTable:
    """A table of rows that have only what is asked for."""
    filled = [
        {"point": i, "key": str(i), "status": "ok", "error": None, "gflops": 1.0, "seconds": 0.1, **row}
        for i, row in enumerate(rows)
    ]
    return SweepTable(CALL, "identity", varied, tuple(filled))


def grid(cores: Sequence[int], rates: Sequence[float], dtypes: Sequence[str]) -> SweepTable:
    """A table in which cores and rates help, and 8 cores fail at the lowest rate."""
    rows: list[dict[str, Any]] = []
    for c, r, d in itertools.product(cores, rates, dtypes):
        row = {
            "cores": c,
            "rate": r,
            "dtype": d,
            "time_ms": 10 / c + 20 / r + (d == "fp32"),
            "cost.mac_lanes": 96 * c,
        }
        failed = {"cores": c, "rate": r, "dtype": d, "status": "refused", "error": "no"}
        rows.append(failed if (c, r) == (8, rates[0]) else row)
    return table_of(rows, "cores", "rate", "dtype")


@given(st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6))))
def test_a_front_is_what_nothing_beats(points: list[tuple[int, int]]) -> None:
    """By trying all pairs; each pair of time and cost once, cheapest first."""
    rows = [{"time_ms": time, "cost": cost} for time, cost in points]
    found = [(row["time_ms"], row["cost"]) for row in pareto_front(rows, "cost")]

    def beaten(time: int, cost: int) -> bool:
        return any(t <= time and c <= cost and (t, c) != (time, cost) for t, c in points)

    assert found == sorted({p for p in points if not beaten(*p)}, key=lambda p: p[1])


def test_rows_without_a_cost_are_not_on_a_front() -> None:
    """They are neither cheap nor dear."""
    rows = [{"time_ms": 1}, {"time_ms": 2, "cost": 3}]
    assert pareto_front(rows, "cost") == rows[1:]


def test_the_best_is_the_fastest_or_the_one_with_the_most() -> None:
    """By the column."""
    figures = [(1, 2, 5), (1, 3, 4), (2, 1, 9)]
    rows = [{"c": cores, "time_ms": time, "gflops": rate} for cores, time, rate in figures]
    assert best_by(rows, ["c"], "time_ms") == {(1,): rows[0], (2,): rows[2]}
    assert best_by(rows, ["c"], "gflops") == {(1,): rows[0], (2,): rows[2]}
    assert best_by(rows, [], "gflops") == {(): rows[2]}


def test_values_are_in_the_order_of_an_axis() -> None:
    """Numbers sorted, words as they come."""
    rows = [{"a": 4, "b": "fp32"}, {"a": 1, "b": "fp16"}, {"a": 4, "b": "fp32"}]
    assert (values_of(rows, "a"), values_of(rows, "b")) == ([1, 4], ["fp32", "fp16"])


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("memory.am.size_bytes", 786432, "768 KiB"),
        ("memory.am.size_bytes", 1572864, "1.5 MiB"),
        ("bytes.ddr", 12, "12 B"),
        ("link.ddr.gigabytes_per_second", 12.8, "12.8"),
        ("cycles", 1234567, "1,234,567"),
        ("time_ms", 0.0123456, "0.01235"),
        ("dtype", "fp16", "fp16"),
    ],
)
def test_values_are_said_in_their_unit(name: str, value: object, said: str) -> None:
    """Sizes with binary prefixes, not rates."""
    assert text(name, value) == said


def test_the_largest_sizes_are_gibibytes() -> None:
    """4 GiB of DDR."""
    assert size(4294967296) == "4 GiB"


def test_axes_are_chosen_by_the_number_of_values() -> None:
    """The field with the most numbers along the axis, the next one with a curve a value; the best over the rest."""
    table = grid((1, 2, 4), (10.0, 20.0), ("fp16", "fp32"))
    assert chosen_view(table, None, None, "time_ms") == View("cores", "rate", "time_ms", ("dtype",))
    assert chosen_view(table, "rate", "dtype", "gflops") == View("rate", "dtype", "gflops", ("cores",))
    assert chosen_view(table, None, "cores", "time_ms") == View("rate", "cores", "time_ms", ("dtype",))
    words = table_of([{"dtype": d, "time_ms": 1.0} for d in ("fp16", "fp32")], "dtype")
    assert chosen_view(words, None, None, "time_ms").x == ""


def test_a_grid_has_every_picture(tmp_path: Path) -> None:
    """Failed points among them; other columns on demand."""
    table = grid((1, 2, 4, 8), (10.0, 20.0, 80.0), ("fp16", "fp32"))
    names = [path.name for path in draw_sweep(table, tmp_path / "a")]
    assert names == ["curves.png", "heat-map.png", "pareto-mac_lanes.png"]
    draw_sweep(table, tmp_path / "b", x="rate", series="dtype", value="gflops", cost="cost.mac_lanes")
    first, second = ((tmp_path / folder / "curves.png").read_bytes() for folder in "ab")
    assert first != second


def test_a_sample_is_drawn_without_lines_and_without_a_map(tmp_path: Path) -> None:
    """Its points have each a value of their own, along every field."""
    rows = [{"a": i / 7, "b": 3.0 - i / 9, "time_ms": 1.0 + i, "cost.gsm_gbs": i % 3} for i in range(9)]
    names = [path.name for path in draw_sweep(table_of(rows, "a", "b"), tmp_path)]
    assert names == ["curves.png", "pareto-gsm_gbs.png"]


def test_one_field_has_curves_only(tmp_path: Path) -> None:
    """One curve, however far it spans; of words and without a cost there is nothing."""
    rows = [{"clock_mhz": 10**i, "time_ms": 1e4 / 10**i} for i in range(4)]
    assert [path.name for path in draw_sweep(table_of(rows, "clock_mhz"), tmp_path)] == ["curves.png"]
    words = table_of([{"dtype": d, "time_ms": 1.0} for d in ("fp16", "fp32")], "dtype")
    with pytest.raises(TilesimError, match="nothing to draw"):
        draw_sweep(words, tmp_path / "none")
    assert not (tmp_path / "none").exists()


def test_a_sweep_without_results_is_refused(tmp_path: Path) -> None:
    """All its points failed."""
    table = table_of([{"cores": 9, "status": "refused", "error": "no"}], "cores")
    with pytest.raises(TilesimError, match="a sweep without results"):
        draw_sweep(table, tmp_path)


def test_mixed_values_have_a_column_of_one_type(tmp_path: Path) -> None:
    """Whole and broken numbers are broken ones, other mixtures text; what a row lacks it lacks when it is read."""
    rows: list[dict[str, Any]] = [
        {"a": 1, "b": 1, "time_ms": 1.0, "bytes.ddr": 3},
        {"a": 2.5, "b": "x", "status": "refused", "error": "no"},
    ]
    table_of(rows, "a", "b").write(tmp_path / "t.parquet")
    read = SweepTable.read(tmp_path / "t.parquet")
    assert read.column("a") == [1.0, 2.5]
    assert read.column("b") == ["1", "x"]
    assert "bytes.ddr" not in read.rows[1]
    assert read.columns[-2:] == ["bytes.ddr", "seconds"]


def test_a_file_of_a_newer_tilesim_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It may mean something else."""
    path = tmp_path / "t.parquet"
    with monkeypatch.context() as newer:
        newer.setattr("reports.sweeps.table.FORMAT_VERSION", 2)
        table_of([{"a": 1, "time_ms": 1.0}], "a").write(path)
    with pytest.raises(RunFileError, match="newer tilesim"):
        SweepTable.read(path)
