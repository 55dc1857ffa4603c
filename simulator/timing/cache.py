"""Caches."""


class Cache:
    """Placeholder."""
