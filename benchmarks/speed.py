"""How fast the simulator itself is, beside SimPy's bare event loop and NumPy's own product.

Each figure is the best of five, both sides of a ratio in one process. Run on a machine with nothing else to do:

    python -m benchmarks.speed            every figure
    python -m benchmarks.speed timing     one of: timing, values, memory, resnet
"""

from __future__ import annotations

import resource
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import simpy
from numpy.typing import NDArray

from kernels.conv_backward import conv_backward
from kernels.shape.shapes import ConvShape
from simulator.timing.library import LIBRARY
from targets.loader import load_target
from tests.case_table import load_cases

DEMO = ConvShape(n=4, cin=128, size=(28, 28), cout=128, kernel=(3, 3), padding=1)
LAYER = ConvShape(n=8, cin=256, size=(14, 14), cout=256, kernel=(3, 3), padding=1)
LARGE = ConvShape(n=64, cin=64, size=(56, 56), cout=64, kernel=(3, 3), padding=1)
ROUNDS = 5
RESNET_TARGETS = (("mt7004", "fp32"), ("mt7004", "fp16"), ("ft78ne", "fp32"), ("ascend910b1", "fp16"))


def best(action: Callable[[], object]) -> float:
    """Seconds of the fastest of five rounds, after one that warms caches."""
    action()
    times = []
    for _ in range(ROUNDS):
        begin = time.perf_counter()
        action()
        times.append(time.perf_counter() - begin)
    return min(times)


def bare_timeouts(processes: int, total: int = 100_000) -> float:
    """SimPy timeouts a second: so many processes that do nothing but wait."""

    def wait(env: simpy.Environment, turns: int) -> Any:
        for _ in range(turns):
            yield env.timeout(1)

    def run() -> None:
        env = simpy.Environment()
        for _ in range(processes):
            env.process(wait(env, total // processes))
        env.run()

    return total / best(run)


def timing() -> None:
    """Instructions a second of the demo's layer, timing only, full trace."""
    for cores, wanted in ((4, 8), (24, 16)):
        target = load_target("mt7004", {} if cores == 4 else {"groups": cores})
        action = partial(
            conv_backward, shape=DEMO, dtype="fp16", grads=("dx",), target=target, numerics=False
        )
        rows, engines = len(action().trace), cores * (len(target.lanes()) - 1)
        bare = bare_timeouts(engines)
        for how, seconds in (("compiled anew", best(anew(action))), ("kept programs", best(action))):
            print(
                f"timing only, {cores:2} cores, {how}: {rows} instructions in {seconds * 1e3:.1f} ms,"
                f" {rows / seconds:,.0f} a second; SimPy alone, {engines} processes: {bare:,.0f} timeouts a"
                f" second; 1/{bare * seconds / rows:.1f} (at least 1/{wanted} wanted)"
            )


def anew(action: Callable[[], object]) -> Callable[[], object]:
    """The action with no compiled programs kept from the call before."""

    def run() -> object:
        LIBRARY.clear()
        return action()

    return run


def numpy_dx(rows: NDArray[np.float32], weights: NDArray[np.float32]) -> NDArray[np.float32]:
    """Dx of LAYER in channel-last order: one product, then nine strided additions."""
    columns = (rows @ weights).reshape(8, 14, 14, 3, 3, 256)
    dx = np.zeros((8, 16, 16, 256), np.float32)
    for kh in range(3):
        for kw in range(3):
            dx[:, kh : kh + 14, kw : kw + 14] += columns[:, :, :, kh, kw]
    return dx[:, 1:15, 1:15]


def values() -> None:
    """A functional run against NumPy's product and col2im of the same layer."""
    rng = np.random.default_rng(0)
    dy = rng.standard_normal(LAYER.dy_shape, np.float32)
    w = rng.standard_normal(LAYER.w_shape, np.float32)
    rows = np.ascontiguousarray(dy.transpose(0, 2, 3, 1)).reshape(-1, 256)
    weights = np.ascontiguousarray(w.transpose(0, 2, 3, 1)).reshape(256, -1)
    run = conv_backward(dy, w, shape=LAYER, grads=("dx",), target="mt7004")
    assert run.dx is not None
    np.testing.assert_allclose(run.dx.transpose(0, 2, 3, 1), numpy_dx(rows, weights), rtol=1e-3, atol=1e-3)
    action = partial(conv_backward, dy, w, shape=LAYER, grads=("dx",), target="mt7004")
    plain = best(lambda: numpy_dx(rows, weights))
    for how, seconds in (("compiled anew", best(anew(action))), ("kept programs", best(action))):
        print(
            f"functional run, fp32, {how}: {seconds * 1e3:.1f} ms; NumPy's product and col2im {plain * 1e3:.1f} ms;"
            f" {seconds / plain:.1f} times (at most 4 wanted)"
        )


def memory() -> None:
    """The peak of a functional run, in a process of its own."""
    if "--here" not in sys.argv:
        subprocess.run([sys.executable, "-m", "benchmarks.speed", "memory", "--here"], check=True)
        return
    rng = np.random.default_rng(0)
    dy = rng.standard_normal(LARGE.dy_shape, np.float32)
    w = rng.standard_normal(LARGE.w_shape, np.float32)
    run = conv_backward(dy, w, shape=LARGE, grads=("dx",), target="mt7004")
    assert run.dx is not None
    tensors = dy.nbytes + w.nbytes + run.dx.nbytes
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    print(
        f"peak memory at 64 channels, 56 x 56, batch 64: {peak / 1e6:.0f} MB; tensors {tensors / 1e6:.0f} MB;"
        f" limit {(3 * tensors + 300e6) / 1e6:.0f} MB"
    )


def _resnet_layers() -> list[tuple[ConvShape, int]]:
    """The distinct convolutions of ResNet-50 at batch 32, and how often the network has each."""
    found = []
    for case in load_cases("networks"):
        if case.layer.startswith("resnet_50:"):
            _, star, times = case.layer.partition("*")
            shape = ConvShape(**(case.shape.to_dict() | {"n": 32}))  # type: ignore[arg-type]  # its own arguments
            found.append((shape, int(times) if star else 1))
    return found


def resnet() -> None:
    """Wall time of dx and dw of every convolution of ResNet-50 at batch 32, timing only, each distinct layer once."""
    layers = _resnet_layers()
    for name, dtype in RESNET_TARGETS:
        LIBRARY.clear()
        begin = time.perf_counter()
        us, rows = 0.0, 0
        for shape, times in layers:
            for grad in ("dx", "dw"):
                run = conv_backward(shape=shape, dtype=dtype, grads=(grad,), target=name, numerics=False)
                us += times * run.time_us
                rows += len(run.trace)
        seconds = time.perf_counter() - begin
        print(
            f"ResNet-50, batch 32, dx and dw, {name}, {dtype}: {len(layers)} distinct layers of"
            f" {sum(times for _, times in layers)}, {rows:,} instructions in {seconds:.1f} s of wall time;"
            f" the network's backward convolutions take {us / 1e3:,.1f} ms of the chip"
        )


FIGURES = {"timing": timing, "values": values, "memory": memory, "resnet": resnet}

if __name__ == "__main__":
    chosen = [word for word in sys.argv[1:] if not word.startswith("--")] or list(FIGURES)
    for word in chosen:
        FIGURES[word]()
