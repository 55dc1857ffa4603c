"""The error tree's message, fields and copies."""

import copy
import pickle

from targets import TargetError, TilesimError


def test_a_message_is_one_line_without_empty_parts() -> None:
    """What, where, got, limit and remedy stand in this order; empty ones and line breaks are left out."""
    full = TilesimError("too big", where="am", got=8, limit="4\nbytes", remedy="lower it")
    assert str(full) == "too big: where am, got 8, limit 4 bytes; lower it"
    assert str(TilesimError("too big", remedy="lower it")) == "too big; lower it"
    assert str(TilesimError("too big")) == "too big"


def test_fields_name_the_parts_and_those_of_the_subclass() -> None:
    """Programs read the same parts by name, with the file and the key of a target's error."""
    error = TargetError("unknown key", file="a.toml", key="memory.am.size", got=0)
    assert isinstance(error, TilesimError)
    assert error.fields() == {
        "what": "unknown key",
        "where": "a.toml: memory.am.size",
        "got": "0",
        "limit": "",
        "remedy": "",
        "file": "a.toml",
        "key": "memory.am.size",
    }


def test_an_error_survives_the_way_to_another_process() -> None:
    """A worker's error arrives whole, though constructors take keywords."""
    error = TargetError("unknown key", file="a.toml", key="k", remedy="look")
    for copied in (pickle.loads(pickle.dumps(error)), copy.copy(error)):  # noqa: S301 (our own bytes)
        assert type(copied) is TargetError
        assert str(copied) == str(error)
        assert copied.fields() == error.fields()
