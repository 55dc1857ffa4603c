"""The two calls of aclnnConvolutionBackward: plan a call and ask for its workspace, then run it on a stream."""

from __future__ import annotations

from collections.abc import Sequence

from kernels.aclnn.arguments import Arguments
from kernels.aclnn.device import DeviceMemory, Stream, current_device
from kernels.aclnn.errors import null, returns_status
from kernels.aclnn.execute import execute
from kernels.aclnn.executor import aclOpExecutor, run_once
from kernels.aclnn.objects import Out, aclTensor
from kernels.aclnn.plan import Plan


@returns_status
def aclnnConvolutionBackwardGetWorkspaceSize(  # noqa: N802  # the vendor's name
    gradOutput: aclTensor | None,
    input: aclTensor | None,  # noqa: A002  # the vendor's word
    weight: aclTensor | None,
    biasSizes: Sequence[int] | None,
    stride: Sequence[int] | None,
    padding: Sequence[int] | None,
    dilation: Sequence[int] | None,
    transposed: bool,
    outputPadding: Sequence[int] | None,
    groups: int,
    outputMask: Sequence[bool] | None,
    cubeMathType: int,
    gradInput: aclTensor | None,
    gradWeight: aclTensor | None,
    gradBias: aclTensor | None,
    workspaceSize: Out[int] | None,
    executor: Out[aclOpExecutor] | None,
) -> None:
    """Check a backward convolution for the current device's product, and tell the workspace that it needs.

    Args:
        gradOutput: [N, Cout, *out].
        input: [N, Cin, *in].
        weight: [Cout, Cin / groups, *kernel], transposed [Cin, Cout / groups, *kernel].
        biasSizes: [Cout]; it is looked at only where gradBias is asked for.
        stride: one value an axis.
        padding: one value an axis, or top, bottom, left, right in 2-D.
        dilation: one value an axis.
        transposed: whether the forward operator is the transposed convolution.
        outputPadding: one value an axis; 0 where not transposed.
        groups: of channels.
        outputMask: whether gradInput, gradWeight and gradBias are asked for.
        cubeMathType: 0 keep the type, 1 lower FLOAT (to fp16 or hf32, by product), 2 fp16, 3 hf32.
        gradInput: like input; null allowed where it is not asked for, as the next two.
        gradWeight: like weight.
        gradBias: [Cout], of gradOutput's type, format ND.
        workspaceSize: takes the workspace's bytes.
        executor: takes the planned call.

    Returns the status: 0, 161001 for a null pointer, 161002 for an argument outside the rules, 561103 where the
    simulator below refuses; `aclGetRecentErrMsg` then says why. Nothing is written on refusal.
    """
    tensors = {"gradOutput": gradOutput, "input": input, "weight": weight}
    tensors |= {"gradInput": gradInput, "gradWeight": gradWeight, "gradBias": gradBias}
    arrays = (biasSizes, stride, padding, dilation)
    given = Arguments(tensors, *arrays, transposed, outputPadding, groups, outputMask, cubeMathType)
    if workspaceSize is None or executor is None:
        raise null("workspaceSize" if workspaceSize is None else "executor")
    plan = Plan.of(given, current_device())
    workspaceSize.value, executor.value = plan.workspace_bytes, aclOpExecutor(plan)


@returns_status
def aclnnConvolutionBackward(  # noqa: N802  # the vendor's name
    workspace: DeviceMemory | memoryview | None,
    workspaceSize: int,
    executor: aclOpExecutor | Out[aclOpExecutor] | None,
    stream: Stream | None,
) -> None:
    """Run a planned call: the gradients are written, and the Run is at `executor.run` and last in `stream.runs`.

    Args:
        workspace: device memory, or anything with `nbytes`; may be null where no workspace is needed.
        workspaceSize: its bytes, at least what the first call told.
        executor: the planned call, or the pointer that the first call filled.
        stream: of the device that the call was planned for.

    The product of a padded tap is 0 x the operand, as the chip's zero filled im2col has it: NaN and infinity of a
    gradient or weight reach results whose sum has only padding there. Returns the status, as the first call does.
    """
    first = "aclnnConvolutionBackwardGetWorkspaceSize"
    run_once(Plan, execute, first, workspace, workspaceSize, executor, stream)
