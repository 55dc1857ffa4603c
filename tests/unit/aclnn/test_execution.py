"""The second call: gradients in the tensors of the call, and what refuses it."""

from __future__ import annotations

import numpy as np
import pytest

from kernels import aclnn
from kernels.reference.references import conv_backward_reference
from kernels.shape.shapes import ConvShape
from tests.unit.aclnn.call import call
from tests.unit.aclnn.running import PLAIN, RESULTS, TRANSPOSED, arguments, operands, run, timed

TARGETS = ("ascend910a", "ascend310p3", "ascend910b1", "ascend910_9391", "ascend950pr")
FIRST = TARGETS[:2]


@pytest.fixture(params=TARGETS)
def device(request: pytest.FixtureRequest) -> aclnn.Device:
    """A device of each product."""
    return aclnn.Device(request.param, cores=2)


@pytest.mark.parametrize("kind", ["fp16", "fp32"])
@pytest.mark.parametrize(
    "shape",
    [
        PLAIN,
        TRANSPOSED,
        ConvShape(n=2, cin=3, size=(9,), cout=4, kernel=(3,), padding=1, dilation=2),
        ConvShape(n=1, cin=2, size=(4, 5, 6), cout=3, kernel=(2, 3, 2), stride=(1, 2, 1), padding=(0, 1, 1)),
    ],
    ids=["2d", "transposed", "1d", "3d"],
)
def test_gradients_are_written(device: aclnn.Device, shape: ConvShape, kind: str) -> None:
    """All three gradients of integers are exact, in 1 to 3 dimensions."""
    if shape.ndim == 3 and device.target.name in FIRST:
        return
    arrays = operands(shape, kind)
    given = arguments(shape, arrays, math=2)
    done = run(device, given)
    exact = conv_backward_reference(shape, **arrays)
    for name, key in RESULTS.items():
        np.testing.assert_array_equal(given[name].data.astype(np.float64), exact[key])
    assert done.cycles > 0


@pytest.mark.parametrize("mask", [(True, True, False), (False, True, False), (False, False, True)])
def test_what_is_not_asked_for_is_not_written(device: aclnn.Device, mask: tuple[bool, ...]) -> None:
    """BO041: nothing is written to a result that the mask leaves out."""
    arrays = operands(PLAIN)
    given = arguments(PLAIN, arrays, mask)
    run(device, given)
    exact = conv_backward_reference(PLAIN, **arrays)
    for (name, key), asked in zip(RESULTS.items(), mask, strict=True):
        data = given[name].data.astype(np.float64)
        assert np.isnan(data).all() if not asked else (data == exact[key]).all()


def test_operands_that_are_views(device: aclnn.Device) -> None:
    """Views with strides, also of a channel-last storage, give the gradients of what they show."""
    arrays = operands(PLAIN)
    given = arguments(PLAIN, arrays)
    channel_last = np.ascontiguousarray(arrays["x"].transpose(0, 2, 3, 1)).transpose(0, 3, 1, 2)
    wide = np.full((*PLAIN.dy_shape[:3], 2 * PLAIN.dy_shape[3]), np.nan, np.float16)
    wide[..., ::2] = arrays["dy"]
    given |= {"input": aclnn.aclTensor.of(channel_last), "gradOutput": aclnn.aclTensor.of(wide[..., ::2])}
    run(device, given)
    exact = conv_backward_reference(PLAIN, **arrays)
    for name, key in RESULTS.items():
        np.testing.assert_array_equal(given[name].data.astype(np.float64), exact[key])


def test_four_pads(device: aclnn.Device) -> None:
    """Top, bottom, left and right differ."""
    shape = ConvShape(n=1, cin=2, size=(5, 6), cout=3, kernel=(3, 3), padding=((0, 2), (1, 3)))
    arrays = operands(shape)
    given = arguments(shape, arrays) | {"padding": [0, 2, 1, 3]}
    run(device, given)
    exact = conv_backward_reference(shape, **arrays)
    for name, key in RESULTS.items():
        np.testing.assert_array_equal(given[name].data.astype(np.float64), exact[key])


def test_timing_only_costs_the_same(device: aclnn.Device) -> None:
    """Tensors without data are timed: the same cycles, no results."""
    arrays = operands(PLAIN)
    given = arguments(PLAIN, arrays)
    with_values, without = run(device, given), run(device, timed(given))
    assert without.cycles == with_values.cycles
    assert without.outputs == {}
    assert without.trace.hash() == with_values.trace.hash()


def test_tensors_that_the_chip_cannot_hold(device: aclnn.Device) -> None:
    """What does not fit main memory is an inner error, told before anything is planned at length; no run is left."""
    small = ConvShape(n=1, cin=64, size=(16, 16), cout=64, kernel=(1, 1))
    given = timed(arguments(small, operands(small)))
    large = (1 << 20, 64, 256, 256)
    for name in ("gradOutput", "input", "gradInput"):
        given[name] = aclnn.aclCreateTensor(large, given[name].dtype, format=given[name].format)
    stream = device.stream()
    with pytest.raises(aclnn.AclnnError, match="does not fit") as caught:
        run(device, given, stream)
    assert caught.value.code == 561103
    assert stream.runs == []


def test_a_stream_keeps_its_runs(device: aclnn.Device) -> None:
    """Calls on a stream are kept in order."""
    stream = device.stream()
    runs = [run(device, arguments(PLAIN, operands(PLAIN)), stream) for _ in range(2)]
    assert stream.runs == runs


def planned(device: aclnn.Device) -> aclnn.aclOpExecutor:
    """A planned call."""
    size, executor = aclnn.Out[int](), aclnn.Out[aclnn.aclOpExecutor]()
    with device:
        given = arguments(PLAIN, operands(PLAIN))
        aclnn.check(
            aclnn.aclnnConvolutionBackwardGetWorkspaceSize(**given, workspaceSize=size, executor=executor)
        )
    assert executor.value is not None
    return executor.value


def test_null_pointers_of_the_second_call(device: aclnn.Device) -> None:
    """Executor, stream, and a workspace that is needed."""
    executor = planned(device)
    size = executor.plan.workspace_bytes
    memory, stream = device.malloc(size), device.stream()
    for arguments_, name in (
        ((memory, size, None, stream), "executor"),
        ((memory, size, aclnn.Out[aclnn.aclOpExecutor](), stream), "executor"),
        ((memory, size, executor, None), "stream"),
        ((None, size, executor, stream), "workspace"),
    ):
        assert aclnn.aclnnConvolutionBackward(*arguments_) == 161001
        assert str(aclnn.aclGetRecentErrMsg()).startswith(name)
    assert executor.run is None


def test_a_call_runs_once_and_where_it_was_planned(device: aclnn.Device) -> None:
    """A stream of another device, and an executor that has run, are refused."""
    executor = planned(device)
    size = executor.plan.workspace_bytes
    memory = device.malloc(size)
    other = aclnn.Device(device.target).stream()
    assert aclnn.aclnnConvolutionBackward(memory, size, executor, other) == 161002
    assert str(aclnn.aclGetRecentErrMsg()).startswith("stream")
    assert aclnn.aclnnConvolutionBackward(memory, size, executor, device.stream()) == 0
    assert aclnn.aclnnConvolutionBackward(memory, size, executor, device.stream()) == 161002
    assert str(aclnn.aclGetRecentErrMsg()).startswith("executor")


def test_check_raises_the_refusal() -> None:
    """A status becomes an exception again, with its fields."""
    with pytest.raises(aclnn.AclnnError, match="groups") as caught:
        aclnn.check(call(groups=0).plan())
    assert caught.value.fields()["code"] == 161002
    assert caught.value.fields()["argument"] == "groups"
    aclnn.check(0)


def test_check_without_the_message() -> None:
    """A status whose message was taken still raises, with its code."""
    status = call(groups=0).plan()
    aclnn.aclGetRecentErrMsg()
    with pytest.raises(aclnn.AclnnError) as caught:
        aclnn.check(status)
    assert caught.value.code == status == 161002


def test_devices_lie_in_each_other() -> None:
    """The innermost device is the current one, also where one is entered twice."""
    outer, inner = aclnn.Device("ascend910b1"), aclnn.Device("ascend950pr")
    with outer:
        with inner, outer:
            assert aclnn.current_device() is outer
        assert aclnn.current_device() is outer
    with pytest.raises(aclnn.AclnnError, match="no device"):
        aclnn.current_device()
