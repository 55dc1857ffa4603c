"""What needs a copy waits for it, and says so, also where the next copy streams from the cycle in which it ends."""

import numpy as np
import pytest

from kernels.conv_backward import conv_backward
from kernels.conv_forward import conv_forward
from kernels.shape.shapes import ConvShape
from simulator.results.critical.path import UNKNOWN, critical_path
from simulator.results.run import Run
from targets.loader import load_target

FIRST = ConvShape(n=1, cin=3, size=(64, 64), cout=64, kernel=(3, 3), stride=2)
SMALL = ConvShape(n=1, cin=32, size=(14, 14), cout=32, kernel=(3, 3), padding=1)


def runs(latency: int) -> list[Run]:
    """Calls whose copies follow each other closely, with so many cycles between an end and who waits for it."""
    target = load_target("mt7004", {"sync.flag_latency_cycles": latency})
    return [
        conv_forward(shape=FIRST, target=target, dtype="fp32", numerics=False),
        conv_backward(shape=SMALL, target=target, dtype="fp32", grads=("dw",), numerics=False),
    ]


@pytest.mark.parametrize("latency", [0, 500])
def test_nothing_starts_before_what_it_needs(latency: int) -> None:
    """The latency lies between the end of what is needed and the start; who waited for an end waited for no issue."""
    for run in runs(latency):
        trace = run.trace
        needed = trace["needed_row"]
        rows = np.flatnonzero(needed >= 0)
        landed = trace["end"][needed[rows]] + latency
        assert (trace["start"][rows] >= landed).all()
        late = rows[landed > trace["issued"][rows]]
        assert len(late)
        assert "issue" not in {trace.reasons[reason] for reason in trace["waited_reason"][late]}


def test_the_critical_path_knows_every_wait() -> None:
    """No stretch of it is without a reason."""
    for run in runs(0):
        path = critical_path(run.trace, run.target, run.launches, run.cycles)
        assert UNKNOWN not in {segment.reason for segment in path.segments}
