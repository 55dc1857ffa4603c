"""The search for a tiling: what it finds is legal, the best of what is small, and never worse than the rule's."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice, product
from typing import Any

import numpy as np
import pytest

import tilesim as ts
from kernels.davinci.product_rules import Matrices
from kernels.dsp.product.tiling import GemmTiling, Problem
from kernels.registry import Call
from kernels.search.bench import Bench, SpentError
from kernels.search.calls import search_call
from kernels.search.products import least_cycles, subject_on_cubes
from kernels.search.search import find, spread
from kernels.search.subject import Fields, Given, Subject
from kernels.search.values import Extent, even_pieces, plain_options
from simulator.values.numerics import dtype
from targets.errors import TilesimError

MT7004 = ts.load_target("mt7004")
LAYER = ts.ConvShape(n=2, cin=32, size=(14, 14), cout=32, kernel=(3, 3), padding=1)
TURNED = ts.ConvShape(n=1, cin=16, size=(6, 6), cout=8, kernel=(2, 2), transposed=True)
POINT = ts.ConvShape(n=2, cin=64, size=(14, 14), cout=32, kernel=(1, 1))


def valley(values: Mapping[str, list[int]], refused: int = 1000) -> Subject:
    """A subject whose cost is the distance from (7, 3), with a ridge; sums beyond a limit are refused."""

    def plan(given: Given) -> Fields:
        tiling = {"a": 1, "b": 1, **given}
        if int(str(tiling["a"])) + int(str(tiling["b"])) > refused:
            raise TilesimError("too much")
        return tiling

    def time(given: Given) -> tuple[Fields, int]:
        tiling = plan(given)
        a, b = int(str(tiling["a"])), int(str(tiling["b"]))
        return tiling, 100 + 10 * abs(a - 7) + 15 * abs(b - 3) + 2 * abs(a - b)

    return Subject("v", time, lambda _: {name: list(each) for name, each in values.items()}, plan)


def test_a_small_space_is_run_whole() -> None:
    """Every legal tiling once; the refused ones are counted."""
    found = find(valley({"a": [1, 2, 4, 7], "b": [1, 3, 9]}, refused=10), {}, 60)
    assert (found.exhaustive, found.simulated, found.legal, found.refused, found.space) == (True, 9, 9, 3, 12)
    assert found.best == {"a": 7, "b": 3}
    assert (found.cycles, found.default_cycles) == (108, 190)
    assert found.default_excess == pytest.approx(190 / 108 - 1)


def test_a_large_space_is_walked_within_the_budget() -> None:
    """Steps lead to the best of ten thousand; no run is beyond the budget, and the same call finds the same."""
    subject = valley({"a": list(range(1, 101)), "b": list(range(1, 101))})
    found = find(subject, {}, 40)
    assert found.best == {"a": 7, "b": 3}
    assert not found.exhaustive
    assert found.simulated <= 40
    assert found == find(subject, {}, 40)
    assert find(subject, {}, 1).cycles == found.default_cycles


def test_fixed_fields_stay() -> None:
    """What is given is kept, and the rest is the best beside it."""
    found = find(valley({"a": list(range(1, 101)), "b": list(range(1, 101))}), {"a": 20}, 40)
    assert found.best["a"] == 20
    assert found.cycles == min(100 + 130 + 15 * abs(b - 3) + 2 * abs(20 - b) for b in range(1, 101))
    with pytest.raises(TilesimError, match="too much"):
        find(valley({"a": [1], "b": [1]}, refused=10), {"a": 20}, 40)


def test_bounds_prune_and_estimates_postpone() -> None:
    """A true bound leaves a tiling out; one with a poor estimate is run only when it is asked for."""
    plain = valley({"a": [1, 2, 3, 4, 7], "b": [1, 3]})
    bounded = Subject("v", plain.time, plain.options, plain.plan, bound=lambda t: 1e9 if t["a"] == 7 else 0)
    bench = Bench(bounded, 10)
    bench.start({})
    assert bench.run({"a": 7}) is None
    assert (bench.pruned, bench.simulated) == (1, 1)
    doubted = Subject("v", plain.time, plain.options, plain.plan, estimate=lambda t: 9 if t["a"] == 7 else 1)
    bench = Bench(doubted, 2)
    bench.start({})
    assert bench.run({"a": 7, "b": 3}) is None
    assert bench.waiting == 1
    assert bench.run_waiting()
    assert (bench.waiting, bench.least) == (0, 108)
    with pytest.raises(SpentError):
        bench.run({"a": 3})


def test_far_places_are_tried_when_no_step_helps() -> None:
    """A pit that no single step leads to is found with what is left of the budget."""
    values = list(range(1, 21))

    def time(given: Given) -> tuple[Fields, int]:
        a, b = int(str(given["a"])), int(str(given["b"]))
        return dict(given), 500 if min(a, b) > 10 else 1000 + a + b

    def plan(given: Given) -> Fields:
        return {"a": 1, "b": 1, "c": 1, "d": 1, **given}

    names = ("a", "b", "c", "d")
    found = find(Subject("v", time, lambda _: {name: list(values) for name in names}, plan), {}, 120)
    assert (found.default_cycles, found.cycles) == (1002, 500)
    assert found.simulated <= 120


def test_places_are_spread_over_all_values() -> None:
    """Every value of every field turns up early, and each field is left to the rule half of the time."""
    places = list(islice(spread({"a": [1, 2, 3, 4], "b": ["x", "y"]}), 60))
    for name, values in (("a", {1, 2, 3, 4}), ("b", {"x", "y"})):
        assert {place[name] for place in places if name in place} == values
        assert 20 <= sum(name in place for place in places) <= 40


def test_values_of_fields() -> None:
    """Even pieces in whole granules, with what stands; halves and doubles of what is not known."""
    assert even_pieces(Extent(14), 4) == [1, 2, 3, 4, 5, 7, 14]
    assert even_pieces(Extent(100, 16), 100) == [16, 32, 48, 64, 100]
    assert even_pieces(Extent(0, 16), 3) == [3, 16]
    options = plain_options({"rows": 8, "on": True, "word": "x", "rule": 3, "kept": 8}, {"kept"})
    assert options == {"rows": [1, 2, 4, 8, 16, 32, 64], "on": [False, True]}


@pytest.mark.parametrize(
    ("operator", "target", "shape", "grads", "more"),
    [
        pytest.param("conv_backward", "mt7004", LAYER, ("dx", "dw", "db"), {}, marks=pytest.mark.slow),
        pytest.param("conv_backward", "ft78ne", POINT, ("dx",), {}, marks=pytest.mark.slow),
        ("conv_forward", "mt7004", POINT, (), {"dtype": "fp16"}),
        ("gemm", "mt7004", (96, 200, 64), (), {"dtype": "fp16"}),
        pytest.param("gemm", "ascend910b1", (96, 200, 64), (), {"dtype": "fp16"}, marks=pytest.mark.slow),
        pytest.param("conv_backward", "ascend910b1", LAYER, ("dx", "dw"), {"dtype": "fp16"}, marks=pytest.mark.slow),
        pytest.param("conv_backward", "mt7004", TURNED, ("dx", "dw"), {}, marks=pytest.mark.slow),
    ],
)  # fmt: skip
def test_what_is_found_runs_and_is_not_worse(
    operator: str, target: str, shape: Any, grads: tuple[str, ...], more: dict[str, Any]
) -> None:
    """Given to the call, the fields found take the cycles that were found, with right values; the rule takes longer."""
    call: dict[str, Any] = {"shape": shape, "target": ts.load_target(target), "grads": grads or None, **more}
    found = ts.search_tiling(operator, **call, budget=8)
    best = ts.run_operator(operator, **call, tiling=found.tiling, integers=True)
    rule = ts.run_operator(operator, **call, numerics=False)
    assert [part.name for part in found.parts] == list(grads or ("y" if operator == "conv_forward" else "c",))
    assert best.cycles <= rule.cycles
    assert all(part.simulated <= 8 and part.cycles <= part.default_cycles for part in found.parts)
    assert set(best.max_error or {}) == set(best.outputs)
    assert all(error <= (best.tolerance or {})[name] for name, error in (best.max_error or {}).items())


@pytest.mark.parametrize("name", ["gemm", "conv_backward", "conv_forward"])
def test_auto_in_the_calls_of_python(name: str) -> None:
    """Each takes the tiling that the search finds, with the values of the default one."""
    rng = np.random.default_rng(3)
    shapes = {"gemm": ((16, 24), (24, 32)), "conv_forward": (POINT.x_shape, POINT.w_shape)}
    first, second = shapes.get(name, (POINT.dy_shape, POINT.w_shape))
    operands = [rng.integers(-3, 4, shape).astype(np.float32) for shape in (first, second)]
    call: dict[str, Any] = {"target": MT7004, "cores": 2}
    call |= {"grads": ("dx",)} if name == "conv_backward" else {}
    plain, auto = (getattr(ts, name)(*operands, **call, tiling=tiling) for tiling in (None, "auto"))
    assert auto.cycles <= plain.cycles
    for result, value in plain.outputs.items():
        assert np.array_equal(value, auto.outputs[result])


@pytest.mark.parametrize("target", ["mt7004", pytest.param("ascend910b1", marks=pytest.mark.slow)])
def test_products_given_transposed_are_searched_as_they_are(target: str) -> None:
    """The tiling is that of the call's own operands."""
    call: dict[str, Any] = {"shape": (16, 24, 32), "target": target, "numerics": False, "dtype": "fp16"}
    turned: dict[str, Any] = {"trans_a": True, "trans_b": True, "cores": 2}
    assert ts.gemm(**call, **turned, tiling="auto").cycles <= ts.gemm(**call, **turned).cycles


@pytest.mark.parametrize("cores", [3, pytest.param(1, marks=pytest.mark.slow)])
def test_no_run_of_a_product_beats_its_bound(cores: int) -> None:
    """On both families, for tilings of every kind."""
    p = Problem(100, 130, 90, False, False, dtype("fp32"), MT7004, cores)
    sizes = product(("n", "m"), (18, 48), (45,), (24, 48), (False, True))
    for split, rows, k, columns, swap in sizes:
        given = {"split": split, "M_A": rows, "K_A": k, "N_A": columns, "swap": swap}
        run = ts.gemm(shape=(100, 130, 90), target=MT7004, cores=cores, tiling=given, numerics=False)
        assert 0 < least_cycles(p, GemmTiling.model_validate(run.tiling)) <= run.cycles
    chip = ts.load_target("ascend910b1")
    matrices = Matrices(200, 300, 500, False, False, dtype("fp16"), "fp16", chip, cores)
    subject = subject_on_cubes(matrices, lambda _: ({}, 0))
    for m, n, k in ((16, 256, 64), (128, 64, 16), (128, 256, 64)):
        given = {"m": m, "n": n, "k": k}
        run = ts.gemm(
            shape=(200, 300, 500), target=chip, dtype="fp16", cores=cores, tiling=given, numerics=False
        )
        assert 0 < subject.bound(run.tiling) <= run.cycles


def test_more_memory_is_not_worse() -> None:
    """The rule's estimate may miss; the search also tries what the rule takes where there is less memory."""
    shape = ts.ConvShape(n=2, cin=128, size=(14, 14), cout=64, kernel=(1, 1))
    larger = ts.load_target("mt7004", {"memory.am.size_bytes": 2 * MT7004.memory["am"].size_bytes})
    for grad in ("dx", "dw"):
        usual = ts.run_operator("conv_backward", shape=shape, target=MT7004, grads=(grad,), numerics=False)
        found = ts.search_tiling("conv_backward", shape=shape, target=larger, grads=(grad,), budget=6)
        assert found.parts[0].cycles <= 1.002 * usual.cycles


def test_an_operator_without_a_plan_is_searched_by_runs() -> None:
    """Numbers of its tiling are halved and doubled, and what the call refuses is left out."""
    call = Call("own", None, MT7004, (0,))

    def function(asked: Call) -> ts.Run:
        rows = int(str(asked.tiled(rows=16)["rows"]))
        if rows > 32:
            raise TilesimError("too many rows")
        run = asked.finished(asked.machine(), shape={}, tiling={"rows": rows})
        run.cycles = 1000 - rows
        return run

    found = search_call(call, function)
    assert found.tiling == {"rows": 32}
    assert (found.parts[0].exhaustive, found.parts[0].simulated) == (True, 5)
    assert "exhaustive: 5 simulated" in str(found)


def test_a_budget_has_a_run() -> None:
    """None is refused."""
    with pytest.raises(ts.OperandError, match="a search without a run"):
        ts.search_tiling("gemm", shape=(8, 8, 8), target=MT7004, budget=0)


GEMM_FIXED: dict[str, object] = {
    "M_G": 96,
    "K_G": 64,
    "M_S": 24,
    "meet": False,
    "swap": False,
    "ahead": 1,
    "c_buffers": 2,
    "gsm_holds": "a",
}
CUBE_FIXED: dict[str, object] = {
    "l1_a": 2,
    "l1_b": 2,
    "l0c": 1,
    "taps": 9,
    "split": "tiles",
    "channels": 16,
    "walk": "flat",
}
NEAR = 1.03
"""What docs/tiling.md says of small spaces: the search is within 3 % of the optimum."""


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    ("operator", "target", "shape", "fixed"),
    [
        ("gemm", "mt7004", (96, 160, 64), GEMM_FIXED),
        ("gemm", "ascend910b1", (96, 160, 128), {"l1": 2, "l0c": 1, "split_k": 1}),
        ("conv_forward", "ascend910b1", LAYER, CUBE_FIXED),
        ("conv_backward", "mt7004", LAYER, {"dw.taps": 9, "dw.split": "batch", "dw.ahead": 1}),
    ],
)  # fmt: skip
def test_the_optimum_of_spaces_that_can_be_run_whole(
    operator: str, target: str, shape: Any, fixed: dict[str, object]
) -> None:
    """With the usual budget, the search is as good as running every legal tiling of the same values, or nearly."""
    grads = ("dw",) if operator == "conv_backward" else None
    call: dict[str, Any] = {"shape": shape, "target": ts.load_target(target), "grads": grads, "tiling": fixed}
    call["dtype"] = "fp16" if target != "mt7004" else None
    (some,) = ts.search_tiling(operator, **call).parts
    (every,) = ts.search_tiling(operator, **call, budget=5000).parts
    assert every.exhaustive
    assert every.simulated > 60
    assert some.cycles <= NEAR * every.cycles
