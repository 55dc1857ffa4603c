"""Which memories of a target play the parts that the DSP kernels speak of, and how much room they give."""

from __future__ import annotations

from typing import NamedTuple

from targets.errors import TargetError
from targets.schema import LinkSpec, Target

HINDRANCE = 6
"""The power by which loads that go on at once are combined."""

ROLES = ("scalar", "array", "shared", "main")
"""Rows of an operand next to the scalar unit, arrays of the vector unit, the cores' shared memory, and DDR."""


class Places(NamedTuple):
    """The parts as memories, with the links and ports between them and the array memory.

    Attributes:
        scalar, array, shared, main: names of memories; one memory may play two parts.
        scalar_bytes, array_bytes, shared_bytes: room for a kernel's buffers.
        main_link, shared_link: names of the links that loads take.
        read_port, write_port: the core's ports towards the main memory.
    """

    scalar: str
    array: str
    shared: str
    main: str
    scalar_bytes: int
    array_bytes: int
    shared_bytes: int
    main_link: str
    shared_link: str
    read_port: str
    write_port: str

    def ddr(self, target: Target) -> LinkSpec:
        """The link of the main memory."""
        return target.link[self.main_link]


def places(target: Target) -> Places:
    """The parts of a target's memories.

    Raises:
        TargetError: a role or a path between two roles is missing.
    """
    missing = [role for role in ROLES if role not in target.role]
    if missing:
        raise TargetError(
            "a DSP kernel needs a memory for each role",
            key=f"role.{missing[0]}",
            got="none",
            limit=", ".join(ROLES),
        )
    names = {role: target.role[role].memory for role in ROLES}
    load, store = f"{names['main']}->{names['array']}", f"{names['array']}->{names['main']}"
    shared = f"{names['shared']}->{names['array']}"
    for key in (load, store, shared):
        if key not in target.path:
            raise TargetError("a DSP kernel needs this path", key=f"path.{key}", got="none")
    return Places(
        **names,
        scalar_bytes=target.role_bytes("scalar"),
        array_bytes=target.role_bytes("array"),
        shared_bytes=target.role_bytes("shared"),
        main_link=target.path[load].link,
        shared_link=target.path[shared].link,
        read_port=target.path[load].port,
        write_port=target.path[store].port,
    )


def waits_for_copies(target: Target) -> bool:
    """Whether a core that asks for a copy waits for its end, so that nothing runs beside it."""
    return target.engine["dma"].issue == "blocking"


def copy_cycles(target: Target) -> float:
    """What one copy from the main memory takes of a core's time: its issue, and its start where the core waits."""
    where, issue = places(target), float(target.issue.copy_cycles)
    path = target.path[f"{where.main}->{where.array}"]
    return issue + path.start_cycles if waits_for_copies(target) else issue


def beside_each_other(*loads: float) -> float:
    """The time of a core's work, the links' and the ports' where they go on at once: the longest, or a little more.

    Where two are nearly equal each waits for the other now and then. The power is of runs of dx with 1,010 tilings of
    ResNet-50's layers on MT7004: of 4, 6, 8, 12 and infinity, 6 picked well and had no bias.
    """
    return float(sum(load**HINDRANCE for load in loads) ** (1 / HINDRANCE))


def default_look_ahead(target: Target) -> dict[str, object]:
    """The tiling field that loads which block the core ask for: nothing runs beside them, so none runs ahead."""
    return {"ahead": 0} if waits_for_copies(target) else {}
