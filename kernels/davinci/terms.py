"""The cube's product where some of its terms are absent.

Absent elements (padding, what lies between the elements of a spread image, weights between merged groups) are zeros
on the chip. In the neutral operator they are no terms of the sum at all: where an operand is not finite, the product is
made under the masks below.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from simulator.cube import Mmad
from simulator.instructions import Coords
from simulator.memory.memories import View
from simulator.values.numerics import Array

Mask = NDArray[np.bool_]

Absent = Literal["skipped", "zeros"]
"""What is made of terms that are not there: nothing, or products with zeros, as the chip makes them."""

Terms = Callable[[], tuple[Mask, Mask]]
"""Which elements of a [m, k] and of b [k, n] there are; asked for only where an operand is not finite."""


class Multiply(Mmad):
    """A product whose absent terms never make a NaN, and that may begin at a bias."""

    __slots__ = ("bias", "terms")

    def __init__(
        self,
        out: View,
        a: View,
        b: View,
        terms: Terms,
        *,
        rate: str,
        accumulate: bool,
        coords: Coords,
        absent: Absent = "skipped",
        bias: View | None = None,
    ) -> None:
        """Multiply on the cube table `rate`, summed over the terms that both operands have, or over all.

        `bias`, for the first columns at most all, is what the sums begin at.
        """
        super().__init__(out, a, b, rate=rate, accumulate=accumulate, coords=coords)
        self.terms = terms if absent == "skipped" else None
        self.bias = bias
        if bias is not None:
            self.reads = (*self.reads, bias)

    def execute(self) -> None:
        """The product, then the bias that it begins at: one addition more, in either order."""
        self._multiply()
        if self.bias is not None:
            out, begin = self.writes[0], self.bias.array()
            total = out.array().copy()
            with np.errstate(over="ignore", invalid="ignore"):
                total[:, : len(begin)] = np.add(total[:, : len(begin)], begin)
            out.put(total)

    def _multiply(self) -> None:
        """The plain product where all is finite, or zeros are terms too."""
        if self.terms is None or all(bool(np.isfinite(view.array()).all()) for view in self.reads[:2]):
            super().execute()
            return
        has_a, has_b = self.terms()
        made = masked_product(self._operand(0), self._operand(1), has_a, has_b)
        out = self.writes[0]
        with np.errstate(over="ignore", invalid="ignore"):
            out.put(np.add(out.array(), made.reshape(out.shape)) if self.accumulate else made)


def masked_product(a: Array, b: Array, has_a: Mask, has_b: Mask) -> NDArray[np.float32]:
    """A [m, k] times b [k, n] in fp32, summed over the terms that both operands have."""
    left, right = a.astype(np.float32), b.astype(np.float32)
    total = np.zeros((a.shape[0], b.shape[1]), np.float32)
    for step in range(a.shape[1]):
        rows, columns = np.flatnonzero(has_a[:, step]), np.flatnonzero(has_b[step])
        if len(rows) and len(columns):
            with np.errstate(invalid="ignore", over="ignore"):
                total[np.ix_(rows, columns)] += np.outer(left[rows, step], right[step, columns])
    return total


def same_slot(first_a: int, count_a: int, single_a: int, first_b: int, count_b: int, single_b: int) -> Mask:
    """[count_a, count_b]: whether channels of the two sides lie in one of the groups that are merged."""
    a = np.arange(first_a, first_a + count_a) // max(1, single_a)
    b = np.arange(first_b, first_b + count_b) // max(1, single_b)
    return np.asarray(a[:, None] == b[None, :])
