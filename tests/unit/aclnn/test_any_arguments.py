"""Whatever the arguments are, a call returns one of the vendor's codes, and writes nothing unless it is 0."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from kernels import aclnn
from kernels.aclnn.objects import aclDataType, aclFormat, aclTensor
from tests.unit.aclnn.call import BF16, FLOAT, FLOAT16, TARGETS, call, tensor

CODES = {0, 161001, 161002, 561103}
TENSORS = ("gradOutput", "input", "weight", "gradInput", "gradWeight", "gradBias")
ARRAYS = ("biasSizes", "stride", "padding", "dilation", "outputPadding", "outputMask")

odd = st.sampled_from([None, "", 0, -1, 1.5, True, (), object(), np.int64(1), float("nan"), 2**80, b"x"])
numbers = st.one_of(st.integers(-2, 4), st.sampled_from([2**31, 2**63, 2**70, -(2**70)]), odd)
arrays = st.one_of(st.lists(numbers, max_size=5), odd)
kinds = st.sampled_from([FLOAT, FLOAT16, BF16, aclDataType.ACL_FLOAT8_E4M3FN, aclDataType.ACL_INT8])
sizes = st.lists(st.sampled_from([0, 1, 2, 3, 4, 6, 7, 2**40]), max_size=6).map(tuple)


@st.composite
def tensors(draw: st.DrawFn) -> aclTensor:
    """A tensor without data, of any rank, type and format."""
    layout = draw(st.sampled_from(aclFormat)) if draw(st.booleans()) else None
    return tensor(draw(sizes), draw(kinds), layout, data=False)


changes = st.dictionaries(st.sampled_from(TENSORS), st.one_of(tensors(), odd), max_size=2)
more = st.dictionaries(st.sampled_from(ARRAYS), arrays, max_size=2)
single = st.dictionaries(st.sampled_from(["transposed", "groups", "cubeMathType"]), numbers, max_size=2)


@given(
    changed=st.tuples(changes, more, single),
    ndim=st.integers(1, 3),
    transposed=st.booleans(),
    kind=kinds,
    series=st.sampled_from(sorted(TARGETS)),
)
@settings(deadline=None, max_examples=300)
def test_a_code_for_any_arguments(
    changed: tuple[dict[str, Any], ...], ndim: int, transposed: bool, kind: aclDataType, series: str
) -> None:
    """No exception leaves the call."""
    merged = {key: value for part in changed for key, value in part.items()}
    made = call(ndim=ndim, transposed=transposed, kind=kind, changed=merged)
    status = made.plan(series)
    assert status in CODES
    if status:
        assert made.untouched
        assert aclnn.aclGetRecentErrMsg()
    else:
        assert made.size.value is not None
        assert made.executor.value is not None
