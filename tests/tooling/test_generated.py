"""The generated language reference: up to date, readable by the tools, complete."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from xdsl.context import Context
from xdsl.dialects.arith import Arith
from xdsl.dialects.builtin import Builtin
from xdsl.dialects.func import Func
from xdsl.parser import Parser

from spyre_mlir.dialects.ktdp import Ktdp
from spyre_mlir.dialects.sdscbundle import Sdscbundle
from spyre_mlir.dialects.spyre import Spyre
from spyre_mlir.dialects.superdsc import Superdsc
from spyre_mlir.ops import ATEN
from spyre_mlir.text.render import module_text, parse_module, verify_module
from spyre_mlir.universe import make_context
from tests.conftest import external_tool
from tests.paths import ROOT

FOLDERS = ("aten", "spyre.loop", "spyre.kernel", "superdsc", "sdscbundle")
EXAMPLES = [ROOT / "dialects" / name / "example.mlir" for name in FOLDERS]


def generate(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(ROOT / "tools" / "generate.py"), *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


@pytest.mark.slow(reason="tools/dev.py check asks the same")  # the checks ask the same
def test_files_are_up_to_date() -> None:
    done = generate("--check")
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("path", EXAMPLES, ids=FOLDERS)
def test_example_reads_back(path: Path) -> None:
    text = path.read_text(encoding="utf-8")
    module = parse_module(text, make_context(), str(path), locations=False)
    verify_module(module)
    program = "".join(line for line in text.splitlines(keepends=True) if not line.startswith("//"))
    assert module_text(module) + "\n" == program
    again = parse_module(module_text(module, generic=True), make_context(), locations=False)
    assert module.is_structurally_equivalent(again)


@pytest.mark.parametrize(("path", "name"), list(zip(EXAMPLES, FOLDERS, strict=True)), ids=FOLDERS)
def test_example_is_at_its_level(path: Path, name: str) -> None:
    module = parse_module(path.read_text(encoding="utf-8"), make_context(), locations=False)
    families = {"aten", "spyre.loop", "spyre.kernel", "superdsc", "sdscbundle"}
    there = {family for op in module.walk() for family in families if op.name.startswith(family + ".")}
    # A module of superdsc is whole: the files, the bundle that orders them, the host program that launches it.
    assert there == ({"superdsc", "sdscbundle", "spyre.kernel"} if name == "superdsc" else {name})


@pytest.mark.parametrize("path", EXAMPLES, ids=FOLDERS)
def test_upstream_reads_the_generic_form(path: Path) -> None:
    upstream = external_tool("mlir-opt")
    if upstream is None:
        pytest.skip("mlir-opt is not installed: nobody but us has read this file")
    module = parse_module(path.read_text(encoding="utf-8"), make_context(), locations=False)
    done = subprocess.run(
        [upstream, "--allow-unregistered-dialect"],
        input=module_text(module, generic=True),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("path", EXAMPLES, ids=FOLDERS)
def test_stock_parser_reads_the_generic_form(path: Path) -> None:
    ours = parse_module(path.read_text(encoding="utf-8"), make_context(), locations=False)
    context = Context(allow_unregistered=True)
    for dialect in (Builtin, Func, Arith):
        context.load_dialect(dialect)
    module = Parser(context, module_text(ours, generic=True)).parse_module()
    assert len(list(module.walk())) == len(list(ours.walk()))


def test_every_op_and_attribute_has_a_section() -> None:
    pages = {name: (ROOT / "dialects" / name / "README.md").read_text(encoding="utf-8") for name in (*FOLDERS, "ktdp")}
    for dialect in (Spyre, Superdsc, Sdscbundle, Ktdp):
        for op in dialect.operations:
            page = next(text for name, text in pages.items() if op.name.startswith(name + "."))
            section = page.partition(f"\n## `{op.name}`\n")[2].partition("\n## ")[0]
            assert "```mlir" in section, f"{op.name} has no example"
        for attribute in dialect.attributes:
            assert any(f"### `{attribute.name}`" in page for page in pages.values()), attribute.name
    for entry in ATEN:
        for overload in entry.overloads:
            assert f"`aten.{overload}`" in pages["aten"], overload


def test_every_number_has_a_source_and_a_certainty() -> None:
    page = (ROOT / "docs" / "reference" / "hardware.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `(\w+)` \| ([\d,]+) \| (.+) \|$", page.partition("## Formats")[0], re.MULTILINE)
    assert len(rows) >= 10
    assert [name for name, _, source in rows if not re.fullmatch(r".{10,}; (certain|likely)", source)] == []
