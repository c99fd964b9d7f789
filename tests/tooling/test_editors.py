"""Files of the VS Code extension: they refer to each other, and the grammar knows every dialect."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from spyre_mlir.dialects import get_all_dialects
from spyre_mlir.universe import UPSTREAM_DIALECTS
from tests.paths import ROOT

FOLDER = ROOT / "editors" / "vscode"
GRAMMAR = json.loads((FOLDER / "syntaxes" / "spyre-mlir.tmLanguage.json").read_text(encoding="utf-8"))


def scope_of(text: str) -> str | None:
    """The scope that the grammar gives to the beginning of a text, without its last part."""
    rules = [GRAMMAR["repository"][one["include"].removeprefix("#")] for one in GRAMMAR["patterns"]]
    found = [rule["name"] for rule in rules if re.match(rule.get("match", rule.get("begin")), text)]
    return found[0].removesuffix(".spyre-mlir") if found else None


def test_files_are_those_that_the_manifest_names() -> None:
    manifest: dict[str, Any] = json.loads((FOLDER / "package.json").read_text(encoding="utf-8"))
    (language,) = manifest["contributes"]["languages"]
    (grammar,) = manifest["contributes"]["grammars"]
    assert (FOLDER / manifest["main"]).exists()
    json.loads((FOLDER / language["configuration"]).read_text(encoding="utf-8"))
    assert json.loads((FOLDER / grammar["path"]).read_text(encoding="utf-8")) == GRAMMAR
    assert grammar["scopeName"] == GRAMMAR["scopeName"]
    assert language["id"] == grammar["language"]
    assert f'language: "{language["id"]}"' in (FOLDER / manifest["main"]).read_text(encoding="utf-8")
    assert manifest["contributes"]["configuration"]["properties"]["spyre-mlir.server"]["default"] == "spyre-lsp"


@pytest.mark.parametrize(
    ("text", "scope"),
    [
        ("// expected", "comment.line.double-slash"),
        ('"a b"', "string.quoted.double"),
        ("%arg_0", "variable.other"),
        ("@main", "entity.name.function"),
        ("^bb0", "entity.name.label"),
        ("#map", "entity.name.type"),
        ("!spyre.tensor", "entity.name.type"),
        ("tensor<4xf32>", "storage.type"),
        ("f32", "storage.type"),
        ("aten.add.Tensor", "keyword.other.operation"),
        ("spyre.kernel.compute", "keyword.other.operation"),
        ("outs(", "keyword.control"),
        ("-1.5e3", "constant.numeric"),
        ("0x1F", "constant.numeric"),
        ("= ", None),
    ],
)
def test_scopes(text: str, scope: str | None) -> None:
    assert scope_of(text) == scope


@pytest.mark.parametrize("dialect", [*UPSTREAM_DIALECTS, *get_all_dialects(), "spyre.loop", "spyre.kernel"])
def test_operations_of_every_dialect(dialect: str) -> None:
    if dialect != "spyre":  # its operations are spyre.loop and spyre.kernel
        assert scope_of(f"{dialect}.an_op") == "keyword.other.operation"
