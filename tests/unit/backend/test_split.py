"""Modules at the superdsc level, split into host program, bundle functions and SuperDSC files."""

from __future__ import annotations

import pytest
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp

from spyre_mlir.backend.split import bundle_functions, folder_of, in_folder, launches, public_parts, split_module
from spyre_mlir.errors import EmitError
from spyre_mlir.text.render import module_text
from tests.unit.backend.programs import ONE, TWO, bundle, host, kernel, read


def functions(module: ModuleOp) -> list[str]:
    return [op.sym_name.data for op in module.ops if isinstance(op, FuncOp)]


def test_a_program_of_one_launch() -> None:
    module = read(f"builtin.module @model attributes {{note = 1 : i64}} {{\n{ONE}}}")
    before = module_text(module)
    program, bundles, files = split_module(module)
    assert functions(program) == ["main"]
    assert functions(bundles) == ["sdsc_bundle"]
    assert {name: op.root_key for name, op in files.items()} == {"sdsc_0.json": "0_relufwd", "sdsc_1.json": "1_abs"}
    assert program.sym_name is not None and program.sym_name.data == "model"
    assert list(program.attributes) == ["note"]
    assert module_text(module) == before


def test_a_file_is_called_as_its_generation_calls_it() -> None:
    module = read(kernel("0_relufwd", extra="version TS25") + bundle("sdsc_0_relufwd.json") + host("sdsc_bundle"))
    assert list(split_module(module)[2]) == ["sdsc_0_relufwd.json"]


def test_a_program_of_several_launches() -> None:
    program, bundles, files = split_module(read(TWO))
    assert functions(program) == ["main"]
    assert functions(bundles) == ["sdsc_bundle_0", "sdsc_bundle_1"]
    assert list(files) == ["sdsc_0.json", "sdsc_1.json"]


def test_a_program_that_leaves_nothing_to_the_device_has_an_empty_bundle() -> None:
    program, bundles, files = split_module(read(host()))
    assert functions(program) == ["main"]
    assert functions(bundles) == ["sdsc_bundle"]
    assert module_text(bundles) == "builtin.module {\n  func.func @sdsc_bundle() {\n    func.return\n  }\n}"
    assert files == {}


@pytest.mark.parametrize(
    ("text", "numbers", "lost"),
    [
        (kernel("0_relufwd") + host(), "1 SuperDSCs and 0 launches", "sdsc_0.json"),
        (kernel("0_relufwd") + bundle(), "1 SuperDSCs and 0 launches", "sdsc_0.json"),
        (kernel("0_relufwd") + bundle("sdsc_0.json", "sdsc_1.json"), "1 SuperDSCs and 2 launches", "sdsc_1.json"),
        (bundle("sdsc_2.json", "sdsc_1.json"), "0 SuperDSCs and 2 launches", "sdsc_1.json"),
        (host(name="other"), "0 SuperDSCs and 0 launches", None),
        ("func.func @main() { %0 = arith.constant 1 : index func.return }", "0 SuperDSCs and 0 launches", None),
    ],
)
def test_what_is_not_at_the_superdsc_level_is_refused(text: str, numbers: str, lost: str | None) -> None:
    with pytest.raises(EmitError, match="a bundle needs a function @sdsc_bundle that launches every") as caught:
        split_module(read(text))
    end = f"this module has {numbers}" + ("" if lost is None else f", and {lost} is only one of the two")
    assert caught.value.message.endswith(end)
    assert caught.value.hint == "lower it to the superdsc level"


def test_launches_in_a_loop_count_once() -> None:
    loop = 'scf.for %i = %a to %b step %b { sdscbundle.sdsc_execute () {sdsc_filename="sdsc_1.json"} }'
    numbers = "%a = arith.constant 0 : index %b = arith.constant 4 : index"
    module = read(bundle("sdsc_0.json").replace("func.return", f"{numbers} {loop} func.return"))
    assert [op.sdsc_filename.data for op in launches(module)] == ["sdsc_0.json", "sdsc_1.json"]


def test_bundle_functions_are_told_by_their_name() -> None:
    names = [function.sym_name.data for function in bundle_functions(read(TWO))]
    assert names == ["sdsc_bundle_0", "sdsc_bundle_1"]


def test_folders() -> None:
    assert folder_of("sdsc_bundle_1") == "launch_1"
    assert in_folder("launch_1", "bundle.mlir") == "launch_1/bundle.mlir"
    assert in_folder("", "bundle.mlir") == "bundle.mlir"


def test_one_bundle_function_is_written_at_the_top() -> None:
    parts = public_parts(read(ONE))
    assert {folder: functions(part) for folder, part in parts.items()} == {"": ["sdsc_bundle"]}


def test_several_are_written_in_folders_each_under_the_public_name() -> None:
    module = read(TWO)
    parts = public_parts(module)
    assert {folder: functions(part) for folder, part in parts.items()} == {
        "launch_0": ["sdsc_bundle"],
        "launch_1": ["sdsc_bundle"],
    }
    assert [op.sdsc_filename.data for part in parts.values() for op in launches(part)] == ["sdsc_0.json", "sdsc_1.json"]
    assert functions(module) == ["sdsc_bundle_0", "sdsc_bundle_1", "main"]
