"""Checks of the words of a command line before they are parsed."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from tilesim.cli.errors import ArgumentError

PLACES = ("--out", "--report", "--points", "--measured")
"""Options of a file or a directory."""


def require_places(words: Sequence[str]) -> None:
    """Refuse an empty file or directory, such as that of an unset shell variable.

    Only the words tell: as a path, an empty text is the current directory.

    Raises:
        ArgumentError: an option of a place is given an empty text.
    """
    for word, after in itertools.pairwise((*words, "-")):
        name, equals, value = word.partition("=")
        empty = not value if equals else after == ""
        if name in PLACES and empty:
            remedy = f"give {name} a name (is a shell variable unset?), or . for the current directory"
            raise ArgumentError(what="an empty path", where=name, remedy=remedy)
