"""Fields of tilings as a call gives them: a mapping, and for several gradients each with its prefix."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from kernels.errors import TilingError

PREFIXES = {"dx": "", "dw": "dw.", "db": "db."}
"""How the fields of a gradient's tiling begin."""


def given_fields(tiling: object, remedy: str = "") -> Mapping[str, object]:
    """The given fields of a tiling, none where nothing is given.

    Raises:
        TilingError: they are no mapping of values by field.
    """
    if tiling is None:
        return {}
    if not isinstance(tiling, Mapping):
        what, limit = "fields of a tiling that are no mapping", "{field: value}"
        raise TilingError(what, field="tiling", where="tiling", got=repr(tiling), limit=limit, remedy=remedy)
    return tiling


SEARCHED = "or 'auto', to search for one"
"""What else the calls take that search."""


def split_tiling(given: Mapping[str, object], grads: Sequence[str]) -> dict[str, dict[str, object]]:
    """The given fields by gradient, without their prefix.

    Raises:
        TilingError: a field belongs to a gradient that is not asked for.
    """
    found: dict[str, dict[str, object]] = {grad: {} for grad in PREFIXES}
    for name, value in given.items():
        grad = next((g for g in ("dw", "db") if name.startswith(PREFIXES[g])), "dx")
        if grad not in grads:
            raise TilingError(
                "a field of a gradient that is not asked for",
                field=name,
                got=f"grads={','.join(grads)}",
                limit="plain names are fields of dx, those that begin with dw. and db. of the others",
            )
        found[grad][name.removeprefix(PREFIXES[grad])] = value
    return found
