"""From a name or a file, with what it extends and what the user overrides, to a checked Target."""

from collections.abc import Callable, Mapping
from functools import cache, partial
from pathlib import Path
from typing import Any, get_args, get_origin

from pydantic import BaseModel, ValidationError

from targets.errors import TargetError
from targets.leaves import Key, Leaf, Leaves, dotted, is_number, nested, overlay, read_leaves
from targets.overrides import nearest, override_leaves, values_of
from targets.schema import Mark, Target

FOLDER = Path(__file__).parent


def available_targets() -> list[str]:
    """Names of the targets that come with tilesim, sorted."""
    return sorted(_shipped_names())


def load_target(name_or_path: str | Path, overrides: Mapping[str, object] | None = None) -> Target:
    """Load a target by its name or from a TOML file.

    Args:
        name_or_path: a name of `available_targets()`, or a file.
        overrides: values by dotted key (`memory.am.size_bytes`), as text or as they are; their mark becomes
            `override`. A bandwidth in one unit replaces one in the other.

    Raises:
        TargetError: there is no such target, a file is not right, or a key is unknown.
    """
    return target_source(name_or_path)(overrides)


def target_source(name_or_path: str | Path | Target) -> Callable[[Mapping[str, object] | None], Target]:
    """Read a target once, and return what makes it with one set of overrides after another, as `load_target` does.

    A Target is taken as it is: its values and marks are the leaves that overrides are laid over.

    Raises:
        TargetError: there is no such target, or a file is not right; what is returned: a key is unknown, or a
            value is not usable.
    """
    if isinstance(name_or_path, Target):
        return partial(_with_overrides, name_or_path, _leaves_of(name_or_path), name_or_path.name)
    if (name := str(name_or_path)) in _shipped_names():
        return partial(_with_overrides, _shipped(name), _shipped_leaves(name), f"{name}.toml")
    path = _file_of(name_or_path)
    leaves = _chain(path, ())
    return partial(_with_overrides, _build(leaves, path.name), leaves, path.name)


# Loading a shipped target happens in every run, so its files are looked up, read and checked once.
@cache
def _shipped_names() -> frozenset[str]:
    return frozenset(path.stem for path in FOLDER.glob("*.toml"))


@cache
def _shipped(name: str) -> Target:
    return _build(_shipped_leaves(name), f"{name}.toml")


@cache
def _shipped_leaves(name: str) -> Leaves:
    return _chain(FOLDER / f"{name}.toml", ())


def _leaves_of(target: Target) -> Leaves:
    """The values of a target that was made before, with their marks; absent units are left out."""
    unmarked = Mark(mark="assumed", source="a target made in Python")
    marks = {key: target.provenance.get(dotted(key), unmarked) for key, _ in values_of(target)}
    return {
        key: Leaf(value, target.name, *((marks[key].mark, marks[key].source) if is_number(value) else ()))
        for key, value in values_of(target)
        if value is not None
    }


def _with_overrides(
    target: Target, leaves: Leaves, file: str, overrides: Mapping[str, object] | None
) -> Target:
    if not overrides:
        return target
    return _build(overlay(leaves, override_leaves(target, overrides)), file)


def _file_of(name_or_path: str | Path) -> Path:
    if not isinstance(name_or_path, str | Path):
        what, limit = "not a target", "a name, a TOML file, or a Target"
        raise TargetError(what, got=repr(name_or_path), limit=limit)
    path = Path(name_or_path)
    if path.suffix == ".toml" or path.is_file():
        return path
    known = available_targets()
    raise TargetError(
        "unknown target",
        got=repr(str(name_or_path)),
        limit=f"a .toml file or one of {', '.join(known)}",
        remedy=nearest(str(name_or_path), known),
    )


def _chain(path: Path, above: tuple[Path, ...]) -> dict[Key, Leaf]:
    """The leaves of a file laid over those of the files it extends."""
    leaves, extends = read_leaves(path)
    if extends is None:
        return leaves
    chain = (*above, path.resolve())
    base = _base_of(path, extends)
    if base.resolve() in chain:
        names = " -> ".join(each.name for each in (*chain, base))
        raise TargetError("a target extends itself", file=path.name, key="extends", got=names)
    return overlay(_chain(base, chain), leaves)


def _base_of(path: Path, extends: str) -> Path:
    """A shipped name, or a file relative to the one that extends it."""
    if extends in _shipped_names():
        return FOLDER / f"{extends}.toml"
    beside = path.parent / (extends if extends.endswith(".toml") else f"{extends}.toml")
    if not beside.is_file():
        raise TargetError(
            "the target that is extended is not there",
            file=path.name,
            key="extends",
            got=repr(extends),
            limit=f"a file beside it or one of {', '.join(available_targets())}",
            remedy=nearest(extends, available_targets()),
        )
    return beside


def _build(leaves: Leaves, file: str) -> Target:
    try:
        return _fully_marked(Target.model_validate(nested(leaves)))
    except ValidationError as error:
        raise _schema_error(error, leaves, file) from error
    except TargetError as error:
        raise error if error.file else error.in_file(_origin(leaves, error.key, file)) from None


def _fully_marked(target: Target) -> Target:
    """Numbers that no file gives are the schema's defaults, and say so."""
    default = Mark(mark="assumed", source="not in the file: the default of the schema")
    keys = (dotted(key) for key, value in values_of(target) if is_number(value))
    marks = dict.fromkeys(keys, default) | target.provenance
    return target.model_copy(update={"provenance": marks})


def _schema_error(error: ValidationError, leaves: Leaves, file: str) -> TargetError:
    """The first complaint of the schema, in the words of the file."""
    first = error.errors(include_url=False)[0]
    parts = [str(part) for part in first["loc"]]
    key = ".".join(parts)
    where = _origin(leaves, key, file)
    match first["type"]:
        case "extra_forbidden":
            known = _fields_at(parts[:-1])
            return TargetError(
                "unknown key", file=where, key=key, limit=", ".join(known), remedy=nearest(parts[-1], known)
            )
        case "missing":
            return TargetError("missing key", file=where, key=key)
        case _:
            got = "" if isinstance(first["input"], dict) else repr(first["input"])
            limit = first["msg"].removeprefix("Value error, ")
            return TargetError("wrong value", file=where, key=key, got=got, limit=limit)


def _origin(leaves: Leaves, key: str, file: str) -> str:
    """The file in which a key (of a table: its last key) stands; the loaded file where none says."""
    names = [leaf.file for each, leaf in leaves.items() if _related(dotted(each), key)]
    return names[-1] if names else file


def _related(key: str, wanted: str) -> bool:
    return key == wanted or key.startswith(f"{wanted}.") or wanted.startswith(f"{key}.")


def _fields_at(parts: list[str]) -> list[str]:
    """Names of the fields of the table at a place of the schema."""
    kind: Any = Target
    for part in parts:
        if isinstance(kind, type) and issubclass(kind, BaseModel):
            kind = _table(kind.model_fields[part].annotation)
        elif get_origin(kind) is dict:
            kind = get_args(kind)[1]
    is_table = isinstance(kind, type) and issubclass(kind, BaseModel)
    return [name for name in kind.model_fields if name != "provenance"] if is_table else []


def _table(annotation: Any) -> Any:
    """The table of a field that may be absent; any other annotation as it is."""
    found = [each for each in get_args(annotation) if isinstance(each, type) and issubclass(each, BaseModel)]
    return found[0] if len(found) == 1 and get_origin(annotation) is not dict else annotation
