"""A team: one function on several cores, each with its own place in it, that wait for each other where they meet.

Every core is a thread, but only one of them runs at a time: the lowest core that is not waiting goes on until it waits
or ends. So the order is the same in every process, and nothing needs a lock.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field

from simulator.errors import DeadlockError, ProgramError

Act = Callable[[Mapping[int, object]], object]
"""What is done when all have come, with what each of them brought."""


class _Aborted(BaseException):
    """Unwinds a core whose team has failed; no handler of ordinary errors takes it."""


@dataclass
class _Member:
    """One core: its thread, and what it waits for."""

    core: int
    go: threading.Semaphore = field(default_factory=lambda: threading.Semaphore(0))
    thread: threading.Thread | None = None
    waiting: str = ""
    ended: bool = False
    result: object = None
    error: BaseException | None = None


@dataclass
class _Meeting:
    """Who has come to a place where `needed` cores meet."""

    needed: frozenset[int] | int
    brought: dict[int, object] = field(default_factory=dict)

    @property
    def complete(self) -> bool:
        """Whether all are there: so many, or those that are named."""
        if isinstance(self.needed, int):
            return len(self.brought) >= self.needed
        return self.needed.issubset(self.brought)


class Team:
    """Cores that run one function each."""

    def __init__(self, cores: Sequence[int], clock: Callable[[], int] = lambda: 0) -> None:
        """A team of these cores; `clock` says the cycle for the message of a deadlock."""
        self._members = {core: _Member(core) for core in sorted(cores)}
        self._clock = clock
        self._back = threading.Semaphore(0)
        self._meetings: dict[Hashable, _Meeting] = {}
        self._failed = False

    @property
    def cores(self) -> tuple[int, ...]:
        """The cores, in order."""
        return tuple(self._members)

    def run(self, work: Callable[[int], object]) -> tuple[object, ...]:
        """Call `work(core)` on every core; returns what each gave, in the order of the cores.

        Raises:
            DeadlockError: cores wait for others that have ended, or that are not in the team.
        """
        for member in self._members.values():
            member.thread = threading.Thread(target=self._body, args=(member, work), daemon=True)
            member.thread.start()
        try:
            self._take_turns()
        finally:
            self._end_all()
        return tuple(member.result for member in self._members.values())

    def meet(
        self, core: int, key: Hashable, needed: frozenset[int] | int, brings: object, what: str, act: Act
    ) -> object:
        """Wait until all have come to `key`; the last one acts, and everybody gets what that gave.

        Args:
            core: who comes.
            key: where they meet; meetings of one key follow each other.
            needed: who has to come, or how many.
            brings: what this core gives to the act.
            what: for the message of a deadlock, as "barrier 0".
            act: done once, when all are there.

        Raises:
            ProgramError: the cores do not agree on who has to come.
        """
        meeting = self._meetings.setdefault(key, _Meeting(needed))
        if meeting.needed != needed:
            raise ProgramError(
                "cores that meet do not agree on who has to come",
                where=f"core {core} at {what}",
                got=_named(needed),
                limit=_named(meeting.needed),
            )
        meeting.brought[core] = brings
        if not meeting.complete:
            return self._wait(self._members[core], f"core {core} waits at {what} for {_named(needed)}")
        del self._meetings[key]
        result = act(meeting.brought)
        for other in meeting.brought:
            self._members[other].waiting, self._members[other].result = "", result
        return result

    def _wait(self, member: _Member, sentence: str) -> object:
        """Let the others go on until somebody has woken this core."""
        member.waiting = f"{sentence} since cycle {self._clock()}"
        self._back.release()
        member.go.acquire()
        if self._failed:
            raise _Aborted
        return member.result

    def _body(self, member: _Member, work: Callable[[int], object]) -> None:
        """One thread, from its first turn to its end."""
        member.go.acquire()
        try:
            if not self._failed:
                member.result = work(member.core)
        except BaseException as error:  # it is raised again in the thread that runs the team
            member.error = error
        member.ended = True
        self._back.release()

    def _take_turns(self) -> None:
        """One core after the other, until all have ended."""
        while running := [m for m in self._members.values() if not m.ended]:
            ready = next((m for m in running if not m.waiting), None)
            if ready is None:
                raise DeadlockError(self._clock(), self._sentences())
            ready.go.release()
            self._back.acquire()
            if ready.error is not None:
                raise ready.error

    def _sentences(self) -> tuple[str, ...]:
        """Who waits, and who has ended without coming."""
        return tuple(m.waiting or f"core {m.core} has ended" for m in self._members.values())

    def _end_all(self) -> None:
        """Unwind whoever has not ended."""
        self._failed = True
        for member in self._members.values():
            if member.thread is not None:
                if not member.ended:
                    member.go.release()
                member.thread.join()


def _named(needed: frozenset[int] | int) -> str:
    """Who has to come, for people."""
    if isinstance(needed, int):
        return f"{needed} cores"
    return f"cores {', '.join(str(core) for core in sorted(needed))}"
