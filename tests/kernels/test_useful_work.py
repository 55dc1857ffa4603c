"""Launches know their part of the useful work."""

import pytest

import tilesim as ts

SHAPE = ts.ConvShape(n=2, cin=16, size=(6, 6), cout=16, kernel=(3, 3), stride=2, padding=1)


@pytest.mark.parametrize("grads", [("dx",), ("dw",), ("db",), ("dx", "dw", "db")])
def test_work_of_the_launches_is_that_of_the_run(grads: tuple[str, ...]) -> None:
    """The useful multiply-adds of all launches add up, and the launches that multiply have some."""
    run = ts.conv_backward(shape=SHAPE, grads=grads, dtype="fp32", target="mt7004", cores=2, numerics=False)
    assert sum(launch.useful_macs for launch in run.launches) == run.useful_macs
    working = {launch.name for launch in run.launches if launch.useful_macs}
    assert working == {f"conv_{grad}" for grad in grads if grad != "db"}


def test_work_of_a_product() -> None:
    """A product is one launch with m x n x k multiply-adds, whichever operand comes first."""
    for swap in (False, True):
        run = ts.gemm(
            shape=(48, 32, 16), target="mt7004", dtype="fp32", numerics=False, tiling={"swap": swap}
        )
        assert [launch.useful_macs for launch in run.launches] == [48 * 32 * 16]
