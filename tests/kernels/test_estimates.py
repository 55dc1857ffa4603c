"""The closed forms by which the tilings of a DSP are chosen, beside what the simulator then finds."""

from __future__ import annotations

import itertools
from typing import Any

import pytest

from kernels.conv_backward import conv_backward
from kernels.dsp.dw.lowering import dw_setting
from kernels.dsp.dw.plan import candidates as dw_candidates
from kernels.dsp.dx.lowering import dx_setting
from kernels.dsp.dx.middle import PanelSize, middle_panels
from kernels.dsp.dx.plan import candidates as dx_candidates
from kernels.shape.shapes import ConvShape
from simulator.machine import Machine
from simulator.values.numerics import dtype
from targets.loader import load_target

LAYERS = {
    "3x3": ConvShape(n=8, cin=64, size=(28, 28), cout=64, kernel=(3, 3), padding=1),
    "1x1": ConvShape(n=8, cin=256, size=(28, 28), cout=128, kernel=(1, 1)),
    "1x1 stride 2": ConvShape(n=8, cin=256, size=(28, 28), cout=256, kernel=(1, 1), stride=2),
    "first": ConvShape(n=4, cin=3, size=(112, 112), cout=64, kernel=(7, 7), stride=2, padding=3),
}


def found(shape: ConvShape, grad: str, target: str) -> tuple[float, int]:
    """The least estimate, and the cycles of the run with its tiling."""
    chip, operand = load_target(target), dtype("fp32")
    machine = Machine(chip, range(chip.groups))
    given: dict[str, Any] = {}
    if grad == "dx":
        best = min(dx_candidates(dx_setting(shape, operand, machine, given), given), key=lambda c: c.cycles)
        cycles, tiling = best.cycles, best.values
    else:
        setting = dw_setting(shape, operand, machine, given)
        ahead = {} if chip.engine["dma"].issue == "queued" else {"ahead": 0}
        cycles, fields = min(dw_candidates(setting, ahead), key=lambda c: c[0])
        tiling = {f"dw.{name}": value for name, value in fields.model_dump().items()}
    run = conv_backward(shape=shape, grads=(grad,), target=target, tiling=tiling, numerics=False)
    return cycles, run.cycles


@pytest.mark.parametrize("target", ["mt7004", "ft78ne"])
@pytest.mark.parametrize("grad", ["dx", "dw"])
@pytest.mark.parametrize("layer", LAYERS)
def test_an_estimate_is_near_the_run(layer: str, grad: str, target: str) -> None:
    """Within a quarter, where copies go on beside products and where a core waits for them."""
    estimate, cycles = found(LAYERS[layer], grad, target)
    assert estimate == pytest.approx(cycles, rel=0.25)


def test_rows_of_dx_without_outputs_count_as_well() -> None:
    """Of a kernel of one row with stride 2 every second row of dx has no output, with stride 1 none is such."""
    machine = Machine(load_target("mt7004"), range(4))
    size = PanelSize(1, 1, 28, 1, 64, 2)
    for layer, work in (("1x1 stride 2", [0, 14]), ("1x1", [28])):
        setting = dx_setting(LAYERS[layer], dtype("fp32"), machine, {})
        panels = middle_panels(setting, "batch", size, False)
        outputs = [
            sum(span.rows * span.cols for *_, spans in setting.tap_groups(panel, 1, False) for span in spans)
            for panel, _ in panels
        ]
        assert sorted(outputs) == work
        assert {times for _, times in panels} == {1}


def test_the_columns_of_the_next_chunk_are_asked_for_early() -> None:
    """Of a kernel of one tap: they are under way from the first product of a chunk on, not from its last."""
    shape = ConvShape(n=4, cin=256, size=(28, 28), cout=256, kernel=(1, 1))
    fields = {"split": "batch", "out_channels": 256, "channels": 128, "taps": 1, "k": 196, "rows": 24}
    tiling = {f"dw.{name}": value for name, value in fields.items()}
    run = conv_backward(
        shape=shape, grads=("dw",), target="mt7004", cores=1, tiling=tiling, numerics=False, dtype="fp16"
    )
    trace = run.trace
    names = [trace.names[code] for code in trace["name"].tolist()]
    order = [name for name in names if name in ("load_x", "matmul")]
    products = [index for index, name in enumerate(order) if name == "matmul"]
    before = [order[a:b].count("load_x") for a, b in itertools.pairwise([0, *products])]
    rows, strips, chunks = 7, 11, 32
    assert len(before) == strips * chunks
    assert before[0] == 2  # the first chunk's columns, which nothing hides, and the first row of the second's
    for first in range(0, strips * (chunks - 2), strips):
        assert sum(before[first + 1 : first + 1 + strips]) == rows
    assert set(before[1:]) == {0, 1}
