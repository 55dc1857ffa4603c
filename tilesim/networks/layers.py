"""The layers of a network: its convolutions in order, and what they read and write."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

from kernels.errors import ShapeError
from kernels.shape.shapes import ConvShape
from targets.errors import TilesimError


class NetworkError(TilesimError):
    """A file that holds no network, or one whose convolutions are not known."""


@dataclass(frozen=True)
class Layer:
    """One convolution of a network.

    Attributes:
        name: as the file calls it.
        shape: its geometry.
        reads: the tensor that it reads; layers that read one tensor have the same word.
        writes: the tensor that it makes.
        first: no convolution lies before it, so that training has no use for its dx.
    """

    name: str
    shape: ConvShape
    reads: str
    writes: str
    first: bool


@dataclass(frozen=True)
class Network:
    """What a file says.

    Attributes:
        name: the file's name.
        layers: its convolutions, in the order in which they run.
        others: operators that are not simulated, with how many there are.
        notes: sentences that a reader of the figures should know.
    """

    name: str
    layers: tuple[Layer, ...]
    others: Mapping[str, int] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


@contextmanager
def said_at(where: str) -> Iterator[None]:
    """A geometry that cannot be is refused with the place in the file that says it.

    Raises:
        NetworkError: in place of the ShapeError.
    """
    try:
        yield
    except ShapeError as error:
        place = f"{where}, {error.argument}"
        raise NetworkError(
            error.what, where=place, got=error.got, limit=error.limit, remedy=error.remedy
        ) from error
