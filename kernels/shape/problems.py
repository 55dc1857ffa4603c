"""The problem of an operator: out of a text, a mapping, or the record of a run."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import Any

from kernels.errors import ShapeError
from kernels.shape.deform import DeformShape
from kernels.shape.shapes import ConvShape
from kernels.shape.text import parse_deform, parse_gemm, parse_shape

PROBLEMS: dict[Any, type] = {parse_shape: ConvShape, parse_deform: DeformShape, parse_gemm: tuple}
"""What the readers of shape texts return."""


def checked_problem(read: Callable[[str], Any], shape: object) -> Any:
    """The problem that an operator takes: a text is read, and so is a mapping of its keys.

    Args:
        read: the operator's reader of shape texts.
        shape: as given.

    Raises:
        ShapeError: it is no problem of this operator.
    """
    if isinstance(shape, str):
        return read(shape)
    if read is parse_gemm and isinstance(shape, tuple | list) and len(shape) == len("mnk"):
        return read(_text(dict(zip("mnk", shape, strict=True))))
    kind = PROBLEMS.get(read)
    if kind is None or (kind is not tuple and isinstance(shape, kind)):
        return shape  # a kernel of one's own knows its problems
    if isinstance(shape, Mapping):
        return read(_text(shape))
    got = f"{type(shape).__name__} {shape!r}"
    limit = f"a shape text, a mapping of its keys, or {_name(kind)}"
    raise ShapeError("not a problem of this operator", argument="shape", got=got, limit=limit)


def _name(kind: type) -> str:
    return "(m, n, k)" if kind is tuple else f"a {kind.__name__}"


def geometry_of(shape: object) -> ConvShape:
    """The geometry of a convolution: as it is, or out of a text or a mapping.

    Raises:
        ShapeError: it is none.
    """
    geometry: ConvShape = checked_problem(parse_shape, shape)
    return geometry


def _text(sizes: Mapping[Any, object]) -> str:
    return ",".join(f"{key}={value}" for key, value in sizes.items())


def shape_from(shape: Mapping[str, Any]) -> ConvShape | DeformShape | tuple[int, int, int]:
    """The geometry of a record, as a run's `shape` has it; what a run adds to it (`out`) follows from the rest."""
    if "m" in shape:
        return shape["m"], shape["n"], shape["k"]
    known = {field.name for field in fields(ConvShape)}
    plain = ConvShape(**{key: _frozen(value) for key, value in shape.items() if key in known})
    if "deform_groups" not in shape:
        return plain
    return DeformShape(plain, shape["deform_groups"], shape["mask"])


def _frozen(value: object) -> Any:
    return tuple(_frozen(item) for item in value) if isinstance(value, list) else value
