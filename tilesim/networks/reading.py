"""A network from its file, whichever form it has."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from tilesim.networks.layers import Layer, Network, NetworkError
from tilesim.networks.own_csv import read_own
from tilesim.networks.scale_sim import is_topology, read_topology
from tilesim.networks.tables import read_lines


def read_network(
    path: Path | str, batch: int | None = None, dims: Mapping[str, int] | None = None
) -> Network:
    """Read the convolutions of an ONNX model (.onnx) or of a CSV table (.csv).

    Args:
        path: the file. A table has the columns of `tilesim.networks.own_csv`, or those of SCALE-Sim's topologies.
        batch: the batch where the file leaves it open; where it says one, this one instead.
        dims: sizes of the other dimensions that an ONNX model leaves open, by their names.

    Raises:
        NetworkError: it is no such file, or a convolution's shape is not known or cannot be.
    """
    file = Path(path)
    if batch is not None and batch < 1:
        raise NetworkError("a batch is a positive number", where="batch", got=batch)
    if not file.is_file():
        raise NetworkError("no such file", where=str(file))
    if file.suffix.lower() == ".onnx":
        return _read_model(file, batch, dims or {})
    if dims:
        raise NetworkError("sizes by name are those of an ONNX model", where=str(file), got=", ".join(dims))
    if file.suffix.lower() == ".csv":
        return read_table(file, batch)
    raise NetworkError("neither an ONNX model nor a table", where=str(file), limit=".onnx or .csv")


def _read_model(path: Path, batch: int | None, dims: Mapping[str, int]) -> Network:
    """The network of an ONNX model.

    Raises:
        NetworkError: the package onnx is missing, or refuses the file.
    """
    try:
        from tilesim.networks.onnx_reader import read_onnx  # noqa: PLC0415 - onnx is an extra
    except ModuleNotFoundError as error:
        remedy = "pip install -e '.[onnx]'"
        raise NetworkError(
            "the package onnx is not installed", where=str(path), got=str(error), remedy=remedy
        ) from error
    return read_onnx(path, batch, dims)


def read_table(path: Path, batch: int | None) -> Network:
    """The layers of a CSV table. A layer reads what the row before makes where that fits, else a tensor of its own."""
    header, *lines = read_lines(path)
    reader = read_topology if is_topology(header[1]) else read_own
    layers: list[Layer] = []
    made: tuple[int, ...] | None = None
    for place, (name, shape) in enumerate(reader(path, header, lines, batch)):
        reads = f"y{place - 1}" if made == shape.x_shape else f"x{place}"
        layers.append(Layer(name, shape, reads, f"y{place}", first=place == 0))
        made = shape.dy_shape
    return Network(path.name, tuple(layers))
