"""Functions that run once a core: order, meetings, and how a team fails."""

from __future__ import annotations

import threading

import pytest

from simulator.device.device import Device
from simulator.device.team import Team
from simulator.errors import DeadlockError, ProgramError
from targets.errors import TilesimError


def test_cores_take_turns_in_order() -> None:
    """The lowest core that can go on does; what waits goes on after the last one has come."""
    said: list[str] = []

    def work(core: int) -> int:
        said.append(f"{core} comes")
        team.meet(core, "here", 3, None, "the place", lambda _: said.append("act"))
        said.append(f"{core} goes on")
        return core * 10

    team = Team((5, 1, 3))
    assert team.run(work) == (10, 30, 50)
    assert team.cores == (1, 3, 5)
    assert said == [
        *["1 comes", "3 comes", "5 comes", "act"],
        *["5 goes on", "1 goes on", "3 goes on"],
    ]


def test_all_get_what_the_last_one_made() -> None:
    """From what each of them brought."""
    team = Team((0, 2))
    met = team.run(
        lambda core: team.meet(
            core, "sum", frozenset((0, 2)), core + 1, "a sum", lambda brought: sorted(brought.items())
        )
    )
    assert met == ([(0, 1), (2, 3)], [(0, 1), (2, 3)])


def test_an_error_of_one_core_ends_the_team() -> None:
    """It is raised as it was; no thread stays behind."""
    before = threading.active_count()

    def work(core: int) -> None:
        if core == 2:
            raise ValueError("core 2 fails")
        team.meet(core, "here", 3, None, "the place", lambda _: None)

    team = Team((0, 1, 2))
    with pytest.raises(ValueError, match="core 2 fails"):
        team.run(work)
    assert threading.active_count() == before


def test_an_error_of_the_act_ends_the_team() -> None:
    """As one of the last core."""
    team = Team((0, 1))
    with pytest.raises(ZeroDivisionError):
        team.run(lambda core: team.meet(core, "here", 2, None, "the place", lambda _: 1 // 0))


def test_a_deadlock_says_who_waits() -> None:
    """Who has ended, who waits for whom, since when; no thread stays behind."""
    before = threading.active_count()
    team = Team((0, 1, 2), lambda: 42)
    with pytest.raises(DeadlockError) as caught:
        team.run(
            lambda core: core == 1 or team.meet(core, ("bar", core), 2, None, f"bar {core}", lambda _: None)
        )
    assert caught.value.waiting == (
        "core 0 waits at bar 0 for 2 cores since cycle 42",
        "core 1 has ended",
        "core 2 waits at bar 2 for 2 cores since cycle 42",
    )
    assert threading.active_count() == before


def test_cores_that_do_not_agree_on_who_has_to_come() -> None:
    """Refused, not waited for."""
    team = Team((0, 1))
    with pytest.raises(ProgramError, match=r"do not agree on who has to come.*got 3 cores, limit 2 cores"):
        team.run(lambda core: team.meet(core, "here", 2 + core, None, "the place", lambda _: None))


def test_what_spmd_refuses() -> None:
    """Masks, teams inside teams, barriers outside."""
    with Device("mt7004") as device:
        for mask in (0, 0b10000, -1, True):
            with pytest.raises(TilesimError, match="core mask"):
                device.spmd(lambda: None, mask)
        with pytest.raises(ProgramError, match="a team inside a team"):
            device.spmd(lambda: device.spmd(lambda: None, 0b1), 0b1)
        with pytest.raises(ProgramError, match="a barrier outside spmd"):
            device.barrier(0, 1)
        for count in (0, 5):
            with pytest.raises(ProgramError, match="a number of cores that the chip lacks"):
                device.spmd(lambda count=count: device.barrier(0, count), 0b1)
        assert device.spmd(lambda mask: (device.core, mask), 0b101) == ((0, 0b101), (2, 0b101))
        assert device.spmd(lambda core_mask=1: core_mask, 0b101) == (0b101, 0b101)
        assert device.spmd(lambda other=1: other, 0b101) == (1, 1)
        assert device.team is None
