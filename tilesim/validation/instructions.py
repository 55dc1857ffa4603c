"""What a measured instruction of a Da Vinci core costs by its cost rule, and the instruction that stands for it."""

from __future__ import annotations

import re
from collections.abc import Callable
from math import ceil

from simulator.cube import Fixpipe, Load2d, Mmad, Move
from simulator.cube.vector import REPEAT_BYTES, vector_cycles
from simulator.instructions import Cost, Instruction
from simulator.memory.memories import Buffer, View
from simulator.values.numerics import DType, dtype
from targets.errors import TilesimError
from targets.schema import UNITS_PER_BYTE, Target
from tilesim.validation.instruction_rows import VECTOR, InstructionRow

BURST_BYTES = 512
"""A transfer of several bursts is taken to have bursts of this size: none is shorter than a burst of the links."""

GROUPS = {
    "add sub mul max min and or axpy cmp cmpv sel addrelu subrelu addreluconv subreluconv mulconv": "binary",
    "reduce gatherb": "binary",
    "madd maddrelu mla": "multiply_add",
    "div": "divide",
    "exp ln sqrt": "special",
    "cadd": "reduce",
    "cmax cmin": "extreme",
    "cgadd cgmax cgmin": "reduce_block",
    "gather": "gather",
    "reducev2": "compact",
    "mrgsort": "sort",
}
"""The group of vector operations, by the names that the vendor gives them (without the V); all others are `unary`."""

GROUP_OF = {name: group for names, group in GROUPS.items() for name in names.split()}


def predicted_cycles(row: InstructionRow, target: Target) -> int:
    """Cycles of a row by the cost rule of its instruction.

    Raises:
        TilesimError: the target has no such instruction or path, or nothing stands for the row.
    """
    if row.family == VECTOR:
        return _vector(row, target)
    if row.family == "MOV UB_TO_UB":
        return vector_cycles(target, "unary", ceil(row.bytes / REPEAT_BYTES), wide=False)
    return lone_cycles(instruction_of(row).cost(target), target, paused=row.mode == "isolated")


def lone_cycles(cost: Cost, target: Target, *, paused: bool) -> int:
    """Cycles of an instruction that has its path for itself, after a pause of its engine or at once."""
    start = cost.cycles + (cost.idle_cycles if paused else 0)
    if not cost.path:
        return start
    path = target.path[cost.path]
    units = target.port_units(path.port)
    if path.link:
        link = target.link[path.link]
        factor = link.read_cost if path.direction == "read" else link.write_cost
        units = min(units, int(target.link_units(path.link) / factor))
    return max(cost.floor_cycles, start + ceil(cost.charged_bytes * UNITS_PER_BYTE / units))


def _vector(row: InstructionRow, target: Target) -> int:
    found = re.match(r"VEC V([^_]+)_\D*(\d+)", row.instruction)
    if found is None:
        raise TilesimError("a vector operation without a type", where=row.name, got=row.instruction)
    group = GROUP_OF.get(found[1].lower(), "unary")
    wide = int(found[2]) >= 32  # bits of an element
    return vector_cycles(target, group, row.repeat, wide=wide)


def instruction_of(row: InstructionRow) -> Instruction:
    """The instruction that a row measured.

    Raises:
        TilesimError: there is none.
    """
    if row.family == "MMAD":
        return _mmad(row)
    kind, _, memories = row.family.partition(" ")
    source, arrow, destination = memories.lower().removesuffix("_trans").partition("_to_")
    make = MAKERS.get(source if kind == "MOV" else kind, _move)
    if not arrow or kind not in ("MOV", "LOAD2D"):
        raise TilesimError("an instruction that nothing stands for", where=row.name, got=row.family)
    if destination in ("l0a", "l0b") and source == "l1":
        make = _load
    return make(row, source, destination)


def _mmad(row: InstructionRow) -> Instruction:
    m, k, n = (row.sizes[name] for name in "mkn")
    half, single = dtype("fp16"), dtype("fp32")
    out, a, b = _packed("l0c", (m, n), single), _packed("l0a", (m, k), half), _packed("l0b", (k, n), half)
    return Mmad(out, a, b, rate="fp16")


def _load(row: InstructionRow, source: str, destination: str) -> Instruction:
    elements = row.bytes // 2
    shape = (16, elements // 16) if destination == "l0a" else (elements // 16, 16)
    return Load2d(_packed(destination, shape, dtype("fp16")), _packed(source, shape, dtype("fp16")))


def _move(row: InstructionRow, source: str, destination: str) -> Instruction:
    elements, half = row.bytes // 2, dtype("fp16")
    if row.bursts == "one" or elements * 2 <= BURST_BYTES:
        return Move(_packed(destination, (elements,), half), _packed(source, (elements,), half))
    rows = ceil(row.bytes / BURST_BYTES)
    transposed = row.family.endswith("_TRANS")
    shape = (rows, elements // rows)
    apart = Buffer(source, "source", 0, (rows, 2 * shape[1]), half, shared=False).box((0, 0), shape)
    return Move(_packed(destination, shape, half), apart, transpose=transposed)


def _fixpipe(row: InstructionRow, source: str, destination: str) -> Instruction:
    """Bytes of a row are those of the sums in L0C; what goes to L1 is cast to 16 bits."""
    elements = row.bytes // 4
    kind = dtype("fp16" if destination == "l1" else "fp32")
    sums = _packed(source, (elements,), dtype("fp32"))
    return Fixpipe(_packed(destination, (elements,), kind), sums, layout="nz")


MAKERS: dict[str, Callable[[InstructionRow, str, str], Instruction]] = {"l0c": _fixpipe}


def _packed(memory: str, shape: tuple[int, ...], kind: DType) -> View:
    return Buffer(memory, memory, 0, shape, kind, shared=False).box((0,) * len(shape), shape)
