"""The kernels of dw, db and their sums are functions of the tile: their order does not matter, nothing is kept."""

from __future__ import annotations

from collections.abc import Hashable
from random import Random
from typing import Any

import numpy as np
import pytest

from kernels.dsp.dw.bias import ConvDb, SumRows
from kernels.dsp.dw.kernel import ConvDw, DwTensors, Work
from kernels.dsp.dw.lowering import allocate_dw, dw_tiling, put_x, take_dw
from kernels.dsp.dw.program import DwProgram
from kernels.dsp.dw.reduce import Reduce
from kernels.dsp.dw.shares import Block
from kernels.dsp.dw.turns import Turn
from kernels.dsp.dx.geometry import Geometry
from kernels.dsp.dx.lowering import allocate_dy, put_dy
from kernels.dsp.dx.reorder import Restore
from kernels.reference.references import conv_backward_reference
from kernels.shape.shapes import ConvShape
from simulator.kernel import Core, Space
from simulator.machine import Checks, Machine
from simulator.memory.memories import Buffer, fill_from
from simulator.values.numerics import dtype
from targets.loader import load_target
from tests.kernels.sweep import operands
from tests.kernels.test_kernel_rules import shuffled, signature

SHAPE = ConvShape(n=5, cin=40, size=(10, 9), cout=24, kernel=(3, 3), padding=1)
TILING = {"split": "channels", "out_channels": 8, "channels": 20, "taps": 3, "k": 20, "rows": 4}
FP32 = dtype("fp32")


class Shuffled(ConvDw):
    """The kernel with its blocks and chunks in another order, each within its class."""

    seed = 7

    def work(self, rank: int, count: int) -> Work | None:
        """Blocks and the chunks of each, shuffled."""
        work = super().work(rank, count)
        if work is None:
            return None
        order = shuffled(list(range(len(work.blocks))), [b.size for b in work.blocks], self.seed)
        turns: list[Turn] = []
        starts = [0]
        for place, block in enumerate(order):
            mine = list(work.turns[work.starts[block] : work.starts[block + 1]])
            Random(self.seed).shuffle(mine)  # noqa: S311  # an order, not a secret
            turns += [Turn(place, turn.plan, turn.n) for turn in mine]
            starts.append(len(turns))
        blocks: tuple[Block, ...] = tuple(work.blocks[block] for block in order)
        return Work(blocks, tuple(turns), tuple(starts))


def prepared(kind: type[ConvDw], tiling: dict[str, Any]) -> tuple[Machine, ConvDw, Any, dict[str, Any]]:
    """A machine with operands in DDR, and the kernel."""
    machine = Machine(load_target("mt7004"), range(2), checks=Checks(values="instructions"))
    chosen = dw_tiling(SHAPE, FP32, machine, tiling)
    dy = allocate_dy(SHAPE, FP32, machine)
    held = allocate_dw(SHAPE, FP32, machine, chosen)
    made = operands(SHAPE, "fp32", ("dw",), True)
    put_dy(SHAPE, dy, made["dy"])
    put_x(SHAPE, held, made["x"])
    dy.constant = held.x.constant = True
    return machine, kind(Geometry.of(SHAPE), chosen, DwTensors(dy, held.x, held.sums), FP32), held, made


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_blocks_and_chunks_may_change_places(seed: int) -> None:
    """Blocks and chunks in another order give the same bits on integer data."""
    machine, kernel, held, made = prepared(Shuffled, TILING)
    assert isinstance(kernel, Shuffled)
    kernel.seed = seed
    plain = ConvDw(kernel.geometry, kernel.tiling, kernel.tensors, kernel.operand)
    assert kernel.work(0, 2) != plain.work(0, 2)
    machine.launch(kernel)
    tap_major = held.tap_major.reshaped((SHAPE.cout, SHAPE.taps, SHAPE.cin))
    machine.launch(Restore(kernel.geometry, tap_major, held.dw))
    reference = conv_backward_reference(SHAPE, made["dy"], x=made["x"], grads=("dw",))["dw"]
    np.testing.assert_array_equal(take_dw(SHAPE, held), reference)


def block_signatures(kernel: ConvDw, core: Core, index: int) -> list[Hashable]:
    """The signatures of a program whose only block is the core's block number `index`."""
    work = kernel.work(core.rank, core.count)
    assert work is not None
    turns = work.turns[work.starts[index] : work.starts[index + 1]]
    program = DwProgram(kernel, core)
    alone = tuple(Turn(0, turn.plan, turn.n) for turn in turns)
    program.work = Work((work.blocks[index],), alone, (0, len(alone)))
    return [signature(instruction) for instruction in program.instructions()]


@pytest.mark.parametrize(
    "tiling", [TILING, {**TILING, "ahead": 0}, {**TILING, "split": "batch", "channels": 16}]
)
def test_two_passes_over_a_class_emit_equal_signatures(tiling: dict[str, Any]) -> None:
    """Blocks of one class emit the same instructions; blocks of two classes do not all."""
    machine, kernel, _, _ = prepared(ConvDw, tiling)
    cores = [Core(index, index, 2) for index in range(2)]
    kernel.setup(Space(cores, machine._own, machine._shared, machine._roles))
    by_class: dict[Hashable, list[list[Hashable]]] = {}
    for core in cores:
        work = kernel.work(core.rank, 2)
        assert work is not None
        for index, block in enumerate(work.blocks):
            turns = work.turns[work.starts[index] : work.starts[index + 1]]
            kind = (block.size, tuple(turn.plan and turn.plan.key() for turn in turns))
            by_class.setdefault(kind, []).append(block_signatures(kernel, core, index))
    assert any(len(passes) > 1 for passes in by_class.values())
    for passes in by_class.values():
        assert all(one == passes[0] for one in passes)
    assert len({tuple(passes[0]) for passes in by_class.values()}) == len(by_class)


def test_a_program_walked_twice_is_the_same() -> None:
    """The programs have no memory: made a second time they have the same signatures and ranges."""
    machine, kernel, held, _ = prepared(ConvDw, TILING)
    partial = machine.tensor("partial", (3, 24, 9, 40), FP32)
    db = machine.tensor("db", (2, 24), FP32)
    for each in (kernel, ConvDb(kernel.tensors.dy, db, 7), Reduce("reduce_dw", partial, held.tap_major)):
        core = Core(1, 1, 2)
        each.setup(Space([core], machine._own, machine._shared, machine._roles))
        passes = [
            [(signature(i), [v.range for v in (*i.reads, *i.writes)]) for i in each.program(core)]
            for _ in range(2)
        ]
        assert passes[0] == passes[1]
        machine._release()


def test_partial_sums_are_added_in_the_order_of_the_cores() -> None:
    """1 + 2**-24 + 2**-24 is 1 from the left in fp32, and more from the right."""
    machine = Machine(load_target("mt7004"), range(4))
    partial, result = machine.tensor("partial", (3, 70_000), FP32), machine.tensor("sum", (70_000,), FP32)
    fill_from(partial, np.repeat(np.array([[1], [2.0**-24], [2.0**-24]]), 70_000, axis=1))
    partial.constant = True
    record = machine.launch(Reduce("reduce", partial, result))
    assert record.cores == 4
    np.testing.assert_array_equal(result.numbers(), np.ones(70_000))
    fill_from(partial, np.repeat(np.array([[2.0**-24], [2.0**-24], [1]]), 70_000, axis=1))
    machine.launch(Reduce("reduce", partial, result))
    np.testing.assert_array_equal(result.numbers(), np.full(70_000, 1 + 2.0**-23))


def test_a_sum_of_rows_costs_a_load_a_register() -> None:
    """40 rows of 96 fp32 sums: (40 + 2) x 3 registers at 4 a cycle, one loop, one call."""
    sums, rows = Buffer("am", "sums", 0, (96,), FP32, False), Buffer("am", "rows", 512, (3840,), FP32, False)
    target = load_target("mt7004")
    cost = SumRows(sums.dense((96,)), rows.dense((40, 96))).cost(target)
    assert cost.cycles == 32 + target.vector_unit.run_cycles + target.vector_unit.call_cycles
    wide = Buffer("am", "wide", 0, (1024,), FP32, False)
    row = Buffer("am", "row", 8192, (1024,), FP32, False)
    cost = SumRows(wide.dense((1024,)), row.dense((1, 1024))).cost(target)
    assert cost.cycles == 24 + 2 * target.vector_unit.run_cycles + target.vector_unit.call_cycles
