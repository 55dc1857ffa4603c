"""The operators by name, and one way to run any of them on made-up operands."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Literal

from kernels.deform_backward import GRADIENTS as DEFORM_GRADIENTS
from kernels.errors import OperandError
from kernels.files import names_a_file, operator_in_file
from kernels.gradient_fields import SEARCHED, given_fields
from kernels.placement import chosen_cores, resolved_target
from kernels.registry import Call, Operator
from kernels.search.calls import search_call
from kernels.search.search import BUDGET, TileSearch
from kernels.shape.deform import DeformShape
from kernels.shape.problems import checked_problem, shape_from
from kernels.shape.shapes import ConvShape
from kernels.shape.text import parse_deform, parse_gemm
from kernels.trials import (
    backprop_input_trial,
    backward_fast_trial,
    backward_trial,
    deform_trial,
    forward_trial,
    gemm_trial,
)
from simulator.results.run import Run
from targets.schema import Target

__all__ = [
    "OPERATORS",
    "VENDOR_CALLS",
    "Operator",
    "Problem",
    "mask_cores",
    "operator_named",
    "run_again",
    "run_operator",
    "search_tiling",
    "shape_from",
]

Problem = ConvShape | DeformShape | tuple[int, int, int] | Mapping[str, int]
"""What an operator's `shape` makes of a text; of a kernel of one's own, whatever it says."""

OPERATORS = {
    "conv_backward": Operator(
        "conv_backward",
        "gradients of a convolution",
        ("dsp", "davinci"),
        ("dx", "dw", "db"),
        "dx = col2im(dy x w): products of output positions and weights by tiles, added onto rows of dx that stay on"
        " the chip until they are complete. dw = dy^T x im2col(x): blocks of dw stay on the chip until all outputs of"
        " the core are summed; partial sums of several cores are added in the order of the cores. db = the sum of dy."
        " 1 to 3 spatial axes, groups, dilation, stride, pads of each side (the high one may be negative), fp16 and"
        " fp32. Plain tiling fields are those of dx, others begin with dw. or db. Of a transposed convolution dx is a"
        " forward convolution of dy, with the fields of conv_forward, and dw exchanges the roles of x and dy.",
        function=backward_trial,
    ),
    "conv_forward": Operator(
        "conv_forward",
        "the output of a convolution",
        ("dsp", "davinci"),
        (),
        "y = im2col(x) x w: panels of y stay on the chip, starting at the bias or at zero, until all taps and input"
        " channels are added; rows of x come tap beside tap, and outputs at a border have products of their own, so"
        " that padding is never multiplied. 1 to 3 spatial axes, groups, dilation, stride, pads of each side, fp16 and"
        " fp32. Tiling fields are split, weights, gsm_holds, images, rows, cols, groups, channels, block_channels,"
        " block_taps, k, positions, y_buffers, x_buffers, ahead and fp16_accumulate. A transposed one is the dx of its"
        " adjoint, with the fields of that. On cubes load3d makes the columns, sums begin at the bias, and"
        " fields are walk, m, n, k, channels, taps, split, weights, l1_a, l1_b and l0c.",
        function=forward_trial,
    ),
    "deform_conv_backward": Operator(
        "deform_conv_backward",
        "gradients of a deformable convolution",
        ("dsp", "davinci"),
        DEFORM_GRADIENTS,
        "A convolution backward on the resampled features (stride = kernel) gives dw, db and the gradient of the"
        " features. On cubes x, offsets and that are turned channel last; a scatter on the vector cores takes a thread"
        " a sampling point, adds four corners a channel to dx by atomic additions, and sums doffset and dmask; all are"
        " turned back. On DSPs deform_sample reads x at the points, for features, doffset and dmask; deform_scatter"
        " adds up bands of dx, each on the core that owns it. 2-D; shape texts also have deform_groups and mask=1"
        " (version 2). Offsets are uniform within 2 pixels. Tiling fields are those of conv_backward, on cubes also"
        " scatter.elements, on DSPs sample_positions, sample_channels, scatter_positions, scatter_rows and"
        " scatter_channels.",
        function=deform_trial,
        shape=parse_deform,
    ),
    "gemm": Operator(
        "gemm",
        "a matrix product",
        ("dsp", "davinci"),
        (),
        "c = a x b, each optionally transposed: panels of a in the shared memory, tiles of b and c in each core's array"
        " memory, rows of a in its scalar memory. fp64 where the target has it. Tiling fields are M_G,"
        " K_G, M_A, K_A, N_A, M_S, split, kernel and swap.",
        function=gemm_trial,
        shape=parse_gemm,
    ),
    "conv2d_backprop_input": Operator(
        "conv2d_backprop_input",
        "the vendor's input gradient of MT7004 and FT78NE, shared call",
        ("dsp",),
        ("dx",),
        "fp_ or hp_conv2d_backprop_input_s of kernels.ft: NHWC operands in DDR, OIHW weights, dx is added to. Plain 2-D"
        " convolutions. A depthwise path (Cout = groups = Cin, dilation 1) multiplies no matrices, a 1x1 path (no pads,"
        " dilation and stride 1, one group) makes no columns. buffer_size_ (--tile) is the structure's budget, else"
        " 0x10000 bytes or the least that holds a column row; other fields are those of dx, on the depthwise path"
        " split, rows, cols, channels and ahead.",
        function=backprop_input_trial,
    ),
    "conv2d_backward_fast": Operator(
        "conv2d_backward_fast",
        "gradients by im2col and two products that forked workers share",
        ("host",),
        ("dx", "dw", "db"),
        "nx_f32_conv2d_backward_fast of kernels.nx: one image, fp32 in software on 8-byte elements. Transposed im2col,"
        " transposes of dout and weight, dweight and dcol by matmul_t on --cores forked workers, sums of the bias,"
        " col2im. Plain 2-D convolutions of one stride and one pad; all three gradients are made. It has no tiling.",
        function=backward_fast_trial,
    ),
}

VENDOR_CALLS = {
    "aclnnConvolutionBackward": Operator(
        "aclnnConvolutionBackward",
        "the two-stage call of the Ascend library, from Python",
        ("davinci",),
        ("dx", "dw", "db"),
        "Called from Python only: from kernels import aclnn. aclnnConvolutionBackwardGetWorkspaceSize checks the"
        " arguments as the vendor's page does for each product and plans the launches,"
        " aclnnConvolutionBackward runs them on a stream of aclnn.Device; executor.value.run is the Run. outputMask"
        " asks for gradInput, gradWeight and gradBias. Layout conversions and casts are launches of their own."
        " docs/vendor-calls.md has an example.",
    ),
    "aclnnDeformableConv2dBackward": Operator(
        "aclnnDeformableConv2dBackward",
        "the two-stage call of the Ascend library, from Python, on Ascend 950",
        ("davinci",),
        ("dx", "dw", "db", "doffset", "dmask"),
        "Called from Python only: from kernels import aclnn. As aclnnConvolutionBackward, with the arguments of its own"
        " page; offset and gradOffset are planes of x, y and mask. docs/vendor-calls.md says what was decided.",
    ),
    "pypto.conv_backward_input": Operator(
        "pypto.conv_backward_input",
        "the tile-level input gradient of the Ascend Python front end",
        ("davinci",),
        ("dx",),
        "Called from Python only: from kernels.pypto import pypto, pypto_impl. Tiles of L1 and L0 are those of"
        " pypto.set_convbp_input_tile_shapes, obeyed exactly, and pypto.set_vec_tile_shapes tiles the layout"
        " conversions; out.run is the Run. Atlas A2 and A3. docs/vendor-calls.md has an example.",
    ),
}
"""What is called from Python by the vendor's names, and has no command line."""


def operator_named(name: str) -> Operator:
    """The operator of a name; that of a kernel file, `my_kernel.py:name`, is executed.

    Raises:
        OperandError: there is none.
        KernelFileError: the file cannot be used.
    """
    if names_a_file(name):
        return operator_in_file(name)
    if name not in OPERATORS:
        known = ", ".join(OPERATORS)
        raise OperandError("unknown operator", argument="operator", got=name, limit=known)
    return OPERATORS[name]


def run_operator(
    name: str,
    *,
    shape: Problem | str,
    target: str | Path | Target,
    dtype: str | None = None,
    grads: Sequence[str] | str | None = None,
    cores: int | None = None,
    core_mask: int | None = None,
    tiling: Mapping[str, object] | Literal["auto"] | None = None,
    numerics: bool = True,
    seed: int = 0,
    integers: bool = False,
    check: bool = True,
) -> Run:
    """Run an operator on random operands; with `check`, its errors against the reference are noted in the run.

    Args:
        name: of an operator (`OPERATORS`), or of a kernel of one's own, `my_kernel.py:name`: that file is executed.
        shape: the problem: a text as of `tilesim run`, a mapping of its keys, or what the operator's
            `shape` makes of it.
        target: a target's name, a TOML file, or a Target.
        dtype: what it computes in; default its first type.
        grads: gradients to compute, a name or several; default all.
        cores: how many cores (the first ones); default all.
        core_mask: which cores, as bits, instead.
        tiling: fields to keep, the others are chosen by rule; or "auto": what `search_tiling` finds.
        numerics: compute values, or only time them.
        seed: of the operands.
        integers: small integers as operands.
        check: compare results with the reference.

    Raises:
        TilesimError: an argument is refused.
    """
    known = operator_named(name)
    call = _call(known, name, shape, target, dtype, grads, cores, core_mask)
    if tiling == "auto":
        tiling = _searched(known, call, BUDGET).tiling
    values: dict[str, Any] = {"numerics": numerics, "seed": seed, "integers": integers, "check": check}
    run = _made(known, replace(call, tiling=given_fields(tiling, SEARCHED), **values))
    run.call = {"grads": list(call.grads), "cores": list(call.cores)}
    return run


def search_tiling(
    name: str,
    *,
    shape: Problem | str,
    target: str | Path | Target,
    dtype: str | None = None,
    grads: Sequence[str] | str | None = None,
    cores: int | None = None,
    core_mask: int | None = None,
    tiling: Mapping[str, object] | None = None,
    budget: int = BUDGET,
) -> TileSearch:
    """The best tiling of an operator's call, by timing runs: `kernels.search.search` says how.

    Args:
        name: of the operator; the next six are as of `run_operator`.
        shape: the problem.
        target: the target.
        dtype: what it computes in.
        grads: gradients; each is searched for itself, with an even share of the budget.
        cores: how many cores.
        core_mask: which cores, as bits, instead.
        tiling: fields to keep.
        budget: runs at most.

    Returns:
        The search: `tiling` to be given to a call, and what the default rule's loses.

    Raises:
        TilesimError: an argument is refused.
    """
    if budget < 1:
        what = "a search without a run"
        raise OperandError(what, argument="budget", got=budget, limit="1 and more")
    known = operator_named(name)
    call = _call(known, name, shape, target, dtype, grads, cores, core_mask)
    return _searched(known, replace(call, tiling=given_fields(tiling)), budget)


def _searched(known: Operator, call: Call, budget: int) -> TileSearch:
    """The search of a call.

    Raises:
        OperandError: the operator is one of a host, which has no tiling.
    """
    if known.name in OPERATORS and "host" in known.families:
        what = "a search of an operator that has no tiling"
        raise OperandError(what, argument="tiling", where=known.name, got="auto", remedy="leave it out")
    return search_call(call, partial(_made, known), budget)


def _call(
    known: Operator,
    name: str,
    shape: Problem | str,
    target: str | Path | Target,
    dtype: str | None,
    grads: Sequence[str] | str | None,
    cores: int | None,
    core_mask: int | None,
) -> Call:
    """What was asked for, but for the tiling and the values."""
    chip = resolved_target(target)
    chosen = chosen_cores(chip, cores if core_mask is None else mask_cores(core_mask, chip))
    asked = (grads,) if isinstance(grads, str) else tuple(grads or ())
    problem = checked_problem(known.shape, shape)
    return Call(name, problem, chip, chosen, dtype, asked)


def run_again(record: Mapping[str, Any], target: Target) -> Run:
    """The call of a saved run once more, timed only, with the tiling that it had, on its target or a changed one.

    Args:
        record: of `run.json`.
        target: the chip.

    Raises:
        OperandError: the record does not say how the operator was called.
        TilesimError: the target refuses the call.
    """
    call, shape = record.get("call"), record["shape"]
    if not call:
        raise OperandError(
            "the saved run does not say how it was called",
            argument="call",
            where="run.json",
            remedy="run it with `tilesim run ... --out DIR`",
        )
    name = record["operator"]
    if name not in OPERATORS:
        what, remedy = "the saved run is not of an operator of tilesim", "run it once more with `tilesim run`"
        raise OperandError(what, argument="operator", where="run.json", got=name, remedy=remedy)
    again = Call(
        operator=name,
        shape=shape_from(shape),
        target=target,
        cores=tuple(call["cores"]),
        dtype=record["dtype"],
        grads=tuple(call["grads"]),
        tiling={} if "host" in OPERATORS[name].families else record["tiling"],  # a host's call has no tiling
        numerics=False,
        check=False,
    )
    return _made(OPERATORS[name], again)


def _made(operator: Operator, call: Call) -> Run:
    """One call of an operator on the chosen cores.

    Raises:
        OperandError: it does not run on the family of the target, or has no gradients to ask for.
    """
    family = call.target.family
    if family not in operator.families:
        raise OperandError(
            "the operator does not run on this family of targets",
            argument="target",
            where=call.target.name,
            got=family,
            limit=", ".join(operator.families),
        )
    if call.grads and not operator.gradients:
        what, got = "gradients of an operator that has none", ", ".join(call.grads)
        raise OperandError(what, argument="grads", where=operator.name, got=got)
    assert operator.function is not None  # noqa: S101  # all that can be run have one
    return operator.function(call)


def mask_cores(mask: int, target: Target) -> tuple[int, ...]:
    """The cores of a mask: bit i is core i.

    Raises:
        OperandError: the mask is 0 or names cores that the target lacks.
    """
    if not 0 < mask < 1 << target.groups:
        raise OperandError(
            "a core mask without cores, or with cores that the target does not have",
            argument="core_mask",
            where=target.name,
            got=bin(mask),
            limit=f"0b1 to {bin((1 << target.groups) - 1)}",
        )
    return tuple(core for core in range(target.groups) if mask >> core & 1)
