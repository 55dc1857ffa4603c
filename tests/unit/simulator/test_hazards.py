"""Hazards against their definition: all pairs of instructions, compared one by one."""

from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simulator.errors import ProgramError
from simulator.memory.memories import Buffer, View
from simulator.memory.ranges import overlaps
from simulator.timing.hazards import HazardTracker, Need
from tests.unit.simulator.listed import FP32

LANES = 4

Sides = tuple[tuple[View, ...], tuple[View, ...]]
"""What an instruction reads and writes."""


class Access(NamedTuple):
    """An instruction of one lane with its views, by (buffer, first, rows, columns of an array of 8 by 8)."""

    lane: int
    reads: tuple[tuple[int, int, int, int, int], ...]
    writes: tuple[tuple[int, int, int, int, int], ...]


boxes = st.tuples(
    st.integers(0, 1), st.integers(0, 6), st.integers(0, 6), st.integers(1, 2), st.integers(1, 2)
)
accesses = st.builds(
    Access,
    lane=st.integers(1, LANES - 1),
    reads=st.lists(boxes, max_size=2).map(tuple),
    writes=st.lists(boxes, max_size=1).map(tuple),
)


def views(buffers: list[Buffer], places: tuple[tuple[int, int, int, int, int], ...]) -> tuple[View, ...]:
    """The boxes of an instruction."""
    return tuple(buffers[b].box((row, column), (rows, columns)) for b, row, column, rows, columns in places)


def two_buffers() -> list[Buffer]:
    """Two arrays of 8 by 8 elements."""
    return [Buffer("am", name, 1024 * index, (8, 8), FP32, False) for index, name in enumerate("ab")]


def clash(
    first: tuple[tuple[View, ...], tuple[View, ...]], second: tuple[tuple[View, ...], tuple[View, ...]]
) -> bool:
    """Whether two instructions (reads, writes) conflict: a write of one meets anything of the other."""
    pairs = [(w, v) for w in first[1] for v in (*second[0], *second[1])]
    pairs += [(v, w) for v in first[0] for w in second[1]]
    return any(a.buffer is b.buffer and overlaps(a.range, b.range) for a, b in pairs)


def tracked(program: list[Access]) -> tuple[list[int], list[Need], list[list[int]]]:
    """Number on its lane and needs of each instruction, and the instructions of each lane."""
    buffers, tracker = two_buffers(), HazardTracker(LANES)
    by_lane: list[list[int]] = [[] for _ in range(LANES)]
    numbers, needs = [], []
    for index, access in enumerate(program):
        numbers.append(len(by_lane[access.lane]))
        by_lane[access.lane].append(index)
        reads, writes = views(buffers, access.reads), views(buffers, access.writes)
        needs.append(dict(tracker.add(access.lane, numbers[-1], reads, writes)))
    return numbers, needs, by_lane


@given(st.lists(accesses, max_size=14))
def test_every_conflict_is_ordered_and_every_wait_is_for_one(program: list[Access]) -> None:
    """Each instruction comes after every earlier one that conflicts with it, by waits and the order of lanes.

    And it waits for no other: what it awaits on a lane is the latest of that lane with which it conflicts.
    """
    _, needs, by_lane = tracked(program)
    buffers = two_buffers()
    sides = [(views(buffers, access.reads), views(buffers, access.writes)) for access in program]
    after: list[set[int]] = []
    for index, access in enumerate(program):
        clashes = [i for i in range(index) if clash(sides[i], sides[index])]
        awaited = [by_lane[lane][number] for lane, number in needs[index].items()]
        latest = {program[i].lane: i for i in clashes if program[i].lane != access.lane}
        assert all(latest.get(program[i].lane) == i for i in awaited)
        before = [*awaited, *[i for i in range(index) if program[i].lane == access.lane]]
        after.append(set(before).union(*(after[i] for i in before)))
        assert set(clashes) <= after[index]


@given(st.lists(accesses, max_size=14))
def test_no_pair_of_lanes_waits_for_what_it_has_awaited(program: list[Access]) -> None:
    """What a lane awaits of another only grows."""
    _, needs, _ = tracked(program)
    seen: dict[tuple[int, int], int] = {}
    for access, need in zip(program, needs, strict=True):
        for lane, number in need.items():
            assert number > seen.get((access.lane, lane), -1)
            seen[access.lane, lane] = number


def test_a_write_to_a_constant_is_refused() -> None:
    """An operand is read without hazards, and never written."""
    (operand, _), tracker = two_buffers(), HazardTracker(LANES)
    operand.constant = True
    whole = operand.box((0, 0), (8, 8))
    assert tracker.add(1, 0, (whole,), ()) == {}
    with pytest.raises(ProgramError, match="a in am"):
        tracker.add(2, 0, (), (whole,))


@pytest.mark.parametrize("kind", ["raw", "war", "waw"])
def test_one_kind_of_hazard_can_be_dropped(kind: str) -> None:
    """Only that kind, only in that memory."""
    pairs = {"raw": ("write", "read"), "war": ("read", "write"), "waw": ("write", "write")}
    found = {}
    for each, sides in pairs.items():
        tracker = HazardTracker(LANES, frozenset({("am", kind), ("gsm", "raw"), ("ddr", "war")}))
        whole = (two_buffers()[0].box((0, 0), (8, 8)),)
        for lane, side in enumerate(sides, start=1):
            found[each] = tracker.add(lane, 0, *((whole, ()) if side == "read" else ((), whole)))
    assert found == {each: ({} if each == kind else {1: 0}) for each in pairs}


def test_a_barrier_ends_what_was_done_to_shared_memory() -> None:
    """After it nobody waits for earlier accesses to DDR; those to AM still count."""
    tracker = HazardTracker(LANES)
    shared = Buffer("ddr", "x", 0, (8, 8), FP32, True).box((0, 0), (8, 8))
    private = two_buffers()[0].box((0, 0), (8, 8))
    tracker.add(1, 0, (), (shared, private))
    tracker.forget_shared()
    assert tracker.add(2, 0, (shared,), ()) == {}
    assert tracker.add(3, 0, (private,), ()) == {1: 0}
