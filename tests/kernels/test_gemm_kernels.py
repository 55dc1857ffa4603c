"""gemm on FT-M7032: micro-kernels that take B transposed, swapped operands, and products that are added to c."""

from __future__ import annotations

from collections import Counter
from itertools import product
from typing import Any, Literal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from kernels.dsp.product.plan import plan_gemm
from kernels.dsp.product.tiling import Problem, strips
from kernels.errors import TilingError
from kernels.gemm import check_gemm, gemm
from kernels.reference.references import gemm_reference
from simulator.machine import Checks
from simulator.results.run import Run
from simulator.values.numerics import dtype
from targets.loader import load_target
from tests.kernels.test_gemm import operands, tilings


@settings(max_examples=120, deadline=None)
@given(
    st.tuples(st.integers(0, 40), st.integers(0, 50), st.integers(0, 40)),
    tilings(),
    st.sampled_from([1, 3, 8]),
    st.sampled_from(["fp32", "fp64"]),
    st.tuples(st.booleans(), st.booleans(), st.booleans(), st.booleans(), st.booleans()),
    st.sampled_from(["nn", "nt", "nt_merged"]),
    st.sampled_from(["modelled", "early", "late"]),
)
def test_any_kernel_and_order_gives_the_reference(
    sizes: tuple[int, int, int],
    tiling: dict[str, object],
    cores: int,
    kind: str,
    flags: tuple[bool, bool, bool, bool, bool],
    kernel: str,
    dma: Literal["modelled", "early", "late"],
) -> None:
    """Micro-kernels, swapped operands, barriers and sums that begin with c change no bit of integer sums."""
    trans_a, trans_b, swap, meet, accumulate = flags
    second_turned = not trans_a if swap else trans_b
    kernel = kernel if second_turned and kind == "fp64" else "nn"
    tiling = {**tiling, "kernel": kernel, "swap": swap, "meet": meet}
    a, b = operands(sizes, kind, trans_a, trans_b)
    c = np.random.default_rng(1).integers(-3, 4, sizes[:2]).astype(a.dtype) if accumulate else None
    call: dict[str, Any] = {"trans_a": trans_a, "trans_b": trans_b, "cores": cores, "tiling": tiling}
    call["target"] = "ft_m7032"
    run = gemm(a, b, c=c, **call, checks=Checks(dma=dma, races=dma != "late"))
    expected = gemm_reference(a, b, trans_a=trans_a, trans_b=trans_b)
    expected = expected if c is None else expected + c.astype(np.float64)
    assert np.array_equal(run.outputs["c"], expected)
    assert check_gemm(run, a, b, c)["c"].ok
    assert run.trace.hash() == gemm(a, b, c=c, **call, checks=Checks(fold=False)).trace.hash()
    timed = gemm(shape=sizes, dtype=kind, accumulate=accumulate, **call, numerics=False)
    assert timed.trace.hash() == run.trace.hash()


@pytest.mark.parametrize("sizes", [(1, 1, 1 << 20), (1 << 20, 1, 1), (5000, 3, 7000), (1, 1 << 20, 3)])
@pytest.mark.parametrize("flags", list(product((False, True), repeat=2)))
@pytest.mark.parametrize("swap", [False, True])
@pytest.mark.parametrize("ahead", [0, 1, 8])
def test_defaults_fit_whatever_the_micro_kernel(
    sizes: tuple[int, int, int], flags: tuple[bool, bool], swap: bool, ahead: int
) -> None:
    """On FT-M7032 in fp64, with B as it is or turned, and with c to be loaded."""
    target = load_target("ft_m7032")
    for cores, accumulate in product((1, 8), (False, True)):
        problem = Problem(*sizes, *flags, dtype("fp64"), target, cores, accumulate)
        tiling = plan_gemm(problem, {"ahead": ahead, "swap": swap})
        assert tiling.kernel == ("nt" if (not flags[0] if swap else flags[1]) else "nn")


def test_fp32_sums_cannot_begin_with_an_fp16_c() -> None:
    """What is accumulated has the type of the sums."""
    call: dict[str, Any] = {"shape": (8, 8, 8), "dtype": "fp16", "accumulate": True, "numerics": False}
    with pytest.raises(TilingError) as refusal:
        gemm(**call)
    assert refusal.value.field == "fp16_accumulate"
    assert gemm(**call, tiling={"fp16_accumulate": "fp16"}).shape["accumulate"] is True


@pytest.mark.parametrize("flags", list(product((False, True), repeat=2)))
@pytest.mark.parametrize("accumulate", ["fp32", "fp16"])
def test_fp16_is_computed_too(flags: tuple[bool, bool], accumulate: str) -> None:
    """With sums of either type, however the operands are given; small integers are exact in both."""
    a, b = operands((70, 100, 90), "fp16", *flags)
    call: dict[str, Any] = {"trans_a": flags[0], "trans_b": flags[1]}
    run = gemm(a, b, **call, target="ft_m7032", tiling={"fp16_accumulate": accumulate})
    assert np.array_equal(run.outputs["c"], gemm_reference(a, b, **call))
    assert check_gemm(run, a, b)["c"].ok


def test_a_transposed_b_is_taken_as_it_is() -> None:
    """Where the target has the micro-kernel, A tiles go to AM and C tiles come from SM, and nothing is turned."""
    run = gemm(shape=(48, 64, 96), trans_b=True, dtype="fp64", target="ft_m7032", numerics=False)
    trace = run.trace
    memories = [(trace.names[n], trace.memories[s], trace.memories[d]) for n, s, d in moves(run)]
    assert {name for name in trace.names if name != "barrier"} == {
        "load_panel",
        "load_a",
        "load_b",
        "matmul_nt",
        "store_c",
    }
    assert ("load_a", "gsm", "am") in memories
    assert ("store_c", "sm", "ddr") in memories
    turned = gemm(
        shape=(48, 64, 96),
        trans_b=True,
        dtype="fp64",
        target="ft_m7032",
        numerics=False,
        tiling={"kernel": "nn"},
    )
    assert "permute" in turned.trace.names


def moves(run: Run) -> list[tuple[int, int, int]]:
    """(name, source, destination) of the copies of a run, as codes."""
    columns = (run.trace[name].tolist() for name in ("name", "source", "destination"))
    return [row for row in zip(*columns, strict=True) if row[1] >= 0]


def test_a_swapped_product_is_stored_the_other_way() -> None:
    """Its fields are those of the transposed product; what was asked for is reported."""
    a, b = operands((100, 12, 40), "fp64", True, False)
    run = gemm(a, b, trans_a=True, target="ft_m7032", tiling={"swap": True, "M_S": 6})
    assert np.array_equal(run.outputs["c"], gemm_reference(a, b, trans_a=True))
    assert (run.shape["m"], run.shape["n"], run.shape["trans_a"]) == (100, 12, True)
    assert run.tiling["M_G"] == 12


PUBLISHED: list[tuple[str, dict[str, int]]] = [
    ("nn", {"M_G": 6048, "K_G": 128, "M_A": 72, "K_A": 128, "N_A": 192, "M_S": 24}),
    ("nn", {"M_G": 3024, "K_G": 256, "M_A": 144, "K_A": 256, "N_A": 96, "M_S": 12}),
    ("nn", {"M_G": 1512, "K_G": 512, "M_A": 252, "K_A": 512, "N_A": 48, "M_S": 6}),
    ("nt", {"M_G": 1440, "K_G": 512, "M_A": 36, "K_A": 512, "N_A": 64, "M_S": 12}),
    ("nt", {"M_G": 720, "K_G": 1024, "M_A": 72, "K_A": 1024, "N_A": 32, "M_S": 12}),
    ("nt", {"M_G": 288, "K_G": 2048, "M_A": 144, "K_A": 2048, "N_A": 16, "M_S": 6}),
]
"""The blockings of the GEMM paper (Yu et al.), of the kernel for B as it is and of the one for B transposed."""


@pytest.mark.parametrize(("kernel", "blocking"), PUBLISHED)
def test_published_blockings_are_fields_of_the_tiling(kernel: str, blocking: dict[str, int]) -> None:
    """Each is kept, fits the memories, and cuts the product as its names say."""
    m, n, k = 150, 384, blocking["K_G"] + 40
    a, b = operands((m, n, k), "fp64", False, kernel == "nt")
    run = gemm(a, b, trans_b=kernel == "nt", target="ft_m7032", cores=2, tiling=blocking)
    assert {**run.tiling, **blocking, "kernel": kernel} == run.tiling
    assert np.array_equal(run.outputs["c"], gemm_reference(a, b, trans_b=kernel == "nt"))
    rows = [size for _, size in strips(0, m, blocking["M_A"])]
    columns = 2 * len(strips(0, n // 2, blocking["N_A"]))  # of either panel of k
    copies = Counter(run.trace.names[name] for name, core in names_and_cores(run) if core == 0)
    assert copies["load_panel"] == 2
    assert copies["load_b"] == columns
    assert copies["store_c"] == columns * len(rows)
    assert copies["load_a"] == columns * sum(len(strips(0, size, blocking["M_S"])) for size in rows)


def names_and_cores(run: Run) -> list[tuple[int, int]]:
    """(name, core) of the rows of a run, names as codes."""
    return list(zip(run.trace["name"].tolist(), run.trace["core"].tolist(), strict=True))
