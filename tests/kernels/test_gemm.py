"""gemm on the DSP family: values, traces and refusals."""

from __future__ import annotations

from itertools import product
from typing import Any, Literal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernels.dsp.product.kernel import GemmProgram
from kernels.errors import OperandError, ShapeError
from kernels.gemm import check_gemm, gemm, longest_chain
from kernels.operators import run_operator
from kernels.reference.comparison import compare
from kernels.reference.references import gemm_reference
from simulator.errors import RaceError
from simulator.machine import Checks
from simulator.tiles import nothing
from simulator.values.numerics import Array, dtype
from targets.loader import load_target

SHAPES = [(1, 1, 1), (7, 5, 3), (6, 96, 16), (100, 200, 90), (33, 17, 1100), (130, 1, 40), (1, 130, 40)]
SMALL: dict[str, object] = {"M_G": 12, "K_G": 16, "M_A": 8, "K_A": 5, "N_A": 7, "M_S": 3}


def operands(
    sizes: tuple[int, int, int],
    kind: str,
    trans_a: bool = False,
    trans_b: bool = False,
    *,
    integers: bool = True,
) -> tuple[Array, Array]:
    """Two matrices of a product (M, N, K), as they are given: of -1, 0 and 1, or standard normal."""
    m, n, k = sizes
    rng = np.random.default_rng((m, n, k))
    shapes = ((k, m) if trans_a else (m, k)), ((n, k) if trans_b else (k, n))
    made = [rng.integers(-1, 2, s) if integers else rng.standard_normal(s) for s in shapes]
    a, b = (values.astype(dtype(kind).storage) for values in made)
    return a, b


@pytest.mark.parametrize(("trans_a", "trans_b"), list(product((False, True), repeat=2)))
@pytest.mark.parametrize("kind", ["fp32", "fp16"])
@pytest.mark.parametrize("sizes", SHAPES)
def test_integers_give_the_reference(
    sizes: tuple[int, int, int], kind: str, trans_a: bool, trans_b: bool
) -> None:
    """Sums that fit are exact, however the operands are given, and the type is theirs."""
    a, b = operands(sizes, kind, trans_a, trans_b)
    run = gemm(a, b, trans_a=trans_a, trans_b=trans_b)
    assert run.outputs["c"].dtype == a.dtype
    assert np.array_equal(run.outputs["c"], gemm_reference(a, b, trans_a=trans_a, trans_b=trans_b))
    assert check_gemm(run, a, b)["c"].ok
    assert run.max_error == {"c": 0.0}


@st.composite
def tilings(draw: st.DrawFn) -> dict[str, object]:
    """Tiles in tiles, of up to 40 a side, and not too many of them."""
    m_s, m_a, m_g = sorted(draw(st.lists(st.integers(4, 40), min_size=3, max_size=3)))
    k_a, k_g = sorted(draw(st.lists(st.integers(5, 40), min_size=2, max_size=2)))
    return {
        "M_G": m_g, "K_G": k_g, "M_A": m_a, "K_A": k_a, "N_A": draw(st.integers(6, 40)), "M_S": m_s,
        "split": draw(st.sampled_from(["n", "m", "auto"])), "ahead": draw(st.integers(0, 2)),
        "c_buffers": draw(st.integers(1, 4)),
    }  # fmt: skip


@settings(max_examples=150, deadline=None)
@given(
    st.tuples(st.integers(0, 40), st.integers(0, 50), st.integers(0, 40)),
    tilings(),
    st.sampled_from([1, 2, 3, 4]),
    st.sampled_from(["fp16", "fp32"]),
    st.tuples(st.booleans(), st.booleans(), st.booleans()),
    st.sampled_from(["modelled", "early", "late"]),
)
def test_any_tiling_gives_the_reference(
    sizes: tuple[int, int, int],
    tiling: dict[str, object],
    cores: int,
    kind: str,
    flags: tuple[bool, bool, bool],
    dma: Literal["modelled", "early", "late"],
) -> None:
    """Tiles, cores and splits change no bit of integer sums; folding and values change no row of the trace."""
    trans_a, trans_b, direct = flags
    tiling = {**tiling, "gsm_holds": "none" if direct and not trans_a else "a"}
    a, b = operands(sizes, kind, trans_a, trans_b)
    call: dict[str, Any] = {"trans_a": trans_a, "trans_b": trans_b, "cores": cores, "tiling": tiling}
    run = gemm(a, b, **call, checks=Checks(dma=dma, races=dma != "late"))
    assert np.array_equal(run.outputs["c"], gemm_reference(a, b, trans_a=trans_a, trans_b=trans_b))
    assert run.trace.hash() == gemm(a, b, **call, checks=Checks(fold=False)).trace.hash()
    timed = gemm(shape=sizes, dtype=kind, **call, numerics=False)
    assert (timed.trace.hash(), timed.outputs) == (run.trace.hash(), {})
    assert run.macs == run.useful_macs == sizes[0] * sizes[1] * sizes[2]


@pytest.mark.parametrize("sizes", [(3, 4, 0), (0, 4, 3), (3, 0, 4), (0, 0, 0)])
@pytest.mark.parametrize("kind", ["fp16", "fp32"])
def test_empty_sums_are_zero(sizes: tuple[int, int, int], kind: str) -> None:
    """Without k every element is 0; without rows or columns there is none."""
    m, n, k = sizes
    kept = dtype(kind).storage
    run = gemm(np.ones((m, k), kept), np.ones((k, n), kept))
    assert run.outputs["c"].tolist() == np.zeros((m, n)).tolist()
    assert run.outputs["c"].shape == (m, n)


@pytest.mark.parametrize("kind", ["fp16", "fp32"])
@pytest.mark.parametrize("tiling", [{}, SMALL, {"K_G": 40}, {"K_A": 1, "split": "m"}])
def test_random_data_stay_within_the_bound(kind: str, tiling: dict[str, object]) -> None:
    """Rounding is that of the sums' steps, and of the result once."""
    a, b = operands((45, 70, 130), kind, integers=False)
    run = gemm(a, b, tiling=tiling)
    assert check_gemm(run, a, b)["c"].ok
    assert run.max_error is not None
    assert run.tolerance is not None
    assert 0 < run.max_error["c"] <= run.tolerance["c"]


def test_the_bound_notices_a_wrong_sum() -> None:
    """One product too few is beyond the tolerance."""
    a, b = operands((20, 20, 64), "fp32", integers=False)
    run = gemm(a, b)
    run.outputs["c"] -= np.outer(a[:, 3], b[3])
    assert not check_gemm(run, a, b)["c"].ok


def test_chain_of_additions() -> None:
    """The longest chain is a K step, the steps of all panels, and the cores."""
    tiling = {"K_G": 16, "K_A": 5}
    assert longest_chain(gemm(shape=(4, 4, 40), tiling=tiling, numerics=False)) == 5 + (4 + 4 + 2) + 4
    half = {**tiling, "fp16_accumulate": "fp16"}
    assert longest_chain(gemm(shape=(4, 4, 40), dtype="fp16", tiling=half, numerics=False)) == 40 + 4


@pytest.mark.parametrize(
    "tiling", [{}, SMALL, {**SMALL, "gsm_holds": "none"}, {**SMALL, "split": "m", "ahead": 2}]
)
@pytest.mark.parametrize("kind", ["fp16", "fp32"])
def test_landing_of_dma_changes_no_bit(kind: str, tiling: dict[str, object]) -> None:
    """Copies that land as early or as late as they may give the same numbers."""
    a, b = operands((30, 40, 50), kind, integers=False)
    early, modelled, late = (
        gemm(a, b, tiling=tiling, checks=Checks(dma=mode)).outputs["c"].tobytes()
        for mode in ("early", "modelled", "late")
    )
    assert early == modelled == late


@pytest.mark.parametrize("hazard", [("sm", "raw"), ("am", "raw"), ("am", "war"), ("gsm", "raw")])
def test_a_lost_hazard_is_noticed(hazard: tuple[str, str]) -> None:
    """Without one of the derived waits some number is wrong when DMA lands late."""
    a, b = operands((60, 40, 50), "fp32")
    tiling = {**SMALL, "split": "m", "c_buffers": 2}
    run = gemm(a, b, tiling=tiling, cores=1, checks=Checks(dma="late", dropped=frozenset({hazard})))
    assert not compare(run.outputs["c"], gemm_reference(a, b), 0.0).ok


@pytest.mark.parametrize("barrier", [0, 1])
def test_a_lost_barrier_is_a_race(barrier: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """The panel that cores load together needs a barrier before the load and one behind it."""
    a, b = operands((60, 64, 50), "fp32")
    call: dict[str, Any] = {"tiling": {**SMALL, "split": "n"}, "checks": Checks(races=True)}
    assert gemm(a, b, **call).outputs["c"].shape == (60, 64)
    if barrier:
        monkeypatch.setattr(GemmProgram, "_meet", lambda _, step: nothing(step))
    else:
        load = GemmProgram._load_panel
        monkeypatch.setattr(
            GemmProgram,
            "_load_panel",
            lambda self, step: (i for i in load(self, step) if i.name != "barrier"),
        )
    with pytest.raises(RaceError, match="panel in gsm"):
        gemm(a, b, **call)


def test_partial_sums_stay_fp32() -> None:
    """An fp16 result that passes 2049, which fp16 does not hold, is rounded only at its end."""
    a = np.array([[2048, 1, -1, 0]], np.float16)
    b = np.ones((4, 1), np.float16)
    assert gemm(a, b, tiling={"K_G": 2, "K_A": 1}).outputs["c"].tolist() == [[2048]]
    half = {"K_G": 2, "K_A": 1, "fp16_accumulate": "fp16"}
    assert gemm(a, b, tiling=half).outputs["c"].tolist() == [[2047]]


def test_fp16_accumulator_doubles_the_peak() -> None:
    """The option sets the peak and the rate of the products."""
    mixed, half = (
        gemm(shape=(96, 768, 256), dtype="fp16", tiling={"fp16_accumulate": name}, numerics=False)
        for name in ("fp32", "fp16")
    )
    assert half.peak_flops_per_cycle == 2 * mixed.peak_flops_per_cycle == 2 * 4 * 192
    assert half.cycles < mixed.cycles


def test_fp64_is_summed_in_fp64() -> None:
    """On a target with an fp64 rate nothing passes through fp32."""
    a, b = np.array([[1.0, 2.0**-40]]), np.ones((2, 1))
    run = gemm(a, b, target="ft_m7032", tiling={"K_G": 1})
    assert run.outputs["c"].item() == 1 + 2.0**-40
    assert check_gemm(run, a, b)["c"].ok


def test_timeline_of_one_element() -> None:
    """Copies cost 45 to issue; DDR starts after 200 cycles, GSM after 60; the barrier takes 100."""
    one = np.ones((1, 1), np.float32)
    assert gemm(one, one, cores=1, tiling={"split": "n"}).trace.timeline(0) == [
        (12045, 12250, "DMA2", "load_panel"),
        (12250, 12350, "SCALAR", "barrier"),
        (12395, 12600, "DMA1", "load_b"),
        (12440, 12503, "DMA0", "load_a"),
        (12600, 12659, "VPU", "matmul"),
        (12704, 12917, "DMA3", "store_c"),
    ]


ONES = np.ones((3, 4), np.float32)


@pytest.mark.parametrize(
    ("call", "error", "argument"),
    [
        ({"b": ONES}, OperandError, "a"),
        ({"a": ONES}, OperandError, "b"),
        ({"a": ONES, "shape": (3, 5, 4)}, OperandError, "b"),
        ({"a": ONES, "b": ONES}, OperandError, "b"),
        ({"a": ONES, "b": ONES, "trans_a": True, "shape": (3, 4, 4)}, OperandError, "a"),
        ({"a": ONES[0], "b": ONES}, OperandError, "a"),
        ({"a": ONES.astype(int), "b": ONES.T}, OperandError, "a"),
        ({"a": ONES, "b": ONES.T.astype(np.float16)}, OperandError, "a and b"),
        ({"a": ONES.astype(np.float64), "b": ONES.T.astype(np.float64)}, OperandError, "dtype"),
        ({"a": ONES, "b": ONES.T, "c": ONES}, OperandError, "c"),
        ({"a": ONES, "b": ONES.T, "accumulate": True}, OperandError, "c"),
        ({"shape": (1, 2), "numerics": False}, ShapeError, "shape"),
        ({"shape": (1, 2, -1), "numerics": False}, ShapeError, "shape"),
        ({"shape": (1, 2, 1.5), "numerics": False}, ShapeError, "shape"),
        ({"shape": (1, 2, 3), "numerics": False, "cores": 5}, OperandError, "cores"),
    ],
)
def test_arguments_are_refused(
    call: dict[str, Any], error: type[OperandError | ShapeError], argument: str
) -> None:
    """The error names the argument."""
    with pytest.raises(error) as refusal:
        gemm(**call)
    assert refusal.value.fields()["argument"] == argument


def test_the_operator_runs_by_name() -> None:
    """`run_operator` makes operands, runs and checks."""
    run = run_operator("gemm", shape=(20, 30, 40), target=load_target("mt7004"), dtype="fp16")
    assert (run.operator, run.shape) == (
        "gemm",
        {"m": 20, "n": 30, "k": 40, "trans_a": False, "trans_b": False},
    )
    assert run.max_error is not None
    assert run.tolerance is not None
    assert run.max_error["c"] <= run.tolerance["c"]


def test_reads_and_writes_of_a_core_take_turns() -> None:
    """One DMA engine a core: it is busy for the time of both, not of the longer."""
    call: dict[str, Any] = {"shape": (4096, 32, 32), "dtype": "fp32", "cores": 1, "numerics": False}
    target = load_target("mt7004")
    run = gemm(**call, target=target)
    moved = run.to_dict()["traffic_bytes"]["ddr"]
    read, write = (target.port[f"ddr_{way}"].bytes_per_cycle for way in ("read", "write"))
    both = moved["read"] / read + moved["write"] / write
    assert both < run.cycles < 1.2 * both
    assert gemm(**call, target=load_target("mt7004", {"port.ddr_write.shares": ""})).cycles < both
