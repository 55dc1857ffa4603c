"""What `tilesim validate` refuses: kinds that are none, and files of which no row is compared."""

from __future__ import annotations

from collections.abc import Collection, Sized
from pathlib import Path

from targets.errors import TilesimError
from tilesim.cli.errors import ArgumentError


def require_kind(kind: str | None, known: Collection[str]) -> None:
    """Refuse a kind that is none.

    Raises:
        ArgumentError: it is not known.
    """
    if kind is not None and kind not in known:
        raise ArgumentError(what="no such kind of row", where="--kind", got=kind, limit=", ".join(known))


def require_scores(scores: Sized, path: Path, kind: str | None, needed: str) -> None:
    """Refuse a comparison of nothing.

    Args:
        scores: of the rows that were compared.
        path: the file of the rows.
        kind: the kind that was asked for.
        needed: what a row must have to be compared.

    Raises:
        TilesimError: there are none.
    """
    if not scores:
        asked = f" of the kind {kind}" if kind else ""
        raise TilesimError(f"no row{asked} could be compared", where=str(path), limit=f"rows with {needed}")
