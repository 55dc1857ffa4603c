"""What an operator registers: a name, what is said of it, and the function that makes one call of it.

The operators of `kernels.operators` and those of a file of one's own are registered alike:

    @operator(families=("dsp",), shape=sizes("rows", "columns"))
    def relu_backward(call: Call) -> Run:
        ...
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy.typing as npt

from kernels.errors import OperandError, TilingError
from kernels.families import stored_in
from kernels.placement import chosen_dtype
from kernels.reference.checking import random_operands
from kernels.reference.comparison import compare
from kernels.shape.text import parse_shape
from simulator.machine import Machine
from simulator.results.run import Run
from simulator.values.numerics import Array, DType
from targets.schema import Target

FAMILIES = ("dsp", "davinci", "host")
"""The families of targets."""


@dataclass(frozen=True)
class Call:
    """One call of an operator, as `tilesim run` or `run_operator` makes it.

    Attributes:
        operator: the name that it was called by.
        shape: what the operator's `shape` made of the text.
        target: the chip.
        cores: the numbers of the cores.
        dtype: what the chip is to compute in, None for its first type.
        grads: the gradients asked for; none where nothing was said.
        tiling: the given fields.
        numerics: whether values are computed.
        seed, integers: of the random operands.
        check: whether results are compared with the reference.
    """

    operator: str
    shape: Any
    target: Target
    cores: tuple[int, ...]
    dtype: str | None = None
    grads: tuple[str, ...] = ()
    tiling: Mapping[str, object] = field(default_factory=dict)
    numerics: bool = True
    seed: int = 0
    integers: bool = False
    check: bool = True

    @property
    def computed(self) -> str:
        """The type that the chip computes in.

        Raises:
            OperandError: it does not compute the one asked for.
        """
        return chosen_dtype(self.target, self.dtype, {})

    @property
    def kind(self) -> DType:
        """The type that its operands are stored in."""
        return stored_in(self.computed)

    def machine(self) -> Machine:
        """The target brought to life for this call."""
        return Machine(self.target, self.cores, numerics=self.numerics)

    def operands(self, shapes: Mapping[str, tuple[int, ...]], terms: int = 1) -> dict[str, Array]:
        """Random operands by name, so that sums of `terms` products are exact where integers were asked for."""
        return random_operands(shapes, self.kind, self.seed, self.integers, terms)

    def tiled(self, **defaults: int | str | bool) -> dict[str, Any]:
        """The fields of the tiling: the given ones, else the defaults.

        Raises:
            TilingError: a field is unknown, not of its default's type, or a number below 1.
        """
        for name, value in self.tiling.items():
            if name not in defaults:
                known = ", ".join(defaults) or "none"
                raise TilingError("unknown field of the tiling", field=name, where=name, limit=known)
            kind = type(defaults[name])
            if type(value) is not kind or (kind is int and int(str(value)) < 1):
                limit = "a whole number from 1" if kind is int else f"a value like {defaults[name]}"
                what = "a field of the tiling is not usable"
                raise TilingError(what, field=name, where=name, got=repr(value), limit=limit)
        return {**defaults, **self.tiling}

    def finished(
        self,
        machine: Machine,
        *,
        shape: Mapping[str, object],
        tiling: Mapping[str, object],
        outputs: Mapping[str, Array] | None = None,
        references: Mapping[str, tuple[npt.ArrayLike, npt.ArrayLike]] | None = None,
        useful_macs: int = 0,
        flops_per_cycle: float = 0.0,
    ) -> Run:
        """The run of what was launched on a machine.

        Args:
            machine: what it was launched on.
            shape: the problem; plain values.
            tiling: every field, with its value.
            outputs: the results by name; only looked at where values were computed.
            references: by name, what is right in float64, and how far each element may be from it; only looked at where
                results are to be checked.
            useful_macs: multiply-adds of the formula.
            flops_per_cycle: peak of a core.
        """
        values = dict(outputs or {}) if machine.numerics else {}
        run = Run(
            operator=self.operator,
            target=self.target,
            cores=len(self.cores),
            dtype=self.computed,
            cycles=machine.cycles,
            launches=machine.launches,
            tiling=dict(tiling),
            trace=machine.trace(),
            outputs=values,
            macs=machine.macs,
            useful_macs=useful_macs,
            peak_flops_per_cycle=flops_per_cycle * len(self.cores),
            shape=dict(shape),
            numerics=machine.numerics,
        )
        if self.check and values and references:
            found = {name: compare(values[name], *references[name]) for name in references}
            run.max_error = {name: each.max_error for name, each in found.items()}
            run.tolerance = {name: each.tolerance for name, each in found.items()}
        return run


Function = Callable[[Call], Run]


@dataclass(frozen=True)
class Operator:
    """What can be run.

    Attributes:
        name: what it is called by.
        summary: one line.
        families: of targets that it runs on.
        gradients: their names, none of an operator that has none.
        text: a page.
        function: makes one call; None of what is called from Python only.
        shape: makes the problem of a text; raises ShapeError.
        file: of one's own kernel, where it is; empty for those of tilesim.
    """

    name: str
    summary: str
    families: tuple[str, ...]
    gradients: tuple[str, ...]
    text: str
    function: Function | None = None
    shape: Callable[[str], Any] = parse_shape
    file: str = ""


def operator(
    *,
    families: Sequence[str] = FAMILIES,
    shape: Callable[[str], Any] = parse_shape,
    gradients: Sequence[str] = (),
    name: str = "",
    summary: str = "",
    text: str = "",
) -> Callable[[Function], Operator]:
    """Register the function below as an operator; it takes a Call and returns a Run.

    Args:
        families: of targets that it runs on.
        shape: makes the problem of a `--shape` text: `parse_shape` (a ConvShape), `parse_gemm`, or `sizes(...)`.
        gradients: names that `--grads` takes.
        name: default the function's.
        summary: default the first line of its docstring.
        text: default the whole docstring.

    Raises:
        OperandError: the function does not take one argument, or a family is unknown.
    """

    def registered(function: Function) -> Operator:
        page = inspect.getdoc(function) or ""
        first = page.partition("\n")[0].rstrip(".")
        known = name or getattr(function, "__name__", "")
        _require_one_argument(known, function)
        return Operator(
            known, summary or first, tuple(families), tuple(gradients), text or page, function, shape
        )

    unknown = [family for family in families if family not in FAMILIES]
    if unknown or isinstance(families, str):
        what, got = "no such family of targets", families if isinstance(families, str) else unknown[0]
        raise OperandError(what, argument="families", got=repr(got), limit=repr(FAMILIES))
    return registered


def _require_one_argument(name: str, function: object) -> None:
    """Refuse what cannot be called with a Call alone."""
    what, remedy = "an operator is a function of one argument", "def name(call: Call) -> Run"
    if not callable(function):
        raise OperandError(what, argument="operator", where=name, got=repr(function), remedy=remedy)
    try:
        inspect.signature(function).bind(None)
    except TypeError:
        got = str(inspect.signature(function))
        raise OperandError(what, argument="operator", where=name, got=got, remedy=remedy) from None
