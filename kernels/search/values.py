"""The values of a field that a search tries: even pieces of what the field cuts, in whole granules."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from math import ceil
from typing import Any, Literal, NamedTuple, get_args, get_origin

from annotated_types import Ge, Le
from pydantic import BaseModel

from kernels.search.subject import Given, Options

PARTS = (1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 20, 24, 28, 32, 40, 48, 64, 96, 128, 192, 256, 384, 512)
"""Numbers of pieces that something is cut into."""

FEW = 16
"""A field of no more values than this is tried with each of them."""

UNTOUCHED = frozenset({"rule", "fp16_accumulate"})
"""Fields that are not searched: the name of a rule, and what sums are rounded to, which changes the result."""


class Extent(NamedTuple):
    """What a field cuts: its length, and the units that pieces have."""

    length: int
    granule: int = 1


def even_pieces(extent: Extent, value: int) -> list[int]:
    """Sizes of even pieces in whole granules, the smallest first, and the value that stands."""
    length, granule = max(1, extent.length), max(1, extent.granule)
    sizes = {ceil(ceil(length / parts) / granule) * granule for parts in PARTS if parts <= length}
    return sorted({min(size, max(length, granule)) for size in sizes} | {value})


def options_of(
    model: type[BaseModel], extents: Mapping[str, Extent], tiling: Given, fixed: Collection[str]
) -> Options:
    """Values of the fields of a tiling that are not fixed, words first: sizes depend on them."""
    found: Options = {}
    for name, field in model.model_fields.items():
        if name in fixed or name in UNTOUCHED:
            continue
        values = _values(field.annotation, field.metadata, extents.get(name), tiling[name])
        if len(values) > 1:
            found[name] = values
    return dict(sorted(found.items(), key=lambda item: all(type(value) is int for value in item[1])))


def _values(kind: Any, limits: Collection[object], extent: Extent | None, value: Any) -> list[object]:
    if get_origin(kind) is Literal:
        return list(get_args(kind))
    if kind is bool:
        return [False, True]
    if kind is not int:
        return []
    least = next((limit.ge for limit in limits if isinstance(limit, Ge)), 1)
    most = next((limit.le for limit in limits if isinstance(limit, Le)), None)
    if isinstance(least, int) and isinstance(most, int) and most - least < FEW:
        return list(range(least, most + 1))
    return list(even_pieces(extent, value)) if extent is not None else [value]


def plain_options(tiling: Given, fixed: Collection[str]) -> Options:
    """Values around a tiling that says nothing about its fields: numbers halved and doubled, and both truths."""
    found: Options = {}
    for name, value in tiling.items():
        if name in fixed or name in UNTOUCHED:
            continue
        if isinstance(value, bool):
            found[name] = [False, True]
        elif isinstance(value, int) and value > 0:
            found[name] = [*sorted({max(1, value * f // 8) for f in (1, 2, 4, 8, 16, 32, 64)})]
    return found
