"""What cores are called in pictures, tables and traces: the one place for all reports."""

from targets.schema import Target


def core_label(target: Target, core: int) -> str:
    """The name of a core: the target's own where it has names for its cores, else its number."""
    named = getattr(target, "core_name", None)
    return str(named(core)) if named is not None else f"core {core}"
