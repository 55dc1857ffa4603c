"""Ranges of bytes: overlap is exact."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from simulator.memory.ranges import Range, collapse, overlaps


def bytes_of(span: Range) -> set[int]:
    """Every byte, one by one."""
    starts = (span.base + row * span.stride for row in range(span.rows))
    return {byte for start in starts for byte in range(start, start + span.row_bytes)}


spans = st.builds(
    Range,
    base=st.integers(0, 60),
    rows=st.integers(0, 6),
    row_bytes=st.integers(0, 12),
    stride=st.integers(1, 24),
)


@given(spans, spans)
def test_two_ranges_overlap_where_they_share_a_byte(a: Range, b: Range) -> None:
    """As counted byte by byte, also for empty ranges and for rows that run into each other."""
    shared = bool(bytes_of(a) & bytes_of(b))
    assert overlaps(a, b) == shared
    assert overlaps(b, a) == shared


@given(spans, st.integers(0, 40), st.integers(0, 6), st.integers(0, 12))
def test_ranges_of_one_stride_overlap_where_they_share_a_byte(
    a: Range, shift: int, rows: int, row_bytes: int
) -> None:
    """Blocks of one matrix, the common case, which has a rule of its own."""
    b = Range(a.base + shift, rows, row_bytes, a.stride)
    assert overlaps(a, b) == bool(bytes_of(a) & bytes_of(b))


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        (Range(0, 8, 4, 16), Range(4, 8, 4, 16), False),  # columns side by side
        (Range(0, 8, 5, 16), Range(4, 8, 4, 16), True),  # one byte more
        (Range(0, 8, 4, 16), Range(12, 7, 4, 16), False),  # the last column, before the next row begins
        (Range(0, 8, 4, 16), Range(12, 7, 5, 16), True),  # ... and into it
        (Range(0, 2, 4, 100), Range(50, 1, 50, 50), False),  # in the gap, up to its end
        (Range(0, 2, 4, 100), Range(50, 1, 51, 51), True),
        (Range(0, 3, 1, 6), Range(1, 3, 1, 4), False),  # 0, 6, 12 and 1, 5, 9
        (Range(0, 3, 1, 6), Range(2, 3, 1, 4), True),  # 0, 6, 12 and 2, 6, 10
    ],
)
def test_interleaved_rows_overlap_only_in_bytes(a: Range, b: Range, expected: bool) -> None:
    """Spans that cross each other need not share a byte."""
    assert overlaps(a, b) is expected


@given(
    shape=st.lists(st.integers(1, 4), min_size=1, max_size=4),
    data=st.data(),
    item=st.sampled_from([1, 2, 4]),
)
def test_a_box_is_covered_by_its_rows(shape: list[int], data: st.DataObject, item: int) -> None:
    """The rows of a box of an array cover its bytes, and no other where they say so."""
    size = [data.draw(st.integers(1, extent)) for extent in shape]
    strides = [item]
    for extent in reversed(shape[1:]):
        strides.insert(0, strides[0] * extent)
    (rows, row_bytes, stride), exact = collapse(tuple(zip(size, strides, strict=True)), item)
    starts = [0]
    for extent, step in zip(size, strides, strict=True):
        starts = [start + index * step for start in starts for index in range(extent)]
    box = {byte for start in starts for byte in range(start, start + item)}
    covered = bytes_of(Range(0, rows, row_bytes, stride))
    assert covered == box if exact else covered > box
