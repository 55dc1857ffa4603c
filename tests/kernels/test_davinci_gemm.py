"""Matrix products on Da Vinci chips: integers exactly, random data within the bound, refusals."""

from __future__ import annotations

import numpy as np
import pytest

from kernels.errors import OperandError, TilingError
from kernels.families import stored_in
from kernels.gemm import check_gemm, gemm
from tests.kernels.davinci_rows import CHIPS

SIZES = ((1, 1, 1), (33, 70, 100), (128, 256, 64), (300, 17, 530), (5, 1000, 40), (2, 3, 0), (0, 3, 4))


def _matrices(m: int, n: int, k: int, dtype: str, *, integers: bool) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(3)
    made = [rng.integers(-2, 3, s) if integers else rng.standard_normal(s) for s in ((m, k), (k, n))]
    a, b = (each.astype(stored_in(dtype).storage) for each in made)
    return a, b


@pytest.mark.parametrize("size", SIZES, ids=str)
@pytest.mark.parametrize("chip", CHIPS, ids="-".join)
def test_products(chip: tuple[str, str], size: tuple[int, int, int]) -> None:
    """Every type of every chip: integers are exact, random data within the bound."""
    target, dtype = chip
    a, b = _matrices(*size, dtype, integers=True)
    run = gemm(a, b, target=target, dtype=dtype, cores=3)
    wanted = (a.astype(np.float64) @ b.astype(np.float64)).astype(stored_in(dtype).storage)
    np.testing.assert_array_equal(run.outputs["c"], wanted)
    a, b = _matrices(*size, dtype, integers=False)
    found = check_gemm(gemm(a, b, target=target, dtype=dtype), a, b)["c"]
    assert found.ok


@pytest.mark.parametrize("trans_a", [False, True])
@pytest.mark.parametrize("trans_b", [False, True])
@pytest.mark.parametrize("split_k", [1, 3])
def test_transposed_operands(trans_a: bool, trans_b: bool, split_k: int) -> None:
    """Operands that are given transposed, and cores that share K, give the same product."""
    a, b = _matrices(40, 90, 300, "fp16", integers=True)
    given = (a.T.copy() if trans_a else a, b.T.copy() if trans_b else b)
    tiling = {"split_k": split_k}
    run = gemm(*given, trans_a=trans_a, trans_b=trans_b, tiling=tiling, target="ascend910b1")
    np.testing.assert_array_equal(run.outputs["c"], (a.astype(np.float64) @ b).astype(np.float16))


@pytest.mark.parametrize("split_k", [1, 2])
@pytest.mark.parametrize("size", [(40, 90, 300), (300, 17, 530), (3, 5, 0)], ids=str)
@pytest.mark.parametrize("chip", CHIPS, ids="-".join)
def test_products_that_are_added(chip: tuple[str, str], size: tuple[int, int, int], split_k: int) -> None:
    """To a given c: integers are exact, random data within the bound, and the array that was given stays."""
    target, dtype = chip
    storage = stored_in(dtype).storage
    c = np.random.default_rng(4).integers(-9, 10, size[:2]).astype(storage)
    a, b = _matrices(*size, dtype, integers=True)
    given = c.copy()
    run = gemm(a, b, c=given, target=target, dtype=dtype, cores=3, tiling={"split_k": split_k})
    wanted = (a.astype(np.float64) @ b.astype(np.float64) + c.astype(np.float64)).astype(storage)
    np.testing.assert_array_equal(run.outputs["c"], wanted)
    np.testing.assert_array_equal(given, c)
    a, b = _matrices(*size, dtype, integers=False)
    assert check_gemm(gemm(a, b, c=c, target=target, dtype=dtype), a, b, c)["c"].ok


def test_what_adding_costs() -> None:
    """In fp32 the write-out adds, in one launch; of 16 bits c is brought to fp32 before and rounded after."""
    shape = (512, 512, 256)
    plain, added = (
        gemm(shape=shape, dtype="fp32", accumulate=adds, target="ascend910b1", numerics=False)
        for adds in (False, True)
    )
    assert (
        [launch.name for launch in added.launches] == [launch.name for launch in plain.launches] == ["gemm"]
    )
    assert set(added.trace.to_pandas()["name"]) > {"fixpipe_add"}
    half = gemm(shape=shape, dtype="fp16", accumulate=True, target="ascend910b1", numerics=False)
    assert [launch.name for launch in half.launches] == ["cast", "gemm", "cast"]
    assert half.shape["accumulate"]


def test_what_is_refused() -> None:
    """A c that is not given, a type that the chip lacks, and tiles that no fractal divides."""
    a, b = _matrices(16, 16, 16, "fp16", integers=True)
    with pytest.raises(OperandError, match="missing"):
        gemm(a, b, accumulate=True, target="ascend910b1")
    with pytest.raises(OperandError, match="does not compute"):
        gemm(a, b, target="ascend910a", dtype="bf16")
    with pytest.raises(TilingError, match="multiple of 16"):
        gemm(a, b, target="ascend910b1", tiling={"m": 24})
