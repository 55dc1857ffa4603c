"""Instructions of a Da Vinci core on a machine: their engines, and how long they hold them."""

from collections.abc import Iterable

import pytest

from simulator.cube import Fill, Fixpipe, Load2d, Load3d, Mmad, Move, Vector, Window
from simulator.instructions import Instruction
from simulator.kernel import Core
from simulator.machine import Machine
from simulator.memory.memories import Buffer
from targets.loader import load_target
from tests.unit.simulator.listed import FP32, Local
from tests.unit.simulator.split import KindsKernel
from tilesim.validation.instructions import lone_cycles

WINDOW = Window(8, 0, ((0, 0),))
MEMORIES = {"aic": ("l1", "l0a", "l0b", "l0c"), "aiv": ("ub",)}


def cube_program(core: Core, tensor: Buffer) -> list[Instruction]:
    """A tile through the cube, each step after the one before."""
    l1, l0a, l0b, l0c = (core.rings[name][0] for name in ("l1", "l0a", "l0b", "l0c"))
    a, b, out = l0a.dense((64, 64)), l0b.dense((64, 64)), l0c.dense((64, 64))
    return [
        Move(l1.dense((4096,)), tensor.dense((4096,))),
        Load2d(a, l1.dense((64, 64))),
        Load3d(b, l1.dense((8, 8, 64)), WINDOW, count=2),
        Mmad(out, a, b, rate="hf32"),
        Mmad(out, a, b, rate="hf32", accumulate=True),
        Fixpipe(tensor.dense((64, 64)), out, layout="nz", atomic=True),
    ]


def vector_program(core: Core, tensor: Buffer) -> list[Instruction]:
    """A load, an operation and a store."""
    ub = core.rings["ub"][0]
    low, high = ub.dense((2048,)), ub.dense((2048,), 2048)
    return [
        Fill(high, 1.0),
        Move(low, tensor.dense((2048,))),
        Vector("add", low, low, high),
        Move(tensor.dense((2048,), 2048), low),
    ]


@pytest.mark.parametrize("name", ["ascend910b1", "ascend950pr"])
@pytest.mark.parametrize(
    ("kind", "engines"),
    [
        ("aic", ["MTE2", "MTE1", "MTE1", "CUBE", "CUBE", "FIXPIPE"]),
        ("aiv", ["VECTOR", "MTE2", "VECTOR", "MTE3"]),
    ],
)
def test_instructions_hold_their_engines_for_what_they_cost(name: str, kind: str, engines: list[str]) -> None:
    """One core alone; the second of two products follows the first without a pause."""
    target = load_target(name)
    machine = Machine(target, range(1), numerics=False)
    tensor = machine.tensor("x", (4096,), FP32)
    make = cube_program if kind == "aic" else vector_program
    programs: list[list[Instruction]] = []

    def program(core: Core) -> Iterable[Instruction]:
        programs.append(make(core, tensor) if core.slot == 0 else [])
        return programs[-1]

    rings = (Local(memory, 4096, memory=memory) for memory in MEMORIES[kind])
    machine.launch(KindsKernel(program, *rings, kinds=(kind,)))
    trace = machine.trace()
    assert [trace.engines[code] for code in trace["engine"]] == engines
    last: dict[str, int] = {}
    for engine, start, end, instruction in zip(
        engines, trace["start"], trace["end"], programs[0], strict=False
    ):
        paused = last.get(engine) != start
        assert end - start == lone_cycles(instruction.cost(target), target, paused=paused)
        last[engine] = end
