"""The table that only host targets have: what the steps of a program without floating-point instructions cost."""

from typing import Annotated

from pydantic import Field

from targets.tables import Count, Natural, Rate, Table


class HostSpec(Table):
    """A core that computes fp32 in software, by calls, in a process of its own.

    Cycles of an operation are those of many in a loop, with its share of the loop.

    Attributes:
        multiply_cycles, add_cycles: a software multiply and add of fp32, as calls.
        move_cycles: an element loaded and stored.
        scatter_cycles: an element that is moved to a page of its own, in a line that lies in the cache: neighbours in
            time are a page and more apart, so that pages' addresses and places of the first cache run out.
        tap_cycles: the index of a tap and its comparisons with the edges of the input.
        line_cycles: a line that is reached at a stride and lies in no cache.
        page_bytes, page_cycles: a page of a fresh mapping: its size, its first touch and its release.
        fork_cycles: the parent's time to make one worker; it makes them one after another.
        crowded_factor: how much longer an operation takes where all cores work than where one does.
    """

    multiply_cycles: Rate
    add_cycles: Rate
    move_cycles: Rate
    scatter_cycles: Rate
    tap_cycles: Rate
    line_cycles: Rate
    page_bytes: Count
    page_cycles: Natural
    fork_cycles: Natural
    crowded_factor: Annotated[float, Field(ge=1, allow_inf_nan=False)] = 1.0
