"""What cores are called in pictures, tables and traces: the one place for all reports."""

from targets.schema import Target


def core_label(target: Target, core: int) -> str:
    """The name of a core as the vendors' tools have it: "core3", or "core0.veccore1" where there are several kinds."""
    return target.core_name(core)


def kind_label(target: Target, kind: str) -> str:
    """The name of a kind of core as it stands in the names of its cores; "core" where a chip has one kind."""
    units = target.units((0,), (kind,))
    if len(target.core) == 1 or not units:
        return "core"
    return target.core_name(units[0].number).rpartition(".")[2].rstrip("0123456789")
