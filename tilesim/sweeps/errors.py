"""Errors of sweeps."""

from targets.errors import TilesimError


class SweepError(TilesimError):
    """A sweep that cannot be: what it varies, its points, its file or its cluster; `where` is the option at fault."""
