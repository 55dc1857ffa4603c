"""How tasks are shared among cores: the fewest cores that keep the number of rounds."""

from __future__ import annotations

from math import ceil, prod


def used(tasks: int, cores: int) -> int:
    """Cores that `tasks` equal tasks use: rounds = ceil(tasks / cores), used = ceil(tasks / rounds)."""
    if not tasks:
        return 0
    rounds = ceil(tasks / cores)
    return ceil(tasks / rounds)


def share(tasks: int, parts: int, part: int) -> range:
    """The tasks of one part: as many as every other, but that the last parts may have one less round."""
    rounds = ceil(tasks / parts) if parts else 0
    return range(min(tasks, part * rounds), min(tasks, (part + 1) * rounds))


def per_axis(sizes: tuple[int, ...], cores: int) -> tuple[int, ...]:
    """Parts of each axis, in order: each takes what it can use of the cores that the ones before have left."""
    parts, left = [], cores
    for size in sizes:
        taken = used(size, max(1, left)) or 1
        parts.append(taken)
        left //= taken
    return tuple(parts)


def least_rounds(sizes: tuple[int, ...], cores: int) -> tuple[int, ...]:
    """Parts of each axis with the fewest rounds for the fullest core; among equals, the first axes have most parts."""
    best: tuple[tuple[int, ...], tuple[int, ...]] | None = None
    for parts in _divisions(sizes, cores):
        rounds = prod(ceil(size / part) for size, part in zip(sizes, parts, strict=True))
        key = (rounds, prod(parts), *(-part for part in parts))
        if best is None or key < best[0]:
            best = (key, parts)
    return best[1] if best else (1,) * len(sizes)


def _divisions(sizes: tuple[int, ...], cores: int) -> list[tuple[int, ...]]:
    """Parts an axis whose product does not exceed the cores, each with as few parts as its rounds need."""
    if not sizes:
        return [()]
    options = sorted({used(sizes[0], count) or 1 for count in range(1, cores + 1)})
    return [(part, *rest) for part in options for rest in _divisions(sizes[1:], cores // part)]


def largest_divisor(of: int, most: int) -> int:
    """The largest divisor of a number that is at most `most`, at least 1."""
    return next((d for d in range(min(of, most), 0, -1) if of % d == 0), 1)


def power_of_two_divisor(of: int, most: int) -> int:
    """The largest power of two that divides a number and is at most `most`, at least 1."""
    found = 1
    while found * 2 <= most and of % (found * 2) == 0:
        found *= 2
    return found
