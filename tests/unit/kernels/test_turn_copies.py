"""What brings in the columns of dw: every element of im2col(x) that is not padding, once, from its place in x."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import product
from typing import Any

from hypothesis import assume, given
from hypothesis import strategies as st

from kernels.dsp.dw.shares import Block, Part
from kernels.dsp.dw.turns import Turn, TurnPlan, turns
from kernels.dsp.dx.geometry import Geometry
from kernels.shape.shapes import ConvShape
from tests.shape_strategies import conv_shapes

Element = tuple[int, ...]
"""(image, od, oh, ow, tap) of the columns, and (image, plane, row, column) of x."""


def wanted(g: Geometry, block: Block) -> Counter[Element]:
    """Each output with each tap of the block that lies in x."""
    found: Counter[Element] = Counter()
    taps = range(block.tap, block.tap + block.taps)
    for n, od, oh, ow, tap in product(range(g.n), range(g.d.out), range(g.h.out), range(g.w.out), taps):
        kd, rest = divmod(tap, g.h.kernel * g.w.kernel)
        kh, kw = divmod(rest, g.w.kernel)
        at = g.d.place(od, kd), g.h.place(oh, kh), g.w.place(ow, kw)
        if all(0 <= p < axis.size for p, axis in zip(at, (g.d, g.h, g.w), strict=True)):
            found[n, od, oh, ow, tap, n, *at] += 1
    return found


def brought(g: Geometry, block: Block, turn: Turn, plan: TurnPlan, of: int) -> Iterator[Element]:
    """What the copies of a chunk bring in."""
    span = plan.span
    for copy in plan.copies(of):
        (i, r, c, t), (si, plane, row, col) = copy.place, copy.source
        for di, dr, dc, dt in product(*map(range, copy.size)):
            output = (turn.n + i + di, span.od, span.oh + r + dr, span.ow + c + dc, block.tap + t + dt)
            yield (*output, turn.n + si + di, plane, row + dr * g.h.stride, col + dc * g.w.stride + dt)


@given(
    shape=conv_shapes(),
    k=st.integers(1, 40),
    of=st.integers(1, 7),
    whole=st.booleans(),
    cut=st.tuples(st.integers(0, 9), st.integers(1, 9)),
)
def test_each_element_comes_once(
    shape: ConvShape, k: int, of: int, whole: bool, cut: tuple[int, int]
) -> None:
    """Whatever the chunks, the taps of a block, its channels, and the number of copies that is asked for."""
    g = Geometry.of(shape)
    assume(0 not in (g.cog, g.cig, g.taps))
    first = cut[0] % g.taps
    taps = min(cut[1], g.taps - first)
    block = Block(0, 1, 0, g.cog, first, taps, 0, g.cig if whole else max(1, g.cig // 2))
    found: Counter[Element] = Counter()
    for turn in turns(g, block, 0, (Part(0, g.n, 0, g.h.out),), k):
        if turn.plan is not None:
            found.update(brought(g, block, turn, turn.plan, of))
    assert found == wanted(g, block)


def taps_of_copies(block: Block, **shape: Any) -> set[int]:
    """How many taps the copies of a chunk bring in, for a 5 x 5 kernel on 20 x 20."""
    given: dict[str, Any] = {
        "n": 1,
        "cin": 3,
        "size": (20, 20),
        "cout": 8,
        "kernel": (5, 5),
        "padding": 2,
        "stride": 2,
    }
    g = Geometry.of(ConvShape(**(given | shape)))
    (turn,) = turns(g, block, 0, (Part(0, 1, 0, g.h.out),), 400)
    assert turn.plan is not None
    return {copy.size[3] for copy in turn.plan.copies(1)}


def test_taps_side_by_side_are_one_copy() -> None:
    """With all channels of x five taps are one run of 15 numbers, three or four of them next to the padding."""
    assert taps_of_copies(Block(0, 1, 0, 8, 0, 25, 0, 3)) == {3, 4, 5}


def test_other_taps_are_not() -> None:
    """With some of the channels or a dilation they lie apart; with a stride of one the rows of a tap are contiguous."""
    assert taps_of_copies(Block(0, 1, 0, 8, 0, 25, 0, 2)) == {1}
    assert taps_of_copies(Block(0, 1, 0, 8, 0, 25, 0, 3), dilation=2, padding=4) == {1}
    assert taps_of_copies(Block(0, 1, 0, 8, 0, 25, 0, 3), stride=1) == {1}
