"""Values of a varied field out of a text."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tilesim.sweeps.errors import SweepError
from tilesim.sweeps.values import Interval, parse_value, parse_values


@pytest.mark.parametrize(
    ("text", "values"),
    [
        ("1,2,4", (1, 2, 4)),
        ("0x10, true ,fp16,1.5,nan", (16, True, "fp16", 1.5, "nan")),
        ("12.8:102.4:8", (12.8, 25.6, 38.4, 51.2, 64.0, 76.8, 89.6, 102.4)),
        ("1:4:4", (1, 2, 3, 4)),
        ("1:4:3", (1.0, 2.5, 4.0)),
        ("1:1000:*2", (1, 2, 4, 8, 16, 32, 64, 128, 256, 512)),
        ("4:6:*1.5", (4, 6)),
        ("4:9:*1.5", (4, 6, 9)),
        ("4:10:*1.25", (4.0, 5.0, 6.25, 7.8125, 9.765625)),
        ("[1.5,2],[3,4]", ("[1.5,2]", "[3,4]")),
    ],
)
def test_lists_and_ranges(text: str, values: tuple[object, ...]) -> None:
    """Each form, with the types of its values."""
    found = parse_values("cores", text)
    assert found == values
    assert isinstance(found, tuple)
    assert [type(value) for value in found] == [type(value) for value in values]


@pytest.mark.parametrize(
    "text",
    [
        "",
        ",1",
        "1,",
        "1,,2",
        "1,1",
        "4:1:2",
        "a:b:3",
        "1:2:1",
        "1:2:x",
        "1:4:*1",
        "0:4:*2",
        "1:1e300:*1.0000001",
        "1:1e400:*2",
        "1:2:3:4",
        "1::3",
    ],
)
def test_what_is_no_list_is_refused(text: str) -> None:
    """The refusal names the field and the forms."""
    with pytest.raises(SweepError, match=r"--vary cores.*FIRST:LAST:COUNT"):
        parse_values("cores", text)


@given(st.integers(-1000, 1000), st.integers(0, 1000), st.floats(0, 1, exclude_max=True))
def test_an_interval_of_whole_numbers_has_whole_numbers(low: int, width: int, share: float) -> None:
    """A share below 1 is a number within the ends."""
    interval = parse_values("cores", f"{low}:{low + width}")
    assert isinstance(interval, Interval)
    value = interval.at(share)
    assert isinstance(value, int)
    assert low <= value <= low + width


def test_an_interval_of_broken_numbers_goes_from_end_to_end() -> None:
    """Its shares are proportional."""
    interval = parse_values("clock_mhz", "0.5:2.5")
    assert isinstance(interval, Interval)
    assert [interval.at(share) for share in (0, 0.25, 1)] == [0.5, 1.0, 2.5]


@given(st.integers() | st.booleans() | st.floats(allow_nan=False, allow_infinity=False))
def test_a_value_survives_its_text(value: float) -> None:
    """What a CSV file of a table says is read as what it was."""
    found = parse_value(str(value))
    assert (type(found), found) == (type(value), value)
