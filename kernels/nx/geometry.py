"""The geometry of a call as its page computes it: 64-bit integers, and a division that truncates."""

from __future__ import annotations

from dataclasses import dataclass
from math import prod

from kernels.errors import OperandError

OK = 0
ERR_ARGS = 4

LEAST, MOST = -(1 << 63), (1 << 63) - 1
"""What an i64 holds."""


def wrapped(value: int) -> int:
    """The value as a 64-bit integer keeps it: modulo 2**64, in two's complement."""
    return (value - LEAST) % (1 << 64) + LEAST


def quotient(a: int, b: int) -> int:
    """A / b as C divides integers: truncated towards zero."""
    return abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def runs(count: int) -> int:
    """How often a loop `i = 0; while i < count` runs."""
    return max(0, count)


def window(out: int, size: int, tap: int, stride: int, pad: int) -> tuple[slice, slice] | None:
    """Outputs at which a tap lies inside the input, and the places there; None where there are none."""
    offset = tap - pad
    first = max(0, -(offset // stride))  # ceil(-offset / stride)
    last = min(out - 1, (size - 1 - offset) // stride)
    if first > last:
        return None
    start = first * stride + offset
    return slice(first, last + 1), slice(start, last * stride + offset + 1, stride)


@dataclass(frozen=True)
class Geometry:
    """The sizes of a call that the page's checks let through; OH and OW are positive, others may be 0 or negative.

    Attributes:
        c_in, h, w, c_out, kh, kw, stride, pad: the arguments.
        oh, ow: the size of the output.
    """

    c_in: int
    h: int
    w: int
    c_out: int
    kh: int
    kw: int
    stride: int
    pad: int
    oh: int
    ow: int

    @property
    def k(self) -> int:
        """C_in x KH x KW; positive also where two of them are negative, as the page multiplies them."""
        return wrapped(self.c_in * self.kh * self.kw)

    @property
    def m(self) -> int:
        """OH x OW."""
        return self.oh * self.ow

    @property
    def n_in(self) -> int:
        """C_in x H x W, the elements of dinput that are set to zero."""
        return wrapped(self.c_in * self.h * self.w)

    @property
    def has_taps(self) -> bool:
        """Whether the loops over channels and taps run at all."""
        return min(self.c_in, self.kh, self.kw) > 0

    @property
    def reads_input(self) -> bool:
        """Whether there is an input for taps to lie in."""
        return self.has_taps and min(self.h, self.w) > 0

    def elements(self) -> dict[str, int]:
        """How many elements of each operand the loops reach."""
        weights = runs(self.c_out) * runs(self.k)
        return {
            "input": self.n_in if self.reads_input else 0,
            "weight": weights,
            "dout": runs(self.c_out) * self.m,
            "dinput": runs(self.n_in),
            "dweight": weights,
            "dbias": runs(self.c_out),
        }

    def present(self) -> int:
        """Pairs of output and tap, of one input and one output channel, at which the tap lies inside the input."""
        if not self.reads_input:
            return 0
        return prod(
            sum(_length(window(out, size, tap, self.stride, self.pad)) for tap in range(kernel))
            for out, size, kernel in ((self.oh, self.h, self.kh), (self.ow, self.w, self.kw))
        )

    def present_in_row(self, oh: int) -> int:
        """Pairs of column and tap of a row of outputs, of one input channel, at which the tap lies inside it."""
        if not self.reads_input:
            return 0
        rows = sum(0 <= oh * self.stride + kh - self.pad < self.h for kh in range(self.kh))
        columns = (window(self.ow, self.w, kw, self.stride, self.pad) for kw in range(self.kw))
        return rows * sum(map(_length, columns))

    def to_dict(self) -> dict[str, object]:
        """The arguments, by the names that other operators have for them; plain values."""
        return {
            "n": 1,
            "cin": self.c_in,
            "size": [self.h, self.w],
            "cout": self.c_out,
            "kernel": [self.kh, self.kw],
            "stride": [self.stride] * 2,
            "padding": [[self.pad, self.pad]] * 2,
            "out": [self.oh, self.ow],
        }


def _length(found: tuple[slice, slice] | None) -> int:
    return 0 if found is None else found[0].stop - found[0].start


def checked(
    n: int, c_in: int, h: int, w: int, c_out: int, kh: int, kw: int, stride: int, pad: int
) -> Geometry | None:
    """The geometry of the arguments, None where the page's checks answer 4.

    Raises:
        OperandError: an argument is no 64-bit integer, which a C caller cannot pass.
    """
    names = ("N", "C_in", "H", "W", "C_out", "KH", "KW", "stride", "pad")
    for name, value in zip(names, (n, c_in, h, w, c_out, kh, kw, stride, pad), strict=True):
        _require_i64(name, value)
    if stride <= 0 or n != 1:
        return None
    oh = wrapped(quotient(wrapped(h + 2 * pad - kh), stride) + 1)
    ow = wrapped(quotient(wrapped(w + 2 * pad - kw), stride) + 1)
    if oh <= 0 or ow <= 0:
        return None
    return Geometry(c_in, h, w, c_out, kh, kw, stride, pad, oh, ow)


def _require_i64(name: str, value: object) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or not LEAST <= value <= MOST:
        raise OperandError(
            "an argument that is no i64", argument=name, got=repr(value), limit="-2**63 to 2**63 - 1"
        )
