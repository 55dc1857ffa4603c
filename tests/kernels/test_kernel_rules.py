"""A kernel is a function of the tile: nothing is kept from one tile to the next, and their order does not matter."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import replace
from random import Random
from typing import TypeVar

import numpy as np
import pytest

from kernels.dsp.dx.geometry import Geometry, Span, chunk_kinds, chunks
from kernels.dsp.dx.kernel import ConvDx, DxTensors, Work
from kernels.dsp.dx.lowering import DxOperands, allocate_dx, dx_tiling, put_operands, take_dx
from kernels.dsp.dx.panels import BlockPlan
from kernels.dsp.dx.program import DxProgram
from kernels.dsp.dx.reorder import Reorder
from kernels.reference.checking import random_operands
from kernels.reference.references import conv_backward_reference
from kernels.shape.shapes import ConvShape
from simulator.instructions import Copy, Instruction
from simulator.kernel import Core, Space
from simulator.machine import Checks, Machine
from simulator.values.numerics import dtype
from targets.loader import load_target

T = TypeVar("T")
SHAPE = ConvShape(n=5, cin=40, size=(10, 9), cout=24, kernel=(3, 3), padding=1)
TILING = {
    "split": "batch",
    "rows": 3,
    "channels": 16,
    "block_channels": 8,
    "block_taps": 1,
    "k": 8,
    "positions": 9,
}


class Shuffled(ConvDx):
    """The kernel with its panels, blocks and chunks in another order, each within its class."""

    seed = 7

    def key(self) -> Hashable:
        """Another order is another program."""
        return (super().key(), self.seed)

    def work(self, rank: int, count: int) -> tuple[Work, ...]:
        """Panels, blocks and chunks, shuffled."""
        mine = super().work(rank, count)
        plans = {id(w.plan): replace(w.plan, blocks=self._blocks(w)) for w in mine}
        moved = [Work(w.panel, plans[id(w.plan)], w.origin) for w in mine]
        return tuple(shuffled(moved, [w.panel.hb for w in moved], self.seed))

    def _blocks(self, work: Work) -> tuple[BlockPlan, ...]:
        blocks = [
            replace(b, chunks=tuple(shuffled(list(b.chunks), [c.size for c in b.chunks], self.seed)))
            for b in work.plan.blocks
        ]
        return tuple(shuffled(blocks, [b.size for b in blocks], self.seed))


def shuffled(items: list[T], classes: Sequence[Hashable], seed: int) -> list[T]:
    """The items of each class change places among themselves."""
    result = list(items)
    for kind in set(classes):
        places = [i for i, c in enumerate(classes) if c == kind]
        order = places.copy()
        Random(seed).shuffle(order)  # noqa: S311  # an order, not a secret
        for place, source in zip(places, order, strict=True):
            result[place] = items[source]
    return result


def machine_and_operands(
    tiling: dict[str, object],
) -> tuple[Machine, DxOperands, ConvDx, dict[str, np.ndarray]]:
    """A machine with operands in DDR, weights in their order, and the kernel."""
    machine = Machine(load_target("mt7004"), range(2), checks=Checks(values="instructions"))
    kind = dtype("fp32")
    chosen = dx_tiling(SHAPE, kind, machine, tiling)
    operands = allocate_dx(SHAPE, kind, machine, chosen)
    made = random_operands({"dy": SHAPE.dy_shape, "w": SHAPE.w_shape}, kind, 3, True, SHAPE.taps * SHAPE.cout)
    put_operands(SHAPE, operands, made["dy"], made["w"])
    operands.dy.constant = True
    geometry = Geometry.of(SHAPE)
    machine.launch(Reorder(geometry, operands.w, operands.tap_major))
    tensors = DxTensors(operands.dy, operands.tap_major, operands.dx)
    return machine, operands, ConvDx(geometry, chosen, tensors, kind, 2), made


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_tiles_of_one_class_may_change_places(seed: int) -> None:
    """Panels, blocks and chunks in another order, each within its class, give the same bits on integer data."""
    machine, operands, kernel, made = machine_and_operands(TILING)
    other = Shuffled(kernel.geometry, kernel.tiling, kernel.tensors, kernel.operand, 2)
    other.seed = seed
    assert [w.panel for w in other.work(0, 2)] != [w.panel for w in kernel.work(0, 2)]
    machine.launch(other)
    reference = conv_backward_reference(SHAPE, made["dy"], made["w"], grads=("dx",))["dx"]
    np.testing.assert_array_equal(take_dx(SHAPE, operands), reference)


def signature(instruction: Instruction) -> Hashable:
    """What the cost depends on, the engine, and the sizes of what is touched, without addresses."""
    spans = tuple((v.buffer.memory, *v.range[1:]) for v in (*instruction.reads, *instruction.writes))
    extra = (instruction.signature(),) if isinstance(instruction, Copy) else ()
    return (instruction.queue, instruction.channel, instruction.name, spans, instruction.signature(), *extra)


def panel_signatures(kernel: ConvDx, core: Core, panel: int) -> list[Hashable]:
    """The signatures of a program whose only panel is the core's panel number `panel`."""

    class Alone(DxProgram):
        def __init__(self) -> None:
            super().__init__(kernel, core)
            self.mine = (self.mine[panel],)

    return [signature(instruction) for instruction in Alone().instructions()]


@pytest.mark.parametrize(
    "tiling", [TILING, {}, {"column": "rows"}, {"column": "none", "gsm_holds": "none"}, {"weights": "am"}]
)
def test_two_passes_over_a_class_emit_equal_signatures(tiling: dict[str, object]) -> None:
    """Panels of one class emit the same instructions, whatever came before; panels of two classes do not all."""
    machine, _, kernel, _ = machine_and_operands({"rows": 3, **tiling, "split": "batch"})
    cores = [Core(index, index, 2) for index in range(2)]
    kernel.setup(Space(cores, machine._own, machine._shared, machine._roles))
    by_class: dict[Hashable, list[list[Hashable]]] = {}
    for core in cores:
        for index, work in enumerate(kernel.work(core.rank, 2)):
            by_class.setdefault(kernel.work_class(work), []).append(panel_signatures(kernel, core, index))
    assert any(len(passes) > 1 for passes in by_class.values())
    for passes in by_class.values():
        assert all(one == passes[0] for one in passes)
    assert len({tuple(passes[0]) for passes in by_class.values()}) == len(by_class)


def test_a_program_walked_twice_is_the_same() -> None:
    """The program of a core has no memory: made a second time it has the same signatures and ranges."""
    machine, _, kernel, _ = machine_and_operands(TILING)
    core = Core(0, 0, 1)
    kernel.setup(Space([core], machine._own, machine._shared, machine._roles))
    passes = [
        [(signature(i), [v.range for v in (*i.reads, *i.writes)]) for i in kernel.program(core)]
        for _ in range(2)
    ]
    assert passes[0] == passes[1]


@pytest.mark.parametrize("rows", [1, 5, 14])
@pytest.mark.parametrize("cols", [1, 7, 30])
@pytest.mark.parametrize("images", [1, 2, 5])
@pytest.mark.parametrize("positions", [1, 6, 30, 200])
def test_the_estimate_counts_the_chunks_that_are_cut(
    rows: int, cols: int, images: int, positions: int
) -> None:
    """The kinds of chunks that tilings are compared by are those that a block is cut into."""
    counted: dict[tuple[int, int], int] = {}
    for chunk in chunks((Span(0, 0, rows, 0, cols),), images, positions):
        kind = (chunk.ib * chunk.span.rows * chunk.span.cols, chunk.ib * chunk.span.rows)
        counted[kind] = counted.get(kind, 0) + 1
    kinds = chunk_kinds(rows, cols, images, positions)
    assert {(m, runs): times for m, runs, times in kinds} == counted
