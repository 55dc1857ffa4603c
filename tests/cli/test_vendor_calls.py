"""`tilesim run conv2d_backprop_input`: the vendor's shared call on made-up operands."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.cli.conftest import Cli

SHAPE = "n=2,cin=8,h=9,w=9,cout=12,kh=3,kw=3,pad=1"
DEPTHWISE = "n=2,cin=8,h=9,w=9,cout=8,groups=8,kh=3,kw=3,pad=1"
POINTWISE = "n=2,cin=8,h=9,w=9,cout=12,kh=1,kw=1"


@pytest.mark.parametrize(
    ("shape", "path"), [(SHAPE, "general"), (DEPTHWISE, "depthwise"), (POINTWISE, "1x1")]
)
@pytest.mark.parametrize(("target", "dtype"), [("mt7004", "fp16"), ("mt7004", "fp32"), ("ft78ne", "fp32")])
def test_the_call_is_checked(cli: Cli, target: str, dtype: str, shape: str, path: str) -> None:
    """On the cores of the mask, within the bound; timing alone takes the same cycles."""
    common = ["run", "conv2d_backprop_input", "--target", target, "--dtype", dtype, "--shape", shape]
    common += ["--core-mask", "0b0101", "--json"]
    found = json.loads(cli(*common).stdout)
    assert (found["operator"], found["cores"], found["dtype"]) == ("conv2d_backprop_input", 2, dtype)
    assert found["tiling"]["path"] == path
    assert 0 <= found["max_error"]["dx"] <= found["tolerance"]["dx"]
    timed = json.loads(cli(*common, "--timing-only").stdout)
    assert (timed["cycles"], timed["max_error"]) == (found["cycles"], None)
    exact = json.loads(cli(*common, "--integers").stdout)
    assert exact["max_error"]["dx"] == 0


def test_the_budget_is_a_field_of_the_structure(cli: Cli) -> None:
    """Kept by --tile, checked by the call."""
    common = ("conv2d_backprop_input", "--target", "mt7004", "--dtype", "fp32", "--shape", SHAPE)
    found = json.loads(cli("run", *common, "--tile", "buffer_size_=0x1000", "--json").stdout)
    assert (found["tiling"]["buffer_bytes"], found["tiling"]["budget_bytes"]) == (0x1000, 0x1000)
    assert "half of buffer_size_" in cli.refuse("run", *common, "--tile", "buffer_size_=100")


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (("--target", "ft_m7032", "--shape", SHAPE), "does not run on this chip"),
        (("--target", "ft78ne", "--dtype", "fp16", "--shape", SHAPE), "fp16"),
        (("--target", "mt7004", "--shape", SHAPE + ",d=3,kd=1"), "plain 2-D convolutions"),
        (("--target", "mt7004", "--shape", SHAPE + ",transposed=1"), "plain 2-D convolutions"),
        (("--target", "mt7004", "--shape", SHAPE, "--grads", "dw"), "dw"),
    ],
)
def test_what_the_call_refuses(cli: Cli, more: tuple[str, ...], message: str) -> None:
    """One line and exit status 2."""
    assert message in cli.refuse("run", "conv2d_backprop_input", *more)
