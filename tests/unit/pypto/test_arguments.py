"""Every rule of the page of conv_backward_input that refuses, and its example."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from kernels import pypto
from kernels.errors import OperandError
from targets.loader import load_target
from tests.unit.pypto.call import Call, tiles

ROOT = Path(__file__).resolve().parents[3]
FP16, BF16 = pypto.DT_FP16, pypto.DT_BF16
MILLION = 1_000_000


def tensor(*shape: int, dtype: pypto.DataType = FP16) -> pypto.Tensor:
    """A tensor without data."""
    return pypto.tensor(shape, dtype)


def test_the_page_example_runs_as_written() -> None:
    """The example of the package's page, in a process of its own: shape and time come back."""
    assert pypto.__doc__ is not None
    example = re.sub(r"^    ", "", pypto.__doc__.partition("\n\n")[2].partition("\n\nTensors")[0], flags=re.M)
    program = example + "\nprint(out.shape, out.run.cycles > 0)"
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.stderr == ""
    assert done.stdout == "(1, 16, 5, 32) True\n"


@pytest.mark.parametrize(
    "target", ["ascend950pr", "ascend950dt", "ascend910a", "ascend310p3", "ascend310b1", "mt7004"]
)
def test_devices_without_the_operator(target: str) -> None:
    """It is for Atlas A2 and A3 only."""
    tiles()
    pypto.set_device(target)
    with pytest.raises(OperandError, match=target) as caught:
        Call().run()
    assert caught.value.argument == "device"


@pytest.mark.parametrize("target", ["ascend910b1", "ascend910b4", "ascend910_9391", "ascend910_9362"])
def test_devices_with_the_operator(target: str) -> None:
    """Every bin of Atlas A2 and A3."""
    tiles()
    pypto.set_device(target, cores=2)
    out = Call().run()
    assert out.run is not None
    assert (out.run.target.name, out.run.cores) == (target, 2)


def test_a_target_of_ones_own() -> None:
    """A target by another name is of the series that is given."""
    tiles()
    own = load_target("ascend910b1").model_copy(update={"name": "mine"})
    pypto.set_device(own)
    with pytest.raises(OperandError, match="mine"):
        Call().run()
    pypto.set_device(own, series="A2")
    assert Call().run().run is not None


@pytest.mark.parametrize(
    ("argument", "value"),
    [
        ("grad_output", np.zeros((1, 16, 5, 32), np.float16)),
        ("grad_output", tensor(16, 5, 32)),
        ("grad_output", tensor(1, 16, 1, 5, 32)),
        ("grad_output", tensor(1, 16, 5, 32, dtype=pypto.DT_FP32)),
        ("grad_output", tensor(0, 16, 5, 32)),
        ("grad_output", tensor(1, 16, 5, MILLION + 1)),
        ("weight", tensor(16, 16, 3)),
        ("weight", tensor(16, 16, 3, 3, dtype=BF16)),
        ("weight", tensor(16, 16, 3, 3, dtype=pypto.DT_FP32)),
        ("weight", tensor(16, 0, 3, 3)),
        ("weight", tensor(16, MILLION + 1, 3, 3)),
        ("weight", tensor(16, 16, 256, 1)),
        ("weight", tensor(16, 16, 1, 256)),
        ("weight", tensor(16, 16, 64, 64)),
        ("weight", tensor(32, 16, 3, 3)),
        ("out_dtype", BF16),
        ("out_dtype", pypto.DT_FP32),
        ("out_dtype", "fp16"),
        ("strides", [1]),
        ("strides", [1, 1, 1]),
        ("strides", [0, 1]),
        ("strides", [1, 64]),
        ("strides", [1, 1.0]),
        ("strides", 1),
        ("dilations", [1]),
        ("dilations", [0, 1]),
        ("dilations", [64, 1]),
        ("paddings", [1, 1]),
        ("paddings", [-1, -1, 1, 1]),
        ("paddings", [256, 256, 1, 1]),
        ("paddings", [0, 1, 1, 1]),
        ("paddings", [1, 1, 1, 0]),
        ("paddings", [3, 3, 1, 1]),
        ("paddings", [1, 1, 3, 3]),
        ("input_size", (16, 5, 32)),
        ("input_size", (2, 16, 5, 32)),
        ("input_size", (1, 32, 5, 32)),
        ("input_size", (1, 16, 6, 32)),
        ("input_size", (1, 16, 4, 32)),
        ("input_size", (1, 16, 5, 33)),
        ("input_size", (1, 16, 5, 31)),
        ("input_size", (1, 16, 5, 0)),
        ("input_size", (1, 16, 5, MILLION + 1)),
        ("groups", 2),
        ("groups", 0),
        ("groups", None),
    ],
)
def test_arguments_outside_their_rules(argument: str, value: object) -> None:
    """The refusal names the argument."""
    tiles()
    with pytest.raises(OperandError) as caught:
        Call().change(**{argument: value}).run()
    assert caught.value.argument == argument


@pytest.mark.parametrize("size", [13, 14])
def test_each_size_that_gives_the_gradients(size: int) -> None:
    """With stride 2, two sizes give 7 outputs; the second's last row and column are read by no tap."""
    tiles((size, 144, 16))
    call = Call().change(grad_output=tensor(1, 16, 7, 7), strides=[2, 2], input_size=(1, 16, size, size))
    assert call.run().shape == (1, 16, size, size)
    for other in (12, 15):
        with pytest.raises(OperandError, match="13 to 14"):
            call.change(input_size=(1, 16, size, other)).run()


def test_a_wide_window_is_refused_by_its_bytes() -> None:
    """Kh x Kw x 16 is at most 65,535 for types of two bytes: 63 x 65 fits, 64 x 64 does not."""
    tiles()
    with pytest.raises(OperandError, match="65536"):
        Call().change(weight=tensor(16, 16, 64, 64)).run()


@pytest.mark.parametrize(
    ("given", "argument"),
    [
        ({"shape": 5}, "shape"),
        ({"shape": (1, -1)}, "shape"),
        ({"shape": (1, 2.0)}, "shape"),
        ({"shape": (1, None)}, "shape"),
        ({"dtype": "fp16"}, "dtype"),
        ({"data": np.zeros((1, 3), np.float16)}, "data"),
        ({"data": np.zeros((1, 2), np.float32)}, "data"),
        ({"name": np.zeros((1, 2), np.float16)}, "name"),
    ],
)
def test_tensors_that_cannot_be(given: dict[str, object], argument: str) -> None:
    """Shapes are whole numbers, and data have the tensor's shape and type."""
    made: dict[str, object] = {"shape": (1, 2), "dtype": FP16, **given}
    with pytest.raises(OperandError) as caught:
        pypto.tensor(**made)  # type: ignore[arg-type]  # what is wrong here is the point
    assert caught.value.argument == argument


@pytest.mark.parametrize("argument", ["grad_output", "weight"])
def test_data_of_one_operand_only(argument: str) -> None:
    """Both operands have data, or none."""
    tiles()
    shape = Call().arguments[argument].shape
    given = pypto.tensor(shape, FP16, data=np.ones(shape, np.float16))
    with pytest.raises(OperandError, match="no data"):
        Call().change(**{argument: given}).run()
