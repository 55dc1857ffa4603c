"""Shares of cores: the fewest that keep the rounds."""

from __future__ import annotations

import pytest

from kernels.davinci.split import largest_divisor, least_rounds, per_axis, power_of_two_divisor, share, used


@pytest.mark.parametrize(
    ("tasks", "cores", "expected"),
    [(96, 24, 24), (64, 24, 22), (32, 24, 16), (63, 24, 21), (32, 11, 11), (0, 8, 0), (5, 8, 5), (1, 1, 1)],
)
def test_fewest_cores_that_keep_the_rounds(tasks: int, cores: int, expected: int) -> None:
    """The counts that profiles of 24 cores show, and edges."""
    assert used(tasks, cores) == expected


@pytest.mark.parametrize("tasks", [1, 7, 24, 63, 64, 100])
@pytest.mark.parametrize("cores", [1, 3, 24])
def test_every_task_has_one_core(tasks: int, cores: int) -> None:
    """Shares follow each other and miss nothing; none is longer than the rounds."""
    parts = used(tasks, cores)
    shares = [share(tasks, parts, part) for part in range(parts)]
    assert [task for each in shares for task in each] == list(range(tasks))
    assert max(len(each) for each in shares) == -(-tasks // cores)
    assert not share(tasks, parts, parts)


def test_axes_in_order() -> None:
    """Images first; the next axis gets what they leave."""
    assert per_axis((32, 5, 3), 24) == (16, 1, 1)
    assert per_axis((2, 4, 8), 24) == (2, 4, 3)


def test_fewest_rounds() -> None:
    """32 images and 108 fractals on 24 cores: 8 x 3 and 4 x 6 are equal, and images come first."""
    assert least_rounds((32, 108), 24) == (8, 3)
    assert least_rounds((1, 100), 24) == (1, 20)


def test_divisors() -> None:
    """Divisors and powers of two, at least 1."""
    assert (largest_divisor(12, 11), largest_divisor(23, 11), largest_divisor(24, 11)) == (6, 1, 8)
    assert (power_of_two_divisor(12, 9), power_of_two_divisor(24, 9), power_of_two_divisor(16, 9)) == (
        4,
        8,
        8,
    )
