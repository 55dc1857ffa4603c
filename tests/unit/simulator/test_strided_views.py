"""Views of every so many elements: what they read, what they cover, and where they end."""

from __future__ import annotations

import numpy as np
import pytest

from simulator.errors import BoundsError
from simulator.memory.memories import Buffer, fill_from
from simulator.memory.ranges import Range
from simulator.values.numerics import dtype


def numbered(shape: tuple[int, ...]) -> Buffer:
    """A buffer at address 1000 with its elements numbered."""
    buffer = Buffer("ddr", "x", 1000, shape, dtype("fp32"), True)
    fill_from(buffer, np.arange(buffer.size).reshape(shape))
    return buffer


def test_a_strided_view_reads_and_covers_its_elements() -> None:
    """Columns 1, 4, 7 of row 2, channels 3 and 4 of 5: three pieces of 8 bytes, 60 bytes apart."""
    buffer = numbered((4, 8, 5))
    view = buffer.strided((2, 1, 3), (1, 3, 2), (1, 3, 1))
    np.testing.assert_array_equal(view.array(), buffer.numbers()[2:3, 1::3, 3:5])
    assert view.range == Range(1000 + 4 * (2 * 40 + 5 + 3), 3, 8, 60)
    assert view.exact
    assert view.shape == (1, 3, 2)


def test_a_strided_view_is_written_where_it_lies() -> None:
    """Only its elements change."""
    buffer = numbered((3, 6))
    view = buffer.strided((0, 1), (2, 2), (2, 4))
    view.put(np.full((2, 2), -1.0))
    assert np.argwhere(buffer.numbers() == -1).tolist() == [[0, 1], [0, 5], [2, 1], [2, 5]]


def test_steps_of_one_are_a_box() -> None:
    """Whole rows are one piece; three levels are not exact."""
    buffer = numbered((3, 4, 5))
    assert buffer.strided((1, 0, 0), (2, 4, 5), (1, 1, 1)).range == buffer.box((1, 0, 0), (2, 4, 5)).range
    assert not buffer.strided((0, 0, 0), (2, 2, 2), (2, 2, 1)).exact


@pytest.mark.parametrize(
    ("start", "size", "steps"),
    [((-1, 0), (1, 1), (1, 1)), ((0, 0), (2, 3), (1, 3)), ((2, 0), (2, 1), (1, 1)), ((0, 0), (0, 1), (1, 1))],
)
def test_a_view_that_leaves_its_buffer_is_refused(
    start: tuple[int, ...], size: tuple[int, ...], steps: tuple[int, ...]
) -> None:
    """Before the first, behind the last, and no elements at all."""
    with pytest.raises(BoundsError):
        numbered((3, 6)).strided(start, size, steps)
