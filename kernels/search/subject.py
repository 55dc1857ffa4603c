"""What is searched: one kernel's fields, which of them it allows, and what they cost."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

Fields = dict[str, object]
Given = Mapping[str, object]
Options = dict[str, list[object]]
"""Values to try, by field, in order."""


def no_seeds(_: Given) -> Iterable[tuple[float, Fields]]:
    """No other tilings are known."""
    return ()


def no_bound(_: Given) -> float:
    """Nothing is known of a tiling before it is run."""
    return 0.0


@dataclass(frozen=True)
class Subject:
    """One kernel of a call.

    Attributes:
        name: of its result ("dx", "dw", "y", "c"), or of the operator.
        time: runs it with some fields given, timed only: all fields, and the cycles. Raises TilesimError.
        options: the values to try around a tiling.
        plan: all fields that given ones lead to, without a run; None where only a run tells.
            Raises TilesimError where the kernel's own checks refuse them.
        seeds: tilings that the kernel's planner knows, each behind its estimate in cycles.
        estimate: cycles of a whole tiling by the kernel's estimate, 0 without one.
        bound: cycles that no run of a whole tiling can beat, 0 where that is not known.
        prefix: of its fields in the call's tiling.
    """

    name: str
    time: Callable[[Given], tuple[Fields, int]]
    options: Callable[[Given], Options]
    plan: Callable[[Given], Fields] | None = None
    seeds: Callable[[Given], Iterable[tuple[float, Fields]]] = no_seeds
    estimate: Callable[[Given], float] = no_bound
    bound: Callable[[Given], float] = no_bound
    prefix: str = ""
