"""What the estimate of a forward convolution's time counts otherwise than that of the input gradient."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil

from kernels.dsp.dx.estimate import Kinds, PanelSetting
from kernels.dsp.dx.geometry import Panel, Span, pieces
from kernels.dsp.forward.geometry import ForwardGeometry, input_rows, joins_taps, tap_runs
from kernels.dsp.places import waits_for_copies
from simulator.instructions import matmul_cycles


@dataclass(frozen=True)
class ForwardSetting(PanelSetting):
    """What a tiling is chosen for."""

    geometry: ForwardGeometry

    def depth(self, taps: int, k: int) -> int:
        """The length of a product's sum."""
        return taps * k

    def width(self, taps: int, channels: int) -> int:  # noqa: ARG002  # dx's columns have them
        """The columns of a product."""
        return channels

    def taps_together(self, column: str) -> list[int]:  # noqa: ARG002  # none are ever kept
        """Kernel columns of a block that are tried."""
        kernel = self.geometry.w.kernel
        return list(dict.fromkeys((kernel, ceil(kernel / 2), 1)))

    def tap_groups(
        self,
        panel: Panel,
        block_taps: int,
        whole_rows: bool,  # noqa: ARG002  # columns are never kept
    ) -> list[tuple[int, int, tuple[Span, ...]]]:
        """(taps of a product, taps whose weights are loaded for it, outputs) of the blocks of a panel."""
        g = self.geometry
        found: list[tuple[int, int, tuple[Span, ...]]] = []
        for _, _, first, end in input_rows(g, panel.d, panel.h, panel.hb):
            for kw, taps in pieces(g.w.kernel, block_taps):
                for index, run in enumerate(tap_runs(g, kw, taps, panel.w, panel.wb)):
                    span = Span(panel.d, first, end - first, run.ow, run.end - run.ow)
                    found.append((run.taps, 0 if index else taps, (span,)))
        return found

    def product_cycles(self, gb: int, taps: int, cb: int, kb: int, kinds: Kinds) -> float:
        """Products, the issue of the copies that bring their rows in, and the copies that a queue does not hold."""
        target, g = self.target, self.geometry
        issue, depth = target.issue, target.engine["dma"].queue_depth
        active = self.active["batch"]
        rate = max(self.links[active]) / active
        packed = g.w.kernel == g.h.kernel == g.w.stride == g.h.stride == 1 and g.w.size == g.w.out
        total = 0.0
        for m, runs, times in kinds:
            copies = (1 if joins_taps(g, gb, kb) else taps) * (1 if packed else runs)
            moved = m * gb * taps * kb * self.operand.size_bytes / rate
            waits = 0.0 if waits_for_copies(target) else max(0.0, 1 - depth / copies) * moved
            product = matmul_cycles(target.matmul[self.rate], gb, m, cb, taps * kb)
            total += times * (copies * self.copy_cycles + issue.matmul_cycles + product + waits)
        return total
