"""The numbers that instructions of a Da Vinci core make."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simulator.cube import OPERATIONS, Fill, Fixpipe, Load2d, Load3d, Mmad, Move, Vector, Window
from simulator.errors import ProgramError
from simulator.values.numerics import Array
from tests.unit.simulator.views import buffer, integers, whole

TAPS = tuple((y, x) for y in range(3) for x in range(2))


def test_products_are_summed_in_fp32_and_added() -> None:
    """Operands of bf16, two steps of k."""
    a, b = integers(5, 24), integers(24, 7, seed=1)
    out = whole("l0c", 5, 7)
    for step in (0, 1):
        part = slice(12 * step, 12 * step + 12)
        left = whole("l0a", 5, 12, kind="bf16", values=a[:, part])
        right = whole("l0b", 12, 7, kind="bf16", values=b[part])
        Mmad(out, left, right, rate="bf16", accumulate=step > 0).execute()
    assert np.array_equal(out.array(), a @ b)


def test_hf32_rounds_operands_and_not_sums() -> None:
    """4099 is read as 4100; the sum keeps all bits of fp32."""
    left = whole("l0a", 1, 2, values=np.array([[4099.0, 1.0]], np.float32))
    right = whole("l0b", 2, 1, values=np.array([[1.0], [1.0]], np.float32))
    out = whole("l0c", 1, 1)
    Mmad(out, left, right, rate="hf32").execute()
    assert out.array()[0, 0] == 4101
    Mmad(out, left, right, rate="fp32").execute()
    assert out.array()[0, 0] == 4100


def test_sizes_that_do_not_fit_are_refused() -> None:
    """A product, a load, a move, a write-out, an operation."""
    with pytest.raises(ProgramError, match="do not fit"):
        Mmad(whole("l0c", 4, 4), whole("l0a", 4, 3), whole("l0b", 4, 4), rate="fp32")
    with pytest.raises(ProgramError, match="another type"):
        Mmad(whole("l0c", 4, 4), whole("l0a", 4, 4), whole("l0b", 4, 4), rate="fp16")
    with pytest.raises(ProgramError, match="no matrix"):
        Mmad(whole("l0c", 4, 4), whole("l0a", 16), whole("l0b", 4, 4), rate="fp32")
    with pytest.raises(ProgramError, match="unlike ranges"):
        Load2d(whole("l0a", 4, 4), whole("l1", 4, 5))
    with pytest.raises(ProgramError, match="unlike ranges"):
        Move(whole("l1", 4, kind="fp16"), whole("gm", 4))
    with pytest.raises(ProgramError, match="do not fit"):
        Fixpipe(whole("gm", 4), whole("l0c", 5))
    with pytest.raises(ProgramError, match="no such vector operation"):
        Vector("add", whole("ub", 4), whole("ub", 4))
    with pytest.raises(ProgramError, match="no such vector operation"):
        Vector("conjure", whole("ub", 4), whole("ub", 4))


def test_loads_keep_or_turn_a_matrix() -> None:
    """Plain, transposing, and with axes of choice."""
    values = integers(6, 8)
    for how, expected in (
        ({}, values.reshape(8, 6)),
        ({"transpose": True}, values.T),
        ({"axes": (1, 0)}, values.T),
    ):
        out = whole("l0b", 8, 6)
        Load2d(out, whole("l1", 6, 8, values=values), **how).execute()
        assert np.array_equal(out.array(), expected)


def naive(image: Array, window: Window, count: int, units: int) -> Array:
    """The im2col element by element."""
    _, height, width, channels = image.shape
    out = np.zeros((count, units, channels), image.dtype)
    for p in range(count):
        row, column = divmod(window.first + p, window.width)
        for u in range(units):
            block, tap = divmod(window.unit + u, len(window.taps))
            y = row * window.step[0] + window.taps[tap][0] + window.origin[0]
            x = column * window.step[1] + window.taps[tap][1] + window.origin[1]
            inside = 0 <= y <= (height - 1) * window.spread[0] and 0 <= x <= (width - 1) * window.spread[1]
            if inside and y % window.spread[0] == 0 and x % window.spread[1] == 0:
                out[p, u] = image[block, y // window.spread[0], x // window.spread[1]]
    return out.reshape(count, units * channels)


small = st.integers(1, 3)


@settings(max_examples=60)
@given(
    size=st.tuples(st.integers(1, 5), st.integers(1, 5)),
    blocks=small,
    width=st.integers(1, 5),
    first=st.integers(0, 6),
    count=st.integers(1, 9),
    step=st.tuples(small, small),
    spread=st.tuples(small, small),
    origin=st.tuples(st.integers(-3, 2), st.integers(-3, 2)),
    data=st.data(),
)
def test_columns_are_those_of_the_definition(  # the window has as many fields
    size: tuple[int, int],
    blocks: int,
    width: int,
    first: int,
    count: int,
    step: tuple[int, int],
    spread: tuple[int, int],
    origin: tuple[int, int],
    data: st.DataObject,
) -> None:
    """Any stride, spread, padding, and part of the columns."""
    unit = data.draw(st.integers(0, blocks * len(TAPS) - 1))
    units = data.draw(st.integers(1, blocks * len(TAPS) - unit))
    window = Window(width, first, TAPS, step, origin, spread, unit)
    image = np.arange(1, blocks * size[0] * size[1] * 8 + 1, dtype=np.float32).reshape(blocks, *size, 8)
    out = whole("l0a", count, units * 8)
    Load3d(out, whole("l1", *image.shape, values=image), window).execute()
    assert np.array_equal(out.array(), naive(image, window, count, units))


def test_an_image_of_one_block_needs_no_block_axis() -> None:
    """[height, width, C], and what does not fit is refused."""
    image = integers(4, 5, 16)
    window = Window(5, 0, TAPS)
    out = whole("l0b", 20, 6 * 16)
    Load3d(out, whole("l1", 4, 5, 16, values=image), window).execute()
    assert np.array_equal(out.array(), naive(image[None], window, 20, 6))
    with pytest.raises(ProgramError, match="do not fit"):
        Load3d(whole("l0b", 20, 7 * 16), whole("l1", 4, 5, 16), window)


def test_moves_keep_order_and_may_turn() -> None:
    """A box of three levels, and a transposing one."""
    values = integers(3, 4, 6)
    tensor = buffer("gm", 3, 4, 6, values=values)
    dense = whole("l1", 2 * 2 * 3)
    Move(dense, tensor.box((1, 1, 2), (2, 2, 3))).execute()
    assert np.array_equal(dense.array(), values[1:, 1:3, 2:5].reshape(-1))
    turned = whole("l1", 6, 4)
    Move(turned, tensor.box((1, 0, 0), (1, 4, 6), shape=(4, 6)), transpose=True).execute()
    assert np.array_equal(turned.array(), values[1].T)


def test_the_write_out_rounds_orders_and_cuts() -> None:
    """Rows padded from 3 to 4, blocks of 8 channels first; overflow is infinity."""
    sums = np.arange(2 * 4 * 16, dtype=np.float32).reshape(8, 16) * 1000
    out = whole("gm", 2, 2, 3, 8, kind="fp16")
    Fixpipe(
        out,
        whole("l0c", 8, 16, values=sums),
        layout="nc1hwc0",
        form=(2, 4, 2, 8),
        part=(slice(None), slice(0, 3)),
        axes=(2, 0, 1, 3),
    ).execute()
    with np.errstate(over="ignore"):
        expected = sums.reshape(2, 4, 2, 8)[:, :3].transpose(2, 0, 1, 3).astype(np.float16)
    assert np.array_equal(out.array(), expected)
    assert np.isinf(expected).any()


def test_atomic_write_outs_add() -> None:
    """Twice the sums on what was there."""
    start, sums = integers(4, 4), integers(4, 4, seed=1)
    out = whole("gm", 4, 4, values=start)
    for _ in range(2):
        Fixpipe(out, whole("l0c", 4, 4, values=sums), layout="nz", atomic=True).execute()
    assert np.array_equal(out.array(), start + 2 * sums)


@pytest.mark.parametrize(
    ("op", "more", "expected"),
    [
        ("copy", {}, lambda a, _: a),
        ("relu", {}, lambda a, _: np.maximum(a, 0)),
        ("adds", {"scalar": 2.5}, lambda a, _: a + 2.5),
        ("muls", {"scalar": -2.0}, lambda a, _: a * -2),
        ("transpose", {"axes": (1, 0)}, lambda a, _: a.T),
        ("add", {}, lambda a, b: a + b),
        ("sub", {}, lambda a, b: a - b),
        ("mul", {}, lambda a, b: a * b),
        ("max", {}, np.maximum),
        ("min", {}, np.minimum),
        ("sum_rows", {}, lambda a, _: a.sum(0)),
        ("sum_columns", {}, lambda a, _: a.sum(1)),
    ],
)
@pytest.mark.parametrize("kind", ["fp16", "fp32"])
def test_vector_operations(op: str, more: dict[str, object], expected: object, kind: str) -> None:
    """Results on integers, in both widths."""
    a, b = integers(4, 4), integers(4, 4, seed=1)
    made = np.asarray(expected(a, b), np.float32)  # type: ignore[operator]  # a function of two arrays
    inputs = [whole("ub", 4, 4, kind=kind, values=x) for x in (a, b)][: OPERATIONS[op].inputs]
    out = whole("ub", *made.shape, kind=kind)
    Vector(op, out, *inputs, **more).execute()  # type: ignore[arg-type]  # scalar or axes
    assert np.array_equal(out.array().astype(np.float32), made)


def test_casts_round_to_nearest_even_and_fills_fill() -> None:
    """2049 is no fp16; 1e6 is beyond it."""
    out = whole("ub", 3, kind="fp16")
    Vector("cast", out, whole("ub", 3, values=np.array([2049, 2051, 1e6], np.float32))).execute()
    assert out.array().tolist() == [2048, 2052, np.inf]
    Fill(out, 1.5).execute()
    assert out.array().tolist() == [1.5] * 3
