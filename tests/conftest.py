"""Options of the test suite."""

from __future__ import annotations

import pytest
from hypothesis import settings

# A test has a timeout of its own; the time of one example says how busy the machine is, not whether it is right.
settings.register_profile("tilesim", deadline=None)
settings.load_profile("tilesim")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add `--update-golden`."""
    parser.addoption("--update-golden", action="store_true", help="write the pinned figures anew")
