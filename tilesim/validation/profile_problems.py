"""What a task of a profile computed, as far as its shapes say it.

The table has no attributes of a convolution. Stride, padding and dilation are derived axis by axis from input I,
kernel K and output O: O = floor((I + P - D (K - 1) - 1) / S) + 1. The rule:

- dilation is the least that fits, the same on all axes;
- padding is at most half of the (dilated) kernel on each side: the least equal one on both sides that fits, else the
  least with one more at the end (the number of multiply-adds does not depend on the choice);
- stride is the same on all axes that have more than one output, and must be the only one that fits; else each axis has
  its own, if each has only one. Where several fit, the line is ambiguous and not predicted.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from kernels.errors import ShapeError
from kernels.shape.shapes import ConvShape
from tilesim.validation.ascend_rows import Product
from tilesim.validation.profile_columns import Task, Tensor
from tilesim.validation.profile_layouts import (
    Count,
    Image,
    Matrix,
    UnclearError,
    Weights,
    agreed,
    image_of,
    matrix_of,
    weights_of,
)

OPERATORS = {
    "forward": re.compile(r"Conv[23]D(V\d)?"),
    "dx": re.compile(r"Conv[23]DBackpropInput(D|V\d)?"),
    "dw": re.compile(r"Conv[23]DBackpropFilter(D|V\d)?"),
    "gemm": re.compile(r"(Batch)?Mat[Mm]ul(V\d)?"),
}
"""Types of operators that are predicted, by what they compute."""

DTYPES = {"FLOAT": "fp32", "FLOAT16": "fp16", "BF16": "bf16", "BFLOAT16": "bf16"}
"""Names of data types in profiles, some of which begin with DT_."""


@dataclass(frozen=True)
class Computed:
    """What a task computed: forward, dx, dw or gemm, of what, in which type."""

    op: str
    problem: ConvShape | Product
    dtype: str


def operator_of(task: Task) -> str:
    """forward, dx, dw or gemm; empty for any other operator."""
    return next((op for op, pattern in OPERATORS.items() if pattern.fullmatch(task.type)), "")


def computed_by(task: Task) -> Computed:
    """The problem of a convolution or a product.

    Raises:
        UnclearError: shapes are missing, contradict each other, or say too little.
    """
    op = operator_of(task)
    tensors = [tensor for tensor in task.inputs if len(tensor.shape) > (1 if op == "gemm" else 2)]
    outputs = [tensor for tensor in task.outputs if tensor.shape]
    if len(tensors) < 2 or not outputs:
        raise UnclearError("shapes of operands or of the result are missing")
    if any(size < 1 for tensor in (*tensors, outputs[0]) for size in tensor.shape):
        raise UnclearError("a shape with a size below 1")
    problem = (
        _product(tensors[0], tensors[1], outputs[0])
        if op == "gemm"
        else _convolution(op, tensors, outputs[0])
    )
    return Computed(op, problem, _dtype(tensors[0], task.hf32))


def _dtype(tensor: Tensor, hf32: bool) -> str:
    name = tensor.dtype.upper().removeprefix("DT_")
    if name not in DTYPES:
        raise UnclearError(f"data type {tensor.dtype or 'not recorded'}")
    return "hf32" if hf32 and DTYPES[name] == "fp32" else DTYPES[name]


def _convolution(op: str, inputs: Sequence[Tensor], output: Tensor) -> ConvShape:
    """x, the filter and y (or its gradient) by the place that each has in its operator."""
    places = {"forward": (inputs[0], inputs[1], output), "dx": (output, inputs[0], inputs[1])}
    x_given, w_given, y_given = places.get(op, (inputs[0], output, inputs[1]))
    x, w, y = image_of(x_given), weights_of(w_given), image_of(y_given)
    n = agreed("batches", Count(x.n), Count(y.n))
    cout = agreed("output channels", y.channels, w.out)
    groups, cin, kernel = _inner(x, w, y)
    if len(x.size) != len(y.size) or len(kernel) != len(x.size):
        raise UnclearError("operands of different numbers of axes")
    stride, padding, dilation = attributes(x.size, kernel, y.size)
    try:
        return ConvShape(
            n=n, cin=cin, size=x.size, cout=cout, kernel=kernel,
            stride=stride, padding=padding, dilation=dilation, groups=groups,
        )  # fmt: skip
    except ShapeError as error:
        raise UnclearError(str(error)) from None


def _inner(x: Image, w: Weights, y: Image) -> tuple[int, int, tuple[int, ...]]:
    """Groups, input channels and kernel."""
    if w.blocks_taps:
        blocks = -(-x.channels.number // w.c0)
        if w.blocks_taps % blocks:
            raise UnclearError(f"{w.blocks_taps} blocks of a filter for {x.channels.number} input channels")
        return 1, x.channels.number, _kernel(w.blocks_taps // blocks, x.size, y.size)
    if not w.into or x.channels.means(w.into):
        return 1, w.into, w.kernel
    groups, rest = divmod(x.channels.number, w.into)
    if rest or not groups:
        raise UnclearError(f"{w.into} input channels of a filter for {x.channels.number}")
    return groups, x.channels.number, w.kernel


def _kernel(taps: int, size: Sequence[int], out: Sequence[int]) -> tuple[int, ...]:
    """The kernel of so many taps: as long on every axis that is longer than 1.

    Raises:
        UnclearError: there is none.
    """
    long = [i > 1 or o > 1 for i, o in zip(size, out, strict=True)]
    side = round(taps ** (1 / max(1, sum(long))))
    if side ** sum(long) != taps:
        raise UnclearError(f"several kernels have {taps} taps")
    return tuple(side if each else 1 for each in long)


Pads = list[tuple[int, int]]


def attributes(
    size: Sequence[int], kernel: Sequence[int], out: Sequence[int]
) -> tuple[list[int], Pads, list[int]]:
    """Strides, pads and dilations of each axis, by the rule of this module.

    Raises:
        UnclearError: none fit, or several strides do.
    """
    axes = list(zip(size, kernel, out, strict=True))
    for dilation in range(1, max(size, default=1) + 1):
        fitting = [_pads_by_stride(i, dilation * (k - 1) + 1, o) for i, k, o in axes]
        if all(fitting):
            strides = _strides(fitting, out)
            pads = [fits[stride] for fits, stride in zip(fitting, strides, strict=True)]
            return strides, pads, [dilation if k > 1 else 1 for k in kernel]
    texts = ("x".join(map(str, each)) for each in (size, kernel, out))
    raise UnclearError("no stride and padding lead from {} by {} to {}".format(*texts))


def _pads_by_stride(size: int, reach: int, out: int) -> dict[int, tuple[int, int]]:
    """The pads that lead to so many outputs, by stride; of one output the stride does not matter."""
    most, found = 2 * (reach // 2), {}
    for stride in range(1, 2 if out == 1 else size + most + 1):
        least = max(0, (out - 1) * stride + reach - size)
        last = most if out == 1 else min(most, out * stride + reach - size - 1)
        total = next((p for p in range(least, last + 1) if p % 2 == 0), least)
        if least <= last:
            found[stride] = (total // 2, total - total // 2)
    return found


def _strides(fitting: Sequence[dict[int, tuple[int, int]]], out: Sequence[int]) -> list[int]:
    """The stride of each axis."""
    asked = [fits for fits, o in zip(fitting, out, strict=True) if o > 1]
    common = sorted(set.intersection(*(set(fits) for fits in asked))) if asked else [1]
    if len(common) > 1:
        raise UnclearError(f"ambiguous: strides {', '.join(map(str, common))} lead to the output")
    if not common and any(len(fits) > 1 for fits in asked):
        raise UnclearError("ambiguous: several strides lead to the output, none on all axes")
    return [
        1 if o == 1 else common[0] if common else next(iter(fits))
        for fits, o in zip(fitting, out, strict=True)
    ]


def _product(a: Tensor, b: Tensor, c: Tensor) -> Product:
    """The first of NN, NT, TN, TT that has these shapes; rows of several matrices times one are rows of one.

    Raises:
        UnclearError: none has them, or there are several products.
    """
    left, right, result = matrix_of(a), matrix_of(b), matrix_of(c)
    for trans_a, trans_b in ((False, False), (False, True), (True, False), (True, True)):
        m, ka = _turned(left, trans_a)
        kb, n = _turned(right, trans_b)
        try:
            rows, columns = agreed("m", m, result.rows), agreed("n", n, result.columns)
            depth = agreed("k", ka, kb)
        except UnclearError:
            continue
        batch = _rows_of(left, right, trans_a)
        return Product(batch * rows, columns, depth, trans_a, trans_b)
    raise UnclearError("no product has these shapes")


def _turned(matrix: Matrix, transposed: bool) -> tuple[Count, Count]:
    return (matrix.columns, matrix.rows) if transposed else (matrix.rows, matrix.columns)


def _rows_of(left: Matrix, right: Matrix, trans_a: bool) -> int:
    """How many times the rows of the left operand there are.

    Raises:
        UnclearError: there are several products, for which there is no kernel.
    """
    if right.batch > 1 or (left.batch > 1 and trans_a):
        raise UnclearError(
            f"{max(left.batch, right.batch)} products in one task, for which there is no kernel"
        )
    return left.batch
