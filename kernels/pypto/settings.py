"""What holds for the calls that follow: the device, and the tile sizes that must be set before."""

from __future__ import annotations

from collections.abc import Sequence
from contextvars import ContextVar
from dataclasses import dataclass, replace
from pathlib import Path

from kernels.aclnn.products import series_of
from kernels.errors import TilingError
from kernels.placement import chosen_cores, resolved_target
from kernels.pypto.pypto_impl import ConvBpTileL0Info, ConvBpTileL1Info
from kernels.shape.checks import is_whole, shown
from targets.schema import Target

DEFAULT_DEVICE = "ascend910b1"
"""The device where none is set: an Atlas A2."""

MOST_VECTOR_TILES = 4


@dataclass(frozen=True)
class Settings:
    """All settings; None is not set yet."""

    target: Target | None = None
    cores: int | Sequence[int] | None = None
    series: str = ""
    l1: ConvBpTileL1Info | None = None
    l0: ConvBpTileL0Info | None = None
    vector: tuple[int, ...] | None = None


_settings: ContextVar[Settings | None] = ContextVar("settings", default=None)


def settings() -> Settings:
    """What is set."""
    return _settings.get() or Settings()


def set_device(
    target: str | Path | Target, cores: int | Sequence[int] | None = None, *, series: str | None = None
) -> None:
    """Run the calls that follow on a target, on all groups of its cores or on those given.

    The vendor's series ("A2", "A3") is told by the target's name unless it is given (for targets of one's own).

    Raises:
        TargetError: there is no such target.
        OperandError: it has no such cores.
    """
    found = resolved_target(target)
    chosen_cores(found, cores)
    known = series_of(found.name) if series is None else series
    _settings.set(replace(settings(), target=found, cores=cores, series=known))


def set_convbp_input_tile_shapes(tile_l1: ConvBpTileL1Info, tile_l0: ConvBpTileL0Info) -> None:
    """Set the tile sizes of conv_backward_input in L1 and L0; what they must fit is checked by the call.

    Raises:
        TilingError: an argument is of another kind.
    """
    for field, value, kind in (
        ("tile_l1", tile_l1, ConvBpTileL1Info),
        ("tile_l0", tile_l0, ConvBpTileL0Info),
    ):
        if not isinstance(value, kind):
            what = "no tile sizes of this level"
            raise TilingError(what, field=field, got=shown(value), limit=kind.__name__)
    _settings.set(replace(settings(), l1=tile_l1, l0=tile_l0))


def set_vec_tile_shapes(*sizes: int) -> None:
    """Set the tile of vector operations, at most 4 sizes: here n, c, h and w of the layout conversions.

    Raises:
        TilingError: there are none or more than 4, or one is no whole number above 0.
    """
    if not 1 <= len(sizes) <= MOST_VECTOR_TILES:
        limit = f"1 to {MOST_VECTOR_TILES} sizes"
        raise TilingError("another number of sizes", field="set_vec_tile_shapes", got=len(sizes), limit=limit)
    if not all(is_whole(size) and size > 0 for size in sizes):
        what = "a tile size must be a whole number above 0"
        raise TilingError(what, field="set_vec_tile_shapes", got=shown(sizes), limit=1)
    _settings.set(replace(settings(), vector=tuple(int(size) for size in sizes)))


def reset() -> None:
    """Forget all settings."""
    _settings.set(Settings())
