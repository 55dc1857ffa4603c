"""The device that a call is planned for and the stream that it runs on."""

from __future__ import annotations

from collections.abc import Sequence
from contextvars import ContextVar, Token
from pathlib import Path
from types import TracebackType
from typing import Self

from kernels.aclnn.errors import AclnnError, Status
from kernels.aclnn.products import PRODUCTS, Product, series_of
from kernels.errors import OperandError
from kernels.placement import chosen_cores, resolved_target
from simulator.results.run import Run
from targets.schema import Target


class Device:
    """A chip on which calls run; in a `with` block it is the current one, which calls are planned for.

    Attributes:
        target: the chip.
        cores: the groups of cores that kernels use.
        series: the vendor's series ("910", "310P", "310B", "A2", "A3", "950"), empty for another chip.
        product: what the operators allow there; None where they are not supported.
    """

    def __init__(
        self,
        target: str | Path | Target,
        *,
        cores: int | Sequence[int] | None = None,
        series: str | None = None,
    ) -> None:
        """Take a target; the series is told by its name unless it is given (for targets of one's own).

        Raises:
            TargetError: there is no such target.
            OperandError: it has no such cores, or there is no such series.
        """
        self.target = resolved_target(target)
        self.cores = chosen_cores(self.target, cores)
        if series is not None and series not in PRODUCTS:
            raise OperandError(
                "no series of the vendor", argument="series", got=series, limit=tuple(PRODUCTS)
            )
        self.series = series_of(self.target.name) if series is None else series
        self.product: Product | None = PRODUCTS.get(self.series)
        self._before: list[Token[Device | None]] = []

    def stream(self) -> Stream:
        """A new stream."""
        return Stream(self)

    def malloc(self, size_bytes: int) -> DeviceMemory | None:
        """Device memory of a size, a workspace; None for no bytes, as the vendor's samples keep a null pointer."""
        return DeviceMemory(size_bytes) if size_bytes else None

    def __enter__(self) -> Self:
        self._before.append(_current.set(self))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        _current.reset(self._before.pop())


_current: ContextVar[Device | None] = ContextVar("device", default=None)


def current_device() -> Device:
    """The device of the innermost `with`.

    Raises:
        AclnnError: there is none.
    """
    device = _current.get()
    if device is None:
        raise AclnnError(
            "no device is set",
            argument="device",
            code=Status.ACLNN_ERR_PARAM_INVALID,
            remedy='plan the call inside `with Device("ascend910b1"):`',
        )
    return device


def supported_product(device: Device) -> Product:
    """The product of a device.

    Raises:
        AclnnError: the operators are not supported there.
    """
    if device.product is None:
        raise AclnnError(
            "the processor does not have this operator",
            argument="device",
            where=device.target.name,
            got=device.series or f"family {device.target.family}",
            limit=", ".join(PRODUCTS),
        )
    return device.product


class Stream:
    """A queue of calls on a device; a call is run when it is issued.

    Attributes:
        device: whose stream it is.
        runs: of the calls so far, in order; their cycles add up.
    """

    def __init__(self, device: Device) -> None:
        """An empty stream."""
        self.device = device
        self.runs: list[Run] = []


class DeviceMemory:
    """A range of device memory without values: the workspace of a call."""

    __slots__ = ("nbytes",)

    def __init__(self, size_bytes: int) -> None:
        """A range of so many bytes."""
        self.nbytes = size_bytes
