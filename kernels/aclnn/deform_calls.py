"""The two calls of aclnnDeformableConv2dBackward, which only Ascend 950 has."""

from __future__ import annotations

from collections.abc import Sequence

from kernels.aclnn.deform_arguments import DeformArguments
from kernels.aclnn.deform_plan import DeformPlan, execute
from kernels.aclnn.device import DeviceMemory, Stream, current_device
from kernels.aclnn.errors import null, returns_status
from kernels.aclnn.executor import aclOpExecutor, run_once
from kernels.aclnn.objects import Out, aclTensor


@returns_status
def aclnnDeformableConv2dBackwardGetWorkspaceSize(  # noqa: N802  # the vendor's name
    input: aclTensor | None,  # noqa: A002  # the vendor's word
    gradOutput: aclTensor | None,
    offsetOut: aclTensor | None,
    weight: aclTensor | None,
    offset: aclTensor | None,
    kernelSize: Sequence[int] | None,
    stride: Sequence[int] | None,
    padding: Sequence[int] | None,
    dilation: Sequence[int] | None,
    groups: int,
    deformableGroups: int,
    modulated: bool,
    gradInput: aclTensor | None,
    gradWeight: aclTensor | None,
    gradOffset: aclTensor | None,
    gradBias: aclTensor | None,
    workspaceSize: Out[int] | None,
    executor: Out[aclOpExecutor] | None,
) -> None:
    """Check a deformable backward convolution for the current device's product, and tell the workspace it needs.

    Args:
        input: [N, Cin, H, W]; all tensors are of one type, FLOAT, FLOAT16 or BF16, and NCHW.
        gradOutput: [N, Cout, Ho, Wo].
        offsetOut: the forward pass' resampled features, [N, Cin, Ho x KH, Wo x KW].
        weight: [Cout, Cin / groups, KH, KW].
        offset: planes x, y and mask, [N, 3 x deformableGroups x KH x KW, Ho, Wo].
        kernelSize: KH, KW.
        stride: of N, C, H, W; 1 on the first two, as dilation.
        padding: top, bottom, left, right.
        dilation: of N, C, H, W.
        groups: of channels.
        deformableGroups: of input channels that share their offsets.
        modulated: must be true.
        gradInput: like input.
        gradWeight: like weight.
        gradOffset: like offset.
        gradBias: [Cout], format ND.
        workspaceSize: takes the workspace's bytes.
        executor: takes the planned call.

    Returns the status: 0, 161001 for a null pointer, 161002 for an argument outside the rules, 561103 where the
    simulator below refuses; `aclGetRecentErrMsg` then says why. Nothing is written on refusal.
    """
    tensors = {"input": input, "gradOutput": gradOutput, "offsetOut": offsetOut, "weight": weight}
    tensors |= {"offset": offset, "gradInput": gradInput, "gradWeight": gradWeight}
    tensors |= {"gradOffset": gradOffset, "gradBias": gradBias}
    arrays = {"kernelSize": kernelSize, "stride": stride, "padding": padding, "dilation": dilation}
    given = DeformArguments(tensors, arrays, groups, deformableGroups, modulated)
    if workspaceSize is None or executor is None:
        raise null("workspaceSize" if workspaceSize is None else "executor")
    plan = DeformPlan.of(given, current_device())
    workspaceSize.value, executor.value = plan.workspace_bytes, aclOpExecutor(plan)


@returns_status
def aclnnDeformableConv2dBackward(  # noqa: N802  # the vendor's name
    workspace: DeviceMemory | memoryview | None,
    workspaceSize: int,
    executor: aclOpExecutor | Out[aclOpExecutor] | None,
    stream: Stream | None,
) -> None:
    """Run a planned call: the gradients are written, and the Run is at `executor.run` and last in `stream.runs`.

    Args:
        workspace: device memory, or anything with `nbytes`.
        workspaceSize: its bytes, at least what the first call told.
        executor: the planned call, or the pointer that the first call filled.
        stream: of the device that the call was planned for.

    Returns the status, as the first call does.
    """
    first = "aclnnDeformableConv2dBackwardGetWorkspaceSize"
    run_once(DeformPlan, execute, first, workspace, workspaceSize, executor, stream)
