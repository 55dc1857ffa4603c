"""The C programs beside the simulation: the same software fp32, to the bit, and a measurement that works."""

from __future__ import annotations

import ctypes
import shutil
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from benchmarks.nx_host import layers, rank_correlation
from kernels.nx import nx_f32_conv2d_backward, nx_f32_conv2d_backward_fast
from targets.loader import load_target
from tests.kernels.nx_calls import Problem
from tilesim.calibration.compiler import COMPILERS, FOLDER, OPTIONS, compiled, compiler, output
from tilesim.calibration.measure import NAMES, measured, this_computer

ROOT = Path(__file__).resolve().parents[2]

with_compiler = pytest.mark.skipif(not any(map(shutil.which, COMPILERS)), reason="no C compiler here")

LIBRARY = """
#include "soft_fp32.h"
void all(int n, const uint32_t *a, const uint32_t *b, uint32_t *product, uint32_t *sum) {
    for (int i = 0; i < n; i++) {
        product[i] = (uint32_t)soft_mul(a[i], b[i]);
        sum[i] = (uint32_t)soft_add(a[i], b[i]);
    }
}
"""

Bits = NDArray[np.uint32]


@pytest.fixture(scope="module")
def soft(tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    """Software fp32 as a library."""
    folder = tmp_path_factory.mktemp("soft")
    source, library = folder / "soft.c", folder / "soft.so"
    source.write_text(LIBRARY, encoding="ascii")
    output([compiler(), *OPTIONS, "-shared", "-fPIC", "-o", str(library), str(source)])
    return ctypes.CDLL(str(library))


def same(got: Bits, wanted: NDArray[np.float32]) -> NDArray[np.bool_]:
    """Equal bits, or NaN on both sides."""
    equal = (got == wanted.view(np.uint32)) | (np.isnan(wanted) & np.isnan(got.view(np.float32)))
    return np.asarray(equal)


@with_compiler
@pytest.mark.parametrize(
    ("low", "high"), [(0, 2**32), (0, 0x01800000), (0x1F000000, 0x21000000), (0x7F000000, 0x7F800002)]
)
def test_software_fp32_is_ieee_754_to_the_bit(soft: ctypes.CDLL, low: int, high: int) -> None:
    """Any bits, denormals, products that fall below the least normal number, and numbers next to infinity."""
    rng = np.random.default_rng(low)
    count = 100_000
    a, b = (rng.integers(low, high, count, dtype=np.uint32) for _ in range(2))
    b |= rng.integers(0, 2, count, dtype=np.uint32) << np.uint32(31)
    product, total = np.empty_like(a), np.empty_like(a)
    soft.all(count, *(each.ctypes.data_as(ctypes.c_void_p) for each in (a, b, product, total)))
    with np.errstate(all="ignore"):
        assert same(product, a.view(np.float32) * b.view(np.float32)).all()
        assert same(total, a.view(np.float32) + b.view(np.float32)).all()


@with_compiler
def test_the_program_makes_the_numbers_of_the_simulation(tmp_path: Path) -> None:
    """The same steps with forked processes on this computer, on numbers that round: equal bits."""
    program = compiled(ROOT / "benchmarks" / "nx_backward.c", tmp_path)
    for sizes in ((3, 9, 8, 5, 3, 2, 2, 1), (4, 7, 7, 6, 3, 3, 1, 2), (2, 4, 4, 3, 5, 5, 2, 0)):
        problem = Problem(*sizes, real=True)
        given, made = tmp_path / "in", tmp_path / "out"
        given.write_bytes(b"".join(problem.operands[name].tobytes() for name in ("input", "weight", "dout")))
        for workers, function in (("3", nx_f32_conv2d_backward_fast), ("0", nx_f32_conv2d_backward)):
            output([str(program), *map(str, sizes), workers, "1", str(given), str(made)])
            problem.call(function)
            outputs = [problem.operands[name] for name in ("dinput", "dweight", "dbias")]
            assert (np.fromfile(made, np.int64) == np.concatenate(outputs)).all()


@with_compiler
def test_this_computer_can_be_measured() -> None:
    """Every number is there and above 0, and an add takes part of a multiply-add."""
    found = measured(2, 1 << 18)
    assert set(found) == set(NAMES)
    assert min(found.values()) > 0
    assert found["add"] < 2 * found["multiply_add"]
    assert this_computer().cores >= 1


def test_the_benchmarks_layers_are_ten_in_growing_ratio() -> None:
    """From a million to three hundred million multiply-adds, one image each."""
    chosen = [shape for _, shape in layers()]
    macs = [shape.useful_macs for shape in chosen]
    assert len(macs) == 10
    assert {shape.n for shape in chosen} == {1}
    assert 1e6 <= macs[0] < 1.2e6
    assert 2.5e8 < macs[-1] <= 3e8
    assert all(1.5 < b / a < 2.5 for a, b in pairwise(macs))
    assert rank_correlation([1, 2, 3], [10, 30, 20]) == pytest.approx(0.5)
    assert load_target("nx_host").groups == 16


def test_the_c_files_are_beside_the_package() -> None:
    """An installed tilesim has them, too."""
    assert (FOLDER / "probe.c").is_file()
    assert (FOLDER / "soft_fp32.h").is_file()
