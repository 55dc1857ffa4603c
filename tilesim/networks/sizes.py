"""A convolution's sizes as a short text for tables and pictures."""

from __future__ import annotations

from collections.abc import Sequence

from kernels.shape.shapes import ConvShape


def sizes_text(shape: ConvShape) -> str:
    """Input by weights, and what is not as usual: `1x64x56x56 by 64x64x3x3 s2 p1 d2 g4`; `t` for a transposed one."""
    words = [f"{_text(shape.x_shape)} by {_text(shape.w_shape)}"]
    words += [f"s{_text(_once(shape.stride))}"] if set(shape.stride) != {1} else []
    words += [f"p{_pads(shape)}"] if any(any(pair) for pair in shape.padding) else []
    words += [f"d{_text(_once(shape.dilation))}"] if set(shape.dilation) != {1} else []
    words += [f"g{shape.groups}"] if shape.groups != 1 else []
    words += ["t"] if shape.transposed else []
    words += [f"o{_text(_once(shape.output_padding))}"] if any(shape.output_padding) else []
    return " ".join(words)


def _pads(shape: ConvShape) -> str:
    """One pad, one an axis, or low+high an axis."""
    if all(low == high for low, high in shape.padding):
        return _text(_once([low for low, _ in shape.padding]))
    return ",".join(f"{low}+{high}" for low, high in shape.padding)


def _once(values: Sequence[int]) -> Sequence[int]:
    return values[:1] if len(set(values)) == 1 else values


def _text(values: Sequence[int]) -> str:
    return "x".join(map(str, values))
