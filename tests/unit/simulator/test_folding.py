"""The same trace: with equal cores simulated as one or not, in any process, with numbers or without."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from simulator.instructions import Barrier, Instruction
from simulator.kernel import Core
from simulator.machine import Checks
from simulator.memory.memories import Buffer
from simulator.results.trace import Trace
from tests.unit.simulator.listed import (
    Bench,
    ListKernel,
    Local,
    Overrides,
    all_of,
    fill,
    load,
    row_times_column,
    store,
)

ROOT = Path(__file__).resolve().parents[3]
RINGS = Local("a", depth=2), Local("b", depth=2), Local("o"), Local("g", memory="gsm")


class Op(NamedTuple):
    """One instruction: what it does, with which buffers, on how many elements, on which channel."""

    kind: str
    step: int
    size: int
    channel: int


ops = st.builds(
    Op,
    kind=st.sampled_from(["load", "store", "fetch", "fill", "product"]),
    step=st.integers(0, 1),
    size=st.integers(1, 25),
    channel=st.integers(0, 1),
)
segments = st.lists(ops, max_size=5)
changes = st.fixed_dictionaries(
    {
        "path.ddr->am.overlap": st.booleans(),
        "engine.vpu.issue": st.sampled_from(["queued", "blocking"]),
        "engine.dma.queue_depth": st.integers(1, 3),
        "link.ddr.bytes_per_cycle": st.sampled_from([7.3, 10, 45]),
        "link.ddr.write_cost": st.sampled_from([1, 1.3]),
        "issue.flag_set_cycles": st.integers(0, 2),
        "sync.flag_latency_cycles": st.sampled_from([0, 7]),
        "sync.barrier_cycles_per_core": st.integers(0, 2),
    }
)


class Case(NamedTuple):
    """A kernel: the class of each core, and for each class its segments, with barriers between."""

    classes: list[int | None]
    programs: list[list[list[Op]]]
    overrides: Overrides


@st.composite
def cases(draw: st.DrawFn) -> Case:
    """Up to 5 cores in up to 3 classes, some idle; all meet at the same barriers."""
    barriers = draw(st.integers(0, 2))
    programs = draw(
        st.lists(st.lists(segments, min_size=barriers + 1, max_size=barriers + 1), min_size=1, max_size=3)
    )
    kinds = st.one_of(st.none(), st.integers(0, len(programs) - 1))
    return Case(draw(st.lists(kinds, min_size=1, max_size=5)), programs, draw(changes))


def instruction(core: Core, x: Buffer, op: Op) -> Instruction:
    """An operation as an instruction of a core, on a tensor of 50 elements."""
    local = all_of(core, "a", op.size, op.step)
    source = x.box((0,), (op.size,))
    match op.kind:
        case "load":
            return load(local, source, op.channel)
        case "store":
            return store(x.box((25,), (op.size,)), local, op.channel)
        case "fetch":
            return load(all_of(core, "g", op.size), source, op.channel, "fetch")
        case "fill":
            return fill(core, "b", op.size, op.step)
    return row_times_column(core.rings["o"][0], core.rings["a"][op.step], core.rings["b"][0], op.size)


def traced(case: Case, *, numerics: bool = False, fold: bool = True) -> Trace:
    """Two launches of a case."""
    bench = Bench(len(case.classes), case.overrides, numerics=numerics, checks=Checks(fold=fold))
    x = bench.tensor("x", 50)

    def program(core: Core) -> Iterator[Instruction]:
        kind = case.classes[core.rank]
        assert kind is not None
        for number, segment in enumerate(case.programs[kind]):
            if number:
                yield Barrier(number)
            yield from (instruction(core, x, op) for op in segment)

    for _ in range(2):
        bench.machine.launch(ListKernel(program, *RINGS, classes=case.classes.__getitem__))
    return bench.machine.trace()


@settings(max_examples=150)
@given(cases())
def test_equal_cores_simulated_as_one_give_the_same_trace(case: Case) -> None:
    """Row by row: times, waits, who was the last at a barrier."""
    folded, plain = traced(case), traced(case, fold=False)
    assert folded == plain
    assert folded.hash() == plain.hash()


@settings(max_examples=30)
@given(cases())
def test_numbers_never_change_the_trace(case: Case) -> None:
    """With values and without."""
    assert traced(case, numerics=True).hash() == traced(case).hash()


EXAMPLE = Case(
    classes=[0, 0, 1, None, 0],
    programs=[
        [
            [Op("load", 0, 25, 0), Op("load", 1, 7, 1), Op("product", 0, 25, 0), Op("store", 1, 9, 1)],
            [Op("fill", 0, 25, 0), Op("fetch", 0, 5, 0), Op("load", 0, 3, 1), Op("product", 1, 25, 0)],
        ],
        [
            [Op("load", 0, 3, 0), Op("product", 0, 3, 0), Op("store", 0, 25, 0)],
            [Op("load", 1, 25, 1), Op("product", 1, 25, 0)],
        ],
    ],
    overrides={"path.ddr->am.overlap": True, "sync.flag_latency_cycles": 3, "issue.flag_set_cycles": 1},
)


def test_the_same_run_gives_the_same_trace_ten_times() -> None:
    """Bit for bit, in one process, with numbers and without."""
    hashes = {traced(EXAMPLE, numerics=run % 2 == 0).hash() for run in range(10)}
    assert len(hashes) == 1


@pytest.mark.parametrize("seed", ["0", "1", "4242"])
def test_the_same_run_gives_the_same_trace_in_another_process(seed: str) -> None:
    """Whatever the order of hashes there."""
    code = (
        "from tests.unit.simulator.test_folding import EXAMPLE, traced;"
        "print(traced(EXAMPLE).hash(), traced(EXAMPLE, fold=False).hash())"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        env={**os.environ, "PYTHONHASHSEED": seed},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.split() == [traced(EXAMPLE).hash()] * 2
