"""The fast call on made-up operands, as the command line runs it."""

from __future__ import annotations

from math import prod

import numpy as np

from kernels.errors import OperandError, ShapeError
from kernels.nx.call import nx_f32_conv2d_backward_fast
from kernels.nx.elements import ELEMENT
from kernels.nx.geometry import OK
from kernels.reference.checking import longest_sum, random_operands
from kernels.reference.comparison import compare, error_bound
from kernels.reference.references import conv_backward_magnitude, conv_backward_reference
from kernels.shape.shapes import ConvShape
from simulator.device.device import Device
from simulator.results.run import Run
from simulator.values.numerics import Array, dtype
from targets.schema import Target


def run_backward_fast(
    shape: ConvShape,
    target: Target,
    workers: int,
    *,
    numerics: bool = True,
    seed: int = 0,
    integers: bool = False,
    check: bool = True,
) -> Run:
    """The call on random operands in the main memory; with `check`, its errors are noted in the run.

    Raises:
        TilesimError: the page's call cannot say the geometry, or its checks refuse it.
    """
    stride, pad = _plain(shape)
    sizes = {"input": shape.x_shape, "weight": shape.w_shape, "dout": shape.dy_shape}
    made: dict[str, Array] = {}
    if numerics:
        made = random_operands(sizes, dtype("fp32"), seed, integers, longest_sum(shape, ("dx", "dw", "db")))
    results = {"dinput": shape.x_shape, "dweight": shape.w_shape, "dbias": (shape.cout,)}
    with Device(target, numerics=numerics) as device:
        x, w, dout, *outputs = (
            device.array("ddr", prod(dims), ELEMENT.name, data=made[name].ravel() if name in made else None)
            for name, dims in {**sizes, **results}.items()
        )
        (height, width), (kh, kw) = shape.size, shape.kernel
        code = nx_f32_conv2d_backward_fast(
            *(x, shape.n, shape.cin, height, width, w, shape.cout, kh, kw, stride, pad, dout),
            *outputs,
            workers=workers,
        )
    if code != OK:
        raise OperandError(
            "the call's checks refuse this shape",
            argument="shape",
            where="nx_f32_conv2d_backward_fast",
            got=f"return code {code} for n={shape.n}",
            limit="n=1",
            remedy="kernels.nx.backward_batch makes a call an image",
        )
    run = device.runs[-1]
    if check and made:
        note_errors(run, shape, made["dout"], made["weight"], made["input"])
    return run


def _plain(shape: ConvShape) -> tuple[int, int]:
    """Stride and pad, where one number says them.

    Raises:
        ShapeError: the page's call has no argument for something.
    """
    plain = shape.ndim == 2 and not shape.transposed and shape.groups == 1
    pads = {pad for axis in shape.padding for pad in axis}
    if not plain or set(shape.dilation) != {1} or len(set(shape.stride)) != 1 or len(pads) != 1:
        raise ShapeError(
            "the call takes plain 2-D convolutions of one stride and one pad",
            argument="shape",
            where="nx_f32_conv2d_backward_fast",
            got=shape,
            limit="groups 1, dilation 1, not transposed",
        )
    return shape.stride[0], pads.pop()


def note_errors(run: Run, shape: ConvShape, dy: Array, w: Array, x: Array) -> None:
    """The greatest error of each gradient beside its bound: every sum is one chain."""
    reference = conv_backward_reference(shape, dy, w, x)
    magnitude = conv_backward_magnitude(shape, dy, w, x)
    run.max_error, run.tolerance = {}, {}
    for name, got in run.outputs.items():
        terms = longest_sum(shape, (name,)) + shape.taps
        bound = error_bound(magnitude[name], reference[name], "fp32", terms)
        found = compare(np.asarray(got), reference[name], bound)
        run.max_error[name], run.tolerance[name] = found.max_error, found.tolerance
