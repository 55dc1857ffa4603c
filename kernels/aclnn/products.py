"""What each product allows in aclnnConvolutionBackward: the per-product rows of the operator's page, as data."""

from __future__ import annotations

from dataclasses import dataclass

from kernels.aclnn.objects import aclDataType

FLOAT, FLOAT16, BF16 = aclDataType.ACL_FLOAT, aclDataType.ACL_FLOAT16, aclDataType.ACL_BF16
FP8 = frozenset({aclDataType.ACL_HIFLOAT8, aclDataType.ACL_FLOAT8_E4M3FN})

KEEP_DTYPE, ALLOW_FP32_DOWN_PRECISION, USE_FP16, USE_HF32 = range(4)
"""Values of cubeMathType."""

ALL_RANKS = frozenset({1, 2, 3})


@dataclass(frozen=True)
class Limit:
    """A range of one argument on some axes.

    Attributes:
        argument: stride, padding, dilation or weight (its spatial sizes).
        transposed: which of the two operators it is for.
        axes: letters of D, H, W; the only axis of a 1-D call is W.
        low, high: the values allowed.
        ranks: numbers of spatial axes it is for.
    """

    argument: str
    transposed: bool
    axes: str
    low: int
    high: int
    ranks: frozenset[int] = ALL_RANKS


@dataclass(frozen=True)
class Product:
    """A series of chips as the operator's page tells them apart.

    Attributes:
        name: the page's.
        ranks: numbers of spatial axes.
        dtypes: element types of the tensors.
        empty: whether tensors may be empty in batch or channels.
        fp8: whether gradOutput, input and weight may be of an 8-bit float type, for gradInput of a transposed one.
        limits: ranges beyond those that hold everywhere.
        float_math: what FLOAT is computed in, by cubeMathType; "" is refused.
        converts: numbers of spatial axes with which tensors are brought into a fractal layout and back (TransData);
            950 has none in 2-D, but published profiles of its 3-D calls show them.
    """

    name: str
    ranks: frozenset[int]
    dtypes: frozenset[aclDataType]
    empty: bool
    fp8: bool
    limits: tuple[Limit, ...]
    float_math: tuple[str, str, str, str]
    converts: frozenset[int]


A2_LIMITS = (
    Limit("weight", False, "HW", 1, 255),
    Limit("stride", False, "HW", 1, 63, frozenset({3})),
    Limit("padding", False, "HW", 0, 255),
    Limit("dilation", False, "DHW", 1, 255),
)
A5_LIMITS = (
    Limit("weight", True, "HW", 1, 255),
    *(
        Limit(argument, True, axes, low, high)
        for argument, low in (("stride", 1), ("padding", 0), ("dilation", 1))
        for axes, high in (("D", 1_000_000), ("HW", 2_147_483_646))
    ),
)

_PLANES = frozenset({1, 2})
_FIRST = (_PLANES, frozenset({FLOAT, FLOAT16}), False, False, (), ("", "fp16", "fp16", ""), _PLANES)
_SPLIT_MATH = ("fp32", "hf32", "fp16", "hf32")
_SPLIT_TYPES = frozenset({FLOAT, FLOAT16, BF16})
_SECOND = (ALL_RANKS, _SPLIT_TYPES, True, False, A2_LIMITS, _SPLIT_MATH, ALL_RANKS)

PRODUCTS = {
    "910": Product("Atlas training series", *_FIRST),
    "310P": Product("Atlas inference series", *_FIRST),
    "A2": Product("Atlas A2", *_SECOND),
    "A3": Product("Atlas A3", *_SECOND),
    "950": Product(
        "Ascend 950", ALL_RANKS, _SPLIT_TYPES, True, True, A5_LIMITS, _SPLIT_MATH, ALL_RANKS - _PLANES
    ),
}
"""The products that have the operator; Atlas 200I/500 A2 (310B) has not."""

SERIES = {
    "ascend910a": "910",
    "ascend910pro": "910",
    "ascend910premium": "910",
    "ascend310p": "310P",
    "ascend310b": "310B",
    "ascend910b": "A2",
    "ascend910_93": "A3",
    "ascend950": "950",
}
"""How the names of a series' targets begin."""


def series_of(target: str) -> str:
    """The series of a target by its name; empty for a chip that is none of the vendor's."""
    return next((series for start, series in SERIES.items() if target.startswith(start)), "")


def product_of(target: str) -> Product | None:
    """The product of a target by its name; None where the operator is not supported."""
    return PRODUCTS.get(series_of(target))
