"""What the vendor's calls refuse: the message says what is wrong, and no byte of any array changes."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import pytest

from kernels import ft
from kernels.ft.parameter import LEAST
from simulator.device.device import Device
from simulator.errors import BoundsError, CapacityError
from targets.errors import TilesimError
from targets.loader import load_target
from tests.kernels.ft_calls import OWN, SHAPES, Case

SHAPE = SHAPES["strided, dilated, uneven"]


@contextmanager
def refused(device: Device, message: str) -> Iterator[None]:
    """The block raises a TilesimError with this message (a regular expression); nothing is written, nothing runs."""
    before = [array.data.tobytes() for array in device.arrays]
    cycles, runs = device.cycles, len(device.runs)
    with pytest.raises(TilesimError, match=message):
        yield
    assert [array.data.tobytes() for array in device.arrays] == before
    assert (device.cycles, len(device.runs)) == (cycles, runs)


@pytest.fixture(params=[False, True], ids=["s", "p"])
def case(request: pytest.FixtureRequest) -> Iterator[Case]:
    """A call that would be right."""
    with Device("mt7004") as device:
        yield Case.on(device, SHAPE, private=request.param)


def test_the_call_is_right_without_a_fault(case: Case) -> None:
    """What the tests below break."""
    case.call()
    assert case.exact()


@pytest.mark.parametrize("name", LEAST)
def test_a_field_out_of_range(case: Case, name: str) -> None:
    """Every int field has a least value, is a 32-bit int, and no other type is taken for it."""
    right = getattr(case.param, name)
    for wrong in (LEAST[name] - 1, 2**31, float(right), True, None, str(right)):
        setattr(case.param, name, wrong)
        with refused(case.device, f"{name} is out of range"):
            case.call()
    setattr(case.param, name, np.int32(right))
    case.call()


@pytest.mark.parametrize("name", [*LEAST, "workspace_"])
def test_a_field_that_was_not_set(case: Case, name: str) -> None:
    """The structure holds nothing that was not put there."""
    fields = case.param.fields()
    del fields[name]
    case.param = ft.ConvParameter(**fields)  # type: ignore[arg-type]  # the only other argument is an address
    with refused(case.device, f"{name} was not set|workspace_ is no array"):
        case.call()


def test_a_field_that_is_none() -> None:
    """A misspelt field is refused when it is set."""
    with pytest.raises(TilesimError, match="did you mean stride_h_"):
        ft.ConvParameter().stride_h = 1
    with pytest.raises(TilesimError, match="has no such field"):
        ft.ConvParameter(stride=1)
    with pytest.raises(AttributeError, match="stride_h_ was not set"):
        _ = ft.ConvParameter().stride_h_


def test_nweights_that_do_not_count_the_weights(case: Case) -> None:
    """The page warns of it."""
    case.param.nweights_ += 1
    with refused(case.device, f"nweights_ is not output_channel_ x .*limit {case.w.size}"):
        case.call()


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("output_h_", "output_h_ does not fit input_h_, kernel_h_, stride_h_, the pads and dilation_h_"),
        ("output_w_", "output_w_ does not fit"),
        ("input_h_", "output_h_ does not fit"),
        ("input_w_", "output_w_ does not fit"),
        ("stride_h_", "output_h_ does not fit"),
        ("pad_l_", "output_w_ does not fit"),
        ("pad_d_", "output_h_ does not fit"),
        ("dilation_w_", "output_w_ does not fit"),
        ("dilation_h_", "output_h_ does not fit"),
        ("kernel_w_", "output_w_ does not fit"),
        ("input_batch_", "input_batch_ and output_batch_ differ"),
        ("output_batch_", "input_batch_ and output_batch_ differ"),
        ("input_channel_", "nweights_ is not"),
    ],
)
def test_fields_that_do_not_fit_each_other(case: Case, name: str, message: str) -> None:
    """Two more of one of them."""
    setattr(case.param, name, getattr(case.param, name) + 2)
    with refused(case.device, message):
        case.call()


def test_a_kernel_larger_than_the_padded_input(case: Case) -> None:
    """There would be no output."""
    case.param.dilation_h_ = 50
    with refused(case.device, "the kernel is larger than the padded input"):
        case.call()


@pytest.mark.parametrize(("groups", "name"), [(3, "input_channel_"), (8, "output_channel_")])
def test_groups_that_do_not_divide(case: Case, groups: int, name: str) -> None:
    """Of 8 and 12 channels."""
    case.param.group_ = groups
    with refused(case.device, f"group_ does not divide {name}"):
        case.call()


@pytest.mark.parametrize(
    ("order", "message"),
    [
        ((0, 2, 3, 1), r"w is OHWI; the call reads OIHW.*transpose it with axes \(0, 3, 1, 2\)"),
        ((2, 3, 1, 0), r"w is HWIO; the call reads OIHW.*axes \(3, 2, 0, 1\)"),
        ((1, 0, 2, 3), r"w is IOHW; the call reads OIHW"),
        ((3, 2, 1, 0), r"w has another shape than OIHW"),
    ],
)
def test_weights_in_another_layout(case: Case, order: tuple[int, ...], message: str) -> None:
    """An array's shape says which one was meant, also by its address; the remedy gives back OIHW."""
    values = case.w.data.transpose(order)
    other = case.device.array(case.w.memory, values.shape, data=values)
    with refused(case.device, message):
        case.with_(case.dy, other, case.dx)
    with refused(case.device, message):
        case.with_(case.dy, other.address, case.dx)


def test_activations_in_another_layout(case: Case) -> None:
    """NCHW is told from NHWC by its shape."""
    values = np.moveaxis(case.dy.data, -1, 1)
    other = case.device.array(case.dy.memory, values.shape, data=values)
    with refused(case.device, "dy is NCHW; the call reads NHWC"):
        case.with_(other, case.w, case.dx)
    with refused(case.device, "dx has another shape"):
        case.with_(case.dy, case.w, other)


def test_a_budget_that_holds_no_column_row(case: Case) -> None:
    """A half holds Kh x Kw x (Cin / G) elements at least."""
    row = SHAPE.taps * SHAPE.cin * 4
    case.param.buffer_size_ = 2 * row
    case.call()
    case.param.buffer_size_ = 2 * row - 1
    with refused(case.device, f"half of buffer_size_ does not hold one column row.*limit {2 * row} bytes"):
        case.call()


def test_a_workspace_that_is_too_small(case: Case) -> None:
    """It holds buffer_size_ floats: an array, part of one, or what is free behind an address."""
    wanted = case.param.buffer_size_ * 4
    message = f"workspace_ is too small.*limit {wanted} bytes"
    whole = case.param.workspace_
    case.param.workspace_ = whole.address + 4
    with refused(case.device, message):
        case.call()
    case.param.workspace_ = case.device.array(whole.memory, wanted // 4 - 1)
    with refused(case.device, message):
        case.call()
    level = case.device.level(whole.place)
    case.param.workspace_ = level.base + level.spec.size_bytes - wanted + 4
    with refused(case.device, message):
        case.call()
    case.param.workspace_ = whole.address
    case.call()


def test_a_workspace_that_overlaps(case: Case) -> None:
    """Another operand, another array behind a free address, or a structure."""
    case.param.workspace_ = case.device.array(case.dx.memory, 1 << 14).address + 4
    beside = case.device.array(case.dx.memory, 4)
    case.param.workspace_ = beside.end - beside.bytes
    with refused(case.device, "workspace_ is too small"):
        case.call()
    case.device.free(beside)
    case.device.array(case.dx.memory, 4, address=beside.address + 64)
    with refused(case.device, "workspace_ overlaps another buffer"):
        case.call()


def test_a_workspace_inside_an_operand(case: Case) -> None:
    """Raw memory that holds both."""
    pool = case.device.array(case.dx.memory, 1 << 14, data=0)
    case.param.workspace_ = pool.address + 64
    with refused(case.device, "workspace_ overlaps dx"):
        case.with_(case.dy, case.w, pool)
    case.param.workspace_ = pool.address + 64 + case.dx.bytes
    case.with_(case.dy, case.w, pool)


@pytest.mark.parametrize("value", [None, "0x8A000000", 1.5, True])
def test_a_workspace_that_is_no_place(case: Case, value: object) -> None:
    """Neither an array nor an address."""
    case.param.workspace_ = value
    with refused(case.device, "workspace_ is no array and no address"):
        case.call()


def test_a_workspace_between_two_floats(case: Case) -> None:
    """It is used as floats."""
    case.param.workspace_ = case.param.workspace_.address + 2
    with refused(case.device, "workspace_ lies between two floats"):
        case.call()


def test_operands_that_overlap(case: Case) -> None:
    """Dx is dy, or begins inside it."""
    pool = case.device.array(case.dx.memory, 1 << 13, data=0)
    with refused(case.device, "dx overlaps dy"):
        case.with_(pool, case.w, pool.address + 4)


def test_an_address_outside_every_memory(case: Case) -> None:
    """Each of the three, and the workspace."""
    with refused(case.device, "an address outside every memory.*0x4"):
        case.with_(0x4, case.w, case.dx)
    with refused(case.device, "an address outside every memory"):
        case.with_(case.dy, 0x1_9000_0000, case.dx)
    with refused(case.device, "an address outside every memory"):
        case.with_(case.dy, case.w, -1)
    case.param.workspace_ = 0x4
    with refused(case.device, "an address outside every memory"):
        case.call()


def test_an_address_at_which_no_array_lies(case: Case) -> None:
    """Memory is hostile."""
    level = case.device.level(case.dy.place)
    with refused(case.device, "no array lies at this address"):
        case.with_(level.base + 0x80000, case.w, case.dx)


def test_memory_that_ends_before_the_operand(case: Case) -> None:
    """An address too far into an array, or raw memory that is too short."""
    with refused(case.device, "dy is too small"):
        case.with_(case.dy.address + 4, case.w, case.dx)
    short = case.device.array(case.dx.memory, case.dx.size - 1)
    with refused(case.device, "dx is too small"):
        case.with_(case.dy, case.w, short)
    with refused(case.device, "the address of dy lies between two elements"):
        case.with_(case.dy.address + 2, case.w, case.dx)


@pytest.mark.parametrize("value", [None, "dy", 1.0, np.zeros(4)])
def test_an_operand_that_is_no_array_of_the_device(case: Case, value: object) -> None:
    """Arrays of NumPy have no address."""
    with refused(case.device, "dy is no array and no address"):
        case.with_(value, case.w, case.dx)


def test_an_array_of_another_device(case: Case) -> None:
    """Or one that was taken away."""
    with Device("mt7004") as other, refused(case.device, "dx is not an array of this device"):
        case.with_(case.dy, case.w, Case.on(other, SHAPE, private=case.private).dx)
    case.device.free(case.w)
    with refused(case.device, "w is not an array of this device"):
        case.call()


def test_an_operand_of_another_data_type(case: Case) -> None:
    """fp16 weights in an fp32 call."""
    half = case.device.array(case.w.memory, case.w.shape, "fp16", data=0)
    with refused(case.device, "w is of another data type.*got fp16, limit fp32"):
        case.with_(case.dy, half, case.dx)


@pytest.mark.parametrize("name", ["dy", "w", "dx", "workspace_"])
@pytest.mark.parametrize("chip", OWN)
def test_operands_in_the_other_kind_of_memory(chip: str, name: str) -> None:
    """_s reads shared memory, _p the core's own."""
    with Device(chip) as device:
        for private, other in ((False, OWN[chip]), (True, "ddr")):
            case = Case.on(device, SHAPE, private=private)
            given = {"dy": case.dy, "w": case.w, "dx": case.dx}
            there = case.param.workspace_ if name == "workspace_" else given[name]
            moved = device.array(other, there.shape, data=0)
            if name == "workspace_":
                case.param.workspace_ = moved
            for place in (moved, moved.address):
                with refused(device, f"{name} lies in a memory that this call does not read.*{other}"):
                    if name == "workspace_":
                        case.param.workspace_ = place
                    used = {**given, name: place}
                    case.with_(used["dy"], used["w"], used["dx"])


def test_scalar_memory_is_none_of_a_private_call() -> None:
    """SM is a core's own too, and the vector unit does not reach it."""
    with Device("mt7004") as device:
        case = Case.on(device, SHAPE, private=True)
        there = device.array("sm", case.w.shape, data=0)
        with refused(device, "w lies in a memory that this call does not read.*in sm, limit am"):
            case.with_(case.dy, there, case.dx)


@pytest.mark.parametrize("chip", OWN)
def test_operands_that_do_not_fit_the_core(chip: str) -> None:
    """Arrays are refused when they are placed; a workspace behind an address by the call."""
    with Device(chip) as device:
        with pytest.raises(CapacityError, match=f"memory {OWN[chip]}"):
            device.array(OWN[chip], (1, 64, 64, 64))
        with pytest.raises(BoundsError, match="address outside a memory"):
            device.array(OWN[chip], 1 << 18, address=device.level((OWN[chip], 0)).base)
        case = Case.on(device, SHAPE, private=True, buffer_size_=0x4000)
        case.param.buffer_size_, case.param.workspace_ = 0x40000, case.param.workspace_.end
        with refused(device, "workspace_ is too small"):
            case.call()


@pytest.mark.parametrize("mask", [0, -1, 0b10000, 0b100001, 1.0, True, "0b1", None])
def test_a_mask_without_cores_of_the_chip(mask: int) -> None:
    """0, cores that the chip lacks, and what is no mask."""
    with Device("mt7004") as device:
        case = Case.on(device, SHAPE)
        with refused(device, "core.mask"):
            case.call(mask)


@pytest.mark.parametrize("private", [False, True], ids=["s", "p"])
def test_fp16_on_a_chip_without_it(private: bool) -> None:
    """FT78NE has fp32 only."""
    with Device("ft78ne") as device:
        case = Case.on(device, SHAPE, "fp16", private=private)
        with refused(device, "hp_conv2d_backprop_input_.* does not run on this chip.*got fp16, limit fp32"):
            case.call()


def test_a_chip_that_has_no_such_call() -> None:
    """FT-M7032 is not on the page; a variant of MT7004 is."""
    with Device("ft_m7032") as device:
        case = Case.on(device, SHAPE)
        with refused(device, "does not run on this chip.*chips: ft78ne, mt7004"):
            case.call()
    variant = load_target("mt7004").model_copy(update={"name": "mt7004_half"})
    with Device(variant) as device:
        Case.on(device, SHAPE).call()


def test_a_structure_that_is_none(case: Case) -> None:
    """Neither a ConvParameter nor an address; an address is one, though nothing was set there."""
    several: list[Any] = [None, {}, 1.5]
    for wrong in several:
        case.param = wrong
        with refused(case.device, "conv_param is no ConvParameter"):
            case.call()
    case.param = 0x89000000  # type: ignore[assignment]  # an address is taken too
    with refused(case.device, "output_batch_ was not set"):
        case.call()


def test_a_field_of_the_tiling_that_is_none(case: Case) -> None:
    """A misspelt field, one of another path, and one that does not fit."""
    with refused(case.device, "unknown field of the tiling.*position"):
        case.call(tiling={"position": 3})
    with refused(case.device, "positions"):
        case.call(tiling={"positions": 0})
    if case.private:
        with refused(case.device, "the workspace has no room for this tiling.*lower positions"):
            case.call(tiling={"positions": 1000})
        with refused(case.device, "all channels of a group"):
            case.call(tiling={"channels": 3})


def test_a_workspace_whose_slices_hold_no_columns() -> None:
    """column_place=workspace gives every core a slice."""
    with Device("mt7004") as device:
        case = Case.on(device, SHAPE, buffer_size_=0x1000)
        tiling = {"column_place": "workspace", "budget_bytes": 0x10000}
        with refused(device, "a core's slice of the workspace does not hold half of the column buffer"):
            case.call(0b1111, tiling)


def test_a_closed_device() -> None:
    """Its arrays can be read, calls are refused."""
    with Device("mt7004") as device:
        case = Case.on(device, SHAPE)
    with refused(device, "a device that was closed"):
        case.call()
    with refused(device, "no device is in use"):
        case.with_(case.dy.address, case.w.address, case.dx.address)
