"""The examples of the page about the vendor's calls print what the page says."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
EXAMPLE = re.compile(r"```python\n(.*?)```\s*```text\n(.*?)```", re.DOTALL)
EXAMPLES = EXAMPLE.findall((ROOT / "docs" / "vendor-calls-ft.md").read_text(encoding="utf-8"))


def test_the_page_has_its_examples() -> None:
    """One with arrays, and the two of the operator page."""
    assert len(EXAMPLES) == 3


@pytest.mark.parametrize("number", range(3))
def test_an_example_prints_what_the_page_says(number: int) -> None:
    """Each is a program of its own."""
    program, expected = EXAMPLES[number]
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.stderr == ""
    assert done.stdout == expected
