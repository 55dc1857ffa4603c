"""The values of a varied field, out of a text: a list, a linear or a geometric range, or an interval to sample."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

from tilesim.sweeps.errors import SweepError

Value = int | float | bool | str
"""What a field can be given."""

MOST_VALUES, MOST_FACTORS = 100_000, 10_000
"""Values of one range with equal distances, and with equal factors: more are a slip of the pen."""

_ITEM = re.compile(r"\[[^\]]*\]|[^,\[\]]+|(?<=,)(?=,|$)|^(?=,)")
_WORDS = {"true": True, "false": False}
_FORM = "a,b,c, FIRST:LAST:COUNT, FIRST:LAST:*FACTOR, or FIRST:LAST with --sample"


@dataclass(frozen=True)
class Interval:
    """Every number from `low` to `high`, whole numbers only where both ends are; it can only be sampled."""

    low: Fraction
    high: Fraction

    def at(self, share: float) -> Value:
        """The number at a share of the interval from 0 to 1; each whole number has an equal part of it."""
        if self.low.denominator == self.high.denominator == 1:
            count = int(self.high - self.low) + 1
            return int(self.low) + min(int(share * count), count - 1)
        return float(self.low + (self.high - self.low) * Fraction(share))


Values = tuple[Value, ...] | Interval
"""What a field is varied over."""


def parse_value(text: str) -> Value:
    """Return a text as an int (also 0x10), a float or a bool (`true`, `false`) where it is one."""
    if text.lower() in _WORDS:
        return _WORDS[text.lower()]
    try:
        return int(text, 0)
    except ValueError:
        pass
    try:
        number = float(text)
    except ValueError:
        return text
    return number if math.isfinite(number) else text


def parse_values(field: str, text: str) -> Values:
    """Return what a field is varied over.

    `1,2,4` is a list (an item that is a list itself stands in brackets), `12.8:102.4:8` are 8 numbers at equal
    distances, both ends among them, `1:1024:*2` are the numbers from 1 by the factor 2 up to 1024, `1:64` is an
    interval to sample. Ranges are computed with the decimal digits as they are written.

    Raises:
        SweepError: the text is none of these, or a value comes twice.
    """
    parts = [part.strip() for part in text.split(":")]
    if len(parts) == 1:
        return checked_values(field, [parse_value(item.strip()) for item in _ITEM.findall(text)], text)
    if len(parts) > 3 or not all(parts):
        raise _unreadable(field, text)
    low, high = (_number(field, part, text) for part in parts[:2])
    if low > high:
        raise _unreadable(field, text, "a range from high to low")
    if len(parts) == 2:
        return Interval(low, high)
    if parts[2].startswith("*"):
        return _geometric(field, low, high, _number(field, parts[2][1:], text), text)
    return _linear(field, low, high, parts[2], text)


def checked_values(field: str, values: Sequence[Value], text: str = "") -> tuple[Value, ...]:
    """The values, none empty and none twice.

    Raises:
        SweepError: there is none, one is empty, or one comes twice.
    """
    if not values or any(value == "" for value in values):
        raise _unreadable(field, text or "no value")
    seen: set[tuple[type, Value]] = set()
    for value in values:
        if (type(value), value) in seen:
            raise _unreadable(field, text or str(value), "a value given twice")
        seen.add((type(value), value))
    return tuple(values)


def _unreadable(field: str, text: str, what: str = "not values of a field") -> SweepError:
    return SweepError(what, where=f"--vary {field}", got=text, limit=_FORM)


def _number(field: str, text: str, whole: str) -> Fraction:
    try:
        number = Fraction(text)
        float(number)
    except (ValueError, ZeroDivisionError, OverflowError):
        raise _unreadable(field, whole) from None
    return number


def _same_type(numbers: Sequence[Fraction]) -> tuple[Value, ...]:
    """Whole numbers where all are."""
    if all(number.denominator == 1 for number in numbers):
        return tuple(int(number) for number in numbers)
    return tuple(float(number) for number in numbers)


def _linear(field: str, low: Fraction, high: Fraction, count: str, text: str) -> tuple[Value, ...]:
    if not re.fullmatch(r"[0-9]{1,6}", count) or not 2 <= int(count) <= MOST_VALUES or low == high:
        raise _unreadable(field, text, "not a range of 2 values or more")
    steps = int(count) - 1
    return _same_type([low + (high - low) * i / steps for i in range(steps + 1)])


def _geometric(field: str, low: Fraction, high: Fraction, factor: Fraction, text: str) -> tuple[Value, ...]:
    if factor <= 1 or low <= 0:
        raise _unreadable(field, text, "not a range of a factor above 1 from a number above 0")
    if _log(high / low) >= MOST_FACTORS * _log(factor):  # before any is made: exact powers are long numbers
        raise _unreadable(field, text, f"more than {MOST_FACTORS:,} values")
    found: list[int | float] = []
    while low <= high:
        found.append(int(low) if low.denominator == 1 else float(low))
        low *= factor
    whole = all(isinstance(number, int) for number in found)
    return tuple(found if whole else map(float, found))


def _log(number: Fraction) -> float:
    return math.log(number.numerator) - math.log(number.denominator)
