"""`tilesim run deform_conv_backward`."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.cli.conftest import Cli

SHAPE = "n=1,cin=4,h=6,w=5,cout=4,kh=3,kw=3,pad=1,groups=2"
TARGET = ("--target", "ascend950pr", "--cores", "2", "--dtype", "fp16")


def test_gradients_are_checked(cli: Cli) -> None:
    """Five gradients with a mask and four without, each within its tolerance."""
    for more, names in ((",deform_groups=2,mask=1", {"doffset", "dmask"}), ("", {"doffset"})):
        record = json.loads(
            cli("run", "deform_conv_backward", *TARGET, "--shape", SHAPE + more, "--json").stdout
        )
        assert set(record["max_error"]) == {"dx", "dw", "db"} | names
        assert all(record["max_error"][name] <= record["tolerance"][name] for name in record["max_error"])
        assert record["shape"]["deform_groups"] == (2 if more else 1)


def test_a_dsp(cli: Cli) -> None:
    """The same call on another family, each gradient within its tolerance."""
    run = ("run", "deform_conv_backward", "--target", "mt7004", "--dtype", "fp16", "--json", "--shape")
    record = json.loads(cli(*run, SHAPE + ",mask=1").stdout)
    assert set(record["max_error"]) == {"dx", "dw", "db", "doffset", "dmask"}
    assert all(record["max_error"][name] <= record["tolerance"][name] for name in record["max_error"])


def test_timing_only(cli: Cli) -> None:
    """The same cycles without values, as offsets of the model are the same."""
    run = ("run", "deform_conv_backward", *TARGET, "--shape", SHAPE, "--json")
    timed, whole = (
        json.loads(cli(*run, *more).stdout)["cycles"] for more in (("--timing-only",), ("--no-check",))
    )
    assert timed == whole


def test_refusals(cli: Cli) -> None:
    """The argument at fault is named in one line."""
    run = ("run", "deform_conv_backward", *TARGET, "--shape")
    assert "mask must be 0 or 1" in cli.refuse(*run, SHAPE + ",mask=2")
    assert "deform_groups" in cli.refuse(*run, SHAPE + ",deform_groups=3")
    assert "dmask" in cli.refuse(*run, SHAPE, "--grads", "dmask")
    other = ("run", "deform_conv_backward", "--target", "nx_host", "--shape", SHAPE)
    assert "dsp, davinci" in cli.refuse(*other)
