"""The Python blocks of the pages of docs/ that show whole calls run as they stand."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BLOCK = re.compile(r"```python\n(.*?)```", re.DOTALL)
PAGES = ["vendor-calls.md"]
EXAMPLES = [
    (page, number, program)
    for page in PAGES
    for number, program in enumerate(BLOCK.findall((ROOT / "docs" / page).read_text(encoding="utf-8")))
]


@pytest.mark.parametrize(("page", "number", "program"), EXAMPLES)
def test_an_example_runs(page: str, number: int, program: str) -> None:
    """It ends well, and prints something."""
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.stderr == ""
    assert done.stdout
