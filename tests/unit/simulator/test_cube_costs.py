"""What instructions of a Da Vinci core cost, by the published formulas."""

from math import ceil

import pytest

from simulator.cube import Fill, Fixpipe, Load2d, Load3d, Mmad, Move, Vector, Window
from simulator.cube.fixpipe import Layout
from simulator.cube.loads import fractal_cycles
from simulator.cube.move import transposed_runs
from simulator.cube.window import spans
from simulator.errors import ProgramError
from targets.loader import load_target
from targets.schema import Target
from tests.unit.simulator.views import buffer, whole

B1 = load_target("ascend910b1")
PR = load_target("ascend950pr")
TAPS = tuple((y, x) for y in range(3) for x in range(3))


def mmad(m: int, n: int, k: int, rate: str) -> Mmad:
    """A product of fresh operands."""
    kind = "fp32" if rate in ("fp32", "hf32") else rate
    return Mmad(whole("l0c", m, n), whole("l0a", m, k, kind=kind), whole("l0b", k, n, kind=kind), rate=rate)


@pytest.mark.parametrize(
    ("target", "rate", "steps"),
    [
        (B1, "fp16", 2 * 3 * 2),
        (B1, "bf16", 2 * 3 * 2),
        (B1, "hf32", 2 * 3 * 3),
        (B1, "fp32", 2 * 3 * 6),
        (PR, "fp16", 2 * 3 * 2),
        (PR, "hf32", 2 * 3 * 3),
        (PR, "fp32", 2 * 3 * 24),
    ],
)
def test_a_product_takes_whole_fractals_and_a_head(target: Target, rate: str, steps: int) -> None:
    """17 x 33 x 20: two by three blocks, and k in steps of the type."""
    cost = mmad(17, 33, 20, rate).cost(target)
    spec = target.cube[rate]
    assert cost.cycles == steps + spec.head_cycles
    assert cost.cycles + cost.idle_cycles == steps + spec.isolated_head_cycles


def test_macs_count_whole_fractals() -> None:
    """The granule of k is 32 bytes."""
    assert mmad(17, 33, 20, "fp16").macs == 32 * 48 * 32
    assert mmad(17, 33, 20, "hf32").macs == 32 * 48 * 24


@pytest.mark.parametrize("name", ["ascend910a", "ascend310p3", "ascend310b1"])
def test_a_chip_without_a_type_refuses_it(name: str) -> None:
    """The first generations and 310B multiply fp16 only."""
    with pytest.raises(ProgramError, match="no such cube rate"):
        mmad(16, 16, 16, "hf32").cost(load_target(name))


@pytest.mark.parametrize(
    ("target", "memory", "stride", "rows", "bytes_per_cycle"),
    [
        (B1, "l0a", 1, 1, 256),
        (B1, "l0b", 1, 1, 128),
        (B1, "l0a", 1, 2, 512 / 4),
        (B1, "l0b", 1, 3, 512 / 7),
        (B1, "l0a", 1, 16, 32),
        (B1, "l0b", 1, 16, 512 / 18),
        (B1, "l0a", 4, 1, 512 / 8),
        (B1, "l0b", 4, 1, 512 / 10),
        (B1, "l0a", 4, 3, 512 / 11),
        (B1, "l0b", 8, 2, 512 / 20),
        (B1, "l0a", 3, 1, 32),
        (B1, "l0b", 5, 2, 512 / 18),
        (PR, "l0b", 1, 1, 256),
        (PR, "l0b", 1, 2, 512 / 4),
        (PR, "l0b", 2, 2, 512 / 6),
        (PR, "l0b", 3, 2, 32),
    ],
)
def test_im2col_rates_are_those_of_the_vendors_table(
    target: Target, memory: str, stride: int, rows: int, bytes_per_cycle: float
) -> None:
    """Bytes a cycle by column stride and rows of the image that a fractal spans."""
    assert 512 / fractal_cycles(target.load3d[memory], rows, stride) == pytest.approx(bytes_per_cycle)


def test_rows_are_counted_fractal_by_fractal() -> None:
    """169 positions in rows of 13: fractals span two rows, some three, the last one; by rows each spans one."""
    window = Window(13, 0, TAPS)
    assert dict(spans(window, 169)) == {1: 1, 2: 8, 3: 2}
    assert dict(spans(window._replace(by_rows=True), 169)) == {1: 13}
    assert dict(spans(window._replace(first=13), 13)) == {1: 1}


def test_an_input_gradients_step_costs_what_the_profile_shows() -> None:
    """13 x 13 in hf32, k of 4 blocks, 4 or 8 blocks of columns: 384 and 532 cycles of MTE1 were measured a step."""
    window = Window(13, 0, TAPS[:4], by_rows=True)
    image = Load3d(whole("l0a", 169, 32), whole("l1", 15, 15, 8), window, count=13).cost(B1).cycles
    for blocks, measured in ((4, 384), (8, 532)):
        weights = Load2d(
            whole("l0b", 32, 16 * blocks), whole("l1", 16 * blocks, 32), transpose=True, count=2 * blocks
        )
        assert image + weights.cost(B1).cycles == pytest.approx(measured, rel=0.02)


def test_each_instruction_of_several_pays_start_and_issue() -> None:
    """A count multiplies what is not the bytes."""
    one, five = (Load2d(whole("l0b", 64, 64), whole("l1", 64, 64), count=count).cost(B1) for count in (1, 5))
    assert five.issue_cycles == 5 * one.issue_cycles
    assert five.cycles - one.cycles == 4 * B1.load2d["l0b"].start_cycles


def test_a_short_row_is_charged_as_a_whole_burst() -> None:
    """16 rows of 64 bytes weigh as much as 16 of 512."""
    tensor, dense = buffer("gm", 16, 512, kind="fp16"), whole("l1", 16, 32, kind="fp16")
    assert Move(dense, tensor.box((0, 0), (16, 32))).cost(B1).charged_bytes == 16 * 512
    assert Move(dense, tensor.box((0, 0), (1, 512))).cost(B1).charged_bytes == 1024
    assert Move(dense, tensor.box((0, 0), (16, 32))).cost(PR).charged_bytes == 16 * 128


def test_a_box_of_many_levels_is_charged_piece_by_piece() -> None:
    """2 x 4 pieces of 3 x 8 elements each."""
    tensor = buffer("gm", 2, 8, 5, 8, kind="fp16")
    move = Move(whole("l1", 2 * 4 * 3 * 8, kind="fp16"), tensor.box((0, 2, 1, 0), (2, 4, 3, 8)))
    assert move.cost(B1).charged_bytes == 8 * 2 * 512  # each piece may straddle a burst
    assert move.moved == 2 * 4 * 3 * 8 * 2


def test_special_transfers_are_held_longer() -> None:
    """Fractals of plain rows, transposed ones, and one row alone into UB."""
    tensor = buffer("gm", 64, 1024, kind="fp16")
    source = tensor.box((0, 0), (64, 1024))
    plain, blocked, turned = (
        Move(whole("l1", 64, 1024, kind="fp16"), source, nd2nz=nd2nz, transpose=transpose).cost(B1)
        for nd2nz, transpose in ((False, False), (True, False), (False, True))
    )
    path = B1.path["gm->l1"]
    assert plain.floor_cycles == path.floor_cycles
    assert blocked.floor_cycles == 187 + ceil(64 * 2048 / 110)
    assert turned.floor_cycles == 510 + 290  # 128 KB are one run
    single = Move(whole("ub", 16384, kind="fp16"), whole("gm", 16384, kind="fp16"))
    assert single.cost(B1).floor_cycles == 30 + ceil(32768 / 46)


def test_runs_are_powers_of_two_and_a_rest() -> None:
    """16, 48, 50 KB and one byte."""
    assert [transposed_runs(size) for size in (16384, 3 * 16384, 50 * 1024, 1)] == [1, 2, 3, 1]


def test_a_long_transfer_on_950_is_cut() -> None:
    """Twice 10 KB start twice."""
    half, whole_one = (
        Move(whole("gm", size, kind="fp16"), whole("ub", size, kind="fp16")).cost(PR)
        for size in (5120, 10240)
    )
    assert whole_one.cycles == 2 * half.cycles == 2 * 288


def test_a_chip_refuses_the_path_that_it_lacks() -> None:
    """A2 has nothing between L1 and UB, 950 has."""
    move = Move(whole("ub", 64, kind="fp16"), whole("l1", 64, kind="fp16"))
    with pytest.raises(ProgramError, match="no such path"):
        move.cost(B1)
    assert move.cost(PR).path == "l1->ub"


@pytest.mark.parametrize(
    ("layout", "atomic", "count", "start", "bytes_per_cycle"),
    [
        ("nz", False, 1, 4, 117),
        ("nz", True, 1, 4, 117),
        ("nd", False, 1, 4, 19 * 4),
        ("split", False, 1, 4, 27),
        ("split", False, 16, 16 * 4, 27),
    ],
)
def test_the_write_out_goes_at_the_rate_of_its_layout(
    layout: Layout, atomic: bool, count: int, start: int, bytes_per_cycle: float
) -> None:
    """128 x 128 sums in fp32."""
    fixpipe = Fixpipe(
        whole("gm", 128, 128), whole("l0c", 128, 128), layout=layout, atomic=atomic, count=count
    )
    cost = fixpipe.cost(B1)
    assert cost.floor_cycles == ceil(start + 128 * 128 * 4 / bytes_per_cycle)
    assert cost.charged_bytes == 128 * 128 * 4


@pytest.mark.parametrize(("kind", "cycles"), [("fp32", 1024 / 32), ("fp16", 1024 / 64)])
def test_the_write_out_on_the_chip_is_64_elements_or_128_bytes_a_cycle(kind: str, cycles: float) -> None:
    """950, to L1."""
    assert Fixpipe(whole("l1", 1024, kind=kind), whole("l0c", 1024)).cost(PR).floor_cycles == cycles


@pytest.mark.parametrize(
    ("op", "kind", "inputs", "cycles"),
    [
        ("muls", "fp16", 1, 32),
        ("add", "fp16", 2, 64),
        ("add", "fp32", 2, 128),
        ("div", "fp32", 2, 256),
        ("exp", "fp16", 1, 128),
        ("exp", "fp32", 1, 128),
    ],
)
def test_vector_operations_cost_by_group_and_repeats(op: str, kind: str, inputs: int, cycles: int) -> None:
    """4,096 elements: 32 repeats in fp16, 64 in fp32."""
    operands = [whole("ub", 4096, kind=kind) for _ in range(inputs + 1)]
    assert Vector(op, *operands).cost(B1).cycles == cycles


def test_a_cast_counts_what_it_reads() -> None:
    """Micro-benchmarks show it: widening costs no more than copying."""
    wide, narrow = whole("ub", 4096), whole("ub", 4096, kind="fp16")
    assert Vector("cast", wide, narrow).cost(B1).cycles == 32
    assert Vector("cast", narrow, wide).cost(B1).cycles == 64
    assert Fill(wide).cost(B1).cycles == 64
    assert Fill(whole("ub", 8)).cost(B1).cycles == 3
