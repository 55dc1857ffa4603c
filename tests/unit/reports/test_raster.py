"""Coverage of columns of pixels, by hand."""

import numpy as np
import pytest

from reports.raster import coverage, painted


def test_coverage_of_whole_and_part_columns() -> None:
    """An interval from 0.5 to 2.25 covers half of the first, all of the second, a quarter of the third."""
    rows, start, end = np.array([0, 1]), np.array([0.5, 3.0]), np.array([2.25, 4.0])
    assert coverage(rows, start, end, 2, 4).tolist() == [[0.5, 1.0, 0.25, 0.0], [0.0, 0.0, 0.0, 1.0]]


def test_coverage_cuts_what_is_outside() -> None:
    """What lies beyond either edge is not counted, nor wrapped into the next row."""
    found = coverage(np.array([0, 0]), np.array([-3.0, 1.5]), np.array([0.5, 9.0]), 2, 2)
    assert found.tolist() == [[0.5, 0.5], [0.0, 0.0]]


def test_coverage_counts_overlaps_and_weights() -> None:
    """Two intervals of weight 2 and 3 that overlap add up."""
    both = np.array([0, 0])
    found = coverage(both, np.array([0.0, 1.0]), np.array([2.0, 2.0]), 1, 2, np.array([2.0, 3.0]))
    assert found.tolist() == [[2.0, 5.0]]


@pytest.mark.parametrize("seed", range(3))
def test_coverage_keeps_all_the_time(seed: int) -> None:
    """The sum over all columns is the length of the intervals."""
    draw = np.random.default_rng(seed)
    start = draw.uniform(0, 50, 1000)
    end = start + draw.uniform(0, 50, 1000)
    assert coverage(draw.integers(0, 7, 1000), start, end, 7, 100).sum() == pytest.approx((end - start).sum())


def test_painted_shows_what_covers_most() -> None:
    """Full columns have the colour, half covered ones are half as strong, empty ones the background."""
    colours = np.array([[1.0, 0.0, 0.0], [0.0, 0.0, 1.0]])
    busy = np.array([[[1.0, 0.0], [0.1, 0.4], [0.0, 0.0]]])
    assert painted(busy, colours, np.ones(3)).tolist() == [
        [[1.0, 0.0, 0.0], [0.5, 0.5, 1.0], [1.0, 1.0, 1.0]]
    ]


def test_painted_shows_the_shortest() -> None:
    """A thousandth of a column can still be seen."""
    busy = np.array([[[0.001]]])
    assert painted(busy, np.zeros((1, 3)), np.ones(3)).tolist() == [[[0.8, 0.8, 0.8]]]
