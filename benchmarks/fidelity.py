"""Predicted against measured, for every published row: `tilesim validate` without the command line.

    python benchmarks/fidelity.py [kind ...]

Each row is printed as soon as it is known; all of them take half a minute.
"""

from __future__ import annotations

import sys
import time

from targets.loader import load_target
from tilesim.validation.rows import read_rows
from tilesim.validation.scores import Score, score_rows, summaries


def show(score: Score) -> None:
    """Print a row."""
    print(
        f"{score.name:6} {score.label:40} measured {score.measured:7.2f}  predicted {score.predicted:7.2f}"
        f" {100 * score.error:+6.1f} %  roofline {100 * score.roofline_error:+7.1f} %",
        flush=True,
    )


def main(kinds: list[str]) -> None:
    """Print rows of these kinds (default all), then the errors of each group."""
    began = time.perf_counter()
    rows = [row for row in read_rows() if not kinds or row.kind in kinds]
    groups = summaries(score_rows(rows, load_target("ft_m7032"), show))
    print(f"\nabsolute errors in %, after {time.perf_counter() - began:.0f} s:  model  (bare roofline)")
    for g in groups:
        print(
            f"{g.group:20} {g.rows:3} rows  median {100 * g.median:4.1f} ({100 * g.roofline_median:5.1f})"
            f"  mean {100 * g.mean:4.1f} ({100 * g.roofline_mean:5.1f})"
            f"  90 % within {100 * g.within_90:4.1f} ({100 * g.roofline_within_90:5.1f})"
        )


if __name__ == "__main__":
    main(sys.argv[1:])
