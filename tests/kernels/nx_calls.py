"""Calls of kernels.nx on made-up operands, as the tests make them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from kernels.nx import from_elements, to_elements
from kernels.nx.geometry import checked
from simulator.device.device import Device
from simulator.machine import Checks
from simulator.results.run import Run
from targets.schema import Target

Array = NDArray[Any]

UNTOUCHED = 12345.0
"""What outputs hold before a call."""


@dataclass
class Problem:
    """Sizes of one call, and operands of small integers or, with `real`, of normal numbers."""

    c_in: int
    h: int
    w: int
    c_out: int
    kh: int
    kw: int
    stride: int = 1
    pad: int = 0
    n: int = 1
    seed: int = 0
    real: bool = False
    operands: dict[str, Array] = field(default_factory=dict)

    def __post_init__(self) -> None:
        """Make the operands, and outputs that show whether they were written."""
        g = checked(1, *self.sizes)
        counts = dict.fromkeys(("input", "weight", "dout", "dinput", "dweight", "dbias"), 4)
        if g is not None:
            counts = {name: max(1, count) for name, count in g.elements().items()}
        rng = np.random.default_rng(self.seed)
        for name, count in counts.items():
            made = rng.standard_normal(count) if self.real else rng.integers(-4, 5, count)
            given = made if name in ("input", "weight", "dout") else np.full(count, UNTOUCHED)
            self.operands.setdefault(name, to_elements(given))

    @property
    def sizes(self) -> tuple[int, int, int, int, int, int, int, int]:
        """C_in to pad."""
        return (self.c_in, self.h, self.w, self.c_out, self.kh, self.kw, self.stride, self.pad)

    def arguments(self) -> tuple[Any, ...]:
        """In the page's order."""
        held = self.operands
        return (
            *(held["input"], self.n, self.c_in, self.h, self.w, held["weight"], self.c_out, self.kh, self.kw),
            *(self.stride, self.pad, held["dout"], held["dinput"], held["dweight"], held["dbias"]),
        )

    def call(
        self,
        function: Callable[..., int],
        *,
        target: str | Target = "nx_host",
        numerics: bool = True,
        checks: Checks | None = None,
        **options: Any,
    ) -> tuple[int, list[Run]]:
        """The return code and the runs."""
        with Device(target, numerics=numerics, checks=checks) as device:
            code = function(*self.arguments(), **options)
        return code, device.runs

    def numbers(self, name: str) -> Array:
        """An operand's numbers."""
        return from_elements(self.operands[name])

    @property
    def untouched(self) -> bool:
        """Whether every output is as it was."""
        return all((self.numbers(name) == UNTOUCHED).all() for name in ("dinput", "dweight", "dbias"))
