"""What stands beside the public files of a bundle: readable, current, and as it was written."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import save_file
from xdsl.parser import Parser

from spyre_mlir.backend.check import check_bundle
from spyre_mlir.backend.check.host_rules import HOST_RULES, check_host, file_digests, host_files, manifest_current
from spyre_mlir.backend.translate import module_to_directory
from spyre_mlir.backend.whole_files.digest import digest_of_file
from spyre_mlir.dialects.superdsc.check import Finding, Severity
from spyre_mlir.universe import make_context
from tests.unit.backend.programs import LAYOUT, bundle, host, kernel, read

FILES = ("bundle.mlir", "program.mlir", "sdsc_0.json", "sdsc_1.json")


def described(directory: Path, **changed: Any) -> None:
    """Writes the manifest, with the digests of the files as they are."""
    value = {
        "format": "spyre-mlir bundle",
        "version": 1,
        "arguments": [{"number": 0, "layout": LAYOUT}, {"number": 1, "layout": LAYOUT}],
        "weights": {"w": {"name": "w", "argument": 0, "layout": LAYOUT}},
        "files": {},
        "launches": [{"file": "sdsc_0.json"}, {"file": "sdsc_1.json"}],
        "digests": {name: digest_of_file(directory / name) for name in FILES},
    }
    (directory / "manifest.json").write_text(json.dumps({**value, **changed}))


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    text = kernel("0_relufwd") + kernel("1_abs", "abs") + bundle("sdsc_0.json", "sdsc_1.json")
    module_to_directory(read(text), tmp_path / "b", "m.mlir")
    (tmp_path / "b" / "program.mlir").write_text(host("sdsc_bundle"))
    for name in ("data", "weights"):
        save_file({"w": np.zeros(1)}, tmp_path / "b" / f"{name}.safetensors")
    described(tmp_path / "b")
    return tmp_path / "b"


def found(directory: Path) -> list[tuple[str, str, str, str, str]]:
    """Rule, file below the directory, place, expected, got."""
    findings = list(check_host(directory, make_context()))
    assert {one.severity for one in findings} <= {Severity.ERROR}
    return [(f.rule, f.file.removeprefix(str(directory)), f.path, f.expected, f.got) for f in findings]


def hints(directory: Path) -> list[str | None]:
    return [one.hint for one in check_host(directory, make_context())]


def test_the_rules() -> None:
    assert (host_files, file_digests, manifest_current) == HOST_RULES
    assert [(rule.name, rule.severity, rule.certainty) for rule in HOST_RULES] == [
        ("host-files", Severity.ERROR, "C"),
        ("file-digests", Severity.ERROR, "C"),
        ("manifest-current", Severity.ERROR, "C"),
    ]
    assert [list(rule.find(None)) for rule in HOST_RULES] == [[], [], []]
    assert {rule.source for rule in HOST_RULES} == {"the bundle directory of this project"}


def test_a_whole_bundle(directory: Path) -> None:
    assert found(directory) == []


def test_a_bundle_of_others_has_nothing_of_this(directory: Path) -> None:
    for name in ("program.mlir", "manifest.json", "data.safetensors", "weights.safetensors"):
        (directory / name).unlink()
    assert found(directory) == []


def test_a_program_that_is_no_mlir(directory: Path) -> None:
    (directory / "program.mlir").write_text("func.func @main() {\n  nothing.op\n}\n")
    ((rule, file, place, expected, got),) = found(directory)
    assert (rule, file, place, expected) == ("host-files", "", "program.mlir:2:3", "files as they were written")
    assert got.startswith("the file is no MLIR: ") and "nothing" in got
    assert hints(directory) == ["write the bundle again"]


@pytest.mark.parametrize("name", ["data.safetensors", "weights.safetensors"])
def test_tensors_that_cannot_be_read(name: str, directory: Path) -> None:
    (directory / name).write_bytes(b"x")
    ((rule, _, place, _, got),) = found(directory)
    assert (rule, place) == ("host-files", name)
    assert got.startswith("the tensors cannot be read")


def test_weights_that_the_manifest_names_and_the_file_lacks(directory: Path) -> None:
    entry = {"name": "w", "argument": 0, "layout": LAYOUT}
    described(directory, weights={name: entry | {"argument": n} for n, name in enumerate("wdcba")})
    problems = [one for one in found(directory) if one[0] == "host-files"]
    assert problems == [
        ("host-files", "/weights.safetensors", "names", "the tensors of manifest.json", "none for ['a', 'b', 'c']")
    ]


def test_layouts_that_are_not_those_of_the_program_are_said_once(directory: Path) -> None:
    described(directory, arguments=[{"number": 1, "layout": "other"}])
    assert found(directory) == [("manifest-layout", "", "$.arguments[1]", LAYOUT, "other")]


def test_a_file_that_was_changed(directory: Path) -> None:
    path = directory / "sdsc_1.json"
    digest = digest_of_file(path)
    path.write_text(path.read_text() + "\n")
    assert found(directory) == [("file-digests", "/sdsc_1.json", "file", digest, digest_of_file(path))]
    assert hints(directory) == [
        "copy or write the bundle again; if the file was changed on purpose, spyre-run --no-check runs it"
    ]


def test_a_file_that_is_gone_or_lies_elsewhere(directory: Path) -> None:
    described(directory, digests={"levels/none": "crc32:00000000", "../b/sdsc_0.json/../../x": "crc32:00000000"})
    first, second = found(directory)
    assert first == ("file-digests", "/levels/none", "file", "crc32:00000000", "nothing: No such file or directory")
    assert second[4].startswith("nothing: expected the name of a file of the bundle")


@pytest.mark.parametrize(
    ("launches", "got"),
    [
        (["sdsc_0.json"], "1 launches, another one from number 1 on"),
        (["sdsc_1.json", "sdsc_0.json"], "2 launches, another one from number 0 on"),
        (["sdsc_0.json", "sdsc_0.json"], "2 launches, another one from number 1 on"),
        (["sdsc_0.json", "sdsc_1.json", "sdsc_0.json"], "3 launches, another one from number 3 on"),
    ],
)
def test_launches_that_are_not_those_of_the_bundle(launches: list[str], got: str, directory: Path) -> None:
    described(directory, launches=[{"file": file} for file in launches])
    expected = "the 2 launches of bundle.mlir"
    assert found(directory) == [("manifest-current", "/manifest.json", "$.launches", expected, got)]
    assert hints(directory) == ["write the bundle again"]


@pytest.mark.parametrize(
    "spoil",
    [
        lambda directory: (directory / "manifest.json").write_text("{}"),
        lambda directory: (directory / "weights.safetensors").unlink(),
    ],
    ids=["manifest", "weights"],
)
def test_what_the_readers_refuse_is_one_finding(spoil: Callable[[Path], object], directory: Path) -> None:
    spoil(directory)
    ((rule, file, _, expected, _),) = found(directory)
    assert (rule, file, expected) == ("host-files", "", "files as they were written")


def test_a_finding_names_the_directory(directory: Path) -> None:
    (directory / "weights.safetensors").unlink()
    (only,) = check_host(directory, make_context())
    assert isinstance(only, Finding)
    assert (only.file, only.path) == (str(directory), str(directory))


def test_a_check_parses_each_program_once(directory: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    parsed: list[str] = []
    parse = Parser.parse_module

    def counted(self: Parser, *args: Any, **options: Any) -> Any:
        parsed.append(Path(self.lexer.input.name).name)
        return parse(self, *args, **options)

    monkeypatch.setattr(Parser, "parse_module", counted)
    assert check_bundle(directory, make_context()) == ()
    assert sorted(parsed) == ["bundle.mlir", "program.mlir"]
