"""Estimates of what other numbers of a chip would save, beside runs on the changed chip."""

from itertools import product
from statistics import median

import pytest

from kernels.conv_backward import conv_backward
from kernels.shape.shapes import ConvShape
from simulator.results.critical.advice import advice
from simulator.results.critical.replay import replayed_cycles
from simulator.results.critical.what_if import Change, usual_changes, what_if
from simulator.results.run import Run
from targets.errors import TilesimError
from targets.loader import load_target
from targets.schema import Target

LAYER = ConvShape(n=2, cin=64, size=(14, 14), cout=64, kernel=(3, 3), padding=1)
TARGETS = ("mt7004", "ascend910b1", "ascend310p3")


def timed(target: Target, tiling: dict[str, object] | None = None) -> Run:
    """A layer's gradients on a target."""
    grads = ("dx", "dw")
    return conv_backward(
        shape=LAYER, dtype="native", grads=grads, target=target, tiling=tiling, numerics=False
    )


@pytest.mark.parametrize("name", [*TARGETS, "ft78ne", "ascend950pr"])
def test_the_same_chip_replays_to_the_same_cycle(name: str) -> None:
    """Nothing changed, nothing gained: every wait of the run is known."""
    run = timed(load_target(name))
    assert replayed_cycles(run.trace, run.target, run.target, run.launches) == run.cycles


@pytest.mark.parametrize("name", TARGETS)
def test_an_estimate_is_near_the_run_on_the_changed_chip(name: str) -> None:
    """Within two points of the run's time, for each change by itself."""
    run = timed(load_target(name))
    for change in usual_changes(run.target):
        found = what_if(run.trace, run.target, run.launches, run.cycles, change)
        again = timed(change.on(run.target), run.tiling)
        assert found.saved == pytest.approx(1 - again.time_us / run.time_us, abs=0.02), str(change)


def test_a_link_of_half_the_rate() -> None:
    """So large a change moves what waits for what: the median is within 2 % of the run, the worst within 8."""
    change, errors = Change("link.ddr", 0.5), list[float]()
    layers = (
        "n=2,cin=64,h=28,w=28,cout=64,kh=3,kw=3,pad=1",
        "n=4,cin=128,h=28,w=28,cout=128,kh=3,kw=3,pad=1",
        "n=4,cin=256,h=28,w=28,cout=64,kh=1,kw=1",
        "n=2,cin=3,h=112,w=112,cout=64,kh=7,kw=7,stride=2,pad=3",
    )
    for shape, grad in product(layers, ("dx", "dw")):
        run = conv_backward(shape=shape, target="mt7004", grads=(grad,), numerics=False)
        found = what_if(run.trace, run.target, run.launches, run.cycles, change)
        again = conv_backward(
            shape=shape, target=change.on(run.target), grads=(grad,), tiling=run.tiling, numerics=False
        )
        assert found.saved < 0
        assert again.time_us > run.time_us
        errors.append(abs(found.after_us / again.time_us - 1))
    assert median(errors) <= 0.02
    assert max(errors) <= 0.08


def test_an_unknown_change_is_refused() -> None:
    """The message names those that there are."""
    with pytest.raises(TilesimError, match=r"link\.ddr"):
        Change("link.hbm", 1.2).on(load_target("mt7004"))


def test_changes_say_what_they_are() -> None:
    """In words, better or worse."""
    texts = [
        str(Change(*of)) for of in (("clock", 1.2), ("link.ddr", 0.5), ("launch", 0.8), ("start-up", 1.1))
    ]
    assert texts == [
        "clock 20 % faster",
        "ddr 50 % slower",
        "launch cost 20 % less",
        "start-up cost 10 % more",
    ]


def test_a_summary_names_the_link_on_the_path() -> None:
    """The link with the most time on the critical path, and what 20 % more of it would save."""
    run = timed(load_target("mt7004"))
    found = what_if(run.trace, run.target, run.launches, run.cycles, Change("link.ddr", 1.2))
    assert advice(run.trace, run.target, run.launches, run.cycles).startswith(
        "ddr 20 % faster would save about "
    )
    assert f"{100 * found.saved:.1f} %".replace(".0", "") in str(run.summary())
