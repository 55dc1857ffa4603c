"""Random operands for a call, and its outputs against the float64 reference."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod

import numpy as np
import numpy.typing as npt
from numpy.typing import NDArray

from kernels.davinci.chains import longest_chain as davinci_chain
from kernels.families import stored_in
from kernels.reference.comparison import UNIT_ROUNDOFF, Comparison, compare, error_bound
from kernels.reference.references import (
    conv_backward_magnitude,
    conv_backward_reference,
    conv_forward_magnitude,
    conv_forward_reference,
)
from kernels.shape.shapes import ConvShape
from simulator.results.run import Run
from simulator.values.numerics import Array, DType, round_hf32


def random_operands(
    shapes: Mapping[str, tuple[int, ...]], kind: DType, seed: int, integers: bool, terms: int
) -> dict[str, Array]:
    """Operands by name: standard normal values, or small integers.

    Sums of `terms` products of the integers are exact in fp32, and where it can be in the type of the operands.
    """
    rng = np.random.default_rng(seed)
    largest = largest_integer(kind, terms)
    made = {}
    for name, shape in shapes.items():
        values = (
            rng.integers(-largest, largest + 1, shape) if integers else rng.standard_normal(shape, np.float32)
        )
        made[name] = values.astype(kind.storage)
    return made


def longest_sum(shape: ConvShape, outputs: Sequence[str]) -> int:
    """Products that one element of the gradients, or of y, is a sum of, at most."""
    terms = {
        "y": shape.taps * shape.cin // shape.groups,
        "dx": shape.taps * shape.cout // shape.groups,
        "dw": shape.n * prod(_strided(shape)),
        "db": shape.n * prod(shape.out),
    }
    return max((terms[name] for name in outputs), default=1)


def _strided(shape: ConvShape) -> tuple[int, ...]:
    """The positions that dw is summed over: outputs, and of a transposed convolution its inputs."""
    return shape.size if shape.transposed else shape.out


def largest_integer(kind: DType, terms: int) -> int:
    """The largest m so that `terms` products of integers up to m stay below 1 / unit roundoff; at least 1."""
    room = min(1 / kind.unit_roundoff, 2.0**24) / max(1, terms)
    return int(min(8, max(1, np.floor(np.sqrt(room)))))


def longest_chain(name: str, run: Run, shape: ConvShape) -> int:
    """The additions that one element of an output has been through, at most: a K step, the steps, the cores."""
    if run.target.family == "davinci":
        size = stored_in(run.dtype).size_bytes
        return davinci_chain(name, run.tiling, shape, size, run.target.groups)
    if name in ("dx", "y"):
        return _panel_chain((shape.cout if name == "dx" else shape.cin) // shape.groups, run, shape)
    outputs = shape.n * prod(shape.out if name == "db" else _strided(shape))
    k = int(str(run.tiling[f"{name}.k"]))
    if name == "db":
        return min(k, outputs) + -(-outputs // k) + run.cores
    if _unit(name, run) > UNIT_ROUNDOFF["fp32"]:
        return outputs + run.cores  # an accumulator of the operands' type rounds at every step
    return min(k, outputs) + _chunks(shape, k) + run.cores


def _panel_chain(channels: int, run: Run, shape: ConvShape) -> int:
    """The same of what is summed over taps and channels: where taps stand side by side, they are one K step."""
    k = min(channels, int(str(run.tiling["k"])))
    together = int(str(run.tiling["block_taps"])) if "x_buffers" in run.tiling else 1
    return k * min(together, shape.kernel[-1]) + shape.taps * -(-channels // max(1, k)) + run.cores


def _chunks(shape: ConvShape, k: int) -> int:
    """Chunks of at most `k` outputs that all outputs are cut into: whole images, rows, or parts of a row."""
    if 0 in (shape.n, *_strided(shape)):
        return 0
    planes, rows, columns = _strided(shape.as_3d())
    if rows * columns <= k:
        return planes * -(-shape.n // (k // (rows * columns)))
    return shape.n * planes * -(-rows // max(1, k // columns)) * -(-columns // k)


def _unit(name: str, run: Run) -> float:
    """Unit roundoff of what a gradient is summed in."""
    field = "fp16_accumulate" if name in ("dx", "y") else f"{name}.fp16_accumulate"
    half = run.dtype == "fp16" and run.tiling.get(field) == "fp16"
    return UNIT_ROUNDOFF["fp16" if half else "fp32"]


def allowed_error(
    name: str, run: Run, shape: ConvShape, reference: npt.ArrayLike, magnitude: npt.ArrayLike
) -> npt.NDArray[np.float64]:
    """The bound of rounding of each element of an output."""
    return error_bound(magnitude, reference, run.dtype, longest_chain(name, run, shape), _unit(name, run))


def check_conv_backward(
    run: Run, shape: ConvShape, dy: Array, w: Array | None = None, x: Array | None = None
) -> dict[str, Comparison]:
    """Each gradient of a run against the reference, within the bound of rounding; also noted in the run.

    What goes through the cube is taken as the cube reads it; db does not.
    """
    products = {name: seen(run.dtype, a) for name, a in (("dy", dy), ("w", w), ("x", x)) if a is not None}
    reference: dict[str, NDArray[np.float64]] = {}
    magnitude: dict[str, NDArray[np.float64]] = {}
    cube = tuple(name for name in run.outputs if name != "db")
    for grads, given in ((cube, products), (tuple(set(run.outputs) - set(cube)), {"dy": dy})):
        reference |= conv_backward_reference(shape, **given, grads=grads)
        magnitude |= conv_backward_magnitude(shape, **given, grads=grads)
    return _compared(run, shape, reference, magnitude)


def check_conv_forward(
    run: Run, shape: ConvShape, x: Array, w: Array, bias: Array | None = None
) -> dict[str, Comparison]:
    """The output of a run against the reference, within the bound of rounding; also noted in the run."""
    x, w = seen(run.dtype, x), seen(run.dtype, w)
    reference = conv_forward_reference(shape, x, w, bias)
    magnitude = conv_forward_magnitude(shape, x, w, bias)
    return _compared(run, shape, {"y": reference}, {"y": magnitude})


def _compared(
    run: Run, shape: ConvShape, reference: Mapping[str, Array], magnitude: Mapping[str, Array]
) -> dict[str, Comparison]:
    found = {}
    for name, got in run.outputs.items():
        bound = allowed_error(name, run, shape, reference[name], magnitude[name])
        found[name] = compare(got, reference[name], bound)
    run.max_error = {name: c.max_error for name, c in found.items()}
    run.tolerance = {name: c.tolerance for name, c in found.items()}
    return found


def seen(computed: str, array: Array) -> Array:
    """An operand as the matrix unit reads it: hf32 drops mantissa bits of fp32."""
    return round_hf32(array) if computed == "hf32" else array
