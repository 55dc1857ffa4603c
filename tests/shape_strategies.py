"""Hypothesis strategies of small geometries, plain and transposed, with every option in play."""

from hypothesis import strategies as st

from kernels.shape.shapes import ConvShape


def _listed(ndim: int, low: int, high: int) -> st.SearchStrategy[list[int]]:
    return st.lists(st.integers(low, high), min_size=ndim, max_size=ndim)


@st.composite
def conv_shapes(draw: st.DrawFn, largest: int = 6) -> ConvShape:
    """Draw a legal geometry of 1 to 3 axes, each up to `largest`, small enough for loops in Python."""
    ndim = draw(st.integers(1, 3))
    groups, transposed = draw(st.integers(1, 3)), draw(st.booleans())
    kernel, stride, dilation = (draw(_listed(ndim, 1, 3)) for _ in range(3))
    size = draw(_listed(ndim, 1, largest if ndim < 3 else min(largest, 4)))
    lows, highs = draw(_listed(ndim, 0, 2)), draw(_listed(ndim, -2, 2))
    if transposed:  # keep an output: what is cut away is less than the kernel's extent
        room = [d * (k - 1) for k, d in zip(kernel, dilation, strict=True)]
        lows = [min(low, most) for low, most in zip(lows, room, strict=True)]
        highs = [min(high, most - low) for low, high, most in zip(lows, highs, room, strict=True)]
    most_extra = [max(s, d) - 1 if transposed else 0 for s, d in zip(stride, dilation, strict=True)]
    return ConvShape(
        n=draw(st.integers(0, 2)),
        cin=groups * draw(st.integers(0, 2)),
        size=size,
        cout=groups * draw(st.integers(0, 2)),
        kernel=kernel,
        stride=stride,
        padding=list(zip(lows, highs, strict=True)),
        dilation=dilation,
        groups=groups,
        transposed=transposed,
        output_padding=[draw(st.integers(0, most)) for most in most_extra],
    )
