"""The products of a block over all outputs of its panel, as one step: values only, it has no cost."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from kernels.dsp.dx.columns import AXES
from kernels.dsp.forward.geometry import ForwardGeometry
from kernels.dsp.forward.panels import OutputChunk, Source
from simulator.instructions import Instruction, add_parts
from simulator.memory.memories import View
from simulator.values.numerics import Array, product, product_fp16


class BlockProduct(Instruction):
    """y += rows of x, gathered from where they lie, times weights."""

    __slots__ = ("chunk", "geometry", "rate", "sources")

    def __init__(
        self,
        out: View,
        weights: View,
        chunk: OutputChunk,
        sources: Sequence[Source],
        geometry: ForwardGeometry,
        rate: str,
    ) -> None:
        """The products of `chunk`, each copy of which reads one of `sources`."""
        super().__init__((weights,), (out,))
        self.chunk = chunk
        self.sources = sources
        self.geometry = geometry
        self.rate = rate

    def execute(self) -> None:
        """Gather, multiply and add."""
        weights, rows = self.reads[0].array(), self._rows()
        left = rows.swapaxes(0, 1) if weights.ndim == 3 else rows[:, 0]
        made = (
            product_fp16(None, left, weights)
            if self.rate.endswith("_fp16")
            else product(left, weights, passing=True)
        )
        add_parts(self.writes[0].array(), made.reshape(self.chunk.seen), self.chunk.parts, AXES)

    def _rows(self) -> Array:
        """[m, groups, taps x channels]."""
        chunk, g = self.chunk, self.geometry
        columns = np.empty(chunk.size, self.sources[0][0].dtype.storage)
        for copy, source in zip(chunk.copies, self.sources, strict=True):
            (image, row, column, tap), (images, _, rows, cols, _) = copy.place, copy.size
            there = columns[image : image + images, row : row + rows, column : column + cols]
            place = there[:, :, :, :, tap : tap + copy.taps]
            place[...] = copy.read(source, g).array().reshape(place.shape)
        return columns.reshape(chunk.m, chunk.size[3], -1)
