"""Which cores a call uses, and functions that run once a core under the vendor's names."""

from __future__ import annotations

import numpy as np
import pytest

from kernels import ft
from kernels.shape.shapes import ConvShape
from simulator.device.device import Device
from simulator.errors import DeadlockError
from simulator.machine import Checks
from simulator.results.run import Run
from targets.errors import TilesimError
from tests.kernels.ft_calls import SHAPES, Case

LAYER = ConvShape(4, 32, (16, 16), 32, (3, 3), padding=1)


@pytest.mark.parametrize("name", ["1x1", "3x3", "depthwise"])
def test_the_cores_of_the_mask_work(name: str) -> None:
    """Bit i is core i; the others are not in the trace, and not in the shares."""
    with Device("mt7004") as device:
        run = Case.on(device, SHAPES[name]).call(0b1010)
        assert run.cores == 2
        assert set(run.trace.cores()) == {1, 3}


@pytest.mark.parametrize("kind", ["fp32", "fp16"])
@pytest.mark.parametrize("groups", [1, 32], ids=["1x1", "depthwise"])
def test_a_core_without_work_is_idle(kind: str, groups: int) -> None:
    """Three images on four cores: the fourth is in the mask, does nothing, and counts in the shares."""
    shape = ConvShape(3, 32, (1, 16), 32, (1, 1), groups=groups)
    with Device("mt7004") as device:
        case = Case.on(device, shape, kind)
        run = case.call(0b1111, {"split": "batch"})
        figures = run.to_dict()
        assert case.exact()
        assert (figures["cores"], figures["cores_active"]) == (4, 3)
        alone = Case.on(device, shape, kind).call(0b111, {"split": "batch"}).to_dict()
        assert figures["utilisation"]["VPU"] == pytest.approx(alone["utilisation"]["VPU"] * 3 / 4)


@pytest.mark.parametrize(
    "shape",
    [LAYER, ConvShape(4, 32, (40, 40), 32, (3, 3), padding=1, groups=32)],
    ids=["general", "depthwise"],
)
def test_more_cores_are_faster_and_give_the_same_bits(shape: ConvShape) -> None:
    """On integers."""
    cycles, bits = [], set()
    for mask in (0b1, 0b11, 0b1111):
        with Device("mt7004") as device:
            case = Case.on(device, shape)
            cycles.append(case.call(mask).cycles)
            bits.add(case.dx.data.tobytes())
    assert cycles[0] > cycles[1] > cycles[2]
    assert len(bits) == 1


def test_equal_cores_are_simulated_once() -> None:
    """The trace of folded cores is that of plain simulation, coordinates and all."""
    shape = ConvShape(4, 32, (12, 12), 32, (3, 3), padding=1, groups=32)
    hashes = []
    for fold in (True, False):
        with Device("mt7004", checks=Checks(fold=fold)) as device:
            hashes.append(
                Case.on(device, shape, "fp16").call(0b1111, {"split": "batch", "rows": 5}).trace.hash()
            )
    assert hashes[0] == hashes[1]


@pytest.mark.parametrize(
    ("mask", "core", "place"), [(0b1111, 0, 0), (0b1111, 3, 3), (0b1010, 3, 1), (0b1010, 2, -1), (0, 0, -1)]
)
def test_the_place_of_a_core_in_a_mask(mask: int, core: int, place: int) -> None:
    """Its rank among the cores of the mask; negative where it has none."""
    assert ft.GetLogicCoreId(mask, core) == place


def test_the_number_of_cores_of_a_mask() -> None:
    """Its set bits."""
    assert [ft.GetCoreNum(mask) for mask in (0, 1, 0b1010, 0xFF)] == [0, 1, 2, 8]
    with pytest.raises(TilesimError, match="core_mask is no mask"):
        ft.GetCoreNum(True)


def test_a_team_makes_one_launch() -> None:
    """Every core calls, all get the same run, dx is added to once."""
    with Device("mt7004") as device:
        case = Case.on(device, SHAPES["3x3"])
        runs = device.spmd(case.call, 0b1101)
        assert len(runs) == 3
        assert len({id(run) for run in runs}) == 1
        assert device.runs == [runs[0]]
        assert case.exact()


def test_a_team_calls_as_often_as_it_likes() -> None:
    """Calls follow each other."""
    with Device("mt7004") as device:
        case = Case.on(device, SHAPES["3x3"])
        device.spmd(lambda mask: [case.call(mask), case.call(mask)], 0b11)
        assert len(device.runs) == 2
        assert case.exact(times=2)


def test_a_barrier_takes_time() -> None:
    """What the target says: its issue and its latency, for those who meet."""
    with Device("mt7004") as device:
        sync, issue = device.target.sync, device.target.issue

        def work(core_mask: int) -> None:
            for number in (0, 1):
                ft.sys_bar(number, ft.GetCoreNum(core_mask))

        device.spmd(work, 0b111)
        assert device.cycles == 2 * (sync.barrier_latency_cycles + issue.barrier_cycles)


def test_private_calls_of_a_team_run_beside_each_other() -> None:
    """Every core has its own memory at the same address, and its own result."""
    shape = SHAPES["3x3"]
    with Device("mt7004") as device:

        def work() -> Run:
            case = Case.on(device, shape, private=True)
            run = case.call()
            assert case.exact()
            return run

        runs = device.spmd(work, 0b1110)
        assert len(device.runs) == 3
        assert {a.address for a in device.arrays if a.name == "dy"} == {0x10000000}
        assert [a.core for a in device.arrays if a.name == "dy"] == [1, 2, 3]
        assert device.cycles == device.runs[0].cycles
        assert [set(run.trace.cores()) for run in runs if isinstance(run, Run)] == [{1}, {2}, {3}]


def test_the_core_of_an_address_makes_the_private_call() -> None:
    """L2 of core i of FT78NE has addresses of its own; AM of MT7004 has not, and its array says whose it is."""
    for chip, memory in (("ft78ne", "l2"), ("mt7004", "am")):
        with Device(chip) as device:
            base = device.level((memory, 3)).base
            case = Case.on(device, SHAPES["1x1"], private=True)
            dy, w, dx = (
                device.array(memory, a.shape, address=base + i * 0x4000, data=a.data, core=3)
                for i, a in enumerate((case.dy, case.w, case.dx))
            )
            case.param.workspace_ = base + 0x10000
            given = (dy, w, dx) if chip == "mt7004" else (dy.address, w.address, dx.address)
            run = case.with_(*given)
            assert set(run.trace.cores()) == {3}
            assert np.array_equal(run.outputs["dx"], dx.data)


def test_operands_of_two_cores() -> None:
    """A private call has one core."""
    with Device("mt7004") as device:
        case = Case.on(device, SHAPES["1x1"], private=True)
        other = device.array("am", case.dx.shape, data=0, core=2)
        with pytest.raises(TilesimError, match="operands in the memories of several cores"):
            case.with_(case.dy, case.w, other)

        def reach_over() -> None:
            case.call()

        with pytest.raises(
            TilesimError, match=r"dy lies in the memory of another core.*core 0, limit core 1"
        ):
            device.spmd(reach_over, 0b10)


def test_the_address_of_another_core() -> None:
    """L2 of core 0 has addresses for all, but a private call reads its core's own."""
    with Device("ft78ne") as device:
        case = Case.on(device, SHAPES["1x1"], private=True)
        given = (case.dy.address, case.w.address, case.dx.address)
        case.param.workspace_ = case.param.workspace_.address
        with pytest.raises(
            TilesimError, match=r"dy lies in the memory of another core.*core 0, limit core 5"
        ):
            device.spmd(lambda: case.with_(*given), 0b100000)
        device.spmd(lambda: case.with_(*given), 0b1)
        assert case.exact()


def test_a_core_that_never_calls() -> None:
    """A deadlock that says who waits for whom; nothing was written."""
    with Device("mt7004") as device:
        case = Case.on(device, SHAPES["3x3"])

        def work(mask: int) -> None:
            if ft.get_core_id() != 2:
                case.call(mask)

        with pytest.raises(DeadlockError) as caught:
            device.spmd(work, 0b0111)
        assert "core 0 waits at fp_conv2d_backprop_input_s for cores 0, 1, 2" in str(caught.value)
        assert "core 2 has ended" in caught.value.waiting
        assert np.array_equal(case.dx.data, case.begun)
        assert device.runs == []
        device.spmd(case.call, 0b0111)
        assert case.exact()


def test_cores_of_the_mask_that_are_not_in_the_team() -> None:
    """They never call either."""
    with Device("mt7004") as device:
        case = Case.on(device, SHAPES["3x3"])
        with pytest.raises(DeadlockError, match="waits at fp_conv2d_backprop_input_s for cores 0, 1, 3"):
            device.spmd(lambda: case.call(0b1011), 0b0011)


def test_a_core_that_the_mask_leaves_out() -> None:
    """It cannot call."""
    with Device("mt7004") as device:
        case = Case.on(device, SHAPES["3x3"])
        with pytest.raises(TilesimError, match="a core makes a call whose core_mask leaves it out"):
            device.spmd(lambda: case.call(0b0001), 0b0011)


@pytest.mark.parametrize("what", ["dx", "buffer_size_", "tiling", "core_mask", "function"])
def test_cores_that_make_different_calls(what: str) -> None:
    """The message names what differs; nothing was written."""
    with Device("mt7004") as device:
        case = Case.on(device, SHAPES["3x3"])
        other = device.array("ddr", case.dx.shape, data=0)

        def work(mask: int) -> None:
            odd = ft.get_core_id() == 1
            if what == "buffer_size_" and odd:
                case.param.buffer_size_ //= 2
            if what == "function" and odd:
                ft.hp_conv2d_backprop_input_s(case.dy, case.w, case.dx, case.param, mask)
            case.with_(
                case.dy,
                case.w,
                other if what == "dx" and odd else case.dx,
                0b111 if what == "core_mask" and odd else mask,
                {"split": "rows"} if what == "tiling" and odd else None,
            )

        with pytest.raises(
            TilesimError, match=f"the cores make different calls.*{what}|do not agree"
        ) as caught:
            device.spmd(work, 0b0011)
        assert not isinstance(caught.value, DeadlockError)
        assert np.array_equal(case.dx.data, case.begun)
