"""Which source element a target reads with a tap, one axis at a time.

A convolution and its adjoint are one sum seen from two sides. Seen from the strided side (`gather`), target o reads
source o * stride - low + tap * dilation. Seen from the other side (`scatter`), target i reads source
(i + low - tap * dilation) / stride where that is whole: an image with stride - 1 zeros between its elements.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Reach:
    """One axis of an im2col.

    Attributes:
        targets, sources: elements on both sides.
        kernel: taps.
        step, tap, start: target t reads place t * step + q * tap + start of the spread source with tap q.
        spread: distance of the sources in those places; what lies between them is absent.
    """

    targets: int
    sources: int
    kernel: int
    step: int
    tap: int
    start: int
    spread: int

    @classmethod
    def gather(cls, small: int, large: int, kernel: int, stride: int, dilation: int, low: int) -> Reach:
        """The strided side reads the other one."""
        return cls(small, large, kernel, stride, dilation, -low, 1)

    @classmethod
    def scatter(cls, small: int, large: int, kernel: int, stride: int, dilation: int, low: int) -> Reach:
        """The side that taps read gets back from the strided one."""
        return cls(large, small, kernel, 1, -dilation, low, stride)

    @property
    def places(self) -> int:
        """Elements of the spread source."""
        return (self.sources - 1) * self.spread + 1

    def source(self, target: int, tap: int) -> int | None:
        """The source of one pair, None where there is none."""
        source, rest = divmod(target * self.step + tap * self.tap + self.start, self.spread)
        return source if rest == 0 and 0 <= source < self.sources else None

    def span(self, first: int, last: int, tap: int, tap_last: int) -> tuple[int, int]:
        """Sources [a, b) that lie within what targets first..last reach with taps tap..tap_last."""
        ends = (tap * self.tap, tap_last * self.tap)
        low, high = first * self.step + min(ends) + self.start, last * self.step + max(ends) + self.start
        a, b = max(0, -(-low // self.spread)), min(self.sources, high // self.spread + 1)
        return a, max(a, b)
