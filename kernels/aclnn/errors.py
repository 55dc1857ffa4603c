"""Status codes of the aclnn calls, and the error behind the last one that was refused."""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from enum import IntEnum
from functools import wraps
from typing import ClassVar, ParamSpec

from targets.errors import TilesimError

P = ParamSpec("P")


class Status(IntEnum):
    """What a call returns; the vendor's numbers."""

    ACLNN_SUCCESS = 0
    ACLNN_ERR_PARAM_NULLPTR = 161001
    ACLNN_ERR_PARAM_INVALID = 161002
    ACLNN_ERR_INNER = 561103


class AclnnError(TilesimError):
    """An argument that a call refuses.

    Attributes:
        argument: the argument at fault, by its name in the vendor's prototype.
        code: the status that the call returns.
    """

    own_fields: ClassVar[tuple[str, ...]] = ("argument", "code")

    def __init__(
        self,
        what: str,
        *,
        argument: str,
        code: Status = Status.ACLNN_ERR_PARAM_INVALID,
        where: str = "",
        got: object = "",
        limit: object = "",
        remedy: str = "",
    ) -> None:
        self.argument = argument
        self.code = int(code)
        super().__init__(f"{argument}: {what}", where=where, got=got, limit=limit, remedy=remedy)


def null(argument: str, remedy: str = "") -> AclnnError:
    """The refusal of a pointer that is null and must not be."""
    return AclnnError("a null pointer", argument=argument, code=Status.ACLNN_ERR_PARAM_NULLPTR, remedy=remedy)


_recent: ContextVar[AclnnError | None] = ContextVar("recent", default=None)


def recent_error() -> AclnnError | None:
    """The error of the last refused call, with its fields; None when there was none."""
    return _recent.get()


def aclGetRecentErrMsg() -> str | None:  # noqa: N802  # the vendor's name
    """The message of the last refused call, which is then forgotten; None when there is none."""
    error = _recent.get()
    _recent.set(None)
    return None if error is None else str(error)


def check(status: int) -> None:
    """Turn a status back into an exception.

    Raises:
        AclnnError: the status is not 0.
    """
    if not status:
        return
    error = _recent.get()
    if error is None or error.code != status:  # its message was taken, or another call was refused since
        error = AclnnError("a call was refused", argument="status", got=status)
        error.code = status
    raise error


def returns_status(call: Callable[P, None]) -> Callable[P, int]:
    """A call that returns the status of what `call` raises, and keeps the error for `aclGetRecentErrMsg`.

    An error of the simulator below (a memory that is too small) is the vendor's inner error.
    """

    @wraps(call)
    def guarded(*args: P.args, **kwargs: P.kwargs) -> int:
        try:
            call(*args, **kwargs)
        except AclnnError as error:
            _recent.set(error)
            return error.code
        except TilesimError as error:
            inner = AclnnError(str(error), argument="executor", code=Status.ACLNN_ERR_INNER)
            inner.__cause__ = error
            _recent.set(inner)
            return inner.code
        return int(Status.ACLNN_SUCCESS)

    return guarded
