"""What cores are called in pictures, tables and traces: the one place for all reports."""

from targets.schema import Target


def core_label(target: Target, core: int) -> str:
    """The name of a core as the vendors' tools have it: "core3", or "core0.veccore1" where there are several kinds."""
    return target.core_name(core)
