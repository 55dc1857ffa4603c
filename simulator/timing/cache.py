"""A cache between a memory and the cores: which lines of which blocks are resident, and what a copy finds there.

Blocks are replaced, the one used longest ago first; lines are fetched and written back. A block is known by its
address, so that it outlives launches. A line is resident from the start of its first fetch.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable
from functools import lru_cache
from itertools import product
from typing import NamedTuple, Protocol

from simulator.memory.ranges import Dims, Range, Runs
from targets.schema import CacheSpec


class Waiter(Protocol):
    """A copy with flows of its own that may wait for fetches of others."""

    def flowed(self, now: int) -> None:
        """A flow of its own has ended."""

    def arrived(self, now: int) -> None:
        """A fetch that it waits for has ended."""


class Fetch:
    """Lines on their way from the memory, fetched by one copy; others that want them are told when they are there."""

    __slots__ = ("_owner", "over", "waiters")

    def __init__(self, owner: Waiter) -> None:
        """A fetch that has not ended."""
        self._owner = owner
        self.over = False
        self.waiters: list[Waiter] = []

    def flowed(self, now: int) -> None:
        """The last byte has arrived."""
        self.over = True
        for waiter in self.waiters:
            waiter.arrived(now)
        self._owner.flowed(now)


class Found(NamedTuple):
    """What a copy found, in lines.

    Attributes:
        touched: lines that it touches.
        missing: lines that have to be fetched for it.
        evicted: lines that are written back to make room for it.
        awaited: fetches of others that bring lines it reads.
    """

    touched: int
    missing: int
    evicted: int
    awaited: tuple[Fetch, ...]


class Piece(NamedTuple):
    """What a range has of one block: the block's number, counted from the range's first, and lines as bits.

    `partial` are the lines of which the range has only a part.
    """

    block: int
    touched: int
    partial: int


class _Block:
    __slots__ = ("dirty", "fetches", "valid")

    def __init__(self) -> None:
        self.valid = self.dirty = 0
        self.fetches: list[tuple[int, Fetch]] = []


class Cache:
    """The blocks that are resident, the one used longest ago first."""

    def __init__(self, spec: CacheSpec) -> None:
        """An empty (cold) cache."""
        self.spec = spec
        self.line = spec.line
        self._size = spec.block_bytes
        self._most = spec.size_bytes // spec.block_bytes
        self._blocks: OrderedDict[int, _Block] = OrderedDict()

    def read(self, span: Range, outer: Dims, fetch: Fetch, *, runs: Runs | None = None) -> Found:
        """A copy reads a range, repeated along outer axes, or runs of it: what is not resident `fetch` fetches."""
        missing = evicted = 0
        awaited: dict[Fetch, None] = {}
        first, touched, found = self._pieces(span, outer, runs)
        blocks = self._blocks
        for number, lines, _ in found:
            block = blocks.get(first + number)
            if block is None:
                block, dirty = self._admit(first + number)
                evicted += dirty
            else:
                blocks.move_to_end(first + number)
                if block.fetches:
                    _await(block, lines, awaited)
            absent = lines & ~block.valid
            if absent:
                missing += absent.bit_count()
                block.valid |= absent
                block.fetches.append((absent, fetch))
        return Found(touched, missing, evicted, tuple(awaited))

    def write(
        self, span: Range, outer: Dims, fetch: Fetch, *, adds: bool = False, runs: Runs | None = None
    ) -> Found:
        """A copy writes it: lines of which it writes a part, or all where it adds, are fetched, by `fetch`."""
        missing = evicted = 0
        first, touched, found = self._pieces(span, outer, runs)
        blocks = self._blocks
        for number, lines, partial in found:
            block = blocks.get(first + number)
            if block is None:
                block, dirty = self._admit(first + number)
                evicted += dirty
            else:
                blocks.move_to_end(first + number)
            absent = (lines if adds else partial) & ~block.valid
            if absent:
                missing += absent.bit_count()
                block.fetches.append((absent, fetch))
            block.valid |= lines
            block.dirty |= lines
        return Found(touched, missing, evicted, ())

    def warm(self, ranges: Iterable[tuple[int, int]]) -> None:
        """Make (first, end) ranges of addresses resident, in this order, as if somebody had read them."""
        for start, end in ranges:
            first, _, found = self._pieces(Range(start, 1, end - start, end - start), ())
            for number, lines, _ in found:
                block = self._blocks.get(first + number) or self._admit(first + number)[0]
                block.valid |= lines
                self._blocks.move_to_end(first + number)

    def _pieces(
        self, span: Range, outer: Dims, runs: Runs | None = None
    ) -> tuple[int, int, tuple[Piece, ...]]:
        """The range's first block, how many lines it touches, and what it has of each block from there on."""
        if runs is not None:
            return (0, *pieces_of(runs.places, runs.run_bytes, self._size, self.line))
        first, offset = divmod(span.base, self._size)
        return (first, *pieces(offset, span.rows, span.row_bytes, span.stride, self._size, self.line, outer))

    def _admit(self, number: int) -> tuple[_Block, int]:
        """A new block, and how many lines are written back to make room for it."""
        blocks, evicted = self._blocks, 0
        while len(blocks) >= self._most:
            evicted += blocks.popitem(last=False)[1].dirty.bit_count()
        block = blocks[number] = _Block()
        return block, evicted


def _await(block: _Block, lines: int, awaited: dict[Fetch, None]) -> None:
    """Add the fetches that bring some lines of a block, and forget those that have ended."""
    block.fetches = [each for each in block.fetches if not each[1].over]
    for brings, fetch in block.fetches:
        if brings & lines:
            awaited[fetch] = None


@lru_cache(maxsize=16384)
def pieces(
    offset: int, rows: int, row_bytes: int, stride: int, block: int, line: int, outer: Dims = ()
) -> tuple[int, tuple[Piece, ...]]:
    """Lines of a range that begins `offset` bytes into a block, and what it has of each block, in their order.

    The range is repeated along `outer` axes, (size, stride) each.
    """
    axes = [range(0, size * step, step) for size, step in ((rows, stride or 1), *outer)]
    starts = (offset + sum(places) for places in product(*axes))
    return pieces_of(starts if row_bytes else (), row_bytes, block, line)


def pieces_of(starts: Iterable[int], row_bytes: int, block: int, line: int) -> tuple[int, tuple[Piece, ...]]:
    """Lines of rows that start anywhere, and what they have of each block, in the order of the blocks."""
    touched: dict[int, int] = {}
    whole: dict[int, int] = {}
    each = block // line
    for start in starts:
        end = start + row_bytes
        _mark(touched, start // line, -(-end // line), each)
        _mark(whole, -(-start // line), end // line, each)
    found = tuple(Piece(b, lines, lines & ~whole.get(b, 0)) for b, lines in sorted(touched.items()))
    return sum(lines.bit_count() for lines in touched.values()), found


def _mark(lines: dict[int, int], first: int, end: int, each: int) -> None:
    """Set the bits of lines first to end - 1, `each` of them a block."""
    while first < end:
        block, low = divmod(first, each)
        high = min(each, end - block * each)
        lines[block] = lines.get(block, 0) | ((1 << high) - (1 << low))
        first = (block + 1) * each
