"""What the nx calls cost: steps as launches, workers, and a timeline that can be followed by hand."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from kernels.nx import nx_f32_conv2d_backward, nx_f32_conv2d_backward_fast
from kernels.nx.matmul_t import share
from kernels.nx.work import Counter
from kernels.operators import run_operator
from kernels.shape.shapes import ConvShape
from simulator.host import Work, loop_cycles
from simulator.results.run import Run
from targets.errors import TilesimError
from targets.loader import load_target
from targets.schema import Target
from tests.kernels.nx_calls import Problem

SIMPLE = {
    "host.multiply_cycles": 10,
    "host.add_cycles": 5,
    "host.move_cycles": 1,
    "host.scatter_cycles": 7,
    "host.tap_cycles": 2,
    "host.page_cycles": 100,
    "host.fork_cycles": 1000,
    "sync.barrier_latency_cycles": 500,
    "sync.barrier_cycles_per_core": 20,
    "port.load.gigabytes_per_second": 2600000,
    "link.ddr.gigabytes_per_second": 2600000,
}
"""Round numbers, and a memory that is never in the way."""

PAGE_STEPS = [
    "transpose weight",
    "transpose dout",
    "im2col",
    "matmul_t dweight",
    "matmul_t dcol",
    "bias",
    "zero dinput",
    "col2im",
]


@pytest.fixture(scope="module")
def simple() -> Target:
    """The round numbers."""
    return load_target("nx_host", SIMPLE)


def run_of(problem: Problem, target: Target | str = "nx_host", **options: Any) -> Run:
    """The run of the fast call."""
    return problem.call(nx_f32_conv2d_backward_fast, target=target, **options)[1][-1]


def test_every_step_of_the_page_is_a_launch(simple: Target) -> None:
    """1 channel of 2 x 2, 2 output channels, a 1 x 1 kernel: K = 1, M = 4, two workers; by hand."""
    run = run_of(Problem(1, 2, 2, 2, 1, 1), simple, workers=2)
    assert [launch.name for launch in run.launches] == PAGE_STEPS
    cycles = {launch.name: launch.cycles for launch in run.launches}
    page, join = 100, 500 + 2 * 20
    assert cycles["transpose weight"] == 2 + page
    assert cycles["transpose dout"] == 8 + page
    assert cycles["im2col"] == 4 * (1 + 2) + page  # two rows: two taps each
    assert (
        cycles["matmul_t dweight"] == 2 * 1000 + 4 * 15 + 1 + join
    )  # one element a worker: 4 products, a store
    assert (
        cycles["matmul_t dcol"] == 2 * 1000 + 2 * (2 * 15 + 1 + page) + join
    )  # two loops of one row, a page each
    assert cycles["bias"] == 8 * 5
    assert cycles["zero dinput"] == 4
    assert cycles["col2im"] == 4 * (5 + 1 + 2)
    assert run.cycles == sum(cycles.values())


def test_workers_begin_one_after_another_and_are_joined_together(simple: Target) -> None:
    """A worker's rows follow its fork; everyone leaves at the barrier behind the last."""
    run = run_of(Problem(2, 4, 4, 8, 3, 3, 1, 1), simple, workers=4)
    frame = run.trace.to_pandas()
    product = frame[frame["launch"] == PAGE_STEPS.index("matmul_t dcol")]
    begin = run.launches[PAGE_STEPS.index("matmul_t dcol")].start
    forks = product[product["name"] == "fork"].sort_values("core")
    assert (forks["end"] - begin).tolist() == [1000, 2000, 3000, 4000]
    work = product[product["name"] == "matmul_t dcol"].groupby("core")["start"].min()
    assert (work - begin).tolist() == [1000, 2000, 3000, 4000]
    assert product[product["name"] == "barrier"]["end"].nunique() == 1


def test_no_more_workers_are_forked_than_there_are_rows() -> None:
    """A product with a row an output channel, and one with a row an output."""
    run = run_of(Problem(2, 3, 3, 3, 2, 2), workers=16)
    cores = {launch.name: launch.cores for launch in run.launches}
    assert cores["matmul_t dweight"] == 3
    assert cores["matmul_t dcol"] == 4
    assert cores["im2col"] == 1
    assert [share(10, rank, 4) for rank in range(4)] == [(0, 2), (2, 5), (5, 7), (7, 10)]


@pytest.mark.parametrize("workers", [1, 3, 16])
def test_timing_alone_gives_the_same_trace(workers: int) -> None:
    """Numbers cost nothing and change nothing; the serial call, too."""
    problem = Problem(3, 9, 8, 5, 3, 2, 2, 1)
    calls: list[tuple[Callable[..., int], dict[str, Any]]] = [
        (nx_f32_conv2d_backward_fast, {"workers": workers}),
        (nx_f32_conv2d_backward, {}),
    ]
    for function, options in calls:
        (full,) = problem.call(function, **options)[1]
        (timed,) = problem.call(function, numerics=False, **options)[1]
        assert timed.trace.hash() == full.trace.hash()
        assert timed.cycles == full.cycles
        assert timed.outputs == {}
        assert set(full.outputs) == {"dx", "dw", "db"}


def test_work_that_is_done_is_work_of_the_formula_and_its_shares_add_up() -> None:
    """Both products multiply padding, too; the serial loop leaves it out."""
    problem = Problem(3, 9, 8, 5, 3, 3, 1, 1)
    fast = run_of(problem, workers=4)
    (serial,) = problem.call(nx_f32_conv2d_backward)[1]
    shape = ConvShape(1, 3, (9, 8), 5, (3, 3), 1, 1)
    assert fast.macs == fast.useful_macs == 2 * shape.useful_macs
    assert sum(launch.useful_macs for launch in fast.launches) == fast.useful_macs
    present = (9 * 3 - 2) * (8 * 3 - 2) * 3 * 5  # two taps an axis lie in the padding
    assert serial.macs == 2 * present
    assert serial.useful_macs == fast.useful_macs


def test_forking_pays_on_a_large_layer_and_not_on_a_small_one() -> None:
    """64 channels of 56 x 56 gain from every doubling; 2 channels of 4 x 4 lose from the second worker on."""

    def cycles(shape: ConvShape, workers: int) -> int:
        target = load_target("nx_host")
        return run_operator(
            "conv2d_backward_fast", shape=shape, target=target, cores=workers, numerics=False
        ).cycles

    large, small = ConvShape(1, 64, (56, 56), 64, (3, 3), 1, 1), ConvShape(1, 2, (4, 4), 4, (3, 3), 1, 1)
    times = [cycles(large, workers) for workers in (1, 2, 4, 8, 16)]
    assert times == sorted(times, reverse=True)
    assert cycles(small, 1) < cycles(small, 2) < cycles(small, 4)


def test_a_step_takes_its_operations_or_its_bytes() -> None:
    """With a slow memory the bytes decide: 10 bytes a cycle, 3 x 8 bytes an element of a transposition."""
    slow = {**SIMPLE, "port.load.gigabytes_per_second": 26, "link.ddr.gigabytes_per_second": 26}
    slow["host.page_cycles"] = 0
    run = run_of(Problem(4, 8, 8, 16, 2, 2), load_target("nx_host", slow), workers=1)
    turned = next(launch for launch in run.launches if launch.name == "transpose weight")
    bytes_moved = 3 * 8 * 16 * 16
    assert turned.cycles == pytest.approx(bytes_moved / 10, abs=1)


def test_rows_of_the_other_operand_are_read_again_where_they_do_not_stay_in_the_cache() -> None:
    """8 rows times a matrix of 8,000 bytes: once in a cache that holds it, else a time a row."""
    small, large = Counter(4096, 4096), Counter(1 << 20, 4096)
    again, once = (each.product(8, 8, 10, 100, fresh=False).bytes for each in (small, large))
    assert again - once == 7 * 8000
    assert small.transpose(4, 100).lines == 400
    near, far = small.transpose(511, 2), small.transpose(512, 2)
    assert (near.moves, near.scatters, far.moves, far.scatters) == (1022, 0, 0, 1024)
    assert large.transpose(4, 100).lines == 0


def test_cores_that_share_what_they_are_made_of_are_slower() -> None:
    """1.5 times where all 16 work; half of the way between for 8.5."""
    target = load_target("nx_host", {**SIMPLE, "host.crowded_factor": 1.5})
    work = Work(multiplies=100)
    assert [loop_cycles(target, work, workers) for workers in (1, 4, 16)] == [1000, 1100, 1500]


def test_the_operator_refuses_what_the_call_has_no_argument_for() -> None:
    """Several images, groups, unequal strides or pads, other types, tilings, other families."""
    host = load_target("nx_host")

    def refusal(shape: ConvShape, target: Target = host, **options: object) -> str:
        with pytest.raises(TilesimError) as caught:
            run_operator("conv2d_backward_fast", shape=shape, target=target, **options)  # type: ignore[arg-type]  # whatever is tried
        return str(caught.value)

    plain = ConvShape(1, 2, (4, 4), 2, (3, 3))
    assert "backward_batch" in refusal(ConvShape(2, 2, (4, 4), 2, (3, 3)))
    for other in (
        ConvShape(1, 2, (4, 4), 2, (3, 3), groups=2),
        ConvShape(1, 2, (4, 4), 2, (3, 3), stride=(1, 2)),
        ConvShape(1, 2, (4, 4), 2, (3, 3), padding=((0, 1), (0, 1))),
        ConvShape(1, 2, (9, 9), 2, (3, 3), dilation=2),
        ConvShape(1, 2, (9,), 2, (3,)),
    ):
        assert "plain 2-D convolutions" in refusal(other)
    assert "computes in fp32" in refusal(plain, dtype="fp16")
    assert "no tiling" in refusal(plain, tiling={"rows": 1})
    assert "family" in refusal(plain, load_target("mt7004"))
    with pytest.raises(TilesimError, match="family"):
        run_operator("conv_backward", shape=plain, target=host)
