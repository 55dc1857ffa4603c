"""What-if values of a user, such as `memory.am.size_bytes=1572864`, laid over a target."""

import difflib
import numbers
import tomllib
from collections.abc import Iterator, Mapping

from targets.errors import TargetError
from targets.leaves import Key, Leaf, dotted
from targets.schema import Target

ORIGIN = "override"


def override_leaves(target: Target, overrides: Mapping[str, object]) -> dict[Key, Leaf]:
    """Leaves for dotted keys with values as text or as they are, marked `override`.

    A key must be one that the target has, defaults included. Text is read as TOML (`0x10000`, `1.5`, `true`,
    `[1.5, 3]`), or taken as it is where the value is a string.

    Raises:
        TargetError: the target has no such key; the nearest one is suggested.
    """
    known = dict(values_of(target))
    return {key: leaf for name, value in overrides.items() for key, leaf in [_override(name, value, known)]}


def nearest(name: str, known: list[str]) -> str:
    """A remedy that names the known key most like a wrong one; empty where none is alike."""
    close = difflib.get_close_matches(name, known, n=1)
    return f"did you mean {close[0]}?" if close else ""


def values_of(target: Target) -> Iterator[tuple[Key, object]]:
    """Every value of a target with its key, defaults and absent units (None) too."""
    return _values(target.model_dump(exclude={"provenance"}), ())


def _override(name: str, value: object, known: Mapping[Key, object]) -> tuple[Key, Leaf]:
    key = tuple(name.split("."))
    if key not in known:
        remedy = nearest(name, [dotted(each) for each in known])
        raise TargetError("unknown key", file=ORIGIN, key=name, remedy=remedy)
    return key, Leaf(_as_type_of(known[key], value), ORIGIN, ORIGIN, "set by the user")


def _values(tables: Mapping[str, object], prefix: Key) -> Iterator[tuple[Key, object]]:
    for name, value in tables.items():
        if isinstance(value, dict):
            yield from _values(value, (*prefix, name))
        else:
            yield (*prefix, name), value


def _as_type_of(present: object, value: object) -> object:
    if isinstance(value, str):
        return value if isinstance(present, str) else _whole(present, _toml_value(value))
    if isinstance(value, numbers.Integral) and not isinstance(value, bool):
        return int(value)  # NumPy's integers come from sweeps
    return _whole(present, value)


def _toml_value(text: str) -> object:
    try:
        tables = tomllib.loads(f"value = {text}")
    except tomllib.TOMLDecodeError:
        return text
    return tables["value"] if len(tables) == 1 else text


def _whole(present: object, value: object) -> object:
    """1e6 bytes are meant as the integer that they are."""
    if isinstance(present, int) and isinstance(value, float) and value.is_integer():
        return int(value)
    return value
