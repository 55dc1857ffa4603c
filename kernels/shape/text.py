"""Geometries as text: `n=32,cin=256,h=14,...`, a benchdnn problem, or `m=..,n=..,k=..` of a product."""

import difflib
import re
from collections.abc import Callable, Iterable, Mapping

from kernels.errors import ShapeError
from kernels.shape.benchdnn import parse_benchdnn
from kernels.shape.checks import SIZE_LIMIT, shown, whole
from kernels.shape.deform import DeformShape
from kernels.shape.shapes import ConvShape

AXES = "dhw"
SIDES = {"d": ("pad_front", "pad_back"), "h": ("pad_top", "pad_bottom"), "w": ("pad_left", "pad_right")}
PER_AXIS = ("stride", "pad", "dilation", "output_padding")
WORDS = {"true": 1, "false": 0, "yes": 1, "no": 0}

SHAPE_KEYS = (
    *("n", "cin", "cout", *AXES, "kernel", *("k" + axis for axis in AXES)),
    *PER_AXIS,
    *(f"{name}_{axis}" for name in PER_AXIS for axis in AXES),
    *(side for sides in SIDES.values() for side in sides),
    *("groups", "transposed"),
)
"""Every key of a shape text; `pad_top` goes before `pad_h`, and `pad_h` before `pad`."""


def parse_shape(text: str) -> ConvShape:
    """Return the geometry of a shape text, or raise `ShapeError` naming the key at fault.

    Without an equals sign the text is a benchdnn problem. w alone is one spatial axis, h and w are two, d, h
    and w three; n, cin, cout and the kernel must be given, the rest has the defaults of `ConvShape`.
    """
    if not isinstance(text, str):
        raise ShapeError("a shape must be text", argument="shape", got=shown(text))
    if "=" not in text:
        return parse_benchdnn(text)
    values = _pairs(text, SHAPE_KEYS)
    axes = _axes_of(values)
    _refuse_other_axes(values, axes)
    transposed = values.get("transposed", 0)
    if transposed not in (0, 1):
        raise ShapeError("transposed must be 0 or 1", argument="transposed", got=shown(transposed))
    return ConvShape(
        n=_required(values, "n"),
        cin=_required(values, "cin"),
        size=[values[axis] for axis in axes],
        cout=_required(values, "cout"),
        kernel=[_required(values, "k" + axis, "kernel") for axis in axes],
        stride=[_first(values, 1, f"stride_{axis}", "stride") for axis in axes],
        padding=[_pad_pair(values, axis) for axis in axes],
        dilation=[_first(values, 1, f"dilation_{axis}", "dilation") for axis in axes],
        groups=values.get("groups", 1),
        transposed=bool(transposed),
        output_padding=[_first(values, 0, f"output_padding_{axis}", "output_padding") for axis in axes],
    )


def shape_keys(operator: str) -> tuple[str, ...]:
    """Every key of an operator's shape text."""
    if operator == "gemm":
        return ("m", "n", "k")
    return (*SHAPE_KEYS, *(DEFORM_KEYS if operator == "deform_conv_backward" else ()))


DEFORM_KEYS = {"deform_groups": 1, "mask": 0}
"""Keys that only a deformable convolution has, and what they are where they are not given."""


def parse_deform(text: str) -> DeformShape:
    """Return the geometry of a shape text with deform_groups and mask (0 or 1), or raise `ShapeError`."""
    if not isinstance(text, str):
        raise ShapeError("a shape must be text", argument="shape", got=shown(text))
    parts = [part.strip() for part in text.split(",")]
    own = [part for part in parts if part.partition("=")[0].strip() in DEFORM_KEYS]
    values = DEFORM_KEYS | (_pairs(",".join(own), DEFORM_KEYS) if own else {})
    if values["mask"] not in (0, 1):
        raise ShapeError("mask must be 0 or 1", argument="mask", got=values["mask"])
    plain = parse_shape(",".join(part for part in parts if part not in own))
    return DeformShape(plain, values["deform_groups"], bool(values["mask"]))


def sizes(*names: str) -> Callable[[str], dict[str, int]]:
    """Return what reads a text such as `rows=4,columns=8`: all of these names, each a whole number from 0.

    What it returns raises `ShapeError` naming the key at fault.
    """

    def parse(text: str) -> dict[str, int]:
        if not isinstance(text, str):
            raise ShapeError("a shape must be text", argument="shape", got=shown(text))
        values = _pairs(text, names)
        return {name: whole(name, _required(values, name), 0, SIZE_LIMIT) for name in names}

    return parse


def parse_gemm(text: str) -> tuple[int, int, int]:
    """Return (m, n, k) of a product's text `m=..,n=..,k=..`, none negative, or raise `ShapeError`."""
    values = sizes("m", "n", "k")(text)
    return values["m"], values["n"], values["k"]


def _pairs(text: str, known: Iterable[str]) -> dict[str, int]:
    """Return the keys and numbers of a text of comma separated `key=value` pairs."""
    values: dict[str, int] = {}
    for part in text.split(","):
        key, equals, word = (piece.strip() for piece in part.partition("="))
        if not equals:
            raise ShapeError("a shape is written key=value", argument=shown(key), got=shown(part.strip()))
        _require_known(key, known)
        if key in values:
            raise ShapeError(f"{key} is given twice", argument=key, got=shown(text))
        values[key] = _number(key, word)
    return values


def _require_known(key: str, known: Iterable[str]) -> None:
    names = tuple(known)
    if key not in names:
        nearest = difflib.get_close_matches(key, names, n=1, cutoff=0.0)
        raise ShapeError(f"unknown key {shown(key)}", argument=key, remedy=f"did you mean {nearest[0]}?")


def _number(key: str, word: str) -> int:
    if key == "transposed" and word.lower() in WORDS:
        return WORDS[word.lower()]
    if not re.fullmatch(r"[+-]?[0-9]{1,30}", word):
        raise ShapeError(f"{key} must be a whole number", argument=key, got=shown(word))
    return int(word)


def _required(values: Mapping[str, int], *keys: str) -> int:
    found = [values[key] for key in keys if key in values]
    if not found:
        raise ShapeError(f"{keys[0]} is missing", argument=keys[0], remedy=f"add {' or '.join(keys)}")
    return found[0]


def _first(values: Mapping[str, int], default: int, *keys: str) -> int:
    """Return the value of the first key that is given: the keys go from the special to the general."""
    return next((values[key] for key in keys if key in values), default)


def _pad_pair(values: Mapping[str, int], axis: str) -> tuple[int, int]:
    low, high = (_first(values, 0, side, f"pad_{axis}", "pad") for side in SIDES[axis])
    return low, high


def _axes_of(values: Mapping[str, int]) -> str:
    """Return the spatial axes in use: the last one, two or three of d, h, w."""
    outermost = next((place for place, axis in enumerate(AXES) if axis in values), len(AXES) - 1)
    axes = AXES[outermost:]
    for axis in axes:
        _required(values, axis)
    return axes


def _refuse_other_axes(values: Mapping[str, int], axes: str) -> None:
    """Raise when a key speaks of an axis whose size is not given: its value would be lost."""
    for axis in AXES:
        keys = ("k" + axis, *(f"{name}_{axis}" for name in PER_AXIS), *SIDES[axis])
        for key in keys:
            if key in values and axis not in axes:
                raise ShapeError(
                    f"{key} needs {axis}", argument=key, remedy=f"add {axis}, or leave {key} out"
                )
