"""Which bits deformable gradients have on cubes: in every run and process, over cores and tiles; what order costs."""

from __future__ import annotations

import hashlib
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from kernels.shape.deform import DeformShape
from kernels.shape.shapes import ConvShape
from simulator.machine import Checks
from simulator.results.run import Run
from tests.deform_runs import NAMES, SUMMED, TINY, check, ran, rounded, same
from tests.deform_table import integers, operands

ROOT = Path(__file__).resolve().parents[2]
ALONE = DeformShape(ConvShape(1, 4, (4, 5), 4, (3, 3), padding=1), 2, True)
"""One group: the gradient of its features is a product."""


def fingerprint() -> str:
    """All bits of one run's gradients, and its trace."""
    run = ran(ALONE, rounded(operands(ALONE, spread=3.0)), cores=3)
    bits = hashlib.sha256()
    for name in NAMES:
        bits.update(np.ascontiguousarray(run.outputs[name]).tobytes())
    return bits.hexdigest() + run.trace.hash()


def test_ten_runs() -> None:
    """The same bits and the same trace, ten times."""
    assert len({fingerprint() for _ in range(10)}) == 1


@pytest.mark.slow
def test_another_process() -> None:
    """The same there."""
    program = "from tests.kernels.test_deform_order import fingerprint; print(fingerprint())"
    made = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert made.stdout.strip() == fingerprint()


@pytest.mark.parametrize("kind", ["fp32", "fp16"])
def test_any_number_of_cores(kind: str) -> None:
    """1 and 32 groups, which have 2 and 64 vector cores: dx, doffset and dmask have the same bits."""
    for shape in (TINY, ALONE):
        given = rounded(operands(shape, spread=2.0), kind)
        first = ran(shape, given, cores=1, grads=SUMMED)
        assert same(ran(shape, given, cores=32, grads=SUMMED), first, SUMMED)


@pytest.mark.parametrize("shape", [TINY, ALONE])
def test_any_number_of_cores_on_whole_numbers(shape: DeformShape) -> None:
    """All gradients have the same bits."""
    given = integers(shape)
    first = ran(shape, given, cores=1)
    assert all(same(ran(shape, given, cores=cores), first) for cores in (5, 32))


@pytest.mark.slow
@pytest.mark.parametrize("groups", [1, 2])
def test_numbers_of_cores_with_long_sums(groups: int) -> None:
    """The same on channels that need several K steps and tiles."""
    shape = DeformShape(ConvShape(2, 96, (9, 11), 200, (3, 3), padding=1, groups=groups), 2, True)
    given = rounded(operands(shape, spread=2.0))
    first = ran(shape, given, cores=1, grads=SUMMED)
    for cores in (2, 3, 5, 8, 12, 17, 24, 31, 32):
        assert same(ran(shape, given, cores=cores, grads=SUMMED), first, SUMMED)


def test_tiles_of_any_size() -> None:
    """The size of tiles changes no bit."""
    given = rounded(operands(ALONE, spread=2.0))
    first = ran(ALONE, given, cores=1)
    for elements in (7, 99):
        assert same(ran(ALONE, given, cores=1, tiling={"scatter.elements": elements}), first)


def test_races_and_landings() -> None:
    """No race between the cores; copies may land early or late; the zeros come before every addition."""
    given = integers(ALONE)
    plain = ran(ALONE, given)
    for checks in (
        Checks(races=True),
        Checks(dma="early"),
        Checks(dma="late"),
        Checks(values="instructions"),
    ):
        assert same(ran(ALONE, given, checks=checks), plain)


def test_a_fixed_order_costs() -> None:
    """deterministic=True is slower on many cores, with the same gradients, and the report says for what."""
    shape = DeformShape(ConvShape(1, 32, (8, 8), 16, (3, 3), padding=1), 1, True)
    given = rounded(operands(shape))
    free, ordered = (ran(shape, given, cores=4, deterministic=fixed) for fixed in (False, True))
    assert _scatter(ordered) > _scatter(free)
    assert same(free, ordered)
    both = zip(free.to_dict()["launches"], ordered.to_dict()["launches"], strict=True)
    slower = {a["name"] for a, b in both if a["cycles"] != b["cycles"]}
    assert slower == {"deform_scatter"}
    waits = ordered.trace.to_pandas().query("name == 'wait_flag'")
    assert set(waits["waited_reason"]) == {"flag"}
    assert len(waits) == 4 * 2 - 1
    assert "wait_flag" not in free.trace.names


def _scatter(run: Run) -> int:
    return next(launch.end - launch.start for launch in run.launches if launch.name == "deform_scatter")


@pytest.mark.parametrize("kernel", [(3, 3), (2, 2), (1, 3)])
def test_features_of_one_group_are_a_product(kernel: tuple[int, int]) -> None:
    """No multiplication is for nothing, in any type; its tiling can be given."""
    shape = DeformShape(ConvShape(2, 32, (8, 9), 48, kernel, padding=1), 1, True)
    for kind in ("fp32", "bf16"):
        given = rounded(operands(shape), kind)
        run = ran(shape, given, target="ascend910b1", cores=3, tiling={"m": 32})
        check(run, shape, given)
        assert [launch.name for launch in run.launches][:2] == ["gemm", "permute_features"]
        assert run.tiling["m"] == 32
        assert run.launches[0].useful_macs == shape.conv.useful_macs
        assert run.macs < 1.7 * run.useful_macs  # whole fractals, no zeros between dy
