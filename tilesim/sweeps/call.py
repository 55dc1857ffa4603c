"""What all points of a sweep share, and the task that it becomes with the values of one point."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from importlib import metadata
from pathlib import Path
from typing import Any

from kernels.files import absolute_name, file_digest, names_a_file
from kernels.operators import operator_named
from kernels.shape.deform import DeformShape
from kernels.shape.shapes import ConvShape
from simulator.results.run import plain
from targets.loader import target_source
from targets.schema import Target
from tilesim.sweeps.errors import SweepError
from tilesim.sweeps.values import Value

SHAPE, TILE = "shape.", "tile."
"""How fields of the geometry and of the tiling begin; all others but cores and dtype are the target's."""

PLAIN_FIELDS = ("cores", "dtype")

Task = dict[str, Any]
"""A point as plain values that JSON has: operator, target, shape, dtype, grads, cores, tiling."""


@dataclass(frozen=True)
class SweptCall:
    """One call of an operator, of which a sweep varies some arguments.

    Attributes:
        operator: as of `tilesim run`; of a kernel file, the file is executed here and by the workers.
        target: a target's name or TOML file, read once, or a Target.
        shape: a shape text, or a geometry (then none of its fields can be varied).
        dtype, cores, grads: as of `tilesim run`; None: the operator's defaults.
        tiling, overrides: fields of the tiling, and of the target, by name.
    """

    operator: str
    target: str | Path | Target
    shape: str | ConvShape | DeformShape | tuple[int, int, int]
    dtype: str | None = None
    grads: tuple[str, ...] | None = None
    cores: int | None = None
    tiling: Mapping[str, object] = field(default_factory=dict)
    overrides: Mapping[str, object] = field(default_factory=dict)

    @property
    def of_a_file(self) -> bool:
        """Whether the operator is that of a kernel file."""
        return names_a_file(self.operator)

    @cached_property
    def source(self) -> Callable[[Mapping[str, object] | None], Target]:
        """What makes the target with a set of overrides; its file is read once, so that all points have one chip."""
        return target_source(self.target)

    @cached_property
    def base(self) -> Target:
        """The target with the overrides that all points share."""
        return self.source(self.overrides)

    def task(self, values: Mapping[str, Value]) -> Task:
        """The call with the values of one point.

        Raises:
            TilesimError: a value is refused by the target or the geometry.
        """
        values = {key: value if is_target_field(key) else _counted(value) for key, value in values.items()}
        own = {key: value for key, value in values.items() if is_target_field(key)}
        chip = self.source({**self.overrides, **own})
        return {
            "operator": absolute_name(self.operator),
            "target": chip.model_dump(mode="json", exclude={"provenance"}),
            "shape": self._shape(_fields(values, SHAPE)),
            "dtype": values.get("dtype", self.dtype),
            "grads": list(self.grads) if self.grads else None,
            "cores": values.get("cores", self.cores),
            "tiling": plain({**self.tiling, **_fields(values, TILE)}),
        }

    def _shape(self, varied: Mapping[str, Value]) -> dict[str, object] | str:
        """The geometry as plain values; a kernel file's own problem as its text, which only the file can read."""
        shape = self.shape
        if self.of_a_file:
            return self.shape_text(varied)
        if isinstance(shape, str):
            shape = operator_named(self.operator).shape(self.shape_text(varied))
        return dict(zip("mnk", shape, strict=True)) if isinstance(shape, tuple) else shape.to_dict()

    def shape_text(self, varied: Mapping[str, Value]) -> str:
        """The shape text with some of its keys given other values, or added.

        Raises:
            SweepError: there are no keys to give other values: the shape is a geometry, or a benchdnn problem.
        """
        if not varied and isinstance(self.shape, str):
            return self.shape
        if not isinstance(self.shape, str) or (self.shape and "=" not in self.shape):
            remedy = "give the shape as a text of key=value"
            raise SweepError("a shape without keys cannot be varied", where="--shape", remedy=remedy)
        merged = self.shape_pairs | {key: str(value) for key, value in varied.items()}
        return ",".join(f"{key}={value}" for key, value in merged.items())

    @property
    def shape_pairs(self) -> dict[str, str]:
        """The keys and values of a shape text; none of a geometry."""
        text = self.shape if isinstance(self.shape, str) else ""
        return dict(part.split("=", 1) for part in text.replace(" ", "").split(",") if "=" in part)

    def record(self) -> dict[str, Any]:
        """Plain values that say what was called."""
        shape = self.shape if isinstance(self.shape, str) else self._shape({})
        return {
            "operator": self.operator,
            "target": self.base.name,
            "shape": shape,
            "dtype": self.dtype,
            "grads": list(self.grads) if self.grads else None,
            "cores": self.cores,
            "tiling": plain(dict(self.tiling)),
            "overrides": plain(dict(self.overrides)),
            "tilesim_version": _version(),
            **({"kernel_file": file_digest(self.operator)} if self.of_a_file else {}),
        }

    @cached_property
    def identity(self) -> str:
        """A hash of all that decides the results beside the varied values: call, target's numbers, version."""
        chip = self.base.model_dump(mode="json", exclude={"provenance"})
        return digest({"call": self.record(), "target": chip})


def is_target_field(name: str) -> bool:
    """Whether a field is one of the target's: none of the call's, the geometry's or the tiling's."""
    return name not in PLAIN_FIELDS and not name.startswith((SHAPE, TILE))


def digest(value: object) -> str:
    """A hash of plain values, the same in every process; keys in any order."""
    text = json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def _counted(value: Value) -> Value:
    """A whole number as an int: a range with fractions has floats, and cores, shapes and tiles are counted."""
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _fields(values: Mapping[str, Value], prefix: str) -> dict[str, Value]:
    return {key.removeprefix(prefix): value for key, value in values.items() if key.startswith(prefix)}


def _version() -> str | None:
    try:
        return metadata.version("tilesim")
    except metadata.PackageNotFoundError:
        return None
