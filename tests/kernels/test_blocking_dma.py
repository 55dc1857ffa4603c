"""A DMA that blocks its core: nothing on FT78NE runs beside a transfer, on MT7004 it does; the numbers are the same."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest

from kernels.conv_backward import conv_backward
from kernels.errors import OperandError
from kernels.shape.shapes import ConvShape
from simulator.results.run import Run
from tests.case_table import Case
from tests.kernels.sweep import check_integers, check_random, sample

LAYER = ConvShape(n=8, cin=32, size=(14, 14), cout=48, kernel=(3, 3), padding=1)


def timed(target: str, shape: ConvShape = LAYER, grad: str = "dx", **options: Any) -> Run:
    """A run without numbers."""
    return conv_backward(shape=shape, target=target, dtype="fp32", grads=(grad,), numerics=False, **options)


def overlaps(run: Run, core: int) -> int:
    """Cycles in which a core's DMA and its vector unit are both busy."""
    table = run.trace.to_pandas()
    mine = table[(table["core"] == core) & (table["engine"] != "SCALAR")]
    edges: dict[bool, list[tuple[int, int]]] = {False: [], True: []}
    for is_dma, start, end in zip(
        mine["engine"].str.startswith("DMA"), mine["start"], mine["end"], strict=True
    ):
        edges[bool(is_dma)].append((int(start), int(end)))
    return sum(
        max(0, min(end, other_end) - max(start, other_start))
        for start, end in edges[False]
        for other_start, other_end in edges[True]
    )


@pytest.mark.parametrize("grad", ["dx", "dw", "db"])
def test_transfers_never_run_beside_computing_on_ft78ne(grad: str) -> None:
    """The library's dma_trans polls until its transfer is done."""
    run = timed("ft78ne", grad=grad)
    assert all(overlaps(run, core) == 0 for core in range(8))
    table = run.trace.to_pandas()
    for _, rows in table[table["engine"] != "SCALAR"].groupby("core"):
        spans = sorted(zip(rows["start"], rows["end"], strict=True))
        assert all(before[1] <= after[0] for before, after in pairwise(spans))


@pytest.mark.parametrize(("grad", "field"), [("dx", "split"), ("dw", "dw.split")])
def test_transfers_run_beside_computing_on_mt7004(grad: str, field: str) -> None:
    """A good part of the transfers is hidden behind the products, on each core that has images."""
    run = timed("mt7004", grad=grad, tiling={field: "batch"})
    assert all(overlaps(run, core) > run.cycles // 20 for core in range(4))


@pytest.mark.parametrize(("target", "cores"), [("mt7004", 4), ("ft78ne", 8)])
def test_with_one_image_split_by_batch_the_other_cores_idle(target: str, cores: int) -> None:
    """They have no instruction of the product's launch."""
    one = ConvShape(**(LAYER.to_dict() | {"n": 1}))  # type: ignore[arg-type]  # the constructor's own arguments
    run = timed(target, one, tiling={"split": "batch"})
    table = run.trace.to_pandas()
    launch = table[table["launch"] == table["launch"].max()]
    assert sorted(launch["core"].unique()) == [0]
    assert len(table["core"].unique()) <= cores


def test_ft78ne_computes_fp32_only() -> None:
    """Its library has no fp16."""
    with pytest.raises(OperandError, match=r"does not compute.*fp16.*fp32"):
        conv_backward(shape=LAYER, target="ft78ne", dtype="fp16", numerics=False)


@pytest.mark.parametrize("case", sample(24, 2e6), ids=lambda case: case.id)
def test_gradients_on_ft78ne(case: Case) -> None:
    """Integer data gives the reference exactly, and random data stays within the bound."""
    grads = ("dx", "dw", "db")
    check_integers(case.shape, "fp32", grads, target="ft78ne")
    check_random(case.shape, "fp32", grads, target="ft78ne")
