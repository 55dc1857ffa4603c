"""A matrix product on cube cores: tiles of c in L0C, chunks of K in L1, steps of K in L0.

for each tile of c:                                    (m x n, sums in L0C)
    for each chunk of K:                               (rows of a and b: GM to L1, fractals on the way)
        for each step of K:                            (load2d: a to L0A, b to L0B)
            sums += a [m, k] x b [k, n]
    sums to c: rounded once, or added where several cores share K
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass

from kernels.davinci.moving import Out, store
from kernels.davinci.product_rules import Matrices, block_parts, product_l1_depths, product_ring_sizes
from kernels.davinci.product_walk import Tile, division_of, in_run, in_windows, of_block, of_rounds, of_run
from kernels.davinci.space import Rings
from kernels.davinci.tiles import ceil_to, pieces
from kernels.davinci.tiling import ProductTiling
from simulator.cube import Load2d, Mmad, Move
from simulator.instructions import Instruction
from simulator.kernel import Core, Space
from simulator.memory.memories import Buffer, View
from simulator.tiles import Loop, Step, walk


@dataclass(frozen=True, slots=True)
class ProductTensors:
    """In main memory: a [M, K] or [K, M], b [K, N] or [N, K], and what the sums go to, or are added to, [M, N]."""

    a: Buffer
    b: Buffer
    c: Buffer
    adds: bool = False


class Product:
    """The kernel of one launch."""

    name = "gemm"
    kind = "gemm"
    axes: tuple[str, ...] = ("m", "n", "part", "k")

    def __init__(self, matrices: Matrices, tiling: ProductTiling, tensors: ProductTensors) -> None:
        """A kernel for these matrices."""
        self.matrices = matrices
        self.tiling = tiling
        self.tensors = tensors
        self.rings = Rings(matrices.target, matrices.operand)
        self.core_kinds = (self.rings.cube,)

    def tiles(self, rank: int, count: int) -> list[Tile]:
        """What a core does, in order."""
        p, t = self.matrices, self.tiling
        part = ceil_to(max(1, -(-p.k // t.split_k)), t.k)
        axes = pieces(p.m, t.m), pieces(p.n, t.n), pieces(p.k, part)
        if t.walk == "run":
            return of_run(in_run(*axes), count, rank)
        if t.walk == "block":
            return of_block(axes[0], axes[1], (0, p.k), block_parts(p, t), rank)
        every = in_windows(*axes)
        left = len(every) % count if len(every) > count else 0
        item = p.operand.size_bytes
        sides = t.m * item if p.trans_a else None, None if p.trans_b else t.n * item
        return of_rounds(every, count, rank, division_of(left, count, *sides))

    def core_class(self, rank: int, count: int) -> Hashable | None:
        """Tiles of equal sizes."""
        return tuple((t.rows, t.columns, t.depth) for t in self.tiles(rank, count)) or None

    def origins(self, rank: int, count: int) -> list[tuple[int, ...]]:
        """(m, n, part) of a core's tiles."""
        return [(t.row, t.column, t.k) for t in self.tiles(rank, count)]

    def setup(self, space: Space) -> None:
        """Rings in L1, L0 and on the way out."""
        sizes, t, operand = product_ring_sizes(self.matrices, self.tiling), self.tiling, self.matrices.operand
        less = "lower chunk, m or n of the tiling"
        for name, depth in product_l1_depths(self.matrices, t).items():
            space.ring(name, "l1", sizes[name], operand, depth=depth, remedy=less)
        self.rings.set_up(space, sizes, t.l0c, self.tensors.c.dtype)

    def program(self, core: Core) -> Iterator[Instruction]:
        """Tiles, chunks, steps."""
        return _Program(self, core).instructions()

    def values(self, core: Core) -> Iterator[Instruction]:
        """The same: numbers are made by the instructions that are timed."""
        return self.program(core)


class _Program:
    """Stages of tiles (store), chunks (load to L1) and K steps (load to L0, multiply)."""

    def __init__(self, kernel: Product, core: Core) -> None:
        self.kernel = kernel
        self.core = core
        self.matrices = kernel.matrices
        self.mine = kernel.tiles(core.rank, core.count)
        self.stays = kernel.tiling.walk == "block"
        chunks = -(-self.matrices.k // kernel.tiling.chunk)
        self.slots = {
            name: {first: i * chunks for i, first in enumerate(dict.fromkeys(firsts))}
            for name, firsts in (
                ("left", [tile.row for tile in self.mine]),
                ("right", [tile.column for tile in self.mine]),
            )
        }

    def instructions(self) -> Iterator[Instruction]:
        """All of it."""
        t = self.kernel.tiling
        loops = (
            Loop(lambda _: self.mine, store=self._store, ahead=0),
            Loop(self._chunks, load=self._load_chunk, ahead=t.l1 - 1, fence=t.l1 == 1),
            Loop(self._steps, load=self._load_step, ahead=1),
        )
        yield from walk(loops, self._multiply)

    def _chunks(self, up: Step | None) -> list[tuple[int, int]]:
        tile = _tile(up)
        return [(tile.k + first, size) for first, size in pieces(tile.depth, self.kernel.tiling.chunk)]

    def _steps(self, up: Step | None) -> list[tuple[int, int]]:
        assert up is not None  # noqa: S101  # the loops lie in each other
        return pieces(up.tile[1], self.kernel.tiling.k)

    def _coords(self, tile: Tile, k: int) -> tuple[int, ...]:
        return tile.row, tile.column, tile.k, k

    def _load_chunk(self, step: Step) -> Iterator[Instruction]:
        """Rows of a, then of b; of a block's operands, what no tile before had."""
        tile, (k, size), p = _tile(step.up), step.tile, self.matrices
        boxes = (
            ("left", self.kernel.tensors.a, (tile.row, tile.rows), p.trans_a),
            ("right", self.kernel.tensors.b, (tile.column, tile.columns), not p.trans_b),
        )
        other = {"left": self.slots["right"].get(tile.column), "right": self.slots["left"].get(tile.row)}
        for name, tensor, (first, count), k_first in boxes:
            if self.stays and other[name]:
                continue  # the first tile along the other side loads it
            start, extent = ((k, first), (size, count)) if k_first else ((first, k), (count, size))
            local = self._in_l1(name, step).dense(extent)
            coords = self._coords(tile, k)
            yield Move(local, tensor.box(start, extent), nd2nz=True, coords=coords, name=f"load_{name}")

    def _load_step(self, step: Step) -> Iterator[Instruction]:
        """A to L0A, b to L0B; what lies with K along its rows is turned on the way."""
        up, p = step.up, self.matrices
        assert up is not None  # noqa: S101  # the loops lie in each other
        tile, (_, chunk), (first, size) = _tile(up.up), up.tile, step.tile
        left, right = self._in_l1("left", up), self._in_l1("right", up)
        coords = self._coords(tile, up.tile[0])
        source = _part(left, tile.rows, chunk, first, size, k_first=p.trans_a)
        axes = (1, 0) if p.trans_a else None
        yield Load2d(self._a(step, tile, size), source, transpose=p.trans_a, axes=axes, coords=coords)
        source = _part(right, tile.columns, chunk, first, size, k_first=not p.trans_b)
        axes = (1, 0) if p.trans_b else (0, 1)
        yield Load2d(self._b(step, tile, size), source, transpose=not p.trans_b, axes=axes, coords=coords)

    def _in_l1(self, name: str, step: Step) -> Buffer:
        """Where a chunk of an operand lies: in a ring, or in its place among all of a block."""
        if not self.stays:
            return self.core.rings[name][step.ordinal]
        tile = _tile(step.up)
        first = tile.row if name == "left" else tile.column
        return self.core.rings[name][self.slots[name][first] + step.tile[0] // self.kernel.tiling.chunk]

    def _a(self, step: Step, tile: Tile, size: int) -> View:
        return self.core.rings["a"][step.ordinal].dense((tile.rows, size))

    def _b(self, step: Step, tile: Tile, size: int) -> View:
        return self.core.rings["b"][step.ordinal].dense((size, tile.columns))

    def _sums(self, tile: Tile, ordinal: int) -> View:
        return self.core.rings["sums"][ordinal].dense((tile.rows, tile.columns))

    def _multiply(self, step: Step) -> Iterator[Instruction]:
        """One step of K."""
        up = step.up
        assert up is not None and up.up is not None  # noqa: S101, PT018  # the loops lie in each other
        tile, (k, _), (first, size) = _tile(up.up), up.tile, step.tile
        yield Mmad(
            self._sums(tile, up.up.ordinal),
            self._a(step, tile, size),
            self._b(step, tile, size),
            rate=self.matrices.rate,
            accumulate=k + first > tile.k,
            coords=self._coords(tile, k),
        )

    def _store(self, step: Step) -> Iterator[Instruction]:
        """The tile leaves, row by row as c lies."""
        tile: Tile = step.tile
        place = self.kernel.tensors.c.box((tile.row, tile.column), (tile.rows, tile.columns))
        out = Out((tile.rows, tile.columns), (slice(None),), (0, 1), "nd")
        sums, coords = self._sums(tile, step.ordinal), self._coords(tile, -1)
        atomic = self.kernel.tensors.adds or self.kernel.tiling.split_k > 1
        yield from store(self.core, self.kernel.rings, place, sums, out, coords, atomic=atomic)


def _part(ring: Buffer, rows: int, chunk: int, first: int, size: int, *, k_first: bool) -> View:
    """A step's part of a chunk [rows, chunk], or [chunk, rows]."""
    if k_first:
        return ring.box((first, 0), (size, rows), frame=(chunk, rows))
    return ring.box((0, first), (rows, size), frame=(rows, chunk))


def _tile(step: Step | None) -> Tile:
    """The tile of a step of the outermost loop."""
    assert step is not None  # noqa: S101  # the loops lie in each other
    tile: Tile = step.tile
    return tile
