"""The points of a sweep: grids, lists, samples."""

from __future__ import annotations

import math
import sys
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tilesim.sweeps.errors import SweepError
from tilesim.sweeps.points import Point, points_of, read_points
from tilesim.sweeps.values import Interval, Value, Values

UNIT = Interval(Fraction(0), Fraction(5, 2))


def test_a_grid_has_every_combination_once() -> None:
    """The last field is the fastest."""
    found = [point.values for point in points_of({"cores": (1, 2), "dtype": ("fp16", "fp32")})]
    assert found == [(("cores", c), ("dtype", d)) for c in (1, 2) for d in ("fp16", "fp32")]


def test_rows_are_combined_with_the_grid() -> None:
    """Each row with each value; a row that comes twice is one."""
    rows: list[dict[str, Value]] = [{"tile.k": 8}, {"tile.k": 16}, {"tile.k": 8}]
    found = [dict(point.values) for point in points_of({"cores": (1, 2)}, rows)]
    assert found == [{"tile.k": k, "cores": c} for k in (8, 16) for c in (1, 2)]


@given(st.dictionaries(st.text(min_size=1), st.integers() | st.text() | st.booleans(), min_size=1))
def test_a_key_is_that_of_the_values(values: dict[str, int | str | bool]) -> None:
    """The order of the fields does not matter; another value does."""
    point = Point(tuple(values.items()))
    assert point.key == Point(tuple(reversed(values.items()))).key
    changed = {name: f"{value}'" for name, value in values.items()}
    assert point.key != Point(tuple(changed.items())).key


def test_a_key_tells_types_apart() -> None:
    """1, true and "1" are three values."""
    assert len({Point((("a", value),)).key for value in (1, True, "1", 1.5)}) == 4


@pytest.mark.parametrize("count", [1, 7, 40])
def test_a_sample_is_a_latin_hypercube(count: int) -> None:
    """Each of `count` equal parts of an interval has one point, and lists are taken evenly."""
    found = points_of({"a": UNIT, "b": UNIT, "c": (1, 2, 3, 4)}, sample=count, seed=3)
    assert len(found) == count
    for name in ("a", "b"):
        shares = [float(dict(point.values)[name]) / 2.5 for point in found]
        assert sorted(math.floor(share * count) for share in shares) == list(range(count))
    taken = [dict(point.values)["c"] for point in found]
    assert max(map(taken.count, (1, 2, 3, 4))) - min(map(taken.count, (1, 2, 3, 4))) <= 1 + (count < 4)


def test_a_sample_depends_on_its_seed_alone() -> None:
    """A stopped sweep finds its points again."""
    first, again, other = (points_of({"a": UNIT}, sample=5, seed=seed) for seed in (1, 1, 2))
    assert first == again
    assert first != other


@pytest.mark.parametrize(
    ("vary", "rows", "sample", "match"),
    [
        ({}, (), None, "nothing is varied"),
        ({"a": UNIT}, (), None, "an interval without values"),
        ({"a": ()}, (), None, "not values of a field"),
        ({"a": (1, 1)}, (), None, "a value given twice"),
        ({"a": (1,)}, [{"a": 2}], None, "a field given twice"),
        ({}, [{"a": 2}, {"b": 2}], None, "other fields than the first"),
        ({"a": (1,)}, [{"b": 2}], 3, "listed and sampled"),
        ({"a": UNIT}, (), 0, "not a number of points"),
        ({"a": tuple(range(400)), "b": tuple(range(400))}, (), None, "too large a grid.*160,000"),
    ],
)
def test_what_makes_no_points_is_refused(
    vary: dict[str, Values], rows: list[dict[str, Value]], sample: int | None, match: str
) -> None:
    """Each reason by its words."""
    with pytest.raises(SweepError, match=match):
        points_of(vary, rows, sample)


def test_without_scipy_a_sample_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    """SciPy is an extra."""
    monkeypatch.setitem(sys.modules, "scipy.stats", None)
    with pytest.raises(SweepError, match=r"tilesim\[sweep\]"):
        points_of({"a": UNIT}, sample=2)


def test_points_are_read_from_a_file(tmp_path: Path) -> None:
    """Numbers, words; blank lines and a byte order mark do not matter."""
    path = tmp_path / "points.csv"
    path.write_text("\ufeffcores, dtype\n1,fp16\n\n 2 ,fp32\n", encoding="utf-8")
    assert read_points(path) == [{"cores": 1, "dtype": "fp16"}, {"cores": 2, "dtype": "fp32"}]


@pytest.mark.parametrize(
    ("text", "match"),
    [
        ("", "no points"),
        ("cores\n", "no points"),
        ("cores,cores\n1,2\n", "named twice"),
        ("cores,dtype\n1\n", r"line 2"),
        ("cores,dtype\n1,fp16\n2,\n", r"line 3"),
        (None, "cannot read"),
    ],
)
def test_a_file_without_points_is_refused(tmp_path: Path, text: str | None, match: str) -> None:
    """With the line at fault."""
    path = tmp_path / "points.csv"
    if text is not None:
        path.write_text(text, encoding="utf-8")
    with pytest.raises(SweepError, match=match):
        read_points(path)
