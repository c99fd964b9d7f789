"""Bundle directories as a whole: shared files, runs from disk alone, whole or not at all, the same bytes always."""

from __future__ import annotations

import gc
import json
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from xdsl.dialects.builtin import ModuleOp

import spyre_mlir
from spyre_mlir.backend.directory import (
    StoredBundle,
    WriteOptions,
    check_replaceable,
    read_bundle,
    split_module,
    write_bundle,
)
from spyre_mlir.compiled import CompiledModel
from spyre_mlir.debug.stored_runs import stored_program
from spyre_mlir.dialects.sdscbundle import SdscExecuteOp
from spyre_mlir.errors import EmitError, InputError, LoweringError, MachineFault, ReadError
from spyre_mlir.machine.bundle.host_program import run_program
from spyre_mlir.machine.options import MachineOptions
from spyre_mlir.pipeline import lower
from spyre_mlir.text.render import module_text, parse_module
from spyre_mlir.universe import make_context
from tests.emitted import check_bundle
from tests.end_to_end.models import llama, mlp, softmax
from tests.paths import ROOT
from tests.unit.backend.llama_layers import llama_layer

DEVICE = MachineOptions(numerics="device")


def program_names(stored: StoredBundle) -> list[str]:
    """Names of the arguments of the host program, from its text."""
    assert stored.program is not None
    main: Any = next(op for op in stored.program.ops if op.name == "func.func")
    return [a.data["aten.name"].data for a in main.arg_attrs]


def run_from_disk(directory: Path, given: Mapping[str, Any], options: MachineOptions) -> list[Any]:
    """Runs a directory; weights that it has in device form are not given."""
    stored = read_bundle(directory, make_context())
    held, values = stored.weight_names(), stored.values()
    inputs = [given.get(n, None if n in held else values.get(n)) for n in program_names(stored)]
    return run_program(stored_program(stored), inputs, options)


@pytest.mark.usefixtures("only_new_garbage")
def test_a_llama_layer_runs_from_disk_alone(tmp_path: Path) -> None:
    """Written, moved, read on another path, checked, run: the bits of the program that was compiled."""
    model, inputs = llama(tokens=5)
    compiled = spyre_mlir.compile(model, inputs)
    expected = compiled(*inputs).numpy()
    compiled.save(tmp_path / "first", host_weights=False)
    shutil.move(tmp_path / "first", tmp_path / "second" / "place")
    del compiled, model
    gc.collect()
    check_bundle(tmp_path / "second" / "place")
    (got,) = run_from_disk(tmp_path / "second" / "place", {"input_ids": inputs[0].numpy()}, DEVICE)
    assert np.array_equal(got.astype(np.float32), expected)


def test_device_form_and_host_form_give_the_same_bits(tmp_path: Path) -> None:
    compiled, inputs = llama_layer()
    stored = read_bundle(compiled.save(tmp_path / "bundle"), make_context())
    values = {**stored.values(), "input_ids": inputs[0].numpy()}
    names = program_names(stored)
    assert len(stored.weight_names()) > 5
    held = [None if n in stored.weight_names() else values[n] for n in names]
    (a,) = run_program(stored_program(stored), held, DEVICE)
    (b,) = run_program(stored_program(stored), [values[n] for n in names], DEVICE)
    assert np.array_equal(a, b)


def test_exact_numerics_want_the_weights_of_the_model(tmp_path: Path) -> None:
    model, inputs = mlp()
    directory = spyre_mlir.compile(model, inputs).save(tmp_path / "bundle", host_weights=False)
    given = {"input": inputs[0].numpy()}
    with pytest.raises(InputError, match="weight' is there as the device has it, which is rounded"):
        run_from_disk(directory, given, MachineOptions())
    with pytest.raises(InputError, match="another rule of overflow"):
        run_from_disk(directory, given, MachineOptions(numerics="device", overflow="nan"))
    weights = {name: value.detach().numpy() for name, value in model.named_parameters()}
    (got,) = run_from_disk(directory, {**given, **weights}, MachineOptions())
    np.testing.assert_allclose(got, model(*inputs).detach().numpy(), atol=1e-5)


def test_shared_files_give_the_same_bits(tmp_path: Path) -> None:
    torch.manual_seed(0)
    model = torch.nn.Sequential(*(torch.nn.Linear(128, 128) for _ in range(4))).eval()
    inputs = (torch.randn(64, 128),)
    shared = spyre_mlir.compile(model, inputs, share_files=True)
    compiled = spyre_mlir.compile(model, inputs)
    assert isinstance(shared, CompiledModel)
    directory = shared.save(tmp_path / "bundle")  # and held against the decoder: see conftest.py
    lines = [line for line in (directory / "bundle.mlir").read_text().splitlines() if "sdsc_execute" in line]
    files = sorted(path.name for path in directory.glob("sdsc_*.json"))
    assert len(files) < len(lines)
    assert files == sorted(f"sdsc_{n}.json" for n in range(len(files)))
    assert torch.equal(shared(*inputs), compiled(*inputs))
    # The same ids at every launch of a file, other operands; the files have no id in common.
    tails: dict[str, set[str]] = {}
    for line in lines:
        tails.setdefault(line.split('"')[1], set()).add(line.partition("symbol_ids=")[2])
    assert all(len(tail) == 1 for tail in tails.values())
    ids = [int(n) for (tail,) in tails.values() for n in tail.strip("[]}").split(",") if n]
    assert len(ids) == len(set(ids))


TWICE = """func.func @main(%x: tensor<64x128xf16>) -> tensor<64x128xf16> {
  %0 = aten.relu(%x) : (tensor<64x128xf16>) -> tensor<64x128xf16>
  %1 = aten.neg(%0) : (tensor<64x128xf16>) -> tensor<64x128xf16>
  %2 = aten.relu(%1) : (tensor<64x128xf16>) -> tensor<64x128xf16>
  func.return %2 : tensor<64x128xf16>
}"""


def files_of(text: str, **options: object) -> ModuleOp:
    given = {"convert-spyre-kernel-to-superdsc": options}
    module = parse_module(text, make_context(), locations=False)
    return lower(module, make_context(), options=given).modules["superdsc"]


def test_a_file_in_addresses_cannot_be_shared() -> None:
    with pytest.raises(LoweringError, match="cannot be shared"):
        files_of(TWICE, addresses="concrete", share=True)


def test_without_sharing_ids_are_unique_in_the_bundle() -> None:
    """What the published specification asks for, and the default."""
    for version in ("TS25", "TS26", "TSNEW"):
        module = files_of(TWICE, version=version)
        ids = [n for op in module.walk() if isinstance(op, SdscExecuteOp) for n in op.ids]
        assert len(ids) == len(set(ids))
        assert len(split_module(module)[2]) == 3


def test_a_launch_of_no_file_is_named() -> None:
    module = files_of(TWICE)
    launch = next(op for op in module.walk() if isinstance(op, SdscExecuteOp))
    launch.properties["sdsc_filename"] = type(launch.sdsc_filename)("sdsc_9.json")
    with pytest.raises(EmitError, match=r"and sdsc_0\.json is only one of the two"):
        split_module(module)


def test_addresses_in_the_files_give_the_same_bits() -> None:
    """An argument is at the start of its segment, the pool in segment 0: what the files say is what is used."""
    layer = torch.nn.Sequential(torch.nn.Linear(147, 65), torch.nn.Softmax(-1)).eval()
    for model, inputs in (softmax(), (layer, (torch.randn(5, 147),))):
        expected = spyre_mlir.compile(model, inputs)(*inputs)
        compiled = spyre_mlir.compile(model, inputs, addresses="concrete")
        assert torch.equal(compiled(*inputs), expected)


def test_an_address_outside_of_its_segment_is_a_fault(tmp_path: Path) -> None:
    model, inputs = softmax()
    directory = spyre_mlir.compile(model, inputs, addresses="concrete").save(tmp_path / "bundle")
    program = directory / "program.mlir"
    text = program.read_text()
    program.write_text(text.replace("segment 1 ", "segment 4 "))
    with pytest.raises(MachineFault, match="out-of-bounds"):
        run_from_disk(directory, {"x": inputs[0].numpy()}, DEVICE)
    program.write_text(text.replace("segment 1 ", "segment 7 "))
    with pytest.raises(InputError, match="segment 7 is none of the 7"):
        run_from_disk(directory, {"x": inputs[0].numpy()}, DEVICE)
    program.write_text(text.replace("segment 1 ", ""))
    with pytest.raises(InputError, match="does not say in which segments"):
        run_from_disk(directory, {"x": inputs[0].numpy()}, DEVICE)


def test_a_fault_names_the_line_of_the_model(tmp_path: Path) -> None:
    """A launch is left out; the kernel behind it reads what nobody wrote."""
    model, inputs = softmax()
    directory = spyre_mlir.compile(model, inputs).save(tmp_path / "bundle")
    path, manifest = directory / "bundle.mlir", directory / "manifest.json"
    lines = path.read_text().splitlines()
    path.write_text("\n".join(line for line in lines if 'sdsc_filename="sdsc_0.json"' not in line))
    value = json.loads(manifest.read_text())
    value["launches"] = [entry for entry in value["launches"] if entry["file"] != "sdsc_0.json"]
    manifest.write_text(json.dumps(value))
    source = (ROOT / "tests/end_to_end/models.py").read_text().splitlines()
    number = next(n for n, line in enumerate(source, 1) if "torch.softmax(x, -1)" in line)
    with pytest.raises(MachineFault, match="stale-read") as fault:
        run_from_disk(directory, {"x": inputs[0].numpy()}, DEVICE)
    assert fault.value.where is not None
    assert fault.value.where.endswith(f"{ROOT}/tests/end_to_end/models.py:{number}")


class Mapped(Mapping[str, Any]):
    """Weights in files that are mapped when they are asked for, as those of a large model would be."""

    def __init__(self, files: dict[str, Path]) -> None:
        self.files = files

    def __getitem__(self, name: str) -> Any:
        return np.load(self.files[name], mmap_mode="r")

    def __iter__(self) -> Iterator[str]:
        return iter(self.files)

    def __len__(self) -> int:
        return len(self.files)


def test_saving_holds_a_piece_of_a_weight_at_a_time(tmp_path: Path) -> None:
    """64 MiB of weights are written in 24 MiB of memory."""
    import tracemalloc

    count, size = 16, 1024
    arguments = ", ".join(
        f'%w{n}: tensor<{size}x{size}xf32> {{aten.name = "w{n}", aten.kind = "parameter"}}' for n in range(count)
    )
    kind = f"tensor<{size}x{size}xf32>"
    lines = [f'func.func @main(%x: {kind} {{aten.name = "x", aten.kind = "input"}}, {arguments}) -> {kind} {{']
    for n in range(count):
        left = "%x" if n == 0 else f"%{n - 1}"
        lines.append(f"  %{n} = aten.add.Tensor({left}, %w{n}) : ({kind}, {kind}) -> {kind}")
    text = "\n".join([*lines, f"  func.return %{count - 1} : {kind}", "}"])
    module = files_of(text)
    files: dict[str, Path] = {}
    for n in range(count):
        files[f"w{n}"] = tmp_path / f"w{n}.npy"
        np.save(files[f"w{n}"], np.full((size, size), n, np.float32))
    tracemalloc.start()
    try:
        write_bundle(tmp_path / "bundle", module, Mapped(files), WriteOptions())
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert (tmp_path / "bundle" / "weights.safetensors").stat().st_size > count * size * size * 2
    assert (tmp_path / "bundle" / "data.safetensors").stat().st_size > count * size * size * 4
    assert peak < 24 * 2**20


def test_a_value_that_calls_change_has_no_device_form(tmp_path: Path) -> None:
    model, inputs = mlp()
    compiled = spyre_mlir.compile(model, inputs)
    assert isinstance(compiled, CompiledModel)
    values = {name: value.detach().numpy() for name, value in model.named_parameters()}
    write_bundle(tmp_path / "bundle", compiled._lowered.modules["superdsc"], values, WriteOptions(changing={"0.bias"}))
    names = read_bundle(tmp_path / "bundle", make_context()).weight_names()
    assert names == {"0.weight", "2.weight", "2.bias"}


def test_a_spoiled_bundle_is_refused(tmp_path: Path) -> None:
    model, inputs = mlp()
    pristine = spyre_mlir.compile(model, inputs).save(tmp_path / "bundle")
    given = {"input": inputs[0].numpy()}

    def refused(name: str, content: bytes | None, match: str) -> None:
        directory = shutil.copytree(pristine, tmp_path / "spoiled")
        if content is None:
            (directory / name).unlink()
        else:
            (directory / name).write_bytes(content)
        with pytest.raises((ReadError, InputError), match=match):
            run_from_disk(directory, given, DEVICE)
        shutil.rmtree(directory)

    manifest, weights = ((pristine / name).read_bytes() for name in ("manifest.json", "weights.safetensors"))
    refused("manifest.json", b"[]", "no file of a spyre-mlir bundle")
    refused("manifest.json", manifest.replace(b'"version": 1', b'"version": 2'), "bundle of version 1, got 2")
    refused("manifest.json", manifest.replace(b'"launches"', b'"lunches"'), "lacks or misspells 'launches'")
    refused("manifest.json", manifest.replace(b'"0.weight": {', b'"9.weight": {'), "tensors cannot be read")
    refused("weights.safetensors", None, "manifest.json names weights.safetensors")
    refused("weights.safetensors", weights[: len(weights) // 2], "tensors cannot be read")
    refused("weights.safetensors", weights.replace(b'"U16"', b'"F16"'), "the weight is float16")


def test_parse_and_write_again_gives_the_same_files(tmp_path: Path) -> None:
    """The superdsc text is all that the public files are made from."""
    compiled, _ = llama_layer()
    module = compiled._lowered.modules["superdsc"]
    again = parse_module(module_text(module), make_context())
    write_bundle(tmp_path / "a", module, {})
    write_bundle(tmp_path / "b", again, {})
    for path in (tmp_path / "a").glob("[!m]*"):
        assert path.read_bytes() == (tmp_path / "b" / path.name).read_bytes()


def _cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-64])


def _rename_weight(path: Path) -> None:
    manifest = json.loads(path.read_text())
    manifest["weights"]["nobody"] = manifest["weights"].popitem()[1]
    path.write_text(json.dumps(manifest))


def _edit(path: Path, old: str, new: str) -> None:
    text = path.read_text()
    assert old in text
    path.write_text(text.replace(old, new, 1))


@pytest.mark.parametrize(
    ("spoil", "rule", "place"),
    [
        (lambda d: _cut(d / "data.safetensors"), "host-files", "data.safetensors"),
        (lambda d: _cut(d / "weights.safetensors"), "host-files", "weights.safetensors"),
        (lambda d: _cut(d / "program.mlir"), "host-files", "program.mlir"),
        (lambda d: _edit(d / "manifest.json", '"version": 1', '"version": 2'), "host-files", "manifest.json"),
        (lambda d: _rename_weight(d / "manifest.json"), "host-files", "names"),
        (
            lambda d: _edit(d / "manifest.json", '"file": "sdsc_0.json"', '"file": "sdsc_1.json"'),
            "manifest-current",
            "$",
        ),
    ],
)
def test_the_check_sees_what_is_wrong_beside_the_public_files(
    spoil: Any, rule: str, place: str, tmp_path: Path
) -> None:
    model, inputs = mlp()
    spyre_mlir.compile(model, inputs).save(tmp_path / "b")
    assert spyre_mlir.check(tmp_path / "b") == ()
    spoil(tmp_path / "b")
    (finding,) = spyre_mlir.check(tmp_path / "b")
    assert (finding.rule, finding.path.startswith(place)) == (rule, True), finding


def test_a_target_that_cannot_be_created_is_refused_before_anything_is_made(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "file"
    file.touch()
    with pytest.raises(InputError, match="the bundle cannot be written: Not a directory"):
        check_replaceable(file / "a" / "bundle")
    check_replaceable(tmp_path / "a" / "bundle")
    monkeypatch.setattr("os.access", lambda at, _mode: Path(at) != tmp_path)
    with pytest.raises(InputError, match="the bundle cannot be written: Permission denied") as caught:
        check_replaceable(tmp_path / "a" / "bundle")
    assert (caught.value.where, caught.value.hint) == (
        str(tmp_path / "a" / "bundle"),
        "name a directory that can be created",
    )
    assert list(tmp_path.iterdir()) == [file]


def test_the_working_directory_is_not_exchanged(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A process, and a shell above it, would go on in a directory that is gone."""
    (tmp_path / "bundle" / "inside").mkdir(parents=True)
    (tmp_path / "bundle" / "bundle.mlir").touch()
    monkeypatch.chdir(tmp_path / "bundle" / "inside")
    for place in (Path(), tmp_path / "bundle"):
        with pytest.raises(InputError, match="the working directory of this process lies in it"):
            check_replaceable(place)
    check_replaceable(Path("new"))
    monkeypatch.chdir(tmp_path)
    check_replaceable(tmp_path / "bundle")
