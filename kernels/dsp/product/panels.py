"""A transposed A on its way to GSM: squares through AM, where the vector unit turns them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from kernels.dsp.product.tiling import strips
from simulator.instructions import Coords, Instruction
from simulator.kernel import Ring
from simulator.memory.boxes import load_box, store_box
from simulator.memory.memories import Buffer
from simulator.tiles import Loop, Step, walk
from simulator.vector import Permute

LOAD_A, LOAD_B, LOAD_C, STORE = range(4)
"""DMA channels: A tiles, B tiles, panels and C tiles, results."""


def turned_panel(
    rings: Mapping[str, Ring],
    a: Buffer,
    panel: tuple[int, int, int, int],
    part: tuple[int, int],
    side: int,
    coords: Coords,
) -> Iterator[Instruction]:
    """Rows of a panel of A into the ring "panel", from a [K, M].

    Args:
        rings: "turn_in" and "turn_out" in AM and "panel" in GSM.
        a: the matrix in DDR.
        panel: first row, first step of k, rows and steps of k.
        part: first of the rows to bring, and how many.
        side: of the squares.
        coords: for the trace.
    """
    m0, k0, rows, depth = panel
    squares = [(m, mb, k, kb) for m, mb in strips(*part, side) for k, kb in strips(0, depth, side)]

    def load(step: Step) -> Iterator[Instruction]:
        m, mb, k, kb = step.tile
        given, start = rings["turn_in"][step.ordinal], (k0 + k, m0 + m)
        yield from load_box(given, a, start, (kb, mb), channel=LOAD_C, coords=coords, name="load_panel")

    def turn(step: Step) -> Iterator[Instruction]:
        m, mb, k, kb = step.tile
        turned = rings["turn_out"][step.ordinal]
        given = rings["turn_in"][step.ordinal].dense((kb, mb))
        yield Permute(turned.dense((mb, kb)), given, (1, 0), coords=coords)
        yield from store_box(
            rings["panel"][0], (m, k), (mb, kb), turned,
            channel=STORE, coords=coords, name="store_panel", frame=(rows, depth),
        )  # fmt: skip

    yield from walk((Loop(lambda _: squares, load=load),), turn)
