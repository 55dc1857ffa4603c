"""Lines of the Ascend profilers' tables: their cells, their layouts, and the problems that shapes tell."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path

import pytest

from kernels.shape.shapes import ConvShape
from targets.errors import TilesimError
from tilesim.validation.ascend_rows import Product
from tilesim.validation.profile_columns import Task, Tensor, read_tasks
from tilesim.validation.profile_layouts import UnclearError
from tilesim.validation.profile_problems import attributes, computed_by, operator_of
from tilesim.validation.profile_rows import OTHER, profile_rows

Given = Sequence[tuple[tuple[int, ...], str]]


def task(kind: str, inputs: Given, output: tuple[tuple[int, ...], str], dtype: str = "FLOAT16") -> Task:
    """A task with tensors of (shape, format)."""
    made = tuple(Tensor(shape, dtype, layout) for shape, layout in inputs)
    return Task("t", kind, made, (Tensor(output[0], dtype, output[1]),), False, {"duration": 1.0})


def convolution(kind: str, inputs: Given, output: tuple[tuple[int, ...], str]) -> ConvShape:
    """The geometry of a task."""
    problem = computed_by(task(kind, inputs, output)).problem
    assert isinstance(problem, ConvShape)
    return problem


def product(inputs: Given, output: tuple[tuple[int, ...], str], kind: str = "MatMulV2") -> Product:
    """The product of a task."""
    problem = computed_by(task(kind, inputs, output)).problem
    assert isinstance(problem, Product)
    return problem


X, W, Y = (8, 32, 28, 28), (48, 32, 3, 3), (8, 48, 14, 14)
BLOCKED_X, FRACTAL_W, BLOCKED_Y = (8, 2, 28, 28, 16), (18, 3, 16, 16), (8, 3, 14, 14, 16)
SHAPE = ConvShape(n=8, cin=32, size=(28, 28), cout=48, kernel=(3, 3), stride=2, padding=1)


@pytest.mark.parametrize(
    ("kind", "inputs", "output"),
    [
        ("Conv2D", [(X, "NCHW"), (W, "NCHW"), ((48,), "ND")], (Y, "NCHW")),
        ("Conv2DV2", [(X, "ND"), (W, "ND")], (Y, "ND")),
        ("Conv2D", [((8, 28, 28, 32), "NHWC"), ((3, 3, 32, 48), "HWCN")], ((8, 14, 14, 48), "NHWC")),
        ("Conv2D", [(BLOCKED_X, "NC1HWC0"), (FRACTAL_W, "FRACTAL_Z"), ((48,), "ND")], (BLOCKED_Y, "NC1HWC0")),
        ("Conv2DBackpropInputD", [(FRACTAL_W, "FRACTAL_Z"), (BLOCKED_Y, "NC1HWC0")], (BLOCKED_X, "NC1HWC0")),
        ("Conv2DBackpropInput", [((4,), "ND"), (W, "NCHW"), (Y, "NCHW")], (X, "NCHW")),
        ("Conv2DBackpropFilterD", [(BLOCKED_X, "NC1HWC0"), (BLOCKED_Y, "NC1HWC0")], (FRACTAL_W, "FRACTAL_Z")),
        ("Conv2DBackpropFilter", [(X, "NCHW"), ((4,), "ND"), (Y, "NCHW")], (W, "NCHW")),
    ],
)  # fmt: skip
def test_the_operators_and_layouts_of_one_convolution(
    kind: str, inputs: Given, output: tuple[tuple[int, ...], str]
) -> None:
    """Every operator and layout of the same call tells the same geometry."""
    assert convolution(kind, inputs, output) == SHAPE
    by_name = {"Filter": "dw", "Input": "dx"}
    assert operator_of(task(kind, inputs, output)) == next(
        (op for part, op in by_name.items() if part in kind), "forward"
    )


def test_three_axes_and_groups() -> None:
    """3-D operators keep their depth; a filter of fewer channels has groups."""
    shape = convolution(
        "Conv3DBackpropInputV2",
        [((5,), "ND"), ((32, 8, 3, 3, 3), "NCDHW"), ((2, 32, 6, 10, 12), "NCDHW")],
        ((2, 16, 6, 10, 12), "NCDHW"),
    )
    assert (shape.ndim, shape.groups, shape.padding) == (3, 2, ((1, 1),) * 3)
    blocked = [((2, 6, 1, 10, 12, 16), "NDC1HWC0"), ((27, 2, 16, 16), "FRACTAL_Z_3D")]
    assert convolution("Conv3D", blocked, ((2, 6, 2, 10, 12, 16), "NDC1HWC0")).kernel == (3, 3, 3)


def test_channels_that_are_known_up_to_a_block() -> None:
    """The exact number is taken where a plain layout says it, else that of whole blocks."""
    image, gradient = ((4, 1, 9, 9, 16), "NC1HWC0"), ((4, 2, 9, 9, 16), "NC1HWC0")
    assert convolution("Conv2D", [image, ((20, 3, 3, 3), "NCHW")], gradient).cin == 3
    assert convolution("Conv2D", [image, ((20, 3, 3, 3), "NCHW")], gradient).cout == 20
    whole = convolution("Conv2D", [image, ((9, 2, 16, 16), "FRACTAL_Z")], gradient)
    assert (whole.cin, whole.cout) == (16, 32)


@pytest.mark.parametrize(
    ("size", "kernel", "out", "stride", "padding"),
    [
        ((224, 224), (11, 11), (55, 55), [4, 4], [(2, 2), (2, 2)]),
        ((224, 224), (7, 7), (112, 112), [2, 2], [(3, 3), (3, 3)]),
        ((56, 56), (1, 1), (28, 28), [2, 2], [(0, 0), (0, 0)]),
        ((14, 14), (2, 2), (14, 14), [1, 1], [(0, 1), (0, 1)]),
        ((7, 7), (7, 7), (1, 1), [1, 1], [(0, 0), (0, 0)]),
        ((1, 100), (1, 5), (1, 50), [1, 2], [(0, 0), (2, 2)]),
        ((30, 20), (3, 3), (30, 10), [1, 2], [(1, 1), (1, 1)]),
    ],
)
def test_strides_and_pads_by_the_rule(
    size: tuple[int, ...],
    kernel: tuple[int, ...],
    out: tuple[int, ...],
    stride: list[int],
    padding: list[tuple[int, int]],
) -> None:
    """The least equal padding, and one stride for all axes with more than one output, if there is one."""
    assert attributes(size, kernel, out) == (stride, padding, [1] * len(size))


def test_a_dilation_is_taken_where_nothing_else_fits() -> None:
    """Padding of more than half a kernel asks for taps that are further apart."""
    assert attributes((20,), (3,), (16,)) == ([1], [(0, 0)], [2])


def test_any_geometry_that_the_rule_tells_has_the_outputs() -> None:
    """Random convolutions of usual padding: the derived attributes lead to the same outputs, or none are told."""
    rng, told = random.Random(7), 0  # noqa: S311  # no secrets here
    for _ in range(300):
        kernel, size = rng.choice([1, 2, 3, 5, 7]), rng.randint(8, 60)
        made = ConvShape(
            n=1, cin=1, size=(size,), cout=1, kernel=(kernel,), stride=rng.randint(1, 3),
            padding=rng.randint(0, kernel // 2),
        )  # fmt: skip
        try:
            stride, padding, dilation = attributes(made.size, made.kernel, made.out)
        except UnclearError:
            continue
        found = ConvShape(
            n=1, cin=1, size=made.size, cout=1, kernel=made.kernel, stride=stride, padding=padding,
            dilation=dilation,
        )  # fmt: skip
        assert found.out == made.out
        assert found.stride == made.stride
        told += 1
    assert told > 250


@pytest.mark.parametrize(
    ("kind", "inputs", "output", "reason"),
    [
        ("Conv2D", [((8, 16, 5, 5), "NCHW"), ((16, 16, 3, 3), "NCHW")], ((8, 16, 2, 2), "NCHW"),
         "ambiguous: strides 2, 3, 4"),
        ("Conv2D", [(X, "NCHW"), (W, "NCHW")], ((8, 48, 40, 40), "NCHW"), "no stride and padding lead"),
        ("Conv2D", [(X, "NCHW"), (W, "NCHW")], ((8, 47, 14, 14), "NCHW"), "output channels disagree: 47 and 48"),
        ("Conv2D", [(X, "NCHW"), (W, "NCHW")], ((9, 48, 14, 14), "NCHW"), "batches disagree"),
        ("Conv2D", [(X, "NCHW"), ((48, 30, 3, 3), "NCHW")], (Y, "NCHW"), "30 input channels of a filter for 32"),
        ("Conv2D", [(X, "NCHW")], (Y, "NCHW"), "are missing"),
        ("Conv2D", [(X, "XYZ"), (W, "NCHW")], (Y, "NCHW"), "no layout known for XYZ 8,32,28,28"),
        ("Conv2D", [(BLOCKED_X, "NC1HWC0"), ((12, 3, 16, 16), "FRACTAL_Z")], (BLOCKED_Y, "NC1HWC0"),
         "several kernels have 6 taps"),
        ("Conv2D", [(BLOCKED_X, "NC1HWC0"), ((9, 3, 16, 16), "FRACTAL_Z")], (BLOCKED_Y, "NC1HWC0"),
         "9 blocks of a filter for 32 input channels"),
        ("MatMul", [((8, 16), "ND"), ((17, 8), "ND")], ((8, 8), "ND"), "no product has these shapes"),
        ("BatchMatMul", [((4, 8, 16), "ND"), ((4, 16, 8), "ND")], ((4, 8, 8), "ND"), "4 products in one task"),
    ],
)  # fmt: skip
def test_what_shapes_do_not_tell_has_a_reason(
    kind: str, inputs: Given, output: tuple[tuple[int, ...], str], reason: str
) -> None:
    """Ambiguous, impossible and incomplete lines say why."""
    with pytest.raises(UnclearError, match=reason):
        computed_by(task(kind, inputs, output))


def test_transposes_of_products() -> None:
    """They follow from the shapes; where several do, the first of NN, NT, TN, TT is taken."""
    c = ((64, 96), "ND")
    assert product([((64, 32), "ND"), ((32, 96), "ND")], c) == Product(64, 96, 32, False, False)
    assert product([((64, 32), "ND"), ((96, 32), "ND")], c) == Product(64, 96, 32, False, True)
    assert product([((32, 64), "ND"), ((32, 96), "ND")], c) == Product(64, 96, 32, True, False)
    assert product([((32, 64), "ND"), ((96, 32), "ND")], c) == Product(64, 96, 32, True, True)
    square = [((8, 8), "ND"), ((8, 8), "ND")]
    assert product(square, ((8, 8), "ND")) == Product(8, 8, 8, False, False)


def test_products_of_several_rows_and_of_fractals() -> None:
    """Leading axes are rows where the other operand has none; fractals hold whole blocks."""
    several = product([((4, 8, 16), "ND"), ((16, 24), "ND")], ((4, 8, 24), "ND"), "BatchMatMulV2")
    assert several == Product(32, 24, 16, False, False)
    alone = product([((1, 8, 16), "ND"), ((1, 16, 24), "ND")], ((1, 8, 24), "ND"), "BatchMatMul")
    assert alone == Product(8, 24, 16, False, False)
    nz = [((2, 4, 16, 16), "FRACTAL_NZ"), ((30, 90), "ND")]
    assert product(nz, ((60, 90), "ND")) == Product(60, 90, 30, False, False)


@pytest.mark.parametrize("kind", ["Conv2DTranspose", "DepthwiseConv2D", "MatMulAllReduce", "Relu", "N/A"])
def test_other_operators(kind: str) -> None:
    """What has no kernel here is not taken for what has one."""
    assert operator_of(task(kind, [], ((), ""))) == ""


def test_data_types() -> None:
    """With and without the prefix; hf32 where the profile says it; integers are named."""
    inputs, c = [((8, 16), "ND"), ((16, 24), "ND")], ((8, 24), "ND")
    names = {"DT_FLOAT16": "fp16", "DT_BF16": "bf16", "FLOAT": "fp32"}
    assert {name: computed_by(task("MatMul", inputs, c, name)).dtype for name in names} == names
    plain = task("MatMul", inputs, c, "FLOAT")
    eligible = Task("t", "MatMul", plain.inputs, plain.outputs, True, {})
    assert computed_by(eligible).dtype == "hf32"
    with pytest.raises(UnclearError, match="data type INT8"):
        computed_by(task("MatMul", inputs, c, "INT8"))


HEAD = (
    "\ufeffStep Id,Device_id,Name,Type,Accelerator Core,Start Time(us),Duration(us),Wait Time(us),Block Num,"
    "HF32 Eligible,Input Shapes,Input Data Types,Input Formats,Output Shapes,Output Data Types,Output Formats,"
    "aicore_time(us),mac_time(us)"
)
LINE = (
    "5,0,aclnnMatmul_MatMulV3Common_MatMulV3,MatMulV3,AI_CORE,17.5\t,{0},0.1,24,NO,"
    '"""64,32;32,96""",FLOAT16;FLOAT16,ND;ND,"""64,96""",FLOAT16,ND,{1},N/A'
)


def test_cells_as_the_tools_write_them(tmp_path: Path) -> None:
    """A byte order mark, tabs, quotes in quotes, and N/A."""
    path = tmp_path / "kernel_details.csv"
    path.write_text(f"{HEAD}\n{LINE.format('20.5', '18.25')}\n", encoding="utf-8")
    (found,) = read_tasks(path)
    assert (found.type, found.hf32, found.figures) == ("MatMulV3", False, {"duration": 20.5, "core": 18.25})
    assert [tensor.shape for tensor in found.inputs] == [(64, 32), (32, 96)]
    assert found.outputs == (Tensor((64, 96), "FLOAT16", "ND"),)


def test_equal_tasks_are_one_row_with_medians(tmp_path: Path) -> None:
    """Steps of a training repeat their tasks; without a duration a task is left out."""
    path = tmp_path / "kernel_details.csv"
    figures = (("30", "1"), ("10", "3"), ("20", "2"), ("N/A", "2"))
    other = LINE.format("7", "7").replace(",MatMulV3,", ",Relu,")
    path.write_text("\n".join([HEAD, *(LINE.format(*each) for each in figures), other, other]), "utf-8")
    (row,), left = profile_rows(path, "ascend910b1")
    assert (row.tasks, row.row.measured) == (3, {"duration": 20.0, "core": 2.0})
    assert [(each.type, each.tasks, each.duration_us, each.reason) for each in left] == [
        ("MatMulV3", 1, 0.0, "no duration"),
        ("Relu", 2, 14.0, OTHER),
    ]
    assert profile_rows(path, "ascend910b1", kind="dx") == ([], [])


def test_a_profile_without_shapes_says_how_to_get_them(tmp_path: Path) -> None:
    """The lowest level of profiling records none."""
    path = tmp_path / "kernel_details.csv"
    path.write_text("Name,Type,Duration(us)\nx,Relu,3\n", encoding="utf-8")
    with pytest.raises(TilesimError, match=r"Input Shapes, Output Shapes.*; collect the profile with shapes"):
        read_tasks(path)
    path.write_text('Name,Type,Duration(us),Input Shapes,Output Shapes\nx,Relu,3,"a,b",\n', encoding="utf-8")
    with pytest.raises(TilesimError, match=r"not usable: where .*line 2"):
        read_tasks(path)
