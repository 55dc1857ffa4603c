"""What layers of a network cost: as the operators say, each distinct one once; in order where there is a cache."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod
from typing import Any

import pytest

import tilesim
from kernels.shape.shapes import ConvShape
from simulator.values.numerics import dtype
from tilesim.networks import plans, timing
from tilesim.networks.layers import Layer, Network
from tilesim.networks.machine import NetworkMachine

WIDE = ConvShape(1, 16, (12, 12), 32, (3, 3), padding=1)
NARROW = ConvShape(1, 32, (12, 12), 16, (1, 1))
TOO_LARGE = ConvShape(2**30, 16, (12, 12), 16, (3, 3))
"""More images than a chip's memory has room for."""


def chain(*shapes: ConvShape) -> Network:
    """Layers of which each reads what the one before writes."""
    layers = [Layer(f"l{i}", shape, f"t{i}", f"t{i + 1}", first=i == 0) for i, shape in enumerate(shapes)]
    return Network("chain", tuple(layers))


@pytest.mark.parametrize("target", ["mt7004", "ascend910b1"])
def test_a_layer_costs_what_the_operator_says(target: str) -> None:
    """Parts are the launches of one call of conv_backward, to the cycle."""
    times = tilesim.network(chain(WIDE, NARROW), targets=[target], grads=("dx", "dw", "db"), all_dx=True)
    for place, shape in enumerate((WIDE, NARROW)):
        run = tilesim.conv_backward(shape=shape, target=target, dtype="native", numerics=False)
        found = times.targets[0].layer(place)
        assert found.total == run.cycles
        assert tuple(found.cycles) == ("dx", "dw", "db")
        assert found.macs == run.useful_macs
        alone = tilesim.conv_backward(
            shape=shape, target=target, dtype="native", grads=("dx",), numerics=False
        )
        assert found.cycles["dx"] == alone.cycles
        assert found.bound == run.metrics.bound
    assert times.targets[0].peak_gflops == pytest.approx(run.peak_gflops)


def test_equal_layers_are_simulated_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first one differs: it has no dx; totals count all."""
    asked: list[timing.Work] = []

    def counting(chip: timing.Chip, work: timing.Work) -> object:
        asked.append(work)
        return timing.time_layer(chip, work)

    monkeypatch.setattr(plans, "time_layer", counting)
    found = tilesim.network(chain(WIDE, NARROW, WIDE, NARROW, WIDE)).targets[0]
    assert [(work.shape, work.grads) for work in asked] == [
        (WIDE, ("dw",)),
        (NARROW, ("dx", "dw")),
        (WIDE, ("dx", "dw")),
    ]
    assert found.which == (0, 1, 2, 1, 2)
    each = [time.total for time in found.distinct]
    assert found.total == each[0] + 2 * each[1] + 2 * each[2]
    assert found.macs == (1 + 2 * 2) * WIDE.useful_macs + 2 * 2 * NARROW.useful_macs
    assert sum(found.share(found.layer(i).total) for i in range(5)) == pytest.approx(1)


def test_all_dx_keeps_that_of_the_first_layer() -> None:
    """By default training has no use for it."""
    without, kept = (tilesim.network(chain(WIDE), all_dx=flag).targets[0] for flag in (False, True))
    assert (tuple(without.cycles), tuple(kept.cycles)) == (("dw",), ("dx", "dw"))
    nothing = tilesim.network(chain(WIDE, NARROW), grads=("dx",)).targets[0]
    assert (nothing.layer(0).total, nothing.layer(0).refused) == (0, "")


def test_a_step_without_a_cache_is_the_sum_of_its_calls() -> None:
    """On a DSP a layer costs the same wherever it stands."""
    times = tilesim.network(chain(WIDE, NARROW, WIDE), step=True, targets=["mt7004"]).targets[0]
    assert (times.in_order, len(times.distinct)) == (False, 3)
    call: dict[str, Any] = {"target": "mt7004", "dtype": "native", "numerics": False}
    forward = tilesim.conv_forward(shape=WIDE, **call).cycles
    backward = tilesim.conv_backward(shape=WIDE, grads=("dx", "dw"), **call).cycles
    assert times.layer(2).cycles["forward"] == forward
    assert times.layer(2).total == forward + backward


def test_a_step_hands_the_cache_on() -> None:
    """Forward finds what the layer before wrote, and dw the x and dy that were read: less than by itself."""
    shapes = [ConvShape(8, 64, (28, 28), 64, (1, 1))] * 3
    step = tilesim.network(chain(*shapes), step=True, targets=["ascend910b1"]).targets[0]
    assert (step.in_order, len(step.distinct)) == (True, 3)
    alone = tilesim.network(chain(*shapes), targets=["ascend910b1"]).targets[0]
    cold = tilesim.conv_forward(shape=shapes[0], target="ascend910b1", dtype="native", numerics=False).cycles
    assert step.layer(0).cycles["forward"] == cold
    assert step.layer(1).cycles["forward"] < cold
    for place in range(3):
        assert step.layer(place).cycles["dw"] < alone.layer(place).cycles["dw"]


def test_dx_of_a_layer_is_the_warm_dy_of_the_one_before() -> None:
    """The last layer's dy comes from what is not simulated and is cold; dx of these layers is bound by its reads."""
    shapes = [ConvShape(2, 64, (28, 28), 64, (1, 1), transposed=True)] * 3
    step = tilesim.network(chain(*shapes), step=True, targets=["ascend910b1"]).targets[0]
    assert step.layer(1).cycles["dx"] < step.layer(2).cycles["dx"]


def test_a_step_whose_tensors_are_apart_is_colder() -> None:
    """It is the addresses that hand a tensor on: layers that read tensors of their own find less."""
    shape = ConvShape(8, 64, (28, 28), 64, (1, 1))
    joined = chain(shape, shape)
    apart = Network("apart", (joined.layers[0], Layer("l1", shape, "other", "t2", first=False)))
    times = [tilesim.network(each, step=True, targets=["ascend910b1"]).targets[0] for each in (joined, apart)]
    assert times[0].layer(1).cycles["forward"] < times[1].layer(1).cycles["forward"]
    assert times[0].layer(0).cycles["dw"] < times[1].layer(0).cycles["dw"]


def test_gradients_of_images_are_freed_in_a_step(monkeypatch: pytest.MonkeyPatch) -> None:
    """A step whose gradients would not all fit beside one another runs: each is freed when it was read."""
    shape = ConvShape(1, 16, (64, 64), 16, (1, 1))
    layers = [Layer(f"l{i}", shape, f"in{i}", f"out{i}", first=False) for i in range(4)]
    held: list[int] = []
    begin = NetworkMachine.begin

    def counting(machine: NetworkMachine, places: Mapping[str, str]) -> None:
        begin(machine, places)
        held.append(sum(key[0].startswith("gradient") for key in machine.standing))

    monkeypatch.setattr(NetworkMachine, "begin", counting)
    tilesim.network(Network("apart", tuple(layers)), step=True, targets="ascend910b1")
    assert held == [0] * 8


@pytest.mark.parametrize("target", ["mt7004", "ascend910b1"])
def test_a_machine_without_a_trace_takes_the_same_time(target: str) -> None:
    """Launches end when they end; only the rows are not kept."""
    chip = timing.Chip(tilesim.load_target(target), (0, 1), "fp16")
    machines = [chip.machine(traced=traced) for traced in (True, False)]
    work = timing.Work(NARROW, ("dx", "dw"), forward=False)
    first, second = (timing.run_backward(chip, machine, work, timing.OPERANDS) for machine in machines)
    assert first == second
    assert len(machines[0].trace()) > 0 == len(machines[1].trace())


def test_a_tensor_that_is_freed_leaves_its_place() -> None:
    """What a call needs for itself lies where the call before had its own; what stands keeps its address."""
    machine = timing.Chip(tilesim.load_target("mt7004"), (0,), "fp16").machine(traced=False)
    half = dtype("fp16")
    machine.begin({"x": "image"})
    image, own = (machine.tensor(name, (64,), half) for name in ("x", "sums"))
    machine.begin({"y": "image"})
    again, other = machine.tensor("y", (64,), half), machine.tensor("partial", (32,), half)
    assert (again.address, other.address) == (image.address, own.address)
    assert machine.tensors == {"y": 128, "partial": 64}
    machine.forget("image")
    machine.begin({})
    assert machine.tensor("z", (64,), half).address == image.address


def test_too_many_layers_for_a_step_are_refused() -> None:
    """In order each is simulated; by themselves any number is fine."""
    many = chain(*[NARROW] * (plans.MOST_IN_ORDER + 1))
    with pytest.raises(tilesim.NetworkError, match="leave --step out"):
        tilesim.network(many, step=True, targets=["ascend910b1"])
    assert len(tilesim.network(many, step=True).targets[0].distinct) == 2


def test_several_processes_find_the_same() -> None:
    """Times do not depend on who simulates them, layer by layer or in order; the progress reaches their number."""
    done: list[tuple[int, int]] = []
    call: dict[str, Any] = {"targets": ("mt7004", "ascend910b1"), "step": True}
    one = tilesim.network(chain(NARROW, WIDE), **call)
    two = tilesim.network(chain(NARROW, WIDE), jobs=2, on_layer=lambda *pair: done.append(pair), **call)
    assert one == two
    assert done[-1] == (4, 4)


def test_a_layer_that_a_target_refuses_is_in_the_times() -> None:
    """The others run, and totals are of these."""
    times = tilesim.network(chain(NARROW, TOO_LARGE), targets=["ascend910b1"])
    found = times.targets[0]
    assert found.refused == 1
    assert found.layer(1).refused
    assert found.total == found.layer(0).total > 0
    assert "refused: " in str(times)
    assert "without 1 convolutions that ascend910b1 refuses" in str(times)
    with pytest.raises(tilesim.NetworkError, match="no layer runs on any target"):
        tilesim.network(chain(TOO_LARGE), targets=["ascend910b1"])
    step = tilesim.network(chain(NARROW, TOO_LARGE), targets=["ascend910b1"], step=True).targets[0]
    assert [bool(step.layer(place).refused) for place in (0, 1)] == [False, True]


def test_targets_that_run_no_convolution_are_left_out() -> None:
    """With the reason; refused by all is refused."""
    times = tilesim.network(chain(NARROW), targets=("nx_host", "mt7004"))
    assert [each.target for each in times.targets] == ["mt7004"]
    assert "does not compute" in times.refused["nx_host"]
    calls: tuple[dict[str, Any], ...] = (
        {"targets": ("nx_host",)},
        {"dtype": "fp8"},
        {"cores": 99},
        {"grads": ("dz",)},
        {"targets": ()},
    )
    for call in calls:
        with pytest.raises(tilesim.TilesimError):
            tilesim.network(chain(NARROW), **call)
    with pytest.raises(tilesim.TilesimError, match="comes twice"):
        tilesim.network(chain(NARROW), targets=("mt7004", "mt7004"))
    with pytest.raises(tilesim.TilesimError, match="read before"):
        tilesim.network(chain(NARROW), batch=2)
    with pytest.raises(tilesim.TilesimError, match="number of processes"):
        tilesim.network(chain(NARROW), jobs=0)


def test_memory_is_that_of_the_tensors() -> None:
    """On a DSP gradients are as large as the arrays; partial sums of the cores are the workspace."""
    found = tilesim.network(chain(WIDE, NARROW), all_dx=True, dtype="fp32").targets[0]
    tensors = [dict(found.layer(place).tensors) for place in (0, 1)]
    for shape, held in zip((WIDE, NARROW), tensors, strict=True):
        assert held["dx"] == 4 * prod(shape.x_shape)
        assert held["dy"] == 4 * prod(shape.dy_shape)
    memory = found.memory
    assert memory.weight_gradients == 4 * (prod(WIDE.w_shape) + prod(NARROW.w_shape))
    assert memory.image_gradients == max(each["dx"] + each["dy"] for each in tensors)
    spaces = [held["w_tap_major"] + held["dw_tap_major"] + held.get("dw_partial", 0) for held in tensors[:1]]
    assert memory.workspaces == memory.workspaces_of_all == spaces[0]
    assert memory.peak >= memory.weight_gradients
