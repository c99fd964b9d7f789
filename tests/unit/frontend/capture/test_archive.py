"""Saved programs that would run code when they are read: refused by name, and nothing of them runs."""

import io
import json
import pickle
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from torch._subclasses import FakeTensorMode

import spyre_mlir
from spyre_mlir.cli.compile import run
from spyre_mlir.errors import ImportProgramError
from spyre_mlir.frontend import import_program
from spyre_mlir.frontend.capture.archive import check_archive, load_pt2
from spyre_mlir.frontend.capture.symbol_text import is_size

Members = dict[str, bytes]
X = torch.randn(2, 4)


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.parts = torch.nn.ModuleDict({"a b": torch.nn.Linear(4, 4)})
        self.register_buffer("shift", torch.ones(4))

    def forward(self, x, *, scale=None):
        return self.parts["a b"](x) * (self.shift if scale is None else scale)


class Touch:
    """Makes a file when it is unpickled."""

    def __init__(self, path: Path):
        self.path = path

    def __reduce__(self):
        return Path.touch, (self.path,)


@pytest.fixture(scope="module")
def program() -> Members:
    buffer = io.BytesIO()
    torch.export.save(torch.export.export(Model(), (X,), {"scale": torch.ones(4)}), buffer)
    with zipfile.ZipFile(buffer) as archive:
        return {m.filename.partition("/")[2]: archive.read(m) for m in archive.infolist()}


def written(path: Path, members: Members, twice: str = "") -> Path:
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in members.items():
            archive.writestr(f"model/{name}", data)
        if twice:
            archive.writestr(f"model/{twice.upper()}", members[twice])
    return path


def with_json(member: str, change: Callable[[dict], None]) -> Callable[[Members, Path], Members]:
    def changed(members: Members, marker: Path) -> Members:
        value = json.loads(members[member].replace(b"MARKER", str(marker).encode()))
        change(value)
        return members | {member: json.dumps(value).replace("MARKER", str(marker)).encode()}

    return changed


def pickled(member: str, change: Callable[[dict], None] | None = None, config: str = "") -> Callable:
    def changed(members: Members, marker: Path) -> Members:
        buffer = io.BytesIO()
        torch.save((Touch(marker),), buffer)
        made = with_json(config, change)(members, marker) if change else members
        return made | {member: buffer.getvalue()}

    return changed


MODEL, WEIGHTS = "models/model.json", "data/weights/model_weights_config.json"
CONSTANTS = "data/constants/model_constants_config.json"
EVIL = "__import__('pathlib').Path('MARKER').touch()"
OBJECT = {"config": {"c": {"path_name": "opaque_obj_0", "is_param": False, "use_pickle": True, "tensor_meta": None}}}


def _weight_is_a_pickle(config: dict) -> None:
    config["config"]["shift"].update(use_pickle=True, path_name="weight_0")


def _size(model: dict) -> None:
    values = model["graph_module"]["graph"]["tensor_values"]
    values["x"]["sizes"][0] = {"as_expr": {"expr_str": EVIL, "hint": {"as_int": 2}}}


def _target(model: dict) -> None:
    node = model["graph_module"]["graph"]["nodes"][0]
    node["target"] = "torch.os.system"
    node["inputs"] = [{"name": "command", "arg": {"as_string": "touch MARKER"}, "kind": 1}]


def _input_name(model: dict) -> None:
    text = json.dumps(model["graph_module"]["graph"]).replace('"name": "x"', f'"name": "x={EVIL}"')
    model["graph_module"]["graph"] = json.loads(text)


def _keyword(model: dict) -> None:
    call = model["graph_module"]["module_call_graph"][0]["signature"]
    call["in_spec"] = call["in_spec"].replace("scale", f"scale={EVIL}")


def _parameter(model: dict) -> None:
    for spec in model["graph_module"]["signature"]["input_specs"]:
        for value in spec.values():
            if "parameter_name" in value:
                value["parameter_name"] = f'w")+{EVIL}+("'


def _opaque(members: Members, marker: Path) -> Members:
    return members | {
        CONSTANTS: json.dumps(OBJECT).encode(),
        "data/constants/opaque_obj_0": pickle.dumps(Touch(marker)),
    }


HOSTILE = {
    "weight": (pickled("data/weights/weight_0", _weight_is_a_pickle, WEIGHTS), "has 'shift' as a pickle"),
    "object": (_opaque, "has 'c' as a pickle"),
    "example inputs": (pickled("data/sample_inputs/model.pt"), "names getattr"),
    "older weights": (pickled("data/weights/model.pt"), "names getattr"),
    "size": (with_json(MODEL, _size), "has expr_str"),
    "operator": (with_json(MODEL, _target), "has target 'torch.os.system'"),
    "input": (with_json(MODEL, _input_name), "has name"),
    "keyword": (with_json(MODEL, _keyword), "has in_spec"),
    "parameter": (with_json(MODEL, _parameter), "has parameter_name"),
    "library": (lambda m, _: m | {"data/aotinductor/model/model.so": b"\x7fELF"}, "is compiled code"),
}


@pytest.mark.parametrize("what", HOSTILE)
def test_what_would_run_is_refused(what, program, tmp_path):
    change, message = HOSTILE[what]
    marker = tmp_path / "marker"
    path = written(tmp_path / "m.pt2", change(program, marker))
    with pytest.raises(ImportProgramError) as caught:
        import_program(path)
    assert message in caught.value.message and caught.value.where == str(path)
    assert not marker.exists()


def test_of_two_members_of_a_name_none_is_taken(program, tmp_path):
    path = written(tmp_path / "m.pt2", program, twice=MODEL)
    with pytest.raises(ImportProgramError, match="is there twice"):
        import_program(path)


def test_a_weight_that_the_graph_names_and_nothing_holds(program, tmp_path):
    weights = json.loads(program[WEIGHTS])
    del weights["config"]["shift"]
    path = written(tmp_path / "m.pt2", program | {WEIGHTS: json.dumps(weights).encode()})
    with pytest.raises(
        ImportProgramError, match=r"no \.pt2 file that torch can read: .*shift is not in the state dict"
    ):
        import_program(path)


def test_a_program_without_a_signature(program, tmp_path):
    model = json.loads(program[MODEL])
    model["graph_module"]["module_call_graph"][0]["signature"] = None
    path = written(tmp_path / "m.pt2", program | {MODEL: json.dumps(model).encode()})
    with pytest.raises(ImportProgramError, match=r"no \.pt2 file that torch can read"):
        import_program(path)


def test_a_program_of_another_schema(program, tmp_path):
    change = with_json(MODEL, lambda model: model["schema_version"].update(major=99))
    path = written(tmp_path / "m.pt2", change(program, tmp_path))
    with pytest.raises(ImportProgramError, match=r"that torch can read: .*(?i:version).*99"):
        import_program(path)


def test_names_of_members_that_are_no_text(program, tmp_path):
    path = written(tmp_path / "m.pt2", {"é": b""} | program)
    path.write_bytes(path.read_bytes().replace("é".encode(), b"\xff\xff"))
    with pytest.raises(ImportProgramError, match=r"no \.pt2 file that torch can read: .*can't decode byte 0xff"):
        import_program(path)


def test_what_unpacks_to_many_times_its_size_is_refused(program, tmp_path):
    path = tmp_path / "m.pt2"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in program.items():
            archive.writestr(f"model/{name}", data)
        archive.writestr("model/data/weights/weight_9", bytes(1 << 24))
    with pytest.raises(ImportProgramError, match="claims to unpack to 16,777,216 bytes"):
        import_program(path)


def test_guards_of_a_file_never_run(program, tmp_path):
    marker = tmp_path / "marker"
    evil = EVIL.replace("MARKER", str(marker))
    change = with_json(MODEL, lambda model: model.update(guards_code=[f"{evil} is None"]))
    path = written(tmp_path / "m.pt2", change(program, marker))
    compiled = spyre_mlir.compile(path)
    assert compiled.verify(X, scale=torch.ones(4))
    assert not marker.exists()


@pytest.mark.parametrize("arguments", [["--info"], ["--emit", "aten"], ["-o", "DIR"], ["--graph", "DIR.svg"], None])
def test_every_entry_point_looks_first(arguments, program, tmp_path, capsys):
    marker = tmp_path / "marker"
    path = written(tmp_path / "m.pt2", HOSTILE["example inputs"][0](program, marker))
    if arguments is None:
        with pytest.raises(ImportProgramError):
            spyre_mlir.info(path)
    else:
        assert run([str(path), *(word.replace("DIR", str(tmp_path / "out")) for word in arguments)]) == 1
        assert "names getattr" in capsys.readouterr().err
    assert not marker.exists()


def test_what_torch_saves_is_taken(tmp_path):
    class Cat(torch.nn.Module):
        def forward(self, x, y):
            return torch.cat([x, y]) + x.shape[0] * 2, x.reshape(x.shape[0] // 2, -1)

    sizes = {"x": {0: torch.export.Dim("d", min=1, max=64) * 2}, "y": {0: torch.export.Dim.AUTO}}
    saved = torch.export.export(Cat(), (torch.randn(4, 4), torch.randn(6, 4)), dynamic_shapes=sizes)
    torch.export.save(saved, tmp_path / "m.pt2")
    check_archive(tmp_path / "m.pt2")


def saved_without_values(path: Path) -> Path:
    with FakeTensorMode():
        model, x = torch.nn.Linear(4, 4), torch.randn(2, 4)
    torch.export.save(torch.export.export(model, (x,)), path)
    return path


def test_example_inputs_without_values_are_taken(tmp_path):
    assert import_program(saved_without_values(tmp_path / "m.pt2")).name == "Linear"


def test_sizes_of_example_inputs_without_values_are_looked_at(tmp_path):
    path = saved_without_values(tmp_path / "m.pt2")
    with zipfile.ZipFile(path) as archive:
        members = {m.filename.partition("/")[2]: archive.read(m) for m in archive.infolist()}
    name = "data/sample_inputs/model.pt"
    with zipfile.ZipFile(io.BytesIO(members[name])) as archive:
        inner = {m.filename: archive.read(m) for m in archive.infolist()}
    data = next(n for n in inner if n.endswith("data.pkl"))
    # Protocol 2 spells bytes as text to encode: an expression of the same length keeps the pickle a pickle.
    assert inner[data].count(b'{"as_int": 2}') == 1
    inner[data] = inner[data].replace(b'{"as_int": 2}', b'{"expr_str":')
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for member, content in inner.items():
            archive.writestr(member, content)
    with pytest.raises(ImportProgramError, match=r"holds no tensors|more than tensors"):
        import_program(written(path, members | {name: buffer.getvalue()}))


GOOD_SIZES = (
    "Symbol('s77', positive=True, integer=True)",
    "Add(Symbol('s17', positive=True, integer=True), Mul(Integer(2), Symbol('u0', integer=True)))",
    "Pow(Symbol('s0', integer=True), Integer(2))",
    "s0 + 2*s1 // 4",
    "Max(1, FloorDiv(s0, 2))",
    "Integer(12)",
)
BAD_SIZES = (
    "__import__('os').system('true')",
    "open('/etc/passwd')",
    "s0.__class__",
    "[x for x in (1,)]",
    "(lambda: 1)()",
    "Symbol('__import__(0)')",
    "9**9**9**9",
    "Pow(Integer(9), Integer(63))",
    "Pow(Symbol('s0'), Integer(100000))",
    "LShift(1, 60)",
    "Symbol('u99999999999')",
    "eval('1')",
    "Integer('9')",
    "(" * 20_000,
)


@pytest.mark.parametrize("text", GOOD_SIZES)
def test_sizes_of_symbols_and_numbers_are_taken(text):
    assert is_size(text)


@pytest.mark.parametrize("text", BAD_SIZES)
def test_other_expressions_are_no_sizes(text):
    assert not is_size(text)


def test_a_program_that_maps_over_rows_is_read(tmp_path: Path):
    class Mapped(torch.nn.Module):
        def forward(self, x):
            return torch.vmap(lambda row: row.softmax(0))(x)

    torch.export.save(torch.export.export(Mapped(), (X,)), tmp_path / "mapped.pt2")
    compiled = spyre_mlir.compile(tmp_path / "mapped.pt2", numerics="exact")
    torch.testing.assert_close(compiled(X), X.softmax(1))


def test_a_saved_program_is_read(tmp_path: Path) -> None:
    torch.export.save(torch.export.export(torch.nn.ReLU(), (X,)), tmp_path / "relu.pt2")
    assert torch.ops.aten.relu.default in [node.target for node in load_pt2(tmp_path / "relu.pt2").graph.nodes]
    with pytest.raises(ImportProgramError, match="there is no such file"):
        load_pt2(tmp_path / "other.pt2")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "there is no such file"),
        (b"text", "this is no .pt2 file: not a zip archive"),
        (b"PK\3\4 and no more", "the file is truncated: its zip directory is missing"),
    ],
)
def test_what_is_no_saved_program_is_refused(content: bytes | None, message: str, tmp_path: Path) -> None:
    path = tmp_path / "model.pt2"
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(ImportProgramError) as refused:
        load_pt2(path)
    assert refused.value.message == message
    assert refused.value.where == str(path)
    with pytest.raises(ImportProgramError, match="this is no file"):
        load_pt2(tmp_path)


def test_text_of_a_level_is_named(tmp_path: Path) -> None:
    (tmp_path / "model.mlir").write_text("builtin.module {}")
    with pytest.raises(ImportProgramError, match="this is text of a level") as refused:
        load_pt2(tmp_path / "model.mlir")
    assert refused.value.hint is not None and "spyre-opt lowers text" in refused.value.hint


def test_a_file_of_torch_save_is_named(tmp_path: Path) -> None:
    torch.save(torch.nn.Linear(2, 2).state_dict(), tmp_path / "weights.pt2")
    with pytest.raises(ImportProgramError, match=r"torch\.save has written this file, not torch\.export\.save"):
        load_pt2(tmp_path / "weights.pt2")
