"""Kernels with more taps than a buffer of the scratchpad holds: weights are reordered in pieces of one channel."""

import pytest

from kernels.dsp.dx.reorder import BUFFER_BYTES
from kernels.shape.shapes import ConvShape
from tests.kernels.mixed import check_modes

TAPS = BUFFER_BYTES // 4 + 100
LONG = ConvShape(n=1, cin=2, size=(TAPS + 3,), cout=2, kernel=(TAPS,))


@pytest.mark.parametrize("outputs", [("dx",), ("y",)], ids="-".join)
@pytest.mark.parametrize("target", [pytest.param("mt7004", marks=pytest.mark.slow), "ft78ne"])
def test_a_kernel_longer_than_a_buffer(target: str, outputs: tuple[str, ...]) -> None:
    """In every mode of the target, within its bound."""
    check_modes(LONG, target, outputs)
