"""Errors of the kernels: a geometry, a tiling or an operand that cannot be."""

from collections.abc import Collection
from difflib import get_close_matches
from typing import ClassVar

from pydantic import ValidationError

from targets.errors import TilesimError


class _ArgumentAtFaultError(TilesimError):
    """What the errors of an argument share.

    Attributes:
        argument: the argument, or the key of a shape text, at fault.
    """

    own_fields: ClassVar[tuple[str, ...]] = ("argument",)

    def __init__(
        self,
        what: str,
        *,
        argument: str,
        where: str = "",
        got: object = "",
        limit: object = "",
        remedy: str = "",
    ) -> None:
        self.argument = argument
        super().__init__(what, where=where, got=got, limit=limit, remedy=remedy)


class ShapeError(_ArgumentAtFaultError):
    """A geometry that cannot be.

    Attributes:
        argument: the argument, or the key of a shape text, at fault.
    """


class OperandError(_ArgumentAtFaultError):
    """An array that does not fit the call.

    Attributes:
        argument: the argument at fault.
    """


class TilingError(TilesimError):
    """A tiling that cannot be.

    Attributes:
        field: the tiling's field at fault.
    """

    own_fields: ClassVar[tuple[str, ...]] = ("field",)

    def __init__(
        self,
        what: str,
        *,
        field: str,
        where: str = "",
        got: object = "",
        limit: object = "",
        remedy: str = "",
    ) -> None:
        self.field = field
        super().__init__(what, where=where, got=got, limit=limit, remedy=remedy)


def unusable_tiling(error: ValidationError, fields: Collection[str], prefix: str = "") -> TilingError:
    """The refusal of the first field that a tiling's own checks did not take; `prefix` is before all fields' names."""
    first = error.errors()[0]
    part = ".".join(str(part) for part in first["loc"])
    name = prefix + part
    if first["type"] != "extra_forbidden":
        what = "a field of the tiling is not usable"
        return TilingError(what, field=name, where=name, got=repr(first["input"]), limit=first["msg"])
    near = get_close_matches(part, fields, 1)
    remedy = f"did you mean {prefix}{near[0]}?" if near else ""
    known = ", ".join(prefix + each for each in fields)
    return TilingError("unknown field of the tiling", field=name, where=name, limit=known, remedy=remedy)
