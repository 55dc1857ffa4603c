"""The planner's bound on what a panel reads: no panel of that size, wherever it lies, reads more."""

from math import prod

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernels.dsp.dx.geometry import Geometry
from kernels.dsp.dx.plan import largest_hull
from kernels.dsp.forward.geometry import ForwardGeometry
from kernels.shape.shapes import ConvShape
from tests.shape_strategies import conv_shapes


@pytest.mark.parametrize("kind", [Geometry, ForwardGeometry])
@given(shape=conv_shapes(), rows=st.integers(1, 6), cols=st.integers(1, 6))
def test_no_panel_reads_more(kind: type[Geometry], shape: ConvShape, rows: int, cols: int) -> None:
    """Every plane, every first row and column."""
    g = kind.of(shape)
    most = largest_hull(g, rows, cols)
    for d in range(g.d.size):
        for h in range(g.h.size):
            for w in range(g.w.size):
                hull = g.hull(d, h, min(rows, g.h.size - h), w, min(cols, g.w.size - w))
                assert hull is None or prod(hull[1::2]) <= most


def test_planes_that_only_some_places_reach() -> None:
    """With stride 2 every second plane of dx is reached by two planes of dy, and neither end nor middle is one."""
    shape = ConvShape(
        n=1, cin=1, size=(4, 8, 8), cout=1, kernel=3, stride=2, padding=((1, 0), (1, 1), (1, 1))
    )
    g = Geometry.of(shape)
    assert [hull[1] for d in range(4) if (hull := g.hull(d, 0, 8, 0, 8))] == [1, 2, 1, 1]
    assert largest_hull(g, 8, 8) >= 2 * g.h.out * g.w.out
