"""The instructions of a machine: preconditions, semantics and cost rule of each in one place.

An instruction is a timing signature (what its cost depends on), ranges that it reads and writes (what its
hazards depend
on), and the numbers it makes (`execute`). A cost rule sees sizes, types and the target, never values or addresses.
"""

from __future__ import annotations

from collections.abc import Hashable
from math import ceil
from typing import ClassVar, NamedTuple

import numpy as np

from simulator.errors import ProgramError
from simulator.memory.memories import View
from simulator.memory.ranges import Range
from simulator.values.numerics import Array, product, product_fp16
from targets.schema import MatmulSpec, PathSpec, Target

Coords = tuple[int, ...]

OPERATION, BARRIER, FLAG_SET, FLAG_WAIT = range(4)
"""Kinds of instructions."""


class Cost(NamedTuple):
    """What an instruction costs.

    issue_cycles are spent by the scalar unit; cycles is a fixed time on the engine (a copy's start-up);
    charged_bytes is
    what the path's link carries, in whole bursts; path is empty for what is not a copy. What has a path runs on the
    engine of the path. idle_cycles come on top of cycles where nothing ended on the engine in the cycle of the start.
    """

    issue_cycles: int
    cycles: int
    path: str = ""
    charged_bytes: int = 0
    floor_cycles: int = 0
    overlap: bool = False
    idle_cycles: int = 0


class Instruction:
    """One step of a core's program, for one engine of the core.

    Attributes:
        engine: the kind of engine ("vpu", "dma"), or "scalar"; a copy takes that of its path instead.
        channel: which engine of that kind.
        reads, writes: the views that hazards are derived from; a copy's source and destination come first.
        coords: tile coordinates for the trace, by the axes of the kernel.
        macs: multiply-adds that are executed, with padding.
        moved: bytes that it copies.
        atomic: it adds to what is at its destination, in the memory: such additions of several cores do not race.
        kind: operation, barrier, flag set or flag wait.
    """

    __slots__ = ("channel", "coords", "reads", "writes")
    engine: ClassVar[str] = "scalar"
    kind: ClassVar[int] = OPERATION
    name: str = "?"
    macs: int = 0
    moved: int = 0
    atomic: bool = False

    def __init__(
        self, reads: tuple[View, ...], writes: tuple[View, ...], coords: Coords = (), channel: int = 0
    ) -> None:
        """Keep what the machine derives hazards from."""
        self.reads = reads
        self.writes = writes
        self.coords = coords
        self.channel = channel

    @property
    def queue(self) -> str:
        """The kind of engine whose queue holds it, unless its cost names a path."""
        return self.engine

    def signature(self) -> Hashable:
        """All that the cost depends on."""
        raise NotImplementedError

    def cost(self, target: Target) -> Cost:
        """The cost on a target; a pure function of the signature."""
        raise NotImplementedError

    def execute(self) -> None:
        """Compute the numbers, when the instruction completes."""


def link_bytes(rows: int, row_bytes: int, stride: int, burst: int, overhead: int) -> int:
    """Bytes that a link carries for `rows` pieces of `row_bytes`: whole bursts a row, and the overhead of a row.

    Rows whose distance is no multiple of the burst start anywhere in one, so that the worst of them straddles one more;
    the base is taken as aligned, so that equal tiles cost the same wherever they lie.
    """
    if rows == 0 or row_bytes == 0:
        return 0
    shift = 0 if rows == 1 or stride % burst == 0 else burst - np.gcd(stride, burst)
    return rows * (ceil((row_bytes + int(shift)) / burst) * burst + overhead)


def path_bytes(target: Target, path: PathSpec, side: Range) -> int:
    """Bytes that a path's link carries for the range on its side; without a link, as many as there are."""
    if not path.link:
        return side.bytes
    link = target.link[path.link]
    return link_bytes(side.rows, side.row_bytes, side.stride, link.burst_bytes, link.row_overhead_bytes)


def matmul_cycles(spec: MatmulSpec, groups: int, m: int, n: int, k: int) -> int:
    """Cycles of `groups` products m x n x k: calls of the micro-kernel over row blocks and column blocks.

    A call costs a fixed time and `granule_cycles` a step of k for its width; tail rows cost a whole kernel. A
    product costs `once_cycles` more, whatever its blocks.
    """
    granules, widest = ceil(n / spec.granule_columns), len(spec.granule_cycles)
    widths = [widest] * (granules // widest) + ([granules % widest] if granules % widest else [])
    overhead = spec.fixed_cycles + spec.call_cycles
    columns = sum(overhead + ceil(spec.granule_cycles[w - 1] * k) for w in widths)
    return groups * (spec.once_cycles + ceil(m / spec.kernel_rows) * columns)


class Copy(Instruction):
    """A DMA transfer between two memories: two-dimensional on both sides, the same bytes on both."""

    __slots__ = ("dst", "moved", "name", "src")
    engine = "dma"

    def __init__(
        self, dst: View, src: View, *, channel: int = 0, coords: Coords = (), name: str = "copy"
    ) -> None:
        """Copy src to dst.

        Raises:
            ProgramError: sizes or types differ, or a side is no two-level range.
        """
        moved = src.range.rows * src.range.row_bytes
        if dst.range.rows * dst.range.row_bytes != moved or dst.buffer.dtype is not src.buffer.dtype:
            raise ProgramError(
                "a copy between unlike ranges",
                where=f"{src.buffer.name} -> {dst.buffer.name}",
                got=f"{src.shape} {src.buffer.dtype.name} -> {dst.shape} {dst.buffer.dtype.name}",
            )
        if not (dst.exact and src.exact):
            raise ProgramError(
                "a DMA moves rows of one stride",
                where=f"{src.buffer.name} -> {dst.buffer.name}",
                got=f"a box {src.shape} with more than two levels",
                remedy="split it with box_copies",
            )
        super().__init__((src,), (dst,), coords, channel)
        self.dst = dst
        self.src = src
        self.moved = moved
        self.name = name

    def signature(self) -> Hashable:
        """Memories and both ranges without their bases."""
        s, d = self.src.range, self.dst.range
        return (self.src.buffer.memory, self.dst.buffer.memory, s[1], s[2], s[3], d[1], d[2], d[3])

    def cost(self, target: Target) -> Cost:
        """Issue, start-up of the path, and whole bursts on the side of the path's link."""
        key = f"{self.src.buffer.memory}->{self.dst.buffer.memory}"
        path = target.path.get(key)
        if path is None:
            raise ProgramError(
                "no such path", where=target.name, got=key, limit=", ".join(sorted(target.path))
            )
        side = (self.src if path.direction == "read" else self.dst).range
        charged = path_bytes(target, path, side)
        return Cost(
            target.issue.copy_cycles, path.start_cycles, key, charged, path.floor_cycles, path.overlap
        )

    def execute(self) -> None:
        """Move the numbers."""
        self.dst.put(self.src.array())


class Matmul(Instruction):
    """out [m, n] (+)= a [m, k] times b [k, n], or `groups` such products side by side.

    With groups: a is [m, groups, k], b is [groups, k, n], out is [groups, m, n]. One instruction is one
    tile: its cost sums
    the micro-kernel calls inside it.
    """

    __slots__ = ("accumulate", "groups", "k", "m", "macs", "n", "rate")
    engine = "vpu"
    name = "matmul"

    def __init__(
        self, out: View, a: View, b: View, *, rate: str, accumulate: bool = False, coords: Coords = ()
    ) -> None:
        """Multiply on the rate table `rate` of the target ("fp32", "fp16", "fp16_fp16").

        Raises:
            ProgramError: the sizes do not fit each other.
        """
        groups = b.shape[0] if len(b.shape) == 3 else 1
        m, k, n = a.shape[0], a.shape[-1], b.shape[-1]
        expected = (groups, m, n) if len(b.shape) == 3 else (m, n)
        if out.shape != expected or b.shape[-2] != k or (len(b.shape) == 3 and a.shape[1] != groups):
            raise ProgramError(
                "a product of sizes that do not fit", got=f"{a.shape} x {b.shape} -> {out.shape}"
            )
        super().__init__((a, b, out) if accumulate else (a, b), (out,), coords)
        self.groups, self.m, self.n, self.k = groups, m, n, k
        self.macs = groups * m * n * k
        self.rate = rate
        self.accumulate = accumulate

    def signature(self) -> Hashable:
        """Sizes and rate."""
        return ("matmul", self.rate, self.groups, self.m, self.n, self.k)

    def cost(self, target: Target) -> Cost:
        """Calls of the target's micro-kernel over row blocks and column blocks; tail rows cost a whole kernel."""
        spec = target.matmul.get(self.rate)
        if spec is None:
            raise ProgramError(
                "no such matrix rate", where=target.name, got=self.rate, limit=", ".join(target.matmul)
            )
        cycles = matmul_cycles(spec, self.groups, self.m, self.n, self.k)
        return Cost(target.issue.matmul_cycles, cycles)

    def execute(self) -> None:
        """Multiply; fp32 sums unless the rate accumulates in fp16."""
        a, b = self.reads[0].array(), self.reads[1].array()
        left = a.swapaxes(0, 1) if len(b.shape) == 3 else a
        out = self.writes[0].array()
        if self.rate.endswith("_fp16"):
            out[...] = product_fp16(out if self.accumulate else None, left, b)
        elif self.accumulate:
            np.add(out, product(left, b, passing=True), out=out)
        else:
            out[...] = product(left, b, passing=True)


Parts = tuple[tuple[tuple[slice | int, ...], tuple[slice | int, ...]], ...]
"""Pairs of numpy indices, into a result and into what is added to it."""


def add_parts(out: Array, source: Array, parts: Parts, axes: tuple[int, ...] | None) -> None:
    """out[target] += source[origin] for each pair, the axes of the source reordered."""
    with np.errstate(over="ignore", invalid="ignore"):
        for target, origin in parts:
            term, place = source[origin], out[target]
            np.add(place, term if axes is None else term.transpose(axes), out=place)


class MatmulInto(Matmul):
    """A product whose rows are added straight onto strided parts of a packed result: no columns are kept.

    The micro-kernel loads and stores its result rows where they lie, at the cost of any other product.
    """

    __slots__ = ("axes", "out", "parts", "product_shape")
    name = "matmul_into"

    def __init__(
        self,
        out: View,
        product_shape: tuple[int, ...],
        a: View,
        b: View,
        parts: Parts,
        *,
        rate: str,
        axes: tuple[int, ...] | None = None,
        coords: Coords = (),
    ) -> None:
        """Add the parts of the product, seen in `product_shape`, onto `out`."""
        groups = b.shape[0] if len(b.shape) == 3 else 1
        m, n = a.shape[0], b.shape[-1]
        shape = (groups, m, n) if len(b.shape) == 3 else (m, n)
        super().__init__(
            View(out.buffer, out.start, shape, out.range, out.exact),
            a,
            b,
            rate=rate,
            accumulate=True,
            coords=coords,
        )
        self.out = out
        self.product_shape = product_shape
        self.parts = parts
        self.axes = axes

    def execute(self) -> None:
        """Multiply and add part by part."""
        a, b = self.reads[0].array(), self.reads[1].array()
        left = a.swapaxes(0, 1) if len(b.shape) == 3 else a
        made = product_fp16(None, left, b) if self.rate.endswith("_fp16") else product(left, b, passing=True)
        add_parts(self.out.array(), made.reshape(self.product_shape), self.parts, self.axes)


class Barrier(Instruction):
    """Wait until every core of the launch (or of `cores`) has come here.

    A core arrives when its earlier instructions that touch shared memory have ended.
    """

    __slots__ = ("cores", "key")
    kind = BARRIER
    name = "barrier"

    def __init__(self, key: int = 0, cores: tuple[int, ...] | None = None) -> None:
        """Barrier number `key`."""
        super().__init__((), ())
        self.key = key
        self.cores = cores

    def signature(self) -> Hashable:
        """The barrier's number and its cores."""
        return ("barrier", self.key, self.cores)

    def cost(self, target: Target) -> Cost:
        """Only its issue; the wait is the machine's."""
        return Cost(target.issue.barrier_cycles, 0)


class FlagSet(Instruction):
    """Raise a flag for another core, when the engine has done what was issued to it before."""

    __slots__ = ("_engine", "flag")
    kind = FLAG_SET
    name = "set_flag"

    def __init__(self, flag: Hashable, engine: str, *, channel: int = 0) -> None:
        """Queue the set on an engine; a flag goes by any value, for all cores of the launch."""
        super().__init__((), (), (), channel)
        self.flag = flag
        self._engine = engine

    @property
    def queue(self) -> str:
        """The engine whose queue holds it."""
        return self._engine

    def signature(self) -> Hashable:
        """Sets cost the same."""
        return (self.name,)

    def cost(self, target: Target) -> Cost:
        """Its issue; it takes no time on the engine."""
        return Cost(target.issue.flag_set_cycles, 0)


class FlagWait(FlagSet):
    """Hold an engine until a flag was raised, and lower it."""

    __slots__ = ()
    kind = FLAG_WAIT
    name = "wait_flag"

    def cost(self, target: Target) -> Cost:
        """Its issue, and the latency of a flag between cores after the set."""
        return Cost(target.issue.flag_wait_cycles, target.sync.cross_core_flag_latency_cycles)
