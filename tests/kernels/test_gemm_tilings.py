"""Tilings of gemm on the DSP family: obeyed, chosen so that they fit, or refused."""

from __future__ import annotations

from itertools import product

import pytest

from kernels.dsp.product.plan import plan_gemm
from kernels.dsp.product.tiling import Problem, slices
from kernels.errors import TilingError
from kernels.gemm import gemm, require_capacity
from kernels.operators import run_operator
from simulator.errors import CapacityError
from simulator.values.numerics import dtype
from targets.loader import load_target


def test_overrides_are_obeyed() -> None:
    """Given fields are the run's, and its products and copies have their sizes."""
    tiling = {"M_G": 32, "K_G": 16, "M_A": 16, "K_A": 8, "N_A": 16, "M_S": 4, "split": "n", "ahead": 2}
    run = gemm(shape=(64, 128, 40), dtype="fp32", cores=4, tiling=tiling, numerics=False)
    assert {name: run.tiling[name] for name in tiling} == tiling
    trace = run.trace
    names = [trace.names[code] for code in trace["name"]]
    assert {name: names.count(name) for name in sorted(set(names))} == {
        "barrier": 4 * (2 * 6 - 1),  # before each of 2 x 3 panels but the first, and behind each
        "load_a": 4 * (64 // 4) * 5 * 2,
        "load_b": 4 * 2 * 4 * (2 + 2 + 1),  # again for each C tile: its panel has two K steps
        "load_c": 4 * 4 * 2 * 2,
        "load_panel": 4 * 6,
        "matmul": 4 * (64 // 4) * 5 * 2,
        "store_c": 4 * 4 * 2 * 3,
    }
    copied = dict(zip(names, trace["bytes"], strict=True))
    assert {name: copied[name] for name in ("load_a", "load_b", "store_c")} == {
        "load_a": 4 * 8 * 4,
        "load_b": 8 * 16 * 4,
        "store_c": 16 * 16 * 4,
    }


@pytest.mark.parametrize(
    ("sizes", "kind", "split"),
    [
        ((4096, 4096, 4096), "fp32", "n"),
        ((65536, 32, 32), "fp32", "m"),
        ((20480, 96, 4096), "fp16", "m"),
        ((6, 4096, 64), "fp16", "n"),
    ],
)
def test_default_split_follows_the_shape(sizes: tuple[int, int, int], kind: str, split: str) -> None:
    """Columns are divided unless there are too few; where all of A passes once it does not enter GSM."""
    target = load_target("mt7004")
    require_capacity(sizes, target, kind, (0, 1, 2, 3))
    problem = Problem(*sizes, False, False, dtype(kind), target, 4)
    tiling = plan_gemm(problem, {"split": "auto"})
    assert (tiling.split, tiling.gsm_holds) == (split, "a" if split == "n" else "none")
    assert (tiling.K_G == tiling.K_A) == (split == "n" or sizes[2] <= tiling.K_A)


def test_slices_are_granules() -> None:
    """Cores own whole granules, the last one the ragged rest."""
    assert slices(200, 4, 16) == [(0, 64), (64, 48), (112, 48), (160, 40)]
    assert slices(17, 4, 16) == [(0, 16), (16, 1)]


@pytest.mark.parametrize(
    ("tiling", "field"),
    [
        ({"M_S": 4096, "K_A": 4096}, "M_S"),
        ({"N_A": 4096, "K_A": 512}, "N_A"),
        ({"M_A": 4096, "N_A": 512}, "N_A"),
        ({"M_G": 4096, "K_G": 4096}, "M_G"),
        ({"c_buffers": 9, "M_A": 1024, "N_A": 96}, "N_A"),
        ({"M_A": 8, "M_S": 9}, "M_S"),
        ({"K_A": 8, "K_G": 7}, "K_A"),
        ({"M_G": 8, "M_A": 9}, "M_A"),
        ({"N_A": 0}, "N_A"),
        ({"ahead": -1}, "ahead"),
        ({"split": "k"}, "split"),
        ({"kernel": "nt"}, "kernel"),
        ({"kernel": "nt", "swap": True}, "kernel"),
        ({"M_B": 1}, "M_B"),
    ],
)
def test_tilings_that_cannot_be_are_refused(tiling: dict[str, object], field: str) -> None:
    """The error names a field that was given."""
    with pytest.raises(TilingError) as refusal:
        gemm(shape=(4096, 4096, 4096), tiling=tiling, numerics=False)
    assert refusal.value.field == field


def test_a_transposed_a_needs_gsm() -> None:
    """It is turned on its way there."""
    with pytest.raises(TilingError) as refusal:
        gemm(shape=(8, 8, 8), trans_a=True, tiling={"gsm_holds": "none"}, numerics=False)
    assert refusal.value.field == "gsm_holds"


@pytest.mark.parametrize("sizes", [(1, 1, 1 << 20), (1 << 20, 1, 1), (5000, 3, 7000), (1, 1 << 20, 3)])
@pytest.mark.parametrize("flags", list(product((False, True), repeat=2)))
@pytest.mark.parametrize("kind", ["fp16", "fp32"])
@pytest.mark.parametrize("ahead", [0, 1, 8])
def test_defaults_fit_any_shape(
    sizes: tuple[int, int, int], flags: tuple[bool, bool], kind: str, ahead: int
) -> None:
    """Whatever the shape, how it is given and how far loads run ahead, the chosen tiles fit."""
    target = load_target("mt7004")
    for cores, split in product((1, 4), ("auto", "n", "m")):
        problem = Problem(*sizes, *flags, dtype(kind), target, cores)
        assert plan_gemm(problem, {"ahead": ahead, "split": split}).ahead == ahead


@pytest.mark.parametrize("name", ["M_G", "K_G", "M_A", "K_A", "N_A", "M_S"])
@pytest.mark.parametrize("size", [1, 5, 100])
def test_defaults_fit_around_one_field(name: str, size: int) -> None:
    """One small field is enough: the others follow."""
    run = gemm(shape=(40, 50, 60), tiling={name: size}, numerics=False)
    assert run.tiling[name] == size


def test_ddr_is_refused_before_arrays_are_made() -> None:
    """Matrices of 2 ** 40 elements are refused by capacity, not by the computer that simulates."""
    target = load_target("mt7004")
    for call in (
        lambda: gemm(shape=(1 << 20, 1 << 20, 1 << 20), numerics=False),
        lambda: require_capacity((1 << 20, 1 << 20, 1 << 20), target, "fp16", (0,)),
        lambda: run_operator("gemm", shape=(1 << 20, 1 << 20, 8), target=target, dtype="fp16"),
    ):
        with pytest.raises(CapacityError) as refusal:
            call()
        assert refusal.value.memory == "ddr"


def test_partial_sums_need_room_in_ddr() -> None:
    """The fp32 scratch of fp16 results counts, unless K is one panel."""
    target = load_target("mt7004", {"memory.ddr.size_bytes": 4096})
    assert gemm(shape=(16, 32, 16), dtype="fp16", target=target, numerics=False).cycles > 0
    with pytest.raises(CapacityError, match="c_partial"):
        gemm(shape=(16, 32, 16), dtype="fp16", target=target, tiling={"K_G": 8}, numerics=False)
