"""Tilings of the vendor's calls that are none of conv_backward's, and how their defaults are chosen."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Literal, NamedTuple

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from kernels.dsp.dx.geometry import Geometry
from kernels.dsp.dx.shares import shares
from kernels.dsp.dx.tiling import Split
from kernels.dsp.places import places
from kernels.errors import TilingError, unusable_tiling
from simulator.values.numerics import DType
from targets.schema import Target

Path = Literal["general", "depthwise", "1x1"]
"""The paths of the vendor's call."""

SPLITS: tuple[Split, ...] = ("batch", "rows", "channels")


class Sizes(NamedTuple):
    """Sizes of panels, as `kernels.dsp.dx.shares.panels` takes them."""

    split: str
    images: int
    rows: int
    cols: int
    groups: int
    channels: int


class DepthwiseTiling(BaseModel):
    """How the depthwise path walks dx.

    Attributes:
        split: what the cores divide: images, strips of dx rows, or channels.
        rows, cols, channels: the panel of dx that is computed at a time.
        ahead: whether loads run one panel ahead.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    split: Split
    rows: int = Field(ge=1)
    cols: int = Field(ge=1)
    channels: int = Field(ge=1)
    ahead: Literal[0, 1] = 1

    @property
    def panel_sizes(self) -> Sizes:
        """Panels of one image; each group has one channel."""
        return Sizes(self.split, 1, self.rows, self.cols, self.channels, 1)


def depthwise_tiling(
    geometry: Geometry, target: Target, operand: DType, cores: int, given: Mapping[str, object]
) -> DepthwiseTiling:
    """The tiling: the split with the least work on the busiest core, and the largest panel that fits.

    Raises:
        TilingError: a field is not usable, or nothing fits with it.
    """
    blocking = target.engine["dma"].issue == "blocking"
    splits = sorted(SPLITS, key=lambda split: _busiest(geometry, split, cores))
    filler: dict[str, object] = {"split": splits[0], "rows": 1, "cols": 1, "channels": 1}
    filler["ahead"] = 0 if blocking else 1
    probe = _checked({**filler, **given})
    room = places(target).array_bytes - 1024
    share = shares(geometry, probe.split, 0, cores)[0]
    found = next(
        (
            sizes
            for sizes in _panels(geometry, share.rows[1], share.groups[1], probe, given)
            if depthwise_bytes(geometry, operand, *sizes, ahead=probe.ahead) <= room
        ),
        None,
    )
    if found is None:
        raise TilingError(
            "no tiling fits the memories",
            field=next(iter(given), "rows"),
            got=dict(given) or "the default",
            where=target.name,
            remedy="lower rows, cols or channels, or give fewer fields",
        )
    rows, cols, channels = found
    return _checked({**probe.model_dump(), "rows": rows, "cols": cols, "channels": channels, **given})


def _checked(values: Mapping[str, object]) -> DepthwiseTiling:
    try:
        return DepthwiseTiling.model_validate(values)
    except ValidationError as error:
        raise unusable_tiling(error, DepthwiseTiling.model_fields) from None


def _busiest(geometry: Geometry, split: str, cores: int) -> int:
    """Elements of dx (a column of them) of the core with the most."""
    return max(
        sum(s.images[1] * s.rows[1] * s.groups[1] for s in shares(geometry, split, rank, cores))
        for rank in range(cores)
    )


def _panels(
    g: Geometry, rows: int, channels: int, probe: DepthwiseTiling, given: Mapping[str, object]
) -> Iterator[tuple[int, int, int]]:
    """(rows, cols, channels) that are tried: many channels before many rows, whole rows before parts of one.

    A core has two panels at least, where loads run ahead, so that something runs beside them.
    """
    tall = -(-rows // 2) if probe.ahead and rows > 1 else rows
    for c in [probe.channels] if "channels" in given else halvings(channels):
        for r in [probe.rows] if "rows" in given else halvings(tall):
            yield r, probe.cols if "cols" in given else g.w.size, c
    for w in [probe.cols] if "cols" in given else halvings(g.w.size):
        yield probe.rows if "rows" in given else 1, w, probe.channels if "channels" in given else 1


def depthwise_bytes(g: Geometry, operand: DType, rows: int, cols: int, channels: int, *, ahead: int) -> int:
    """Bytes of array memory that the rings of such panels take, at most."""
    depth, item = 1 + ahead, operand.size_bytes
    height, width = (
        min(axis.out, -(-(size + axis.kernel - 1) // axis.stride))
        for axis, size in ((g.h, rows), (g.w, cols))
    )
    dy, dx = height * width * channels, min(rows, g.h.size) * min(cols, g.w.size) * channels
    sums = 4 * dx * depth if item == 4 else (4 + item * depth) * dx
    return dy * item * depth + sums + channels * g.taps * item * (depth + 1) + 64 * 8


class PrivateTiling(BaseModel):
    """How the private call walks dx: one core, one image at a time.

    Attributes:
        path: general, depthwise or 1x1.
        rows, cols, channels: the panel of dx whose sums are kept at a time; channels are all those of a group, on the
            depthwise path as many as are taken together.
        positions: outputs of one product.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    path: Path
    rows: int = Field(ge=1)
    cols: int = Field(ge=1)
    channels: int = Field(ge=1)
    positions: int = Field(1, ge=1)

    @property
    def panel_sizes(self) -> Sizes:
        """Panels of one image and one group; each group of the depthwise path has one channel."""
        groups, channels = (self.channels, 1) if self.path == "depthwise" else (1, self.channels)
        return Sizes("batch", 1, self.rows, self.cols, groups, channels)


class Cut(NamedTuple):
    """Elements of the workspace's parts: columns, turned columns or weights, and sums of dx."""

    columns: int
    turned: int
    sums: int


def cut_workspace(path: Path, g: Geometry, operand: DType, buffer_bytes: int, channels: int) -> Cut:
    """How the workspace of buffer_bytes x 4 bytes is divided.

    A half of the budget holds as many elements of the operands' type as are summed in fp32; the sums of dx take the
    rest, where dx itself is not fp32.
    """
    item, total = operand.size_bytes, buffer_bytes
    half = buffer_bytes // 2 // item if path == "general" else 0
    weights = g.taps * channels if path == "depthwise" else 0
    used = 2 * half + -(-weights * item // 4)
    return Cut(half, half or weights, 0 if item == 4 else total - used)


def private_tiling(
    path: Path, g: Geometry, operand: DType, buffer_bytes: int, given: Mapping[str, object]
) -> PrivateTiling:
    """The largest panels and products that the workspace has room for.

    Raises:
        TilingError: a field is not usable, or does not fit the workspace.
    """
    staged = operand.size_bytes < 4
    channels = halvings(g.groups) if path == "depthwise" else [g.cig]
    rows, cols, wide = g.h.size, g.w.size, channels[-1]
    for wide in channels:
        room = cut_workspace(path, g, operand, buffer_bytes, wide)
        if g.taps * wide * operand.size_bytes <= 4 * buffer_bytes and (
            not staged or room.sums >= cols * wide
        ):
            break
    if staged:
        sums = cut_workspace(path, g, operand, buffer_bytes, wide).sums
        rows, cols = max(1, min(rows, sums // (cols * wide))), max(1, min(cols, sums // wide))
    half = cut_workspace(path, g, operand, buffer_bytes, wide).columns
    most = max(1, half // (g.taps * g.cig)) if path == "general" else max(1, g.h.out * g.w.out)
    values = {"rows": rows, "cols": cols, "channels": wide, "positions": most}
    try:
        tiling = PrivateTiling.model_validate({**values, **given, "path": path})
    except ValidationError as error:
        raise unusable_tiling(error, PrivateTiling.model_fields) from None
    _require_room(tiling, g, operand, buffer_bytes)
    return tiling


def _require_room(t: PrivateTiling, g: Geometry, operand: DType, buffer_bytes: int) -> None:
    """Refuse a panel or a product that the workspace has no room for."""
    if t.path != "depthwise" and t.channels != g.cig:
        raise TilingError(
            "the private call takes all channels of a group together",
            field="channels",
            got=t.channels,
            limit=g.cig,
        )
    cut = cut_workspace(t.path, g, operand, buffer_bytes, t.channels)
    panel = min(t.rows, g.h.size) * min(t.cols, g.w.size) * t.channels
    wanted = {
        "rows": (panel if operand.size_bytes < 4 else 0, cut.sums),
        "positions": (t.positions * g.taps * g.cig if t.path == "general" else 0, cut.columns),
        "channels": (
            g.taps * t.channels if t.path == "depthwise" else 0,
            4 * buffer_bytes // operand.size_bytes,
        ),
    }
    for name, (need, room) in wanted.items():
        if need > room:
            raise TilingError(
                "the workspace has no room for this tiling",
                field=name,
                got=f"{need} elements",
                limit=f"{room} elements",
                remedy=f"lower {name}, or raise buffer_size_",
            )


def halvings(total: int) -> list[int]:
    """total, then halves rounded up, down to 1."""
    found = [max(1, total)]
    while found[-1] > 1:
        found.append(-(-found[-1] // 2))
    return found


def column_bytes(buffer_bytes: int, operand: DType, sums: DType, most: int) -> int:
    """The column buffer that a budget stands for: it counts elements of the operands' type, which are kept as sums.

    At most `most` bytes, what the memory has for it.
    """
    return min(buffer_bytes // operand.size_bytes * sums.size_bytes, most)


def planning_target(target: Target, rooms: Mapping[str, int]) -> Target:
    """The target with as much of each memory as is free, for the choice of a tiling.

    Args:
        target: the chip.
        rooms: bytes of the largest free range, by memory.
    """
    role = dict(target.role)
    scalar, array = role["scalar"], role["array"]
    for name, spec in role.items():
        free = rooms[spec.memory]
        if name == "array" and array.memory == scalar.memory:
            free -= target.role_bytes("scalar")
        if free < target.role_bytes(name):
            role[name] = spec.model_copy(update={"size_bytes": max(1, free)})
    return target.model_copy(update={"role": role})
