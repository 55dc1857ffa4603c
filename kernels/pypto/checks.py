"""Checks of conv_backward_input: arguments by the operator's page, tile sizes by the formulas of the settings."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from kernels.errors import OperandError, TilingError
from kernels.pypto.pypto_impl import ConvBpTileL0Info, ConvBpTileL1Info
from kernels.pypto.tensors import DT_BF16, DT_FP16, DataType, Tensor
from kernels.shape.checks import is_listed, is_whole, shown
from kernels.shape.shapes import ConvShape
from targets.schema import Target

MOST = 1_000_000
"""Of a size of any tensor."""

MOST_KERNEL = 255
MOST_WINDOW = 65_535
"""Of Kh x Kw x 32 bytes / element size."""

MOST_STEP = 63
"""Of a stride or dilation."""

MOST_PAD = 255
FRACTAL = 16
"""Rows and columns of a fractal, and channels of a block, of 16-bit types."""


@dataclass(frozen=True)
class Arguments:
    """The arguments as given."""

    grad_output: Tensor
    input_size: Sequence[int]
    weight: Tensor
    out_dtype: DataType
    strides: Sequence[int]
    paddings: Sequence[int]
    dilations: Sequence[int]
    groups: int


def checked_shape(given: Arguments) -> ConvShape:
    """The geometry of arguments that the page allows.

    Raises:
        OperandError: an argument is outside its rules.
    """
    _check_tensors(given)
    strides = _whole_numbers("strides", given.strides, 2, 1, MOST_STEP)
    dilations = _whole_numbers("dilations", given.dilations, 2, 1, MOST_STEP)
    pads = _whole_numbers("paddings", given.paddings, 4, 0, MOST_PAD)
    if given.groups != 1 or not is_whole(given.groups):
        raise OperandError("only one group is supported", argument="groups", got=shown(given.groups), limit=1)
    kernel = given.weight.shape[2:]
    extent = [(size - 1) * step + 1 for size, step in zip(kernel, dilations, strict=True)]
    _check_pads(pads, extent)
    size = _checked_size(given, strides, pads, extent)
    n, cout = given.grad_output.shape[:2]
    highs = [
        (out - 1) * step + reach - axis - low
        for out, step, reach, axis, low in zip(
            given.grad_output.shape[2:], strides, extent, size, (pads[0], pads[2]), strict=True
        )
    ]
    pairs = tuple(zip((pads[0], pads[2]), highs, strict=True))
    return ConvShape(n, given.weight.shape[1], size, cout, kernel, strides, pairs, dilations)


def _check_tensors(given: Arguments) -> None:
    for name in ("grad_output", "weight"):
        found = getattr(given, name)
        if not isinstance(found, Tensor):
            raise OperandError("no tensor of pypto", argument=name, got=shown(found), remedy="pypto.tensor")
        if len(found.shape) != 4:
            raise OperandError("4 axes (NCHW) are needed", argument=name, got=found.shape, limit=4)
        if found.dtype not in (DT_FP16, DT_BF16):
            limit = "DT_FP16, DT_BF16"
            raise OperandError("another type", argument=name, got=found.dtype.name, limit=limit)
        _whole_numbers(name, found.shape, 4, 1, MOST)
    dy, w = given.grad_output, given.weight
    if w.dtype is not dy.dtype:
        raise OperandError(
            "another type than grad_output", argument="weight", got=w.dtype.name, limit=dy.dtype.name
        )
    if given.out_dtype is not dy.dtype:
        got = getattr(given.out_dtype, "name", shown(given.out_dtype))
        raise OperandError(
            "another type than grad_output", argument="out_dtype", got=got, limit=dy.dtype.name
        )
    _check_kernel(w)
    if w.shape[0] != dy.shape[1]:
        limit = f"{dy.shape[1]}, as grad_output"
        raise OperandError("other output channels", argument="weight", got=w.shape[0], limit=limit)
    if (w.data is None) != (dy.data is None):
        name = "weight" if w.data is None else "grad_output"
        raise OperandError("no data beside a tensor with data", argument=name, remedy="give both, or none")


def _check_kernel(weight: Tensor) -> None:
    kernel = weight.shape[2:]
    if max(kernel) > MOST_KERNEL:
        raise OperandError(
            "Kh or Kw outside its range", argument="weight", got=kernel, limit=f"1 to {MOST_KERNEL}"
        )
    window = kernel[0] * kernel[1] * 32 // weight.dtype.kind.size_bytes
    if window > MOST_WINDOW:
        what = "Kh x Kw x 32 / element size is too large"
        raise OperandError(what, argument="weight", got=window, limit=MOST_WINDOW)


def _whole_numbers(argument: str, values: object, length: int, low: int, high: int) -> tuple[int, ...]:
    """So many whole numbers in a range."""
    if not is_listed(values) or len(values) != length:
        raise OperandError(f"{length} values are needed", argument=argument, got=shown(values), limit=length)
    numbers = [value for value in values if is_whole(value) and low <= value <= high]
    if len(numbers) != length:
        limit = f"whole numbers from {low} to {high}"
        raise OperandError("outside its range", argument=argument, got=shown(values), limit=limit)
    return tuple(int(number) for number in numbers)


def _check_pads(pads: tuple[int, ...], extent: Sequence[int]) -> None:
    """Refuse pads of two sides that differ, or that are as wide as the dilated kernel."""
    for first, second, reach, sides in (
        (pads[0], pads[1], extent[0], "top, bottom"),
        (pads[2], pads[3], extent[1], "left, right"),
    ):
        if first != second:
            raise OperandError("both sides must be equal", argument="paddings", where=sides, got=shown(pads))
        if first >= reach:
            limit = f"less than {reach}, the dilated kernel"
            raise OperandError("too wide", argument="paddings", where=sides, got=first, limit=limit)


def _checked_size(
    given: Arguments, strides: Sequence[int], pads: Sequence[int], extent: Sequence[int]
) -> tuple[int, ...]:
    """Hin and Win, which must be among those that give grad_output's size."""
    sizes = _whole_numbers("input_size", given.input_size, 4, 1, MOST)
    fixed = (given.grad_output.shape[0], given.weight.shape[1])
    if sizes[:2] != fixed:
        raise OperandError(
            "another batch, or other channels", argument="input_size", got=sizes[:2], limit=fixed
        )
    both = (pads[0] + pads[1], pads[2] + pads[3])
    rows = zip("HW", sizes[2:], given.grad_output.shape[2:], strides, extent, both, strict=True)
    for axis, size, out, step, reach, pad in rows:
        least = (out - 1) * step - pad + reach
        if not least <= size <= least + step - 1:
            limit = f"{least} to {least + step - 1}"
            raise OperandError(
                "a size that does not give grad_output's",
                argument="input_size",
                where=axis,
                got=size,
                limit=limit,
            )
    return sizes[2:]


def check_tiles(
    shape: ConvShape, l1: ConvBpTileL1Info, l0: ConvBpTileL0Info, target: Target, size: int
) -> None:
    """Refuse tile sizes (elements) that break a formula of the settings; `size` is of an element, in bytes.

    Raises:
        TilingError: with the field at fault.
    """
    for field, holds, got, limit in (
        *_level_rules(shape, l1, l0),
        *_capacity_rules(shape, l1, l0, target, size),
    ):
        if not holds:
            raise TilingError("a tile size breaks its rule", field=field, where=field, got=got, limit=limit)


Rule = tuple[str, bool, int, str]
"""The field at fault, whether the rule holds, what was got, and the rule."""


def _level_rules(shape: ConvShape, l1: ConvBpTileL1Info, l0: ConvBpTileL0Info) -> Iterator[Rule]:
    """Multiples, and what fits into the level outside."""
    win, window = shape.size[1], FRACTAL * shape.taps
    m1, n1, k1 = l1.tileML1, l1.tileNL1, l1.tileKL1
    m0, n0, k0 = l0.tileML0, l0.tileNL0, l0.tileKL0
    yield "tileML1", m1 <= win or m1 % win == 0, m1, f"at most Win {win}, or a multiple of it"
    yield "tileNL1", n1 % FRACTAL == 0, n1, "a multiple of 16"
    yield "tileKL1", k1 % window == 0, k1, f"a multiple of 16 x Kh x Kw = {window}"
    for field, value, most in (("tileML0", m0, ceil16(m1)), ("tileNL0", n0, n1), ("tileKL0", k0, k1)):
        yield field, value % FRACTAL == 0, value, "a multiple of 16"
        yield field, value <= most, value, f"at most {most}, the tile in L1"


def _capacity_rules(
    shape: ConvShape, l1: ConvBpTileL1Info, l0: ConvBpTileL0Info, target: Target, size: int
) -> Iterator[Rule]:
    """What fits into each memory; the rules know no second buffer."""
    m0, n0, k0 = l0.tileML0, l0.tileNL0, l0.tileKL0
    for field, got, memory in (
        ("tileML0", m0 * k0 * size, "l0a"),
        ("tileNL0", k0 * n0 * size, "l0b"),
        ("tileML0", m0 * n0 * 4, "l0c"),
        ("tileML1", l1_bytes(shape, l1, size), "l1"),
    ):
        most = target.memory[memory].size_bytes
        yield field, got <= most, got, f"{most} bytes of {memory}"


def l1_bytes(shape: ConvShape, l1: ConvBpTileL1Info, size: int) -> int:
    """Bytes of the two tiles in L1: weights, and rows of the gradient that a tile of M reads, zeros between them."""
    rows, columns = gradient_box(shape, l1.tileML1)
    return (l1.tileKL1 * l1.tileNL1 + rows * columns * l1.tileKL1 // shape.taps) * size


def gradient_box(shape: ConvShape, m: int) -> tuple[int, int]:
    """Rows and columns of the zero-expanded gradient that `m` positions of the input read, at most."""
    win = shape.size[1]
    rows, columns = -(-m // win), min(m, win)
    found = []
    for count, kernel, dilation, out, stride in zip(
        (rows, columns), shape.kernel, shape.dilation, shape.out, shape.stride, strict=True
    ):
        found.append(min(count + (kernel - 1) * dilation, (out - 1) * stride + 1))
    return found[0], found[1]


def ceil16(value: int) -> int:
    """The next multiple of 16."""
    return -(-value // FRACTAL) * FRACTAL
