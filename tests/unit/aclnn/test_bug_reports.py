"""Public bug reports that concern the arguments of the vendor's call: each is refused or taken as it should be."""

from __future__ import annotations

import pytest

from kernels import aclnn
from kernels.aclnn.products import PRODUCTS
from tests.unit.aclnn.call import FLOAT, call, refused, shapes

BIG = 4538426903074820908


@pytest.mark.parametrize("series", PRODUCTS)
def test_groups_of_zero_are_told_first(series: str) -> None:
    """BO016: groups 0 among other absurd arguments is told, before any arithmetic."""
    made = call(
        ndim=1,
        transposed=True,
        kind=FLOAT,
        changed=shapes(gradOutput=(5, 4, 3), weight=(2, 5, 8)),
        stride=[65534],
        dilation=[536870912],
        outputPadding=[1879048192],
        groups=0,
    )
    for name in ("gradOutput", "weight", "gradWeight"):
        made.arguments[name] = aclnn.aclCreateTensor(
            made.tensors[name].shape, FLOAT, format=aclnn.aclFormat.ACL_FORMAT_NCL
        )
    error = refused(made, series)
    assert error.argument == "groups"
    assert error.limit.startswith("1 to")


@pytest.mark.parametrize("series", PRODUCTS)
def test_groups_that_do_not_divide(series: str) -> None:
    """BO015: 20 channels in 3 groups."""
    changed = shapes(input=(2, 20, 8, 8), weight=(12, 6, 3, 3), gradOutput=(2, 12, 8, 8))
    error = refused(call(changed=changed, groups=3), series)
    assert error.argument == "groups"
    assert "input.C 20" in error.got


@pytest.mark.parametrize("series", PRODUCTS)
def test_a_stride_beyond_32_bits(series: str) -> None:
    """BO021: the stride is told with its limit, where the page has none of its own."""
    changed = shapes(input=(1, 4, 11, 4), weight=(6, 2, 5, 3), gradOutput=(1, 6, 1, 2))
    error = refused(call(changed=changed, stride=[BIG, 1], padding=[0, 0]), series)
    assert error.argument == "stride"
    assert error.limit


def test_another_output_of_a_transposed_one() -> None:
    """BO004: an output size that stride and padding do not give is told, with the size that they give."""
    changed = shapes(input=(1, 4, 5, 5, 5), weight=(4, 1, 3, 3, 3), gradOutput=(1, 2, 12, 11, 11))
    made = call(ndim=3, transposed=True, stride=[2] * 3, padding=[0] * 3, changed=changed)
    error = refused(made)
    assert error.argument == "gradOutput"
    assert "11, 11, 11" in error.limit
    assert "outputPadding" in error.remedy


@pytest.mark.parametrize("series", PRODUCTS)
def test_padding_that_leaves_no_output(series: str) -> None:
    """BO018: a transposed convolution with an output of 0 x 0."""
    changed = shapes(input=(1, 4, 2, 2), weight=(4, 3, 2, 2), gradOutput=(1, 6, 1, 1))
    error = refused(call(transposed=True, stride=[2, 2], padding=[2, 2], changed=changed), series)
    assert error.argument == "padding"
    assert "0x0" in str(error)


@pytest.mark.parametrize(("ndim", "w"), [(3, (6, 2, 0, 1, 2)), (2, (6, 2, 0, 2))])
def test_a_kernel_without_taps(ndim: int, w: tuple[int, ...]) -> None:
    """BO026: a filter depth of 0."""
    assert refused(call(ndim=ndim, changed=shapes(weight=w))).argument == "weight"


@pytest.mark.parametrize("series", PRODUCTS)
def test_an_empty_output(series: str) -> None:
    """BO006, BO036: an input that the kernel does not fit into is refused, as its forward is."""
    changed = shapes(input=(1, 4, 34, 1), weight=(6, 2, 3, 3), gradOutput=(1, 6, 16, 0))
    error = refused(call(stride=[2, 2], padding=[0, 0], changed=changed), series)
    assert error.argument == "gradOutput"


@pytest.mark.parametrize("series", ["A2", "A3", "950"])
def test_an_empty_batch(series: str) -> None:
    """BO010: no images, no error."""
    changed = shapes(input=(0, 4, 100, 50), weight=(6, 2, 3, 3), gradOutput=(0, 6, 98, 48))
    assert call(padding=[0, 0], changed=changed).plan(series) == 0


def test_one_byte_of_workspace_less() -> None:
    """BO014: what the query told is enough; one byte less is refused with both sizes, and nothing is written."""
    made = call()
    assert made.plan() == 0
    planned, size = made.executor.value, made.size.value
    assert planned is not None
    assert size is not None
    stream = planned.plan.device.stream()
    for memory, told in ((size, size - 1), (size - 1, size)):
        status = aclnn.aclnnConvolutionBackward(aclnn.DeviceMemory(memory), told, planned, stream)
        assert status == 161002
        error = aclnn.recent_error()
        assert error is not None
        assert error.argument == ("workspaceSize" if told < size else "workspace")
        assert str(size - 1) in error.got
        assert str(size) in error.limit
    assert planned.run is None
    assert all((t.data == 7).all() for t in made.tensors.values() if t.data is not None)
