"""Rings that every cube kernel has: two halves of L0A and L0B, sums in L0C, and UB where results leave through it."""

from __future__ import annotations

from simulator.kernel import Space
from simulator.values.numerics import DType, dtype
from targets.schema import Target


def kind_with(target: Target, engine: str) -> str:
    """The kind of core that has an engine."""
    return target.engine[engine].kinds[0]


class Rings:
    """Where a cube kernel of a target keeps its tiles.

    Attributes:
        cube: the kind of core that has the cube.
        through_ub: results leave L0C by way of UB (chips whose cube and vector units share a core).
    """

    def __init__(self, target: Target, operand: DType) -> None:
        """Read it off the target."""
        self.target = target
        self.operand = operand
        self.main = target.main_memory
        self.cube = kind_with(target, "cube")
        self.through_ub = f"l0c->{self.main}" not in target.path

    def set_up(self, space: Space, sizes: dict[str, int], l0c: int, out: DType) -> None:
        """Ask for L0A, L0B ("a", "b"), L0C ("sums") and, where it is needed, UB ("out").

        Raises:
            CapacityError: a tile is too large for them.
        """
        for name, memory, field in (("a", "l0a", "m or k"), ("b", "l0b", "n or k")):
            space.ring(
                name, memory, sizes[name], self.operand, depth=2, remedy=f"lower {field} of the tiling"
            )
        less = "lower m or n of the tiling"
        space.ring("sums", "l0c", sizes["sums"], dtype("fp32"), depth=l0c, remedy=less)
        if self.through_ub:
            space.ring("out", "ub", sizes["sums"], out, remedy=less)
