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


def test_windows_share_elements() -> None:
    """Windows of three columns of two channels, from columns 0 and 2: the second begins inside the first."""
    buffer = numbered((2, 3, 6, 2))
    view = buffer.windows((1, 0, 1, 0), (1, 2, 2), (1, 2, 2), 6)
    numbers = buffer.numbers()
    expected = [[numbers[1, row, col : col + 3].reshape(-1) for col in (1, 3)] for row in (0, 2)]
    np.testing.assert_array_equal(view.array(), [expected])
    assert view.shape == (1, 2, 2, 6)
    assert not view.array().flags.writeable
    assert not view.exact
    row = buffer.windows((1, 2, 1, 0), (1, 1, 2), (1, 1, 2), 6)
    assert row.range == Range(1000 + 4 * (36 + 24 + 2), 2, 24, 16)
    assert row.exact


def test_windows_that_do_not_share_are_a_box() -> None:
    """Windows as wide as their distance are one piece."""
    buffer = numbered((3, 8, 5))
    assert buffer.windows((1, 0, 0), (1, 4), (1, 2), 10).range == buffer.box((1, 0, 0), (1, 8, 5)).range


def test_windows_of_a_frame() -> None:
    """The first elements of a ring's buffer, seen as an array."""
    buffer = numbered((40,))
    view = buffer.windows((0, 1, 0), (1, 2), (1, 1), 4, frame=(3, 4, 2))
    np.testing.assert_array_equal(view.array(), [[[2, 3, 4, 5], [4, 5, 6, 7]]])


@pytest.mark.parametrize(
    ("start", "size", "steps", "run"),
    [
        ((0, 0, -1), (1, 1), (1, 1), 2),
        ((0, 5, 0), (1, 1), (1, 1), 5),
        ((0, 0, 1), (1, 3), (1, 2), 4),
        ((2, 0, 0), (2, 1), (1, 1), 2),
        ((0, 0, 0), (1, 0), (1, 1), 2),
        ((0, 0, 0), (1, 1), (1, 1), 0),
    ],
)
def test_windows_that_leave_their_row_are_refused(
    start: tuple[int, ...], size: tuple[int, ...], steps: tuple[int, ...], run: int
) -> None:
    """A window of the last column would go on in the next row."""
    with pytest.raises(BoundsError):
        numbered((3, 6, 2)).windows(start, size, steps, run)
