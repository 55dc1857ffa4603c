"""Predicted cycles and traffic of real layers, pinned: a change that moves them has to say so in the changelog.

`pytest tests/golden --update-golden` writes the new figures; the difference is in the file's diff.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from kernels.conv_backward import conv_backward
from kernels.conv_forward import conv_forward
from kernels.gemm import gemm
from kernels.shape.shapes import ConvShape
from simulator.results.run import Run
from targets.loader import load_target

FILE = Path(__file__).with_name("cycles.json")

LAYERS = {
    "resnet50 3x3 128 28x28 b4": ConvShape(n=4, cin=128, size=(28, 28), cout=128, kernel=(3, 3), padding=1),
    "resnet50 conv1 b1": ConvShape(n=1, cin=3, size=(224, 224), cout=64, kernel=(7, 7), stride=2, padding=3),
    "resnet50 1x1 64-256 56x56 b2": ConvShape(n=2, cin=64, size=(56, 56), cout=256, kernel=(1, 1)),
    "resnet50 3x3 stride 2 b2": ConvShape(
        n=2, cin=256, size=(28, 28), cout=256, kernel=(3, 3), stride=2, padding=1
    ),
    "resnet50 3x3 512 7x7 b8": ConvShape(n=8, cin=512, size=(7, 7), cout=512, kernel=(3, 3), padding=1),
    "vgg16 conv1_2 b1": ConvShape(n=1, cin=64, size=(224, 224), cout=64, kernel=(3, 3), padding=1),
    "vgg16 conv5 b4": ConvShape(n=4, cin=512, size=(14, 14), cout=512, kernel=(3, 3), padding=1),
    "mobilenet depthwise b1": ConvShape(
        n=1, cin=128, size=(56, 56), cout=128, kernel=(3, 3), padding=1, groups=128
    ),
    "deeplab dilated b1": ConvShape(
        n=1, cin=256, size=(33, 33), cout=256, kernel=(3, 3), padding=6, dilation=6
    ),
    "three axes b1": ConvShape(n=1, cin=32, size=(8, 28, 28), cout=32, kernel=(3, 3, 3), padding=1),
}
FORWARD = (
    "resnet50 3x3 128 28x28 b4",
    "resnet50 conv1 b1",
    "resnet50 3x3 stride 2 b2",
    "mobilenet depthwise b1",
)
PRODUCTS = {"gemm 512 512 512": (512, 512, 512), "gemm 4096 32 4096": (4096, 32, 4096)}


def figures(run: Run) -> dict[str, Any]:
    """What is pinned of a run."""
    return {"cycles": run.cycles, "traffic_bytes": run.to_dict()["traffic_bytes"]}


def made() -> dict[str, Any]:
    """All figures as they are now."""
    target = load_target("mt7004")
    now = {}
    for dtype in ("fp16", "fp32"):
        for name, shape in LAYERS.items():
            run = conv_backward(shape=shape, dtype=dtype, grads=("dx",), target=target, numerics=False)
            now[f"{name} {dtype}"] = figures(run)
            run = conv_backward(shape=shape, dtype=dtype, grads=("dw", "db"), target=target, numerics=False)
            now[f"{name} {dtype} dw db"] = figures(run)
            if name in FORWARD:
                run = conv_forward(shape=shape, dtype=dtype, with_bias=True, target=target, numerics=False)
                now[f"{name} {dtype} y"] = figures(run)
        for name, sizes in PRODUCTS.items():
            now[f"{name} {dtype}"] = figures(gemm(shape=sizes, dtype=dtype, target=target, numerics=False))
    return now


def test_cycles_are_those_of_the_file(request: pytest.FixtureRequest) -> None:
    """Cycles and traffic equal the pinned ones, or are written anew on demand."""
    now = made()
    if request.config.getoption("--update-golden"):
        FILE.write_text(json.dumps(now, indent=1) + "\n", encoding="utf-8")
    pinned = json.loads(FILE.read_text(encoding="utf-8"))
    moved = [
        f"{name}: {pinned[name]['cycles']} -> {found['cycles']} cycles"
        for name, found in now.items()
        if pinned.get(name) != found
    ]
    assert not moved, "; ".join(moved)
    assert pinned.keys() == now.keys()
