"""Compiled programs serve again for the very target and key that they were made for."""

from __future__ import annotations

from simulator.instructions import Cost
from simulator.timing.library import Library
from simulator.timing.program import NO_NEED, Program, Row
from targets.loader import load_target


def made(entries: int) -> Program:
    """A program of so many fills."""
    row = Row(1, 0, Cost(0, 1), NO_NEED, 0, False, "fill", 0, "", "", ())
    return Program([row] * entries, [[], list(range(entries))])


def test_a_program_is_made_once_for_a_key_and_a_target() -> None:
    """Another key, or an equal target that is another object, makes another program."""
    library, target, other = Library(), load_target("mt7004"), load_target("mt7004", {"groups": 4})
    first = library.program(target, "a", lambda: made(3))
    assert library.program(target, "a", lambda: made(3)) is first
    assert library.program(target, "b", lambda: made(3)) is not first
    assert library.program(other, "a", lambda: made(3)) is not first


def test_the_program_used_longest_ago_goes_first() -> None:
    """With room for ten entries, the third program of four drives out the one not used since."""
    library, target = Library(10), load_target("mt7004")
    first, second = (library.program(target, key, lambda: made(4)) for key in "ab")
    assert library.program(target, "a", lambda: made(4)) is first
    library.program(target, "c", lambda: made(4))
    assert library.program(target, "a", lambda: made(4)) is first
    assert library.program(target, "b", lambda: made(4)) is not second


def test_a_program_larger_than_the_library_is_not_kept() -> None:
    """It would drive out all others."""
    library, target = Library(10), load_target("mt7004")
    large = library.program(target, "a", lambda: made(11))
    assert library.program(target, "a", lambda: made(11)) is not large
