"""A target file as leaves: what each dotted key says and where it stands; files laid over each other."""

import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from targets.errors import TargetError

Key = tuple[str, ...]
Leaves = Mapping[Key, "Leaf"]

MARKED_TABLE = frozenset({"value", "mark", "source"})
FILE_MARKS = ("documented", "derived", "assumed")
OTHER_UNIT = {
    "bytes_per_cycle": "gigabytes_per_second",
    "gigabytes_per_second": "bytes_per_cycle",
}


@dataclass(frozen=True)
class Leaf:
    """One value of a target, its file, and its mark and source (empty for strings and truth values)."""

    value: object
    file: str
    mark: str = ""
    source: str = ""


def read_leaves(path: Path) -> tuple[dict[Key, Leaf], str | None]:
    """Read one TOML file, without what it extends.

    Returns:
        The leaves by key, and the text of `extends` (None where the file stands alone).

    Raises:
        TargetError: the file cannot be read, is no TOML, repeats a key, or has a number without a mark or
            a source.
    """
    tables = _parse(path)
    extends = tables.pop("extends", None)
    if extends is not None and not isinstance(extends, str):
        raise TargetError(
            "extends is not a name",
            file=path.name,
            key="extends",
            got=repr(extends),
            limit='"name" or "file.toml"',
        )
    if "provenance" in tables:
        raise TargetError(
            "unknown key", file=path.name, key="provenance", remedy="write mark and source at each number"
        )
    return dict(_flatten(tables, (), path.name)), extends


def overlay(base: Leaves, upper: Leaves) -> dict[Key, Leaf]:
    """The base with the upper leaves laid over it; a bandwidth in one unit replaces one in the other."""
    replaced = {(*key[:-1], OTHER_UNIT[key[-1]]) for key in upper if key[-1] in OTHER_UNIT}
    return {key: leaf for key, leaf in base.items() if key not in replaced} | dict(upper)


def nested(leaves: Leaves) -> dict[str, object]:
    """The leaves as the tables of a target, with their marks in `provenance`.

    Raises:
        TargetError: a key is a value in one file and a table in another.
    """
    tree: dict[str, object] = {}
    for key, leaf in leaves.items():
        table = tree
        for part in key[:-1]:
            child = table.setdefault(part, {})
            if not isinstance(child, dict):
                raise _value_and_table(key, leaf)
            table = child
        if isinstance(table.get(key[-1]), dict) and leaf.value != {}:
            raise _value_and_table(key, leaf)
        table.setdefault(key[-1], leaf.value)
    marks = {
        dotted(key): {"mark": leaf.mark, "source": leaf.source} for key, leaf in leaves.items() if leaf.mark
    }
    return {**tree, "provenance": marks}


def dotted(key: Key) -> str:
    """A key as users write it: `memory.am.size_bytes`."""
    return ".".join(key)


def _value_and_table(key: Key, leaf: Leaf) -> TargetError:
    return TargetError(
        "a value stands where a table is", file=leaf.file, key=dotted(key), got=repr(leaf.value)
    )


def _parse(path: Path) -> dict[str, object]:
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise TargetError("the target file cannot be read", file=str(path), got=error) from error
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise _syntax_error(path.name, text, str(error)) from error


def _syntax_error(file: str, text: str, message: str) -> TargetError:
    """The parser knows a line; people look for a key."""
    found = re.search(r"at line (\d+)", message)
    key = _key_at(text.splitlines(), int(found[1])) if found else ""
    repeated = re.search(r"overwrite|twice|[Dd]uplicate|mutate", message)
    what = "duplicate key" if repeated else "the target file is not TOML"
    return TargetError(what, file=file, key=key, got=message, remedy="keep one of them" if repeated else "")


def _key_at(lines: list[str], number: int) -> str:
    """The dotted key of the assignment or header at or above a line, counted from 1."""
    last = ""
    for line in reversed(lines[:number]):
        if header := re.match(r"\s*\[+([^\[\]]+)\]", line):
            return ".".join(filter(None, (_bare(header[1]), last)))
        if not last and (assignment := re.match(r"\s*([^=#\[\]{}]+?)\s*=", line)):
            last = _bare(assignment[1])
    return last


def _bare(key: str) -> str:
    return re.sub(r"""["'\s]""", "", key)


def _flatten(tables: Mapping[str, object], prefix: Key, file: str) -> list[tuple[Key, Leaf]]:
    found: list[tuple[Key, Leaf]] = []
    for name, value in tables.items():
        key = (*prefix, name)
        if "." in name:
            raise TargetError("a name has a dot in it", file=file, key=dotted(key), remedy="name it without")
        if isinstance(value, dict) and value and not MARKED_TABLE & value.keys():
            found += _flatten(value, key, file)
        else:
            found.append((key, _leaf(value, dotted(key), file)))
    return found


def _leaf(value: object, key: str, file: str) -> Leaf:
    if isinstance(value, dict) and value:
        return _marked_leaf(value, key, file)
    if is_number(value):
        raise TargetError(
            "a number without a mark and a source",
            file=file,
            key=key,
            got=value,
            remedy='write { value = ..., mark = "documented" | "derived" | "assumed", source = "..." }',
        )
    return Leaf(value, file)


def _marked_leaf(table: Mapping[str, object], key: str, file: str) -> Leaf:
    if unknown := sorted(table.keys() - MARKED_TABLE):
        raise TargetError("unknown key", file=file, key=f"{key}.{unknown[0]}", limit="value, mark, source")
    if "value" not in table:
        raise TargetError("missing key", file=file, key=f"{key}.value")
    mark, source = table.get("mark"), table.get("source")
    if mark not in FILE_MARKS:
        raise TargetError(
            "a number without a mark",
            file=file,
            key=f"{key}.mark",
            got=repr(mark),
            limit=" | ".join(FILE_MARKS),
        )
    if not isinstance(source, str) or not source.strip():
        raise TargetError("a number without a source", file=file, key=f"{key}.source", got=repr(source))
    return Leaf(table["value"], file, str(mark), source)


def is_number(value: object) -> bool:
    """Whether a value needs a mark: a number, or a list with one in it."""
    if isinstance(value, list | tuple):
        return any(is_number(item) for item in value)
    return isinstance(value, int | float) and not isinstance(value, bool)
