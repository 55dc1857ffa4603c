"""aclnn: the two-stage calls of the Ascend operator library, by the vendor's names.

    from kernels import aclnn

    with aclnn.Device("ascend910b1") as device:
        size, executor = aclnn.Out[int](), aclnn.Out[aclnn.aclOpExecutor]()
        status = aclnn.aclnnConvolutionBackwardGetWorkspaceSize(
            dy, x, w, None, [1, 1], [1, 1], [1, 1], False, [0, 0], 1, [True, True, False], 0, dx, dw, None,
            size, executor,
        )
        aclnn.check(status)  # or aclnn.aclGetRecentErrMsg()
        stream = device.stream()
        aclnn.check(aclnn.aclnnConvolutionBackward(device.malloc(size.value), size.value, executor, stream))
    executor.value.run.summary()

Tensors are `aclTensor.of(array)`, or `aclCreateTensor(shape, type)` without values: such a call is only timed.
"""

from kernels.aclnn.calls import (
    aclnnConvolutionBackward,
    aclnnConvolutionBackwardGetWorkspaceSize,
)
from kernels.aclnn.deform_calls import (
    aclnnDeformableConv2dBackward,
    aclnnDeformableConv2dBackwardGetWorkspaceSize,
)
from kernels.aclnn.device import Device, DeviceMemory, Stream, current_device
from kernels.aclnn.errors import AclnnError, Status, aclGetRecentErrMsg, check, recent_error
from kernels.aclnn.executor import aclOpExecutor
from kernels.aclnn.objects import (
    Out,
    aclBoolArray,
    aclCreateBoolArray,
    aclCreateIntArray,
    aclCreateTensor,
    aclDataType,
    aclFormat,
    aclIntArray,
    aclTensor,
)

__all__ = [
    "AclnnError",
    "Device",
    "DeviceMemory",
    "Out",
    "Status",
    "Stream",
    "aclBoolArray",
    "aclCreateBoolArray",
    "aclCreateIntArray",
    "aclCreateTensor",
    "aclDataType",
    "aclFormat",
    "aclGetRecentErrMsg",
    "aclIntArray",
    "aclOpExecutor",
    "aclTensor",
    "aclnnConvolutionBackward",
    "aclnnConvolutionBackwardGetWorkspaceSize",
    "aclnnDeformableConv2dBackward",
    "aclnnDeformableConv2dBackwardGetWorkspaceSize",
    "check",
    "current_device",
    "recent_error",
]
