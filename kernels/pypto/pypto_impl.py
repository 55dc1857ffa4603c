"""Tile sizes of the backward convolution, by the vendor's names: M is Hin x Win, N is Cin, K is Cout x Kh x Kw."""

from __future__ import annotations

from dataclasses import dataclass, fields

from kernels.errors import TilingError
from kernels.shape.checks import is_whole, shown


def _require_sizes(info: ConvBpTileL1Info | ConvBpTileL0Info) -> None:
    for field in fields(info):
        value = getattr(info, field.name)
        if not is_whole(value) or value < 1:
            what = "a tile size must be a whole number above 0"
            raise TilingError(what, field=field.name, where=type(info).__name__, got=shown(value), limit=1)


@dataclass(frozen=True)
class ConvBpTileL1Info:
    """Elements of a tile in L1.

    Raises:
        TilingError: a size is no whole number above 0.
    """

    tileML1: int  # noqa: N815  # the vendor's name
    tileKL1: int  # noqa: N815  # the vendor's name
    tileNL1: int  # noqa: N815  # the vendor's name

    def __post_init__(self) -> None:
        _require_sizes(self)


@dataclass(frozen=True)
class ConvBpTileL0Info:
    """Elements of a tile in L0A, L0B and L0C.

    Raises:
        TilingError: a size is no whole number above 0.
    """

    tileML0: int  # noqa: N815  # the vendor's name
    tileKL0: int  # noqa: N815  # the vendor's name
    tileNL0: int  # noqa: N815  # the vendor's name

    def __post_init__(self) -> None:
        _require_sizes(self)
