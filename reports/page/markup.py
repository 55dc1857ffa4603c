"""Tables of a report as HTML: the same Markdown that `report.md` has, so that both say the same."""

import re
from html import escape
from itertools import groupby

_CELL = re.compile(r"(?<!\\)\|")  # a bar that is not escaped


def to_html(markdown: str) -> str:
    """Markdown as the reports write it, tables and paragraphs, as HTML."""
    blocks = (block for block in markdown.split("\n\n") if block.strip())
    return "\n".join(_table(b) if b.startswith("|") else f"<p>{escape(b)}</p>" for b in blocks)


def _table(text: str) -> str:
    head, rule, *rows = ([cell.strip() for cell in _CELL.split(line)[1:-1]] for line in text.split("\n"))
    right = [cell.endswith(":") for cell in rule]
    top = "".join(_tag("th", cell, number) for cell, number in zip(head, right, strict=True))
    mark = head.index("mark") if "mark" in head else -1
    body = "\n".join(_row(row, right, mark) for row in rows)
    return f'<div class="scroll"><table><thead><tr>{top}</tr></thead>\n<tbody>{body}</tbody></table></div>'


def _row(cells: list[str], right: list[bool], mark: int) -> str:
    classes = [f"mark-{cell}" if place == mark and cell else "" for place, cell in enumerate(cells)]
    parts = zip(cells, right, classes, strict=True)
    return "<tr>" + "".join(_tag("td", cell, number, more) for cell, number, more in parts) + "</tr>"


def _tag(tag: str, cell: str, number: bool, more: str = "") -> str:
    names = " ".join(name for name in ("number" if number else "", more) if name)
    text = escape(cell.replace("\\|", "|"))
    return f'<{tag} class="{names}">{text}</{tag}>' if names else f"<{tag}>{text}</{tag}>"


def slug(heading: str) -> str:
    """What a heading goes by in a link."""
    return "-".join("".join(group) for good, group in groupby(heading.lower(), str.isalnum) if good)
