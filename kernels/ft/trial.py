"""The vendor's shared call on made-up operands, as the command line runs it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod

import numpy as np

from kernels.errors import ShapeError, TilingError
from kernels.ft.call import fp_conv2d_backprop_input_s, hp_conv2d_backprop_input_s
from kernels.ft.parameter import ConvParameter
from kernels.host_memory import require_host_memory
from kernels.reference.checking import longest_sum, random_operands
from kernels.reference.comparison import UNIT_ROUNDOFF, compare, error_bound
from kernels.reference.references import conv_backward_magnitude, conv_backward_reference
from kernels.shape.layout import channel_last
from kernels.shape.shapes import ConvShape
from simulator.device.device import Device
from simulator.results.run import Run
from simulator.values.numerics import Array, DType
from targets.schema import Target

USUAL_BUDGET = 0x10000
"""The operator page: what tests usually set buffer_size_ to."""


def structure(shape: ConvShape, kind: DType) -> ConvParameter:
    """The structure of a geometry, with the usual budget or the least one where that is more; without a workspace.

    Raises:
        ShapeError: the geometry is not that of a plain 2-D convolution with pads of 0 and more.
    """
    if shape.ndim != 2 or shape.transposed:
        raise ShapeError("the vendor's call takes plain 2-D convolutions", argument="shape", got=shape)
    (up, down), (left, right) = shape.padding
    row = shape.taps * (shape.cin // shape.groups) * kind.size_bytes
    return ConvParameter(
        output_batch_=shape.n,
        input_batch_=shape.n,
        input_h_=shape.size[0],
        input_w_=shape.size[1],
        output_h_=shape.out[0],
        output_w_=shape.out[1],
        input_channel_=shape.cin,
        output_channel_=shape.cout,
        kernel_h_=shape.kernel[0],
        kernel_w_=shape.kernel[1],
        group_=shape.groups,
        pad_l_=left,
        pad_u_=up,
        dilation_h_=shape.dilation[0],
        dilation_w_=shape.dilation[1],
        stride_h_=shape.stride[0],
        stride_w_=shape.stride[1],
        buffer_size_=max(USUAL_BUDGET, 2 * row),
        pad_d_=down,
        pad_r_=right,
        nweights_=prod(shape.w_shape),
    )


def run_backprop_input(
    shape: ConvShape,
    target: Target,
    kind: DType,
    cores: Sequence[int],
    *,
    tiling: Mapping[str, object] | None = None,
    numerics: bool = True,
    seed: int = 0,
    integers: bool = False,
    check: bool = True,
) -> Run:
    """The call on random operands in DDR, dx at zero; with `check`, its error is noted in the run.

    `buffer_size_` among the fields of the tiling is the structure's. What a run records can be given as its tiling once
    more: `buffer_bytes` is buffer_size_ too, and `path` is the one that the shape has.

    Raises:
        TilesimError: an argument is refused.
    """
    param, fields = structure(shape, kind), dict(tiling or {})
    budget, path = _take_budget(fields), fields.pop("path", None)
    if budget is not None:
        param.buffer_size_ = budget  # type: ignore[assignment]  # the call checks it
    sizes = {"dy": shape.dy_shape, "w": shape.w_shape}
    if numerics:
        elements = sum(prod(dims) for dims in (*sizes.values(), shape.x_shape))
        require_host_memory(elements * (3 * kind.size_bytes + (32 if check else 0)))
    call = hp_conv2d_backprop_input_s if kind.name == "fp16" else fp_conv2d_backprop_input_s
    with Device(target, numerics=numerics) as device:
        made = random_operands(sizes, kind, seed, integers, longest_sum(shape, ("dx",))) if numerics else {}
        dy, w, dx = (
            device.array("ddr", dims, kind.name, data=data)
            for dims, data in (
                (channel_last(shape.dy_shape), np.moveaxis(made["dy"], 1, -1) if made else None),
                (shape.w_shape, made.get("w")),
                (channel_last(shape.x_shape), 0 if made else None),
            )
        )
        param.workspace_ = device.array("ddr", max(1, int(str(param.buffer_size_))), "fp32")
        run = call(dy, w, dx, param, sum(1 << core for core in cores), tiling=fields)
    if path not in (None, run.tiling["path"]):
        what, limit = "the path follows from the shape", run.tiling["path"]
        raise TilingError(what, field="path", where="path", got=repr(path), limit=limit)
    if check and made:
        _note_error(run, shape, made["dy"], made["w"])
    return run


def _take_budget(fields: dict[str, object]) -> object:
    """Take the budget out of the given fields, by either of its names; None where it is not given.

    Raises:
        TilingError: the two names have different numbers.
    """
    found = {name: fields.pop(name) for name in ("buffer_size_", "buffer_bytes") if name in fields}
    if len(set(map(repr, found.values()))) > 1:
        what, got = "two budgets", " and ".join(f"{name} = {value}" for name, value in found.items())
        raise TilingError(what, field="buffer_bytes", got=got, remedy="give buffer_size_ alone")
    return next(iter(found.values()), None)


def _note_error(run: Run, shape: ConvShape, dy: Array, w: Array) -> None:
    """The greatest error of dx beside its bound."""
    reference = conv_backward_reference(shape, dy, w, grads=("dx",))["dx"]
    magnitude = conv_backward_magnitude(shape, dy, w, grads=("dx",))["dx"]
    terms = longest_sum(shape, ("dx",)) + shape.taps + run.cores
    half = run.dtype == "fp16" and run.tiling.get("fp16_accumulate") == "fp16"
    bound = error_bound(magnitude, reference, run.dtype, terms, UNIT_ROUNDOFF["fp16" if half else "fp32"])
    found = compare(np.moveaxis(run.outputs["dx"], -1, 1), reference, bound)
    run.max_error, run.tolerance = {"dx": found.max_error}, {"dx": found.tolerance}
