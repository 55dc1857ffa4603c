"""Values in larger steps: cores beside each other, meeting at barriers."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from simulator.errors import DeadlockError
from simulator.instructions import Barrier, Instruction
from simulator.values.steps import execute_in_order


class Note(Instruction):
    """An instruction that writes down its name."""

    def __init__(self, book: list[str], word: str) -> None:
        super().__init__((), ())
        self.book = book
        self.word = word

    def execute(self) -> None:
        """Write."""
        self.book.append(self.word)


def test_what_stands_behind_a_barrier_comes_after_all_that_stands_before() -> None:
    """Every core's first half comes before any second half."""
    book: list[str] = []

    def program(core: int) -> Iterator[Instruction]:
        yield Note(book, f"first {core}")
        yield Barrier()
        yield Note(book, f"second {core}")

    execute_in_order({core: program(core) for core in range(4)})
    assert sorted(book[:4]) == [f"first {core}" for core in range(4)]
    assert sorted(book[4:]) == [f"second {core}" for core in range(4)]


def test_barriers_that_never_complete_are_a_deadlock() -> None:
    """Two cores at two barriers of all cores wait for ever."""
    with pytest.raises(DeadlockError, match="core 0 waits at barrier 0; core 1 waits at barrier 1"):
        execute_in_order({0: iter([Barrier(0)]), 1: iter([Barrier(1)])})


def test_barriers_of_some_cores_open_by_themselves() -> None:
    """Cores 0 and 1 meet, cores 2 and 3 meet, and then all."""
    book: list[str] = []

    def program(core: int) -> Iterator[Instruction]:
        yield Barrier(0, cores=(0, 1) if core < 2 else (2, 3))
        yield Note(book, str(core))
        yield Barrier(1)

    execute_in_order({core: program(core) for core in range(4)})
    assert sorted(book) == ["0", "1", "2", "3"]
