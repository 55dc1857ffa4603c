"""Loading targets: names and files, what they extend, and every refusal's words."""

from pathlib import Path

import pytest

from targets import Mark, TargetError, available_targets, load_target
from tests.unit.targets.tiny import NUMBER, write, write_tiny


def refusal(path: Path) -> str:
    """The message with which a file is refused."""
    with pytest.raises(TargetError) as caught:
        load_target(path)
    return str(caught.value)


def test_a_file_loads_with_marks_and_defaults(tmp_path: Path) -> None:
    """Values, given marks, and the mark of a default are all there."""
    tiny = load_target(write_tiny(tmp_path))
    assert tiny.memory["ddr"].base_address == 65536
    assert tiny.matmul["fp32"].granule_cycles == (1.5, 3.0)
    assert tiny.provenance["memory.ddr.base_address"] == Mark(mark="documented", source="a page")
    default = tiny.provenance["link.ddr.efficiency"]
    assert (default.mark, default.source) == ("assumed", "not in the file: the default of the schema")
    assert "path.ddr->am.overlap" not in tiny.provenance


def test_a_name_or_the_text_of_a_path_loads(tmp_path: Path) -> None:
    """A path works wherever a name does."""
    assert load_target(str(write_tiny(tmp_path))).name == "tiny"
    assert load_target("mt7004").name == "mt7004"


def test_a_shipped_target_is_read_once() -> None:
    """The second load is the same object."""
    assert load_target("mt7004") is load_target("mt7004")


def test_an_unknown_name_suggests_the_nearest() -> None:
    """The error lists the targets there are."""
    with pytest.raises(TargetError) as caught:
        load_target("mt704")
    known = ", ".join(available_targets())
    assert str(caught.value) == (
        f"unknown target: got 'mt704', limit a .toml file or one of {known}; did you mean mt7004?"
    )


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    """The error has the path as given."""
    path = tmp_path / "none.toml"
    assert refusal(path).startswith(f"the target file cannot be read: where {path}, got [Errno 2]")


SIZE = f"size_bytes = {{ value = 4096, {NUMBER} }}"
BANDWIDTH = f"gigabytes_per_second = {{ value = 21.3, {NUMBER} }}"
ONE_UNIT = (
    "wrong value: where tiny.toml: link.ddr, limit exactly one of bytes_per_cycle and gigabytes_per_second"
)
KEY_ERRORS = [
    # the change, the message
    (
        {SIZE: "size_bytes = 4096"},
        "a number without a mark and a source: where tiny.toml: memory.am.size_bytes, got 4096",
    ),
    (
        {SIZE: 'size_bytes = { value = 4096, source = "a page" }'},
        "a number without a mark: where tiny.toml: memory.am.size_bytes.mark, got None, limit documented",
    ),
    (
        {SIZE: 'size_bytes = { value = 4096, mark = "override", source = "a page" }'},
        "a number without a mark: where tiny.toml: memory.am.size_bytes.mark, got 'override'",
    ),
    (
        {SIZE: 'size_bytes = { value = 4096, mark = "derived", source = " " }'},
        "a number without a source: where tiny.toml: memory.am.size_bytes.source, got ' '",
    ),
    (
        {SIZE: 'size_bytes = { mark = "derived", source = "a page" }'},
        "missing key: where tiny.toml: memory.am.size_bytes.value",
    ),
    (
        {SIZE: f"size_bytes = {{ value = 4096, unit = 1, {NUMBER} }}"},
        "unknown key: where tiny.toml: memory.am.size_bytes.unit, limit value, mark, source",
    ),
    (
        {SIZE: SIZE.replace("size_bytes", "size_byte")},
        "missing key: where tiny.toml: memory.am.size_bytes",
    ),
    (
        {SIZE: f"{SIZE}\nalign_byte = {{ value = 64, {NUMBER} }}"},
        "unknown key: where tiny.toml: memory.am.align_byte, limit size_bytes, base_address, scope",
    ),
    (
        {"[vector]": "[vectors]"},
        "missing key: where tiny.toml: vector",
    ),
    (
        {'family = "dsp"': 'family = "dsp"\ncolour = "red"'},
        "unknown key: where tiny.toml: colour, limit name, title, family",
    ),
    (
        {'family = "dsp"': 'family = "gpu"'},
        "wrong value: where tiny.toml: family, got 'gpu', limit Input should be 'dsp', 'davinci' or 'host'",
    ),
    (
        {SIZE: f"size_bytes = {{ value = 4096.5, {NUMBER} }}"},
        "wrong value: where tiny.toml: memory.am.size_bytes, got 4096.5, limit Input should be a valid int",
    ),
    (
        {SIZE: f"size_bytes = {{ value = 0, {NUMBER} }}"},
        "wrong value: where tiny.toml: memory.am.size_bytes, got 0, limit Input should be greater",
    ),
    (
        {"value = 21.3": "value = inf"},
        "wrong value: where tiny.toml: link.ddr.gigabytes_per_second, got inf, limit Input should be",
    ),
    (
        {"value = [1.5, 3]": 'value = [1.5, "3"]'},
        "wrong value: where tiny.toml: matmul.fp32.granule_cycles.1, got '3', limit Input should be a valid",
    ),
    (
        {BANDWIDTH: ""},
        f"{ONE_UNIT}, not neither",
    ),
    (
        {BANDWIDTH: f"{BANDWIDTH}\nbytes_per_cycle = {{ value = 1, {NUMBER} }}"},
        f"{ONE_UNIT}, not both",
    ),
    (
        {'link = "ddr"': 'link = "bus"'},
        "unknown link: where tiny.toml: path.ddr->am.link, got 'bus', limit one of ddr",
    ),
    (
        {'port = "read"': 'port = "write"'},
        "unknown port: where tiny.toml: path.ddr->am.port, got 'write', limit one of read",
    ),
    (
        {"ddr->am": "ddr->sm"},
        "unknown memory: where tiny.toml: path.ddr->sm, got 'sm', limit one of am, ddr",
    ),
    (
        {"ddr->am": "ddr"},
        'a path is not named after two memories: where tiny.toml: path.ddr, limit "ddr->am"',
    ),
    (
        {'core = "dsp"\nissue = "queued"': 'core = "aiv"\nissue = "queued"'},
        "unknown core: where tiny.toml: engine.dma.core, got 'aiv', limit one of dsp",
    ),
    (
        {"[engine.vpu]": "[engine.dma1]"},
        "two engines have lanes of one name: where tiny.toml: engine.dma1",
    ),
    (
        {"[launch.default]": "[launch.cast]"},
        "missing key: where tiny.toml: launch.default; give the cost of an ordinary launch",
    ),
    (
        {"[memory.am]": '[memory."a.m"]'},
        "a name has a dot in it: where tiny.toml: memory.a.m; name it without",
    ),
    (
        {'family = "dsp"': 'family = "dsp"\nextends = true'},
        'extends is not a name: where tiny.toml: extends, got True, limit "name" or "file.toml"',
    ),
    (
        {"[vector]": '[provenance.groups]\nmark = "derived"\n[vector]'},
        "unknown key: where tiny.toml: provenance; write mark and source at each number",
    ),
]


@pytest.mark.parametrize(
    ("changes", "message"), KEY_ERRORS, ids=[message.split(",")[0] for _, message in KEY_ERRORS]
)
def test_a_refusal_names_file_and_key(tmp_path: Path, changes: dict[str, str], message: str) -> None:
    """Each fault of a file is told with the file, the dotted key, and what is allowed."""
    assert refusal(write_tiny(tmp_path, changes)).startswith(message)


def test_an_unknown_key_suggests_the_nearest(tmp_path: Path) -> None:
    """A misspelt field of a table is answered with the field that it resembles."""
    path = write_tiny(tmp_path, {SIZE: f"{SIZE}\nalign_byte = {{ value = 64, {NUMBER} }}"})
    assert refusal(path).endswith("core_stride_bytes, align_bytes; did you mean align_bytes?")


@pytest.mark.parametrize(
    ("text", "key"),
    [
        (f"[memory.am]\n{SIZE}\n{SIZE}\n", "memory.am.size_bytes"),
        ("[memory.am]\nscope = 'core'\n# again\n[memory.am]\n", "memory.am"),
        ('[path."ddr->am"]\nlink = "ddr"\n\n"link" = "gsm"\n', "path.ddr->am.link"),
        ("[matmul.fp32]\ngranule_cycles = [\n1,\n2]\ngranule_cycles = [\n3]\n", "matmul.fp32.granule_cycles"),
        ("name = 'a'\nname = 'b'\n", "name"),
        ("[memory.am]\nsize_bytes = { value = 1, value = 2 }\n", "memory.am.size_bytes"),
    ],
)
def test_a_duplicate_key_is_named(tmp_path: Path, text: str, key: str) -> None:
    """The parser gives a line; the error gives the dotted key as well."""
    message = refusal(write(tmp_path / "twice.toml", text))
    assert message.startswith(f"duplicate key: where twice.toml: {key}, got ")
    assert message.endswith("; keep one of them")


def test_text_that_is_not_toml_is_told_with_its_line(tmp_path: Path) -> None:
    """A syntax error names the file, the key near it, and the parser's words."""
    message = refusal(write(tmp_path / "bad.toml", "[memory.am]\nscope = core\n"))
    place = "memory.am.scope, got Invalid value (at line 2, column 9)"
    assert message == f"the target file is not TOML: where bad.toml: {place}"


def test_a_file_extends_another(tmp_path: Path) -> None:
    """Numbers of the child replace those of the base with their marks; the rest stays."""
    write_tiny(tmp_path)
    child = write(
        tmp_path / "child.toml",
        'extends = "tiny"\nname = "child"\n'
        '[memory.am]\nsize_bytes = { value = 8192, mark = "derived", source = "twice" }\n'
        f"[launch.cast]\ncycles = {{ value = 5, {NUMBER} }}\ncycles_per_core = {{ value = 1, {NUMBER} }}\n",
    )
    target, base = load_target(child), load_target(tmp_path / "tiny.toml")
    assert (target.name, target.title) == ("child", "a test target")
    assert target.memory["am"].size_bytes == 8192
    assert target.memory["am"].base_address == base.memory["am"].base_address
    assert target.provenance["memory.am.size_bytes"] == Mark(mark="derived", source="twice")
    assert sorted(target.launch) == ["cast", "default"]
    assert target.engine == base.engine


def test_a_file_extends_a_shipped_name_or_a_relative_file(tmp_path: Path) -> None:
    """A name of a shipped target works from any folder, a relative file from the child's own."""
    shipped = write(tmp_path / "mine.toml", 'extends = "mt7004"\nname = "mine"\n')
    assert load_target(shipped).memory == load_target("mt7004").memory
    (tmp_path / "bins").mkdir()
    write_tiny(tmp_path)
    relative = write(tmp_path / "bins" / "a.toml", 'extends = "../tiny.toml"\nname = "a"\n')
    assert load_target(relative).memory == load_target(tmp_path / "tiny.toml").memory


def test_a_bandwidth_in_one_unit_replaces_the_other_of_the_base(tmp_path: Path) -> None:
    """A child that knows bytes a cycle need not undo the base's gigabytes a second."""
    write_tiny(tmp_path)
    text = f'extends = "tiny"\n[link.ddr]\nbytes_per_cycle = {{ value = 8, {NUMBER} }}\n'
    target = load_target(write(tmp_path / "child.toml", text))
    assert (target.link["ddr"].bytes_per_cycle, target.link["ddr"].gigabytes_per_second) == (8, None)
    assert "link.ddr.gigabytes_per_second" not in target.provenance


def test_a_fault_is_told_of_the_file_it_stands_in(tmp_path: Path) -> None:
    """Of a child and its base, the error names the one with the wrong value."""
    write_tiny(tmp_path, {SIZE: f"size_bytes = {{ value = 0, {NUMBER} }}"})
    child = write(tmp_path / "child.toml", 'extends = "tiny"\nname = "child"\n')
    assert refusal(child).startswith("wrong value: where tiny.toml: memory.am.size_bytes, got 0")


def test_a_missing_base_and_a_circle_are_refused(tmp_path: Path) -> None:
    """What is extended must exist, and may not lead back."""
    child = write(tmp_path / "child.toml", 'extends = "mt7005"\n')
    assert refusal(child).startswith(
        "the target that is extended is not there: where child.toml: extends, got 'mt7005'"
    )
    write(tmp_path / "a.toml", 'extends = "b"\n')
    write(tmp_path / "b.toml", 'extends = "a"\n')
    assert refusal(tmp_path / "a.toml") == (
        "a target extends itself: where b.toml: extends, got a.toml -> b.toml -> a.toml"
    )


def test_a_value_over_a_table_is_refused(tmp_path: Path) -> None:
    """A child cannot turn a table of its base into a value, or a value into a table."""
    write_tiny(tmp_path)
    value = write(tmp_path / "value.toml", 'extends = "tiny"\nmemory = "none"\n')
    assert refusal(value) == "a value stands where a table is: where value.toml: memory, got 'none'"
    table = write(tmp_path / "table.toml", 'extends = "tiny"\n[title]\nen = "a"\n')
    assert refusal(table) == "a value stands where a table is: where table.toml: title.en, got 'a'"
