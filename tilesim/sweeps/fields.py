"""Which fields a sweep can vary, and the refusal of those that it cannot."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping

from kernels.errors import TilingError
from kernels.operators import OPERATORS, operator_named
from kernels.shape.text import shape_keys
from targets.errors import TilesimError
from targets.leaves import dotted
from targets.overrides import values_of
from tilesim.sweeps.call import PLAIN_FIELDS, SHAPE, TILE, SweptCall
from tilesim.sweeps.errors import SweepError
from tilesim.sweeps.points import Point
from tilesim.sweeps.work import run_task

NEAREST = 3
"""How many fields a refusal suggests."""

SHRUNK = {"n", "m"}
"""Keys of a shape that are set to 1 to ask for the fields of its tiling: a batch or rows less, the same fields."""


def check_call(call: SweptCall) -> None:
    """Refuse an operator that is not known, or a target or shape that cannot be read, before anything runs.

    Raises:
        TilesimError: one of them.
    """
    if call.operator not in OPERATORS and not call.of_a_file:
        remedy = _suggestion(call.operator, OPERATORS)
        raise SweepError("unknown operator", where="OPERATOR", got=call.operator, remedy=remedy)
    families = operator_named(call.operator).families
    if call.base.family not in families:
        what = f"{call.operator} does not run on this family of targets"
        raise SweepError(what, where=call.base.name, got=call.base.family, limit=", ".join(families))


def check_fields(call: SweptCall, first: Point) -> None:
    """Refuse a varied field that does not exist, or one that the call fixes; `first` is any point.

    Values are not looked at: one that the chip, the geometry or the tiling refuses makes a failed point.

    Raises:
        SweepError: with the nearest fields that exist.
    """
    names = [name for name, _ in first.values]
    known = known_fields(call)
    for name in names:
        _check_not_fixed(call, name)
        if not name.startswith(TILE) and name not in known:
            raise _unknown(name, known)
    if any(name.startswith(SHAPE) for name in names):
        call.shape_text({name: 1 for name in names if name.startswith(SHAPE)})
    _check_tiling(call, dict(first.values))


def known_fields(call: SweptCall) -> list[str]:
    """Every field of a call that can be varied but those of the tiling, which depend on the shape and the gradients."""
    shape = [SHAPE + key for key in (call.shape_pairs if call.of_a_file else shape_keys(call.operator))]
    return [*PLAIN_FIELDS, *shape, *(dotted(key) for key, _ in values_of(call.base))]


def _check_not_fixed(call: SweptCall, name: str) -> None:
    fixed = {
        "cores": call.cores is not None,
        "dtype": call.dtype is not None,
        **{TILE + key: True for key in call.tiling},
        **dict.fromkeys(call.overrides, True),
    }
    if fixed.get(name):
        raise SweepError("a field that is both fixed and varied", where="--vary", got=name, remedy="drop one")


def _unknown(name: str, known: Iterable[str]) -> SweepError:
    """The refusal of a field: the nearest ones, and the other fields of its table where it has that right."""
    listed = list(known)
    table = name.rpartition(".")[0] + "."
    beside = [each for each in listed if table != "." and each.startswith(table)]
    return SweepError(
        "unknown field",
        where="--vary",
        got=name,
        limit=", ".join(beside),
        remedy=_suggestion(name, listed)
        or "known are cores, dtype, shape.KEY, tile.KEY and the fields of the target",
    )


def _suggestion(name: str, known: Iterable[str]) -> str:
    close = difflib.get_close_matches(name, list(known), NEAREST)
    return f"did you mean {' or '.join(close)}?" if close else ""


def _check_tiling(call: SweptCall, values: Mapping[str, int | float | bool | str]) -> None:
    """Ask the operator for each field of the tiling, with one image or row of the problem: only it knows its fields."""
    for name in (name for name in values if name.startswith(TILE)):
        others = {key: value for key, value in values.items() if not key.startswith(TILE)}
        try:
            task = call.task({**others, name: values[name]})
            if not call.of_a_file:
                task["shape"] |= dict.fromkeys(SHRUNK & task["shape"].keys(), 1)
            run_task(task)
        except TilingError as error:
            if error.what.startswith("unknown field"):
                raise _unknown(name, [TILE + each for each in error.limit.split(", ")]) from error
        except TilesimError:
            pass  # a value that is refused makes a failed point
