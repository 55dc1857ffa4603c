"""What a machine refuses, and how it says so."""

from collections.abc import Iterator

import pytest

from simulator.errors import BoundsError, CapacityError, ProgramError
from simulator.instructions import Copy, FlagSet, Instruction, Matmul
from simulator.kernel import Core
from simulator.machine import Machine
from simulator.values.numerics import dtype
from simulator.vector import Fill
from tests.unit.simulator.listed import FP32, Bench, ListKernel, Local, all_of, load, tiny


@pytest.mark.parametrize(
    ("start", "size"),
    [((0, 0), (5, 5)), ((3, 0), (2, 1)), ((0, 4), (1, 2)), ((-1, 0), (1, 1)), ((4, 0), (1, 1))],
)
def test_a_box_outside_its_tensor_is_refused(start: tuple[int, int], size: tuple[int, int]) -> None:
    """A tensor of 4 by 5: nothing before it, nothing behind it, on any axis."""
    x = Bench().tensor("x", 4, 5)
    assert x.box((0, 0), (4, 5)).range.bytes == 80
    with pytest.raises(BoundsError) as caught:
        x.box(start, size)
    assert (caught.value.where, caught.value.limit) == ("x in ddr", "shape (4, 5)")
    assert str(start) in str(caught.value.got)


@pytest.mark.parametrize(("shape", "first"), [((26,), 0), ((25,), 1), ((5, 5), 1), ((1,), -1), ((1,), 25)])
def test_a_packed_view_outside_its_buffer_is_refused(shape: tuple[int, ...], first: int) -> None:
    """A buffer of 25 elements."""
    with pytest.raises(BoundsError, match="a of core 0 in am"):
        Bench().run(lambda core: [Fill(core.rings["a"][0].dense(shape, first))], Local("a"))


def test_a_full_memory_says_what_was_wanted_and_what_is_free() -> None:
    """AM has 4,096 bytes: a buffer of 3,200 leaves 896, which 1,000 do not fit."""
    with pytest.raises(CapacityError) as caught:
        Bench().run(lambda _: (), Local("a", 800), Local("b", 250))
    error = caught.value
    assert (error.memory, error.wanted_bytes, error.free_bytes) == ("am", 1000, 896)
    assert error.remedy == "lower the size"
    assert "b of core 0" in str(error)


def test_buffers_are_aligned() -> None:
    """A buffer of 100 bytes leaves 3,968 of 4,096 behind the next multiple of 64."""
    Bench().run(lambda _: (), Local("a"), Local("b", 992))
    with pytest.raises(CapacityError) as caught:
        Bench().run(lambda _: (), Local("a"), Local("b", 993))
    assert (caught.value.wanted_bytes, caught.value.free_bytes) == (3972, 3968)


def test_each_core_has_its_own_memory() -> None:
    """Four cores each fill theirs; a ring counts with its depth; the next launch finds it empty."""
    bench = Bench(4)
    for _ in range(2):
        bench.run(lambda _: (), Local("a", 256, depth=4))
    with pytest.raises(CapacityError):
        bench.run(lambda _: (), Local("a", 256, depth=5))


def test_a_shared_memory_is_shared() -> None:
    """GSM has 65,536 bytes: rings of 4 cores of 16,384 fit, and one common buffer more does not."""
    Bench(4).run(lambda _: (), Local("g", 4096, memory="gsm"))
    with pytest.raises(CapacityError) as caught:
        Bench(4).run(lambda _: (), Local("g", 4096, memory="gsm"), Local("h", 1, memory="gsm", common=True))
    assert (caught.value.memory, caught.value.free_bytes) == ("gsm", 0)


def test_a_tensor_outlives_launches_in_any_shared_memory() -> None:
    """A launch's buffers in GSM go with it, a tensor there keeps its place."""
    machine = Bench().machine
    first = machine.tensor("first", (25,), FP32, memory="gsm")
    for _ in range(2):
        machine.launch(ListKernel(lambda _: (), Local("g", 16000, memory="gsm")))
    second = machine.tensor("second", (25,), FP32, memory="gsm")
    assert (first.address, second.address) == (0x20000, 0x20080)


@pytest.mark.parametrize(
    ("address", "what"), [(0xFFFC0, "outside"), (0x1FFFC0, "outside"), (0x100040, "overlap")]
)
def test_a_tensor_at_a_taken_address_is_refused(address: int, what: str) -> None:
    """DDR lies at 0x100000 to 0x200000, and a tensor of 100 bytes at its beginning."""
    machine = Bench().machine
    machine.tensor("x", (25,), FP32, address=0x100000)
    machine.tensor("y", (25,), FP32, address=0x100080)
    with pytest.raises(BoundsError, match=what):
        machine.tensor("z", (25,), FP32, address=address)


def test_a_write_to_a_constant_is_refused() -> None:
    """A store into an operand."""
    bench = Bench()
    x = bench.tensor("x", 25)
    x.constant = True
    with pytest.raises(ProgramError, match="x in ddr"):
        bench.run(lambda core: [Copy(x.box((0,), (25,)), all_of(core, "a"))], Local("a"))


def test_a_copy_between_unlike_ranges_is_refused() -> None:
    """Other sizes, other types, or a box that is no rows of one stride."""
    bench = Bench()
    x, half = bench.tensor("x", 4, 4, 4), bench.machine.tensor("h", (64,), dtype("fp16"))
    with pytest.raises(ProgramError, match="unlike ranges"):
        Copy(x.box((0, 0, 0), (1, 4, 4)), x.box((1, 0, 0), (2, 4, 4)))
    with pytest.raises(ProgramError, match="unlike ranges"):
        Copy(x.box((0, 0, 0), (1, 4, 4)), half.box((0,), (32,)))
    with pytest.raises(ProgramError, match="rows of one stride"):
        Copy(x.box((0, 0, 0), (2, 2, 2)), x.box((2, 2, 2), (2, 2, 2)))


def test_what_the_machine_does_not_have_is_refused() -> None:
    """A path, an engine and a rate that are not in the target: the error names what there is."""
    bench = Bench()
    x = bench.tensor("x", 25)

    def no_path(core: Core) -> Iterator[Instruction]:
        yield load(all_of(core, "a"), all_of(core, "b"))

    def no_engine(_: Core) -> Iterator[Instruction]:
        yield FlagSet("go", "cube")

    def no_rate(core: Core) -> Iterator[Instruction]:
        a = core.rings["a"][0]
        yield Matmul(a.dense((1, 1)), a.dense((1, 2)), a.dense((2, 1)), rate="int8")

    for program, got, known in (
        (no_path, "am->am", "ddr->am"),
        (no_engine, "cube", "dma"),
        (no_rate, "int8", "fp32"),
    ):
        with pytest.raises(ProgramError) as caught:
            bench.run(program, Local("a"), Local("b"))
        assert caught.value.got == got
        assert known in caught.value.limit
    assert x.data is None


def test_a_product_of_sizes_that_do_not_fit_is_refused() -> None:
    """A row of 3 and a column of 2."""
    x = Bench().tensor("x", 25)
    with pytest.raises(ProgramError, match="do not fit"):
        Matmul(x.dense((1, 1)), x.dense((1, 3)), x.dense((2, 1)), rate="fp32")


@pytest.mark.parametrize("cores", [[], [8], [-1], [0, 0]])
def test_cores_that_there_are_not_are_refused(cores: list[int]) -> None:
    """The chip has cores 0 to 7, each once."""
    with pytest.raises(ProgramError, match="0 to 7"):
        Machine(tiny(), cores)


def test_cores_that_use_flags_cannot_be_simulated_as_one() -> None:
    """A flag of a core that stands for two would be set once."""
    kernel = ListKernel(lambda _: [FlagSet("go", "dma")], classes=lambda _: 0)
    with pytest.raises(ProgramError, match="cannot share a class"):
        Bench(2).machine.launch(kernel)


def test_channels_wrap_around() -> None:
    """The tiny core has two: channel 3 is the second."""
    bench = Bench()
    x = bench.tensor("x", 25)
    trace = bench.run(lambda core: [load(all_of(core, "a"), x.box((0,), (25,)), channel=3)], Local("a"))
    assert trace.timeline() == [(1, 16, "DMA1", "load")]
