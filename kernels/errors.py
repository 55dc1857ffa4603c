"""Errors of the kernels: a geometry, a tiling or an operand that cannot be."""

from typing import ClassVar

from targets.errors import TilesimError


class ShapeError(TilesimError):
    """A geometry that cannot be.

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


class OperandError(TilesimError):
    """An array that does not fit the call.

    Attributes:
        argument: the argument at fault.
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
