"""A smallest target, as the text of a file, for tests that change one thing of it."""

from collections.abc import Mapping
from pathlib import Path

NUMBER = 'mark = "assumed", source = "a test"'

TINY = f"""
name = "tiny"
title = "a test target"
family = "dsp"
clock_mhz = {{ value = 1000, {NUMBER} }}
groups = {{ value = 2, {NUMBER} }}
[core.dsp]
per_group = {{ value = 1, {NUMBER} }}
[engine.vpu]
core = "dsp"
issue = "blocking"
queue_depth = {{ value = 1, {NUMBER} }}
[engine.dma]
core = "dsp"
issue = "queued"
queue_depth = {{ value = 4, {NUMBER} }}
count = {{ value = 2, {NUMBER} }}
[memory.am]
size_bytes = {{ value = 4096, {NUMBER} }}
base_address = {{ value = 0, {NUMBER} }}
scope = "core"
[memory.ddr]
size_bytes = {{ value = 65536, {NUMBER} }}
base_address = {{ value = 0x10000, mark = "documented", source = "a page" }}
scope = "chip"
[link.ddr]
gigabytes_per_second = {{ value = 21.3, {NUMBER} }}
burst_bytes = {{ value = 64, {NUMBER} }}
[port.read]
bytes_per_cycle = {{ value = 15.4, {NUMBER} }}
[path."ddr->am"]
link = "ddr"
direction = "read"
port = "read"
start_cycles = {{ value = 10, {NUMBER} }}
overlap = true
[issue]
copy_cycles = {{ value = 45, {NUMBER} }}
matmul_cycles = {{ value = 7, {NUMBER} }}
vector_cycles = {{ value = 7, {NUMBER} }}
barrier_cycles = {{ value = 7, {NUMBER} }}
flag_set_cycles = {{ value = 0, {NUMBER} }}
flag_wait_cycles = {{ value = 0, {NUMBER} }}
[sync]
barrier_latency_cycles = {{ value = 100, {NUMBER} }}
barrier_cycles_per_core = {{ value = 0, {NUMBER} }}
flag_latency_cycles = {{ value = 0, {NUMBER} }}
cross_core_flag_latency_cycles = {{ value = 0, {NUMBER} }}
[launch.default]
cycles = {{ value = 1000, {NUMBER} }}
cycles_per_core = {{ value = 0, {NUMBER} }}
[matmul.fp32]
kernel_rows = {{ value = 6, {NUMBER} }}
granule_columns = {{ value = 16, {NUMBER} }}
granule_cycles = {{ value = [1.5, 3], {NUMBER} }}
fixed_cycles = {{ value = 27, {NUMBER} }}
call_cycles = {{ value = 30, {NUMBER} }}
flops_per_cycle = {{ value = 192, {NUMBER} }}
[vector]
register_bytes = {{ value = 128, {NUMBER} }}
moves_per_cycle = {{ value = 4, {NUMBER} }}
run_cycles = {{ value = 20, {NUMBER} }}
call_cycles = {{ value = 7, {NUMBER} }}
"""


def write_tiny(folder: Path, changes: Mapping[str, str] | None = None) -> Path:
    """Write the tiny target with pieces of its text replaced; each piece must stand there exactly once."""
    text = TINY
    for old, new in (changes or {}).items():
        assert text.count(old) == 1, f"{old!r} stands {text.count(old)} times in the tiny target"
        text = text.replace(old, new)
    return write(folder / "tiny.toml", text)


def write(path: Path, text: str) -> Path:
    """Write a file and return its path."""
    path.write_text(text, encoding="utf-8")
    return path
