"""Problems in the notation of oneDNN's benchdnn: `mb32ic256ih14oc256oh14kh3ph1n"name"`.

Numbers follow their key directly; underscores between them mean nothing, and a name may end the text. Left
out, the batch is 2, groups and strides are 1, dilations 0 (which is 1 elsewhere), pads what the output size
leaves, the width of two axes is their height, and the height and width of three their depth.
"""

import re
from collections.abc import Mapping
from typing import NamedTuple

from kernels.errors import ShapeError
from kernels.shape.checks import SIZE_LIMIT, shown, whole
from kernels.shape.shapes import ConvShape

KEYS = ("mb", "g", "ic", "oc", *(kind + axis for kind in "iokspd" for axis in "dhw"))
_TOKEN = re.compile(r"_*(?P<key>" + "|".join(KEYS) + r")(?P<number>-?[0-9]{1,30})_*")
_DRIVER = re.compile(r"\s*--(?P<driver>conv|deconv)\s+")
_NAME = re.compile(r'_*n"?[^"]*"?\s*$')


class _Axis(NamedTuple):
    """One spatial axis, in the notation of `ConvShape.from_out`."""

    size: int
    kernel: int
    out: int
    stride: int
    low: int
    dilation: int


def parse_benchdnn(text: str, transposed: bool = False) -> ConvShape:
    """Return the geometry of a benchdnn problem, or raise `ShapeError` naming the key at fault.

    `transposed` reads it as a deconvolution, as does a leading `--deconv`: ic and ih are then the input of
    the transposed convolution.
    """
    if not isinstance(text, str):
        raise ShapeError("a shape must be text", argument="shape", got=shown(text))
    driver = _DRIVER.match(text)
    if driver:
        text = text[driver.end() :]
        transposed = transposed or driver["driver"] == "deconv"
    values = _tokens(text.strip())
    axes = _axes(values, transposed)
    return ConvShape.from_out(
        n=values.get("mb", 2),
        cin=_required(values, "ic"),
        size=[axis.size for axis in axes],
        cout=_required(values, "oc"),
        kernel=[axis.kernel for axis in axes],
        out=[axis.out for axis in axes],
        low_pads=[axis.low for axis in axes],
        stride=[axis.stride for axis in axes],
        dilation=[axis.dilation for axis in axes],
        groups=values.get("g", 1),
        transposed=transposed,
    )


def _tokens(text: str) -> dict[str, int]:
    values: dict[str, int] = {}
    place = 0
    while place < len(text) and not _NAME.match(text, place):
        token = _TOKEN.match(text, place)
        if token is None:
            rest = shown(text[place:])
            raise ShapeError("not a benchdnn problem", argument="shape", where=f"at {rest}", got=shown(text))
        key = token["key"]
        if key in values:
            raise ShapeError(f"{key} is given twice", argument=key, got=shown(text))
        values[key] = whole(key, int(token["number"]), 1 - SIZE_LIMIT, SIZE_LIMIT)
        place = token.end()
    return values


def _required(values: Mapping[str, int], key: str) -> int:
    if key not in values:
        raise ShapeError(f"{key} is missing", argument=key)
    return values[key]


def _axes(values: Mapping[str, int], transposed: bool) -> list[_Axis]:
    """Return the axes in use, those left out of a cube or a square filled in."""
    found = {axis: _axis(values, axis, transposed) for axis in "dhw" if _is_used(values, axis)}
    if tuple(found) == ("d",):
        return [found["d"]] * 3
    if tuple(found) == ("h",):
        return [found["h"]] * 2
    if tuple(found) not in (("w",), ("h", "w"), ("d", "h", "w")):
        got = ", ".join(found) or "none"
        raise ShapeError("spatial axes must be w, h and w, or d, h and w", argument="shape", got=got)
    return list(found.values())


def _is_used(values: Mapping[str, int], axis: str) -> bool:
    sized = any(values.get(kind + axis, 0) for kind in "iok")
    return sized or values.get("s" + axis, 1) != 1 or values.get("p" + axis, 0) > 0


def _axis(values: Mapping[str, int], axis: str, transposed: bool) -> _Axis:
    size, kernel = (whole(kind + axis, _required(values, kind + axis), 1, SIZE_LIMIT) for kind in "ik")
    stride = whole("s" + axis, values.get("s" + axis, 1), 1)
    dilation = whole("d" + axis, values.get("d" + axis, 0), 0) + 1
    extent = dilation * (kernel - 1) + 1
    out, low = values.get("o" + axis, 0), values.get("p" + axis, -1)
    if not out:
        low = max(low, 0)
        reach = (size - 1) * stride + extent - 2 * low
        out = reach if transposed else (size - extent + 2 * low) // stride + 1
        return _Axis(size, kernel, whole("o" + axis, out, 1, SIZE_LIMIT), stride, low, dilation)
    if low < 0:
        small, large = (size, out) if transposed else (out, size)
        both = (small - 1) * stride + extent - large
        low = both // 2 if both >= 0 else -(-both // 2)  # towards zero, as C++ divides
    return _Axis(size, kernel, out, stride, low, dilation)
