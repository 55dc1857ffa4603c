"""The case tables, and what ConvShape makes of each of their rows."""

import pytest

from tests.case_table import LAYER_TABLES, TABLES, load_cases, load_refusals, pad_pair

REFUSED = {
    "BO015": ("groups", "remainder 2"),
    "BO016": ("groups", "must be positive"),
    "BO018": ("padding", "0x0"),
    "BO021": ("stride", "limit 2147483647"),
    "BO026": ("kernel", "must be positive"),
}
"""Rows whose right behaviour is a refusal: the argument that it names, and words of its message."""


def test_every_row_is_read() -> None:
    """The tables have these many rows, each a geometry or a refusal, and no id twice in a table."""
    rows = {table: len(load_cases(table)) + len(load_refusals(table)) for table in TABLES}
    assert rows == {
        "networks": 899,
        "edge_shapes": 1270,
        "edge_regressions": 60,
        "conv3d": 690,
        "pytorch_samples": 67,
        "torch_npu_cases": 64,
        "bugs_open": 54,
    }
    for table in TABLES:
        ids = [case.id for case in load_cases(table)]
        assert len(set(ids)) == len(ids)


@pytest.mark.parametrize("table", LAYER_TABLES)
def test_outputs_and_pads_are_those_of_the_table(table: str) -> None:
    """Do, Ho, Wo and the effective pads of every row equal what ConvShape derives."""
    derived = {case.id: (case.shape.as_3d().out, case.shape.as_3d().pads) for case in load_cases(table)}
    assert derived == {case.id: (case.out, case.pads) for case in load_cases(table)}


def test_the_rows_that_cannot_be() -> None:
    """Exactly the rows that ask for a refusal are refused, each for its own reason."""
    refusals = {row: error for table in TABLES for row, error in load_refusals(table).items()}
    assert {row: error.argument for row, error in refusals.items()} == {
        row: argument for row, (argument, _) in REFUSED.items()
    }
    for row, (_, words) in REFUSED.items():
        assert words in str(refusals[row])


def test_bug_reports_have_their_own_syntax() -> None:
    """Only the axes used are listed, and a pad `9+4` is low 9, high 4."""
    shapes = {case.id: case.shape for case in load_cases("bugs_open")}
    assert shapes["BO009"].size == (8,)
    assert shapes["BO001"].padding == ((1, 1), (0, 0), (1, 1))
    assert shapes["BO020"].out == (22, 22)
    assert shapes["BO006"].out == (16, 0)
    assert (pad_pair("9+4"), pad_pair("1"), pad_pair("0+-2")) == ((9, 4), (1, 1), (0, -2))
