"""The README and the pages of docs/ say what is so: the example runs, links lead somewhere, files exist."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]

EXAMPLE = re.compile(r"```python\n(.*?)```\s*```text\n(.*?)```", re.DOTALL)
LINK = re.compile(r"\]\((?!https?://)([^)#]+)(?:#[^)]*)?\)")
SOURCE = re.compile(r"`((?:targets|simulator|kernels|reports|tilesim|tests|benchmarks)/[\w/.]+)`")


def test_the_readme_example_prints_what_the_readme_says() -> None:
    """The first Python block, run by itself, gives the text block after it."""
    match = EXAMPLE.search((ROOT / "README.md").read_text(encoding="utf-8"))
    assert match is not None
    program, expected = match.groups()
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.stderr == ""
    assert done.stdout == expected


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_of_a_page_lead_somewhere(page: Path) -> None:
    """Every relative link and picture is a file of the checkout."""
    links = LINK.findall(page.read_text(encoding="utf-8"))
    assert not [link for link in links if not (page.parent / link).exists()]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_files_that_a_page_names_exist(page: Path) -> None:
    """A rule's page names the file that implements it; a moved file moves there too."""
    names = SOURCE.findall(page.read_text(encoding="utf-8"))
    assert not [name for name in names if not (ROOT / name).exists()]
