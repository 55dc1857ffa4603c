"""ConvParameter: the structure of the vendor's convolution calls, field by field."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

import numpy as np

from kernels.errors import OperandError
from kernels.shape.shapes import ConvShape
from simulator.device.arrays import DeviceArray
from simulator.device.device import in_use

LEAST = {
    "output_batch_": 1,
    "input_batch_": 1,
    "input_h_": 1,
    "input_w_": 1,
    "output_h_": 1,
    "output_w_": 1,
    "input_channel_": 1,
    "output_channel_": 1,
    "kernel_h_": 1,
    "kernel_w_": 1,
    "group_": 1,
    "pad_l_": 0,
    "pad_u_": 0,
    "dilation_h_": 1,
    "dilation_w_": 1,
    "stride_h_": 1,
    "stride_w_": 1,
    "buffer_size_": 1,
    "pad_d_": 0,
    "pad_r_": 0,
    "nweights_": 1,
}
"""The int fields in the order of the structure, and the least value of each."""

MOST = 2**31 - 1
"""The largest int of the structure."""

FIELDS = ("workspace_", *LEAST)

STRUCT_BYTES = 4 * len(FIELDS)
"""Size on the device, whose pointers and ints have 32 bits."""


class ConvParameter:
    """The fields of the vendor's structure, to be set one by one; a call checks them.

    `ConvParameter(0x89000000)` is the structure at that address of the device in use, for every core that names it, as
    `(ConvParameter *)0x89000000` is in C. Without an address it belongs to the program. Fields may be given by name.

    Attributes:
        workspace_: an array, or an address, of at least buffer_size_ x 4 bytes.
        output_batch_, input_batch_: images of dy and of dx.
        input_h_, input_w_, input_channel_: dx.
        output_h_, output_w_, output_channel_: dy.
        kernel_h_, kernel_w_, group_: weights.
        pad_l_, pad_u_, pad_d_, pad_r_: padding left, up, down and right.
        dilation_h_, dilation_w_, stride_h_, stride_w_: steps of the taps and of the outputs.
        buffer_size_: budget of the columns in bytes, two halves together.
        nweights_: elements of the weights.
    """

    __slots__ = ("_fields",)

    workspace_: Any
    output_batch_: int
    input_batch_: int
    input_h_: int
    input_w_: int
    output_h_: int
    output_w_: int
    input_channel_: int
    output_channel_: int
    kernel_h_: int
    kernel_w_: int
    group_: int
    pad_l_: int
    pad_u_: int
    dilation_h_: int
    dilation_w_: int
    stride_h_: int
    stride_w_: int
    buffer_size_: int
    pad_d_: int
    pad_r_: int
    nweights_: int

    def __init__(self, address: int | None = None, **fields: object) -> None:
        """A structure at an address of the device in use, or of the program's own."""
        held = {} if address is None else in_use().struct(address, STRUCT_BYTES, "ConvParameter")
        object.__setattr__(self, "_fields", held)
        for name, value in fields.items():
            setattr(self, name, value)

    def __setattr__(self, name: str, value: object) -> None:
        """Set a field; its value is checked by the call.

        Raises:
            OperandError: there is no such field.
        """
        if name not in FIELDS:
            near = get_close_matches(name, FIELDS, 1)
            raise OperandError(
                "ConvParameter has no such field",
                argument=name,
                got=name,
                limit=", ".join(FIELDS),
                remedy=f"did you mean {near[0]}?" if near else "",
            )
        self._fields[name] = value

    def __getattr__(self, name: str) -> Any:
        """A field that was set.

        Raises:
            AttributeError: there is no such field, or it was not set.
        """
        if name in FIELDS and name in self._fields:
            return self._fields[name]
        raise AttributeError(f"ConvParameter.{name} was not set" if name in FIELDS else name)

    def fields(self) -> dict[str, object]:
        """What was set, in the order of the structure."""
        return {name: self._fields[name] for name in FIELDS if name in self._fields}

    def __repr__(self) -> str:
        """The fields that were set."""
        return f"ConvParameter({', '.join(f'{name}={value}' for name, value in self.fields().items())})"


@dataclass(frozen=True, slots=True)
class Checked:
    """A structure whose fields fit each other.

    Attributes:
        shape: the geometry.
        workspace: as given.
        buffer_bytes: the budget.
    """

    shape: ConvShape
    workspace: DeviceArray | int
    buffer_bytes: int

    @property
    def workspace_bytes(self) -> int:
        """What the workspace holds at least: the assembly counts the budget's bytes in floats."""
        return 4 * self.buffer_bytes


def checked(given: Mapping[str, object], item_bytes: int) -> Checked:
    """The geometry of a structure, from its fields.

    Raises:
        OperandError: a field is missing, out of range, or does not fit the others.
    """
    p = {name: _ranged(name, given, least) for name, least in LEAST.items()}
    workspace = given.get("workspace_")
    if not isinstance(workspace, DeviceArray | int | np.integer) or isinstance(workspace, bool):
        raise _refused("workspace_ is no array and no address", "workspace_", repr(workspace))
    _require_batches_and_groups(p)
    shape = _shape(p)
    _require_outputs(p, shape)
    _require_weights(p)
    _require_budget(p, item_bytes)
    place = workspace if isinstance(workspace, DeviceArray) else int(workspace)
    return Checked(shape, place, p["buffer_size_"])


def _refused(what: str, argument: str, got: object, limit: object = "", remedy: str = "") -> OperandError:
    return OperandError(what, argument=argument, where="ConvParameter", got=got, limit=limit, remedy=remedy)


def _ranged(name: str, given: Mapping[str, object], least: int) -> int:
    """An int field in its range."""
    if name not in given:
        raise _refused(f"{name} was not set", name, "nothing", f"{least} to {MOST}")
    value = given[name]
    whole = isinstance(value, int | np.integer) and not isinstance(value, bool)
    if not whole or not least <= int(str(value)) <= MOST:
        raise _refused(f"{name} is out of range", name, repr(value), f"{least} to {MOST}")
    return int(str(value))


def _require_batches_and_groups(p: dict[str, int]) -> None:
    if p["input_batch_"] != p["output_batch_"]:
        what = "input_batch_ and output_batch_ differ: dx has as many images as dy"
        raise _refused(what, "input_batch_", p["input_batch_"], f"output_batch_ {p['output_batch_']}")
    for name in ("input_channel_", "output_channel_"):
        if p[name] % p["group_"]:
            raise _refused(f"group_ does not divide {name}", "group_", p["group_"], f"{name} {p[name]}")


def _shape(p: dict[str, int]) -> ConvShape:
    """The geometry; output sizes are checked by the caller."""
    extent = {axis: p[f"dilation_{axis}_"] * (p[f"kernel_{axis}_"] - 1) + 1 for axis in "hw"}
    padded = {"h": p["input_h_"] + p["pad_u_"] + p["pad_d_"], "w": p["input_w_"] + p["pad_l_"] + p["pad_r_"]}
    for axis in "hw":
        if extent[axis] > padded[axis]:
            what = f"the kernel is larger than the padded input: output_{axis}_ would be 0"
            got = f"dilation_{axis}_ x (kernel_{axis}_ - 1) + 1 = {extent[axis]}"
            raise _refused(what, f"kernel_{axis}_", got, f"{padded[axis]}")
    return ConvShape(
        n=p["input_batch_"],
        cin=p["input_channel_"],
        size=(p["input_h_"], p["input_w_"]),
        cout=p["output_channel_"],
        kernel=(p["kernel_h_"], p["kernel_w_"]),
        stride=(p["stride_h_"], p["stride_w_"]),
        padding=((p["pad_u_"], p["pad_d_"]), (p["pad_l_"], p["pad_r_"])),
        dilation=(p["dilation_h_"], p["dilation_w_"]),
        groups=p["group_"],
    )


def _require_outputs(p: dict[str, int], shape: ConvShape) -> None:
    for axis, wanted in zip("hw", shape.out, strict=True):
        name = f"output_{axis}_"
        if p[name] != wanted:
            what = f"{name} does not fit input_{axis}_, kernel_{axis}_, stride_{axis}_, the pads and dilation_{axis}_"
            raise _refused(what, name, p[name], wanted)


def _require_weights(p: dict[str, int]) -> None:
    wanted = p["output_channel_"] * (p["input_channel_"] // p["group_"]) * p["kernel_h_"] * p["kernel_w_"]
    if p["nweights_"] != wanted:
        what = "nweights_ is not output_channel_ x (input_channel_ / group_) x kernel_h_ x kernel_w_"
        raise _refused(what, "nweights_", p["nweights_"], wanted)


def _require_budget(p: dict[str, int], item_bytes: int) -> None:
    """A half holds one column row at least: all taps of the input channels of a group, in the operands' type."""
    row = p["kernel_h_"] * p["kernel_w_"] * (p["input_channel_"] // p["group_"]) * item_bytes
    if p["buffer_size_"] // 2 < row:
        raise _refused(
            "half of buffer_size_ does not hold one column row",
            "buffer_size_",
            f"{p['buffer_size_']} bytes",
            f"{2 * row} bytes: 2 x kernel_h_ x kernel_w_ x (input_channel_ / group_) x {item_bytes}",
            f"set buffer_size_ = max(2048, {2 * row}) and give workspace_ 4 times as many bytes",
        )
