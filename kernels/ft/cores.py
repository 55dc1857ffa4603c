"""What a program asks about the cores it runs on, under the vendor's names."""

from __future__ import annotations

from kernels.errors import OperandError
from simulator.device.device import in_use


def get_core_id() -> int:
    """The number of the core that calls (core 0 outside `Device.spmd`)."""
    return in_use().core


def GetCoreNum(core_mask: int) -> int:  # noqa: N802  # the vendor's name
    """How many cores a mask has."""
    _require_mask(core_mask)
    return core_mask.bit_count()


def GetLogicCoreId(core_mask: int, core_id: int) -> int:  # noqa: N802  # the vendor's name
    """The place of a core among those of a mask, or -1 where the mask leaves it out."""
    _require_mask(core_mask)
    return (core_mask & ((1 << core_id) - 1)).bit_count() if core_mask >> core_id & 1 else -1


def sys_bar(barrier_id: int, core_num: int) -> None:
    """Wait at barrier `barrier_id` until `core_num` cores have come.

    Raises:
        ProgramError: outside `Device.spmd`, or the cores do not agree on their number.
        DeadlockError: the others never come.
    """
    in_use().barrier(barrier_id, core_num)


def _require_mask(core_mask: object) -> None:
    if not isinstance(core_mask, int) or isinstance(core_mask, bool) or core_mask < 0:
        raise OperandError("core_mask is no mask", argument="core_mask", got=repr(core_mask))
