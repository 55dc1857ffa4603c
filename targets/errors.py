"""The root of tilesim's error tree, and the errors of targets.

Every error says what is wrong, where, what was got, what the limit is and how to remedy it, once as a line
for people and once as fields for programs.
"""

from typing import ClassVar, Self

FieldValue = str | int | float


class TilesimError(Exception):
    """Anything tilesim refuses, with the reason in fields.

    Attributes:
        what: what is wrong, a short clause.
        where: the file, key, argument or place in a program.
        got: what was given.
        limit: what is allowed.
        remedy: what to do about it.
    """

    own_fields: ClassVar[tuple[str, ...]] = ()
    """Names of the attributes that a subclass adds to `fields()`."""

    def __init__(
        self, what: str, *, where: str = "", got: object = "", limit: object = "", remedy: str = ""
    ) -> None:
        self.what = _one_line(what)
        self.where = _one_line(where)
        self.got = _one_line(got)
        self.limit = _one_line(limit)
        self.remedy = _one_line(remedy)
        super().__init__(self._sentence())

    def fields(self) -> dict[str, FieldValue]:
        """The parts of the message by name, with those a subclass adds (`own_fields`)."""
        names = ("what", "where", "got", "limit", "remedy", *self.own_fields)
        return {name: getattr(self, name) for name in names}

    def __str__(self) -> str:
        return self._sentence()

    def __reduce__(self) -> tuple[object, ...]:
        # Constructors of subclasses differ, so a copy in another process is rebuilt from its attributes.
        return _rebuild, (type(self),), self.__dict__

    def _sentence(self) -> str:
        labelled = (("where", self.where), ("got", self.got), ("limit", self.limit))
        details = ", ".join(f"{label} {text}" for label, text in labelled if text)
        clause = f"{self.what}: {details}" if details else self.what
        return f"{clause}; {self.remedy}" if self.remedy else clause


class TargetError(TilesimError):
    """A target, or an override of one, is not usable.

    Attributes:
        file: the TOML file (its name as given), `"override"`, or empty for a target that was built in Python.
        key: the dotted key, such as `memory.am.size_bytes`; empty when the whole file is at fault.
    """

    own_fields: ClassVar[tuple[str, ...]] = ("file", "key")

    def __init__(
        self,
        what: str,
        *,
        file: str = "",
        key: str = "",
        got: object = "",
        limit: object = "",
        remedy: str = "",
    ) -> None:
        self.file = file
        self.key = key
        where = ": ".join(part for part in (file, key) if part)
        super().__init__(what, where=where, got=got, limit=limit, remedy=remedy)

    def in_file(self, file: str) -> Self:
        """The same error with the file named: checks of values know keys only."""
        return type(self)(
            self.what, file=file, key=self.key, got=self.got, limit=self.limit, remedy=self.remedy
        )


def _one_line(text: object) -> str:
    return " ".join(str(text).split())


def _rebuild(kind: type[TilesimError]) -> TilesimError:
    return kind.__new__(kind)
