"""Direct float64 references of the operators, written from their formulas and not from any tile program.

A convolution is a sum over taps q and channels, y[o] += w[q] x[o * stride - low + q * dilation], of the
positions that lie inside x. A transposed convolution is its adjoint with x and y exchanged, so three sums
serve both: with `small` the side that strides (y; transposed: x) and `large` the side that taps read, they
are small from large, large from small, and the weight from both. Absent positions are absent, not zeros: a
NaN reaches exactly the sums that include it.
"""

import itertools
from collections.abc import Iterable, Iterator, Sequence
from math import prod
from types import EllipsisType

import numpy as np
import numpy.typing as npt

from kernels.errors import OperandError
from kernels.shape.checks import shown
from kernels.shape.shapes import ConvShape

Array = npt.NDArray[np.float64]
Window = tuple[tuple[int, ...], tuple[slice, ...], tuple[slice, ...]]

GRADIENTS = ("dx", "dw", "db")


def conv_backward_reference(
    shape: ConvShape,
    dy: npt.ArrayLike,
    w: npt.ArrayLike | None = None,
    x: npt.ArrayLike | None = None,
    grads: Iterable[str] = GRADIENTS,
) -> dict[str, Array]:
    """Return the gradients asked for, in float64: dx (as x, needs w), dw (as w, needs x) and db [Cout].

    x is [N, Cin, *size], dy [N, Cout, *out], w [Cout, Cin / groups, *kernel], and where transposed
    [Cin, Cout / groups, *kernel].
    Raises `OperandError` when an array is missing or has another shape, or a gradient is unknown.
    """
    wanted = _known_gradients(grads)
    upstream = _operand("dy", dy, shape.dy_shape)
    results: dict[str, Array] = {}
    with np.errstate(invalid="ignore", over="ignore"):  # NaN and infinity travel as IEEE 754 says
        if "dx" in wanted:
            weight = _operand("w", w, shape.w_shape)
            towards = _small_from_large if shape.transposed else _large_from_small
            results["dx"] = towards(shape, upstream, weight)
        if "dw" in wanted:
            source = _operand("x", x, shape.x_shape)
            pair = (source, upstream) if shape.transposed else (upstream, source)
            results["dw"] = _weight_from_both(shape, *pair)
        if "db" in wanted:
            results["db"] = upstream.sum(axis=(0, *range(2, upstream.ndim)))
    return results


def conv_backward_magnitude(
    shape: ConvShape,
    dy: npt.ArrayLike,
    w: npt.ArrayLike | None = None,
    x: npt.ArrayLike | None = None,
    grads: Iterable[str] = GRADIENTS,
) -> dict[str, Array]:
    """Return the sums of |a||b| behind each gradient, which scale its rounding errors."""
    w_size = None if w is None else np.abs(_float64("w", w))
    x_size = None if x is None else np.abs(_float64("x", x))
    return conv_backward_reference(shape, np.abs(_float64("dy", dy)), w_size, x_size, grads)


def conv_forward_reference(
    shape: ConvShape, x: npt.ArrayLike, w: npt.ArrayLike, bias: npt.ArrayLike | None = None
) -> Array:
    """Return y [N, Cout, *out] in float64; bias is [Cout]. Raises `OperandError` as for the gradients."""
    source, weight = _operand("x", x, shape.x_shape), _operand("w", w, shape.w_shape)
    towards = _large_from_small if shape.transposed else _small_from_large
    with np.errstate(invalid="ignore", over="ignore"):
        result = towards(shape, source, weight)
        if bias is not None:
            result += _operand("bias", bias, (shape.cout,)).reshape(-1, *(1,) * shape.ndim)
    return result


def conv_forward_magnitude(
    shape: ConvShape, x: npt.ArrayLike, w: npt.ArrayLike, bias: npt.ArrayLike | None = None
) -> Array:
    """Return the sums of |a||b| (and |bias|) behind each output, which scale its rounding errors."""
    added = None if bias is None else np.abs(_float64("bias", bias))
    return conv_forward_reference(shape, np.abs(_float64("x", x)), np.abs(_float64("w", w)), added)


def gemm_reference(
    a: npt.ArrayLike, b: npt.ArrayLike, *, trans_a: bool = False, trans_b: bool = False
) -> Array:
    """Return a @ b in float64, [M, K] by [K, N]; `trans_a` takes a as [K, M], `trans_b` b as [N, K].

    Raises:
        OperandError: an operand is no matrix, or their sizes do not meet.
    """
    left, right = _float64("a", a), _float64("b", b)
    for argument, operand in (("a", left), ("b", right)):
        if operand.ndim != 2:
            raise OperandError(f"{argument} must be a matrix", argument=argument, got=shown(operand.shape))
    left, right = (left.T if trans_a else left), (right.T if trans_b else right)
    if left.shape[1] != right.shape[0]:
        raise OperandError("the columns of a must be the rows of b", argument="b", got=shown(right.shape))
    with np.errstate(invalid="ignore", over="ignore"):
        return np.asarray(np.matmul(left, right))


def windows(shape: ConvShape) -> Iterator[Window]:
    """Yield (tap, positions on the small side, positions on the large side) of each tap that reads anything.

    The positions are a slice an axis; the small side's run through the sums in which the tap is present.
    """
    small, large = _sides(shape)
    rows = zip(small, large, shape.kernel, shape.stride, shape.dilation, shape.pads, strict=True)
    return _product(_axis_windows(o, i, k, s, d, low) for o, i, k, s, d, (low, _) in rows)


def places(shape: ConvShape) -> Iterator[Window]:
    """Yield (position on the small side, its taps, positions on the large side) of each that reads anything.

    A position times the stride and a tap times the dilation add up to a place on the large side, so that they may
    change parts: this is `windows` with the two exchanged.
    """
    small, large = _sides(shape)
    rows = zip(small, large, shape.kernel, shape.stride, shape.dilation, shape.pads, strict=True)
    return _product(_axis_windows(k, i, o, d, s, low) for o, i, k, s, d, (low, _) in rows)


def _sides(shape: ConvShape) -> tuple[tuple[int, ...], tuple[int, ...]]:
    return (shape.size, shape.out) if shape.transposed else (shape.out, shape.size)


def _by_places(shape: ConvShape) -> bool:
    """Whether there are fewer positions on the small side than taps, so that they are the fewer steps."""
    return prod(_sides(shape)[0]) < prod(shape.kernel)


def _product(axes: Iterable[list[tuple[int, slice, slice]]]) -> Iterator[Window]:
    for combination in itertools.product(*axes):
        one, inner, outer = zip(*combination, strict=True)
        yield one, inner, outer


def _axis_windows(
    small: int, large: int, kernel: int, stride: int, dilation: int, low: int
) -> list[tuple[int, slice, slice]]:
    found = []
    for tap in range(kernel):
        offset = tap * dilation - low
        first = max(0, -(offset // stride))  # ceil(-offset / stride)
        last = min(small - 1, (large - 1 - offset) // stride)
        if first <= last:
            start = first * stride + offset
            stop = last * stride + offset + 1
            found.append((tap, slice(first, last + 1), slice(start, stop, stride)))
    return found


def _small_from_large(shape: ConvShape, large: Array, w: Array) -> Array:
    result = np.zeros((shape.n, w.shape[0], *_sides(shape)[0]))
    target, source = _grouped(result, shape.groups), _grouped(large, shape.groups)
    if _by_places(shape):
        for place, taps, outer in places(shape):
            seen = _at(source, outer)
            sums = np.matmul(_taps(w, taps, shape.groups), _joined(seen)[..., None])
            _at(target, place)[...] = sums[..., 0]
        return result
    for tap, inner, outer in windows(shape):
        weight = _grouped_tap(w, tap, shape.groups)
        _add_product(_at(target, inner), weight, _at(source, outer))
    return result


def _large_from_small(shape: ConvShape, small: Array, w: Array) -> Array:
    result = np.zeros((shape.n, w.shape[1] * shape.groups, *_sides(shape)[1]))
    target, source = _grouped(result, shape.groups), _grouped(small, shape.groups)
    if _by_places(shape):
        for place, taps, outer in places(shape):
            into = _at(target, outer)
            row = _at(source, place)[:, :, None, :]
            into += np.matmul(row, _taps(w, taps, shape.groups)).reshape(into.shape)
        return result
    for tap, inner, outer in windows(shape):
        weight = _grouped_tap(w, tap, shape.groups).swapaxes(1, 2)
        _add_product(_at(target, outer), weight, _at(source, inner))
    return result


def _weight_from_both(shape: ConvShape, small: Array, large: Array) -> Array:
    result = np.zeros(shape.w_shape)
    left, right = _grouped(small, shape.groups), _grouped(large, shape.groups)
    if _by_places(shape):
        target = result.reshape(shape.groups, result.shape[0] // shape.groups, *result.shape[1:])
        for place, taps, outer in places(shape):
            into, rows = _at(target, taps), np.moveaxis(_at(left, place), 0, 2)
            seen = np.moveaxis(_at(right, outer), 0, 1)
            into += np.matmul(rows, _joined(seen)).reshape(into.shape)
        return result
    for tap, inner, outer in windows(shape):
        rows, columns = _flat(_at(left, inner)), _flat(_at(right, outer))
        _at(result, tap)[...] = np.matmul(rows, columns.swapaxes(1, 2)).reshape(result.shape[:2])
    return result


def _add_product(target: Array, weight: Array, source: Array) -> None:
    """Add weight [G, A, B] times source [N, G, B, *positions] to target [N, G, A, *positions]."""
    if source.size:
        target += np.matmul(weight, source.reshape(*source.shape[:3], -1)).reshape(target.shape)


def _flat(view: Array) -> Array:
    """Return [N, G, C, *positions] as [G, C, N x positions]."""
    moved = np.moveaxis(view, 0, 2)
    return moved.reshape(*moved.shape[:2], int(np.prod(moved.shape[2:])))


def _at(array: Array, place: Sequence[int] | Sequence[slice]) -> Array:
    """Return the view of the last axes' positions."""
    index: tuple[EllipsisType | int | slice, ...] = (..., *place)
    return np.asarray(array[index])


def _grouped(array: Array, groups: int) -> Array:
    """Return a view [N, G, C / G, *sizes] of [N, C, *sizes]."""
    return array.reshape(array.shape[0], groups, array.shape[1] // groups, *array.shape[2:])


def _grouped_tap(w: Array, tap: Sequence[int], groups: int) -> Array:
    """Return one tap of the weight as [G, small channels / G, large channels / G]."""
    matrix = _at(w, tap)
    return matrix.reshape(groups, matrix.shape[0] // groups, matrix.shape[1])


def _taps(w: Array, taps: Sequence[slice], groups: int) -> Array:
    """Return some taps of the weight as [G, small channels / G, large channels / G x taps]."""
    part = _at(w.reshape(groups, w.shape[0] // groups, *w.shape[1:]), taps)
    return _joined(part)


def _joined(array: Array) -> Array:
    """Return [A, B, C, *sizes] as [A, B, C x sizes], where there may be none."""
    return array.reshape(*array.shape[:2], prod(array.shape[2:]))


def _known_gradients(grads: Iterable[str]) -> tuple[str, ...]:
    wanted = tuple(grads)
    for name in wanted:
        if name not in GRADIENTS:
            raise OperandError(
                "unknown gradient", argument="grads", got=shown(name), limit=", ".join(GRADIENTS)
            )
    return wanted


def _operand(argument: str, value: npt.ArrayLike | None, shape: tuple[int, ...]) -> Array:
    if value is None:
        raise OperandError(f"{argument} is needed", argument=argument, limit=shown(shape))
    array = _float64(argument, value)
    if array.shape != shape:
        raise OperandError(f"{argument} must be {shown(shape)}", argument=argument, got=shown(array.shape))
    return array


def _float64(argument: str, value: npt.ArrayLike) -> Array:
    array = np.asarray(value)
    if array.dtype.kind in "cOSUMm":
        raise OperandError(f"{argument} must hold real numbers", argument=argument, got=str(array.dtype))
    return array.astype(np.float64, copy=False)
