"""The numbers of a target that were fitted on rows of the suites of Ascend kernels."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from targets.schema import Target

CONVOLUTIONS = "profiles of an AlexNet training step"
"""How the source of a number begins that was fitted on the profiled convolutions."""

FITTED_ON = (
    CONVOLUTIONS,
    "products of a 910B profile",
    "matrix-vector products of an operator benchmark",
    "duration minus core time",
    "small vector launches around a weight gradient",
)
"""The same for all rows of the suites: what cores do, and what launches take."""


@dataclass(frozen=True)
class Fitted:
    """One constant: numbers of one source and one value, by their paths in the target.

    Attributes:
        paths: where the target holds it.
        number: its value.
        source: what it was fitted on, and what it means.
    """

    paths: tuple[str, ...]
    number: float
    source: str

    @property
    def path(self) -> str:
        """The first path, which names it."""
        return self.paths[0]

    @property
    def on_convolutions(self) -> bool:
        """Whether the profiled convolutions were what it was fitted on."""
        return self.source.startswith(CONVOLUTIONS)

    @property
    def rate(self) -> bool:
        """Whether times are in proportion to its inverse."""
        return self.path.endswith("bytes_per_cycle")

    def to_dict(self) -> dict[str, Any]:
        """Plain values."""
        return {"paths": list(self.paths), "value": self.number, "source": self.source}


def fitted_constants(target: Target) -> list[Fitted]:
    """Each constant once. Equal numbers are one constant only where their sources say the same of them."""
    found: dict[tuple[str, float], list[str]] = {}
    plain = target.model_dump()
    for path, mark in target.provenance.items():
        if mark.mark == "derived" and mark.source.startswith(FITTED_ON):
            found.setdefault((mark.source, _at(plain, path)), []).append(path)
    return [Fitted(tuple(paths), number, source) for (source, number), paths in found.items()]


def _at(tables: dict[str, Any], path: str) -> float:
    """The number under a dotted path."""
    here: Any = tables
    for part in path.split("."):
        here = here[part]
    return float(here)
