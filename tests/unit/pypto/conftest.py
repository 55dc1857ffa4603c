"""Settings of pypto hold until the next test only."""

from collections.abc import Iterator

import pytest

from kernels import pypto


@pytest.fixture(autouse=True)
def _no_settings() -> Iterator[None]:
    pypto.reset()
    yield
    pypto.reset()
