"""What conv_backward_input computes, and that it walks exactly the tiles that were set."""

from __future__ import annotations

from collections import Counter
from math import ceil
from typing import Any, NamedTuple

import numpy as np
import pytest
from numpy.typing import NDArray

from kernels import pypto
from kernels.reference.references import conv_backward_reference
from kernels.shape.shapes import ConvShape
from simulator.errors import CapacityError
from simulator.results.run import Run
from tests.unit.pypto.call import tiles

Sizes = tuple[int, int, int]


class Case(NamedTuple):
    """A shape and the tiles (M, K, N) that it runs with."""

    shape: ConvShape
    l1: Sizes
    l0: Sizes


def case(
    x: tuple[int, int, int, int],
    cout: int,
    kernel: tuple[int, int],
    stride: tuple[int, int],
    pad: tuple[int, int],
    dilation: tuple[int, int],
    l1: Sizes,
    l0: Sizes,
) -> Case:
    """A case from the input's shape."""
    return Case(ConvShape(x[0], x[1], x[2:], cout, kernel, stride, pad, dilation), l1, l0)


CASES = [
    case((1, 16, 5, 32), 16, (3, 3), (1, 1), (1, 1), (1, 1), (16, 144, 16), (16, 16, 16)),
    case((1, 16, 13, 13), 16, (3, 3), (2, 2), (1, 1), (1, 1), (13, 144, 16), (16, 16, 16)),
    case((2, 16, 8, 8), 16, (3, 3), (1, 1), (1, 1), (1, 1), (16, 144, 16), (16, 144, 16)),
    case((1, 16, 32, 32), 16, (3, 3), (2, 2), (1, 1), (3, 3), (64, 144, 16), (32, 144, 16)),
    case((2, 40, 9, 7), 35, (3, 2), (2, 1), (1, 0), (1, 2), (28, 192, 32), (16, 48, 16)),
    case((3, 70, 6, 10), 50, (1, 1), (1, 1), (0, 0), (1, 1), (60, 64, 80), (32, 32, 48)),
    case((1, 16, 20, 20), 16, (2, 2), (3, 3), (0, 0), (1, 1), (7, 64, 16), (16, 64, 16)),
]
"""The first four are the vendor's own tests."""


def call(
    shape: ConvShape, dtype: pypto.DataType = pypto.DT_FP16, *, values: bool = True, nan: bool = False
) -> tuple[pypto.Tensor, dict[str, NDArray[Any]]]:
    """Run a shape on small integers; `nan` puts one into the first weight."""
    rng = np.random.default_rng(0)
    dy = rng.integers(-2, 3, shape.dy_shape).astype(dtype.kind.storage)
    w = rng.integers(-1, 2, shape.w_shape).astype(dtype.kind.storage)
    if nan:
        w[0, 0, 0, 0] = np.nan
    pad = [low for low, _ in shape.padding for _ in "ab"]
    out = pypto.conv_backward_input(
        pypto.tensor(dy.shape, dtype, data=dy if values else None),
        shape.x_shape,
        pypto.tensor(w.shape, dtype, data=w if values else None),
        dtype,
        list(shape.stride),
        pad,
        list(shape.dilation),
    )
    return out, {"dy": dy, "w": w}


def ran(out: pypto.Tensor) -> Run:
    """The run behind a result."""
    assert out.run is not None
    return out.run


@pytest.mark.parametrize("made", CASES)
@pytest.mark.parametrize("dtype", [pypto.DT_FP16, pypto.DT_BF16])
def test_gradients_are_exact_and_timing_needs_no_values(made: Case, dtype: pypto.DataType) -> None:
    """Integers give the reference; the trace is the same without data."""
    tiles(made.l1, made.l0)
    out, operands = call(made.shape, dtype)
    timed, _ = call(made.shape, dtype, values=False)
    exact = conv_backward_reference(made.shape, **operands, grads=("dx",))["dx"]
    assert out.data is not None
    np.testing.assert_array_equal(out.data.astype(np.float64), exact)
    assert timed.data is None
    assert ran(timed).cycles == ran(out).cycles
    assert ran(timed).trace.hash() == ran(out).trace.hash()


@pytest.mark.parametrize("vector", [(16, 16, 16, 16), (1, 16, 1, 16), (1, 32, 3, 5), (2, 8, 2, 7)])
@pytest.mark.parametrize("cores", [1, 3, 24])
def test_any_vector_tile_and_any_cores_give_the_same(vector: tuple[int, ...], cores: int) -> None:
    """Values do not depend on the conversions' tiles, nor on the number of cores."""
    made = CASES[4]
    pypto.set_device("ascend910b1", cores)
    tiles(made.l1, made.l0, vector)
    out, operands = call(made.shape)
    exact = conv_backward_reference(made.shape, **operands, grads=("dx",))["dx"]
    assert out.data is not None
    np.testing.assert_array_equal(out.data.astype(np.float64), exact)


@pytest.mark.parametrize("made", CASES)
def test_the_nest_of_the_given_tiles(made: Case) -> None:
    """So many loads, products and stores as the nest of loops has turns: both L1 tiles are loaded for each kL1."""
    shape, (m1, k1, n1), (m0, k0, n0) = made
    tiles(made.l1, made.l0)
    out, _ = call(shape, values=False)
    height, width = shape.size
    rows = [m1] * (height * width // m1) + [height * width % m1] if m1 >= width else []
    if m1 < width:
        rows = ([m1] * (width // m1) + [width % m1]) * height
    channels = 16 * ceil(shape.cin / 16)
    columns = [min(n1, channels - first) for first in range(0, channels, n1)]
    pieces = shape.n * sum(ceil(n / n0) for n in columns) * sum(ceil(m / m0) for m in rows if m)
    k = 16 * ceil(shape.cout / 16) * shape.taps
    chunks = [min(k1, k - first) for first in range(0, k, k1)]
    trace = ran(out).trace
    names = Counter(trace.names[code] for code in trace["name"])
    assert names["fixpipe"] == pieces
    assert names["load_weights"] == pieces * len(chunks)
    assert names["load_gradient"] <= pieces * len(chunks)
    assert names["mmad"] == names["load3d"] == pieces * sum(ceil(chunk / k0) for chunk in chunks)


def test_the_tiles_are_in_the_run() -> None:
    """The tiling of the run is what was set."""
    tiles((16, 144, 16), (16, 48, 16), (16, 16, 2, 16))
    out, _ = call(CASES[0].shape, values=False)
    assert ran(out).tiling == {
        "tileML1": 16,
        "tileKL1": 144,
        "tileNL1": 16,
        "tileML0": 16,
        "tileKL0": 48,
        "tileNL0": 16,
        "vec_tile_shapes": (16, 16, 2, 16),
    }


def test_padding_is_multiplied() -> None:
    """As on the chip, a NaN of a weight also meets the zeros of the padding: a whole plane is NaN, not a part of it."""
    tiles()
    out, operands = call(CASES[0].shape, nan=True)
    assert out.data is not None
    assert np.isnan(out.data[:, 0]).all()
    assert not np.isnan(out.data[:, 1:]).any()
    exact = conv_backward_reference(CASES[0].shape, **operands, grads=("dx",))["dx"]
    assert not np.isnan(exact[:, 0]).all()


def test_the_launches() -> None:
    """Layouts of both operands, the product, the layout of the result; on 24 cores and 48 vector cores at most."""
    tiles()
    out, _ = call(CASES[0].shape, values=False)
    names = [launch.name for launch in ran(out).launches]
    assert names == ["transdata dy", "transdata w", "conv_dx", "transdata dx"]


def test_a_vector_tile_that_is_too_large() -> None:
    """What does not fit UB is refused, and the message says what to lower."""
    tiles((13, 144, 16), (16, 16, 16), (256, 256, 256, 256))
    big = ConvShape(16, 64, (13, 13), 64, (3, 3), padding=1)
    with pytest.raises(CapacityError, match="set_vec_tile_shapes"):
        call(big, values=False)


def test_larger_tiles_of_k_take_less_time() -> None:
    """A larger K tile of L0 needs fewer instructions."""
    cycles = []
    for k0 in (16, 48, 144):
        tiles((16, 144, 16), (16, k0, 16))
        cycles.append(ran(call(CASES[0].shape, values=False)[0]).cycles)
    assert cycles == sorted(cycles, reverse=True)
    assert cycles[0] > cycles[-1]
