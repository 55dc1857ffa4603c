"""`tilesim run conv_forward`: a forward convolution from the command line."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.cli.conftest import Cli

SHAPE = "n=2,cin=8,h=6,w=7,cout=12,kh=3,kw=3,stride=2,pad=1"


@pytest.mark.parametrize("more", ["", ",transposed=1,output_padding=1"])
def test_a_run_computes_and_checks(cli: Cli, more: str) -> None:
    """One JSON object, with the error of y beside its tolerance."""
    result = cli("run", "conv_forward", "--target", "mt7004", "--shape", SHAPE + more, "--json")
    assert result.exit_code == 0
    shown = json.loads(result.stdout)
    assert shown["operator"] == "conv_forward"
    assert 0 <= shown["max_error"]["y"] <= shown["tolerance"]["y"]
    assert shown["useful_macs"] > 0


def test_it_has_no_gradients(cli: Cli) -> None:
    """Asking for one is refused in a line."""
    asked = ("run", "conv_forward", "--target", "mt7004", "--shape", SHAPE, "--grads", "dx")
    assert "no such gradient" in cli.refuse(*asked)


def test_its_tiling_is_listed_and_refused_by_its_own_names(cli: Cli) -> None:
    """The page of the operator names its fields; a field of dx is none."""
    page = cli("operators", "conv_forward").stdout
    assert "block_taps" in page
    refused = cli.refuse(
        "run",
        "conv_forward",
        "--target",
        "mt7004",
        "--shape",
        SHAPE,
        "--timing-only",
        "--tile",
        "dy_buffers=1",
    )
    assert "dy_buffers" in refused
    assert "x_buffers" in refused
