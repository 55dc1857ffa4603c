"""The operators by name, and one way to run any of them on made-up operands."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from kernels.conv_backward import NEEDS, conv_backward, require_capacity
from kernels.conv_forward import conv_forward
from kernels.conv_forward import require_capacity as require_forward_capacity
from kernels.deform_backward import GRADIENTS as DEFORM_GRADIENTS
from kernels.deform_trial import run_deform_backward
from kernels.errors import OperandError
from kernels.families import stored_in
from kernels.ft.trial import run_backprop_input
from kernels.gemm import check_gemm, gemm
from kernels.gemm import require_capacity as require_gemm_capacity
from kernels.nx.trial import run_backward_fast
from kernels.placement import chosen_cores, chosen_dtype
from kernels.reference.checking import (
    check_conv_backward,
    check_conv_forward,
    longest_sum,
    random_operands,
)
from kernels.shape.deform import DeformShape
from kernels.shape.shapes import ConvShape
from simulator.results.run import Run
from simulator.values.numerics import Array
from targets.schema import Target


@dataclass(frozen=True)
class Operator:
    """What can be run: its name, one line, the families of targets, its gradients, and a page of text."""

    name: str
    summary: str
    families: tuple[str, ...]
    gradients: tuple[str, ...]
    text: str


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
    ),
    "gemm": Operator(
        "gemm",
        "a matrix product",
        ("dsp", "davinci"),
        (),
        "c = a x b, each optionally transposed: panels of a in the shared memory, tiles of b and c in each core's array"
        " memory, rows of a in its scalar memory. fp64 where the target has it. Tiling fields are M_G,"
        " K_G, M_A, K_A, N_A, M_S, split, kernel and swap.",
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
    ),
    "conv2d_backward_fast": Operator(
        "conv2d_backward_fast",
        "gradients by im2col and two products that forked workers share",
        ("host",),
        ("dx", "dw", "db"),
        "nx_f32_conv2d_backward_fast of kernels.nx: one image, fp32 in software on 8-byte elements. Transposed im2col,"
        " transposes of dout and weight, dweight and dcol by matmul_t on --cores forked workers, sums of the bias,"
        " col2im. Plain 2-D convolutions of one stride and one pad; all three gradients are made. It has no tiling.",
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


def run_operator(
    name: str,
    *,
    shape: ConvShape | DeformShape | tuple[int, int, int],
    target: Target,
    dtype: str | None = None,
    grads: Sequence[str] | None = None,
    cores: int | None = None,
    core_mask: int | None = None,
    tiling: Mapping[str, object] | None = None,
    numerics: bool = True,
    seed: int = 0,
    integers: bool = False,
    check: bool = True,
) -> Run:
    """Run an operator on random operands; with `check`, its errors against the reference are noted in the run.

    Raises:
        TilesimError: an argument is refused.
    """
    chosen = chosen_cores(target, cores if core_mask is None else mask_cores(core_mask, target))
    run = _run(name, shape, target, dtype, grads, chosen, tiling, numerics, seed, integers, check)
    run.call = {"grads": list(grads or ()), "cores": list(chosen)}
    return run


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
    made = shape_from(shape)
    name, grads, cores = record["operator"], call["grads"], tuple(call["cores"])
    tiling = None if "host" in OPERATORS[name].families else record["tiling"]  # a host's call has no tiling
    return _run(name, made, target, record["dtype"], grads, cores, tiling, False, 0, False, False)


def shape_from(shape: Mapping[str, Any]) -> ConvShape | DeformShape | tuple[int, int, int]:
    """The geometry of a record, as a run's `shape` has it."""
    if "m" in shape:
        return shape["m"], shape["n"], shape["k"]
    fields = {key: _frozen(value) for key, value in shape.items()}
    if "deform_groups" not in fields:
        return ConvShape(**fields)
    groups, masked = fields.pop("deform_groups"), fields.pop("mask")
    return DeformShape(ConvShape(**fields), groups, masked)


def _frozen(value: object) -> Any:
    return tuple(_frozen(item) for item in value) if isinstance(value, list) else value


def _run(
    name: str,
    shape: ConvShape | DeformShape | tuple[int, int, int],
    target: Target,
    dtype: str | None,
    grads: Sequence[str] | None,
    chosen: tuple[int, ...],
    tiling: Mapping[str, object] | None,
    numerics: bool,
    seed: int,
    integers: bool,
    check: bool,
) -> Run:
    """Run an operator on the chosen cores."""
    _require_family(name, target)
    if name == "conv2d_backward_fast" and isinstance(shape, ConvShape):
        _refuse_choices(name, dtype, tiling)
        return run_backward_fast(
            shape, target, len(chosen), numerics=numerics, seed=seed, integers=integers, check=check
        )
    computed = chosen_dtype(target, dtype, {})
    kind = stored_in(computed)
    if grads and not OPERATORS[name].gradients:
        raise OperandError(
            "gradients of an operator that has none", argument="grads", where=name, got=", ".join(grads)
        )
    if name == "conv2d_backprop_input" and isinstance(shape, ConvShape):
        return run_backprop_input(
            shape,
            target,
            kind,
            chosen,
            tiling=tiling,
            numerics=numerics,
            seed=seed,
            integers=integers,
            check=check,
        )
    if isinstance(shape, DeformShape):
        more: dict[str, Any] = {
            "tiling": tiling,
            "numerics": numerics,
            "seed": seed,
            "integers": integers,
            "check": check,
        }
        return run_deform_backward(shape, target, computed, chosen, grads=grads or None, **more)
    if isinstance(shape, ConvShape):
        call = _ConvCall(shape, target, computed, chosen, tiling, seed, integers, check)
        return call.forward(numerics) if name == "conv_forward" else call.backward(numerics, grads)
    m, n, k = shape
    if not numerics:
        return gemm(shape=shape, target=target, cores=chosen, dtype=computed, tiling=tiling, numerics=False)
    require_gemm_capacity(shape, target, computed, chosen, tiling, check=check)
    made = random_operands({"a": (m, k), "b": (k, n)}, kind, seed, integers, k)
    run = gemm(made["a"], made["b"], target=target, cores=chosen, dtype=computed, tiling=tiling)
    if check:
        check_gemm(run, made["a"], made["b"])
    return run


def _require_family(name: str, target: Target) -> None:
    """A host runs the operators of hosts only, and they run nowhere else; others are refused by the operators."""
    families = OPERATORS[name].families
    if (target.family == "host") != ("host" in families):
        raise OperandError(
            "the operator does not run on this family of targets",
            argument="target",
            where=target.name,
            got=target.family,
            limit=", ".join(families),
        )


def _refuse_choices(name: str, kind: str | None, tiling: Mapping[str, object] | None) -> None:
    """Refuse what the page's call has no choice of."""
    if kind not in (None, "fp32", "native"):
        raise OperandError(
            "the operator computes in fp32", argument="dtype", where=name, got=kind, limit="fp32"
        )
    if tiling:
        raise OperandError("the operator has no tiling", argument="tiling", where=name, got=", ".join(tiling))


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


@dataclass(frozen=True)
class _ConvCall:
    """A convolution on random operands."""

    shape: ConvShape
    target: Target
    computed: str
    cores: Sequence[int]
    tiling: Mapping[str, object] | None
    seed: int
    integers: bool
    check: bool

    @property
    def options(self) -> dict[str, Any]:
        """What both directions are called with."""
        options = {"shape": self.shape, "target": self.target, "cores": self.cores, "tiling": self.tiling}
        return {**options, "dtype": self.computed}

    def operands(self, shapes: Mapping[str, tuple[int, ...]], outputs: Sequence[str]) -> dict[str, Array]:
        """Random operands for some outputs."""
        terms = longest_sum(self.shape, outputs)
        return random_operands(shapes, stored_in(self.computed), self.seed, self.integers, terms)

    def backward(self, numerics: bool, grads: Sequence[str] | None) -> Run:
        """Some gradients; default all."""
        asked, shape = tuple(grads) if grads else OPERATORS["conv_backward"].gradients, self.shape
        if not numerics:
            return conv_backward(**self.options, grads=asked, numerics=False)
        require_capacity(shape, self.target, self.computed, asked, check=self.check)
        shapes = {"dy": shape.dy_shape, "w": shape.w_shape, "x": shape.x_shape}
        needed = {name: dims for name, dims in shapes.items() if any(name in NEEDS.get(g, ()) for g in asked)}
        made = self.operands(needed, asked)
        dy, w, x = (made.get(name) for name in shapes)
        run = conv_backward(dy, w, x=x, **self.options, grads=asked)
        if self.check and dy is not None:
            check_conv_backward(run, shape, dy, w, x)
        return run

    def forward(self, numerics: bool) -> Run:
        """The output, without a bias."""
        if not numerics:
            return conv_forward(**self.options, numerics=False)
        require_forward_capacity(self.shape, self.target, self.computed, check=self.check)
        made = self.operands({"x": self.shape.x_shape, "w": self.shape.w_shape}, ("y",))
        run = conv_forward(made["x"], made["w"], **self.options)
        if self.check:
            check_conv_forward(run, self.shape, made["x"], made["w"])
        return run
