"""The scalar unit's time as rows of its lane."""

from __future__ import annotations

import numpy as np
import pytest

from kernels.davinci.gemm import DavinciGemm
from kernels.davinci.product_rules import Matrices
from simulator.machine import Machine
from simulator.results.intervals import busy_cycles
from simulator.results.issue import with_issue
from simulator.results.metrics import utilisation
from simulator.results.trace import COST_COLUMNS, Trace
from simulator.values.numerics import dtype
from targets.loader import load_target


def _product(target: str, cores: int) -> Machine:
    chip = load_target(target)
    machine = Machine(chip, tuple(range(cores)), numerics=False)
    matrices = Matrices(300, 520, 200, False, True, dtype("fp16"), "fp16", chip, cores)
    DavinciGemm.of(matrices, machine, {}).run()
    return machine


@pytest.mark.parametrize("target", ["ascend910b1", "ascend910a", "ascend950pr"])
def test_the_lane_has_what_issuing_takes(target: str) -> None:
    """Each core's SCALAR is busy for as long as its program's issues and flags cost."""
    machine = _product(target, 3)
    trace = machine.trace()
    shown = with_issue(trace)
    busy = busy_cycles(shown)[:, trace.engines.index("SCALAR")]
    assert dict(zip(trace.cores(), busy.tolist(), strict=True)) == machine.issue_cycles()
    assert shown.select(np.arange(len(shown)) < len(trace)) == Trace(
        trace.columns(), **{**trace.lists(), "names": shown.names}
    )


def test_shares_count_every_scalar_unit() -> None:
    """Of three groups each has a cube core and two vector cores, whose scalar units did nothing."""
    machine = _product("ascend910b1", 3)
    share = utilisation(machine.trace(), machine.target, 3, machine.cycles)["SCALAR"]
    assert share == sum(machine.issue_cycles().values()) / (9 * machine.cycles)
    assert share > 0


def test_what_follows_at_once_is_one_row() -> None:
    """Issues of 4, 3 and 2 cycles that end at 10, 13 and 20, a flag of 1 behind the second: 6 to 14, and 18 to 20."""
    rows = [(10, 4, 0), (13, 3, 1), (20, 2, 0)]
    columns = {name: np.zeros(3, np.int64) for name in ("launch", "core", "name", "bytes", *COST_COLUMNS)}
    columns |= {name: np.full(3, -1) for name in ("source", "destination", "waited_row", "needed_row")}
    columns |= {name: np.array([30, 40, 50]) for name in ("ready", "start", "flow", "end")}
    columns |= {"engine": np.ones(3, np.int64), "waited_reason": np.zeros(3, np.int64)}
    columns |= dict(zip(("issued", "issue", "signal"), np.array(rows).T, strict=True))
    shown = with_issue(Trace(columns, engines=("SCALAR", "CUBE"), names=("mmad",), memories=("gm",)))
    assert [row for row in shown.timeline() if row[3] == "issue"] == [
        (6, 14, "SCALAR", "issue"),
        (18, 20, "SCALAR", "issue"),
    ]
