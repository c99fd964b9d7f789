"""The decision pages: complete, guarded by tests that exist; and the guards that have no other home."""

from __future__ import annotations

import ast
import gc
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from xdsl.dialects.builtin import ModuleOp
from xdsl.utils.exceptions import VerifyException

import spyre_mlir
from spyre_mlir.compiled import CompiledModel
from spyre_mlir.dialects.sdscbundle import DeviceMemAllocateOp, SdscExecuteOp
from spyre_mlir.dialects.superdsc.codec.describe import describe
from spyre_mlir.dialects.superdsc.dialect.ops import SdscConstantOp, SdscOp
from spyre_mlir.machine.levels.run import run_function
from spyre_mlir.pipeline import lower
from spyre_mlir.text.render import parse_module, verify_module
from spyre_mlir.universe import make_context
from tests.oracles import dl16_emulation
from tests.paths import ROOT

PAGES = sorted((ROOT / "docs" / "decisions").glob("[0-9]*.md"))
GUARD = re.compile(r"`(tests/[\w/.]+\.py)::(\w+)`")
HEADINGS = ("Context", "Decision", "Reconsider when", "Guarded by")
HEAD = re.compile(r"# (\d+)\. (.+)\n\nTopic: (.+)\nStatus: (.+)\nSee: (.+)\n\n## Context\n")
SEE = re.compile(r"\[`([^`]+)`\]\(\.\./\.\./([^)]+)\)")
TOPICS: tuple[str, ...] = (
    "lowering",
    "operations",
    "memory and layouts",
    "numerics",
    "files and bundles",
    "KTIR",
    "PyTorch entry points",
    "machine",
    "prediction",
    "tools and tests",
)


def parse(text: str) -> ModuleOp:
    module = parse_module(text, make_context(), locations=False)
    verify_module(module)
    return module


def files_of(text: str, **options: object) -> ModuleOp:
    """A program at the superdsc level."""
    given = {"convert-spyre-kernel-to-superdsc": options}
    return lower(parse(text), make_context(), options=given).modules["superdsc"]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_page_is_complete_and_short(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    assert re.findall(r"^## (.*)$", text, re.MULTILINE) == list(HEADINGS)
    assert text.startswith(f"# {int(page.stem[:4])}. ")
    assert len(text.splitlines()) <= 50


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_guards_exist(page: Path) -> None:
    guards = GUARD.findall(page.read_text(encoding="utf-8"))
    assert guards, "no test guards this decision"
    for path, name in guards:
        tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
        functions = {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}
        assert name in functions, f"{path} has no test {name}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_head_has_topic_status_and_implementation(page: Path) -> None:
    head = HEAD.match(page.read_text(encoding="utf-8"))
    assert head is not None, "after the title stand Topic, Status and See, a line each"
    _, _, topic, status, see = head.groups()
    assert topic in TOPICS
    successor = re.fullmatch(r"superseded by (\d{4})", status)
    assert status == "accepted" or (successor and list(page.parent.glob(f"{successor[1]}-*.md")))
    links = SEE.findall(see)
    assert see == ", ".join(f"[`{path}`](../../{path})" for path, _ in links)
    assert links
    for path, target in links:
        assert path == target
        assert (ROOT / path).exists(), path


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_the_module_that_implements_a_decision_names_it(page: Path) -> None:
    head = HEAD.match(page.read_text(encoding="utf-8"))
    assert head is not None
    places = [ROOT / path for path, _ in SEE.findall(head[5]) if path.startswith("spyre_mlir/")]
    named = [path for path in places if path.suffix == ".py"] or [path / "__init__.py" for path in places]
    found = [f"\nDecision: docs/decisions/{page.name}\n" in path.read_text(encoding="utf-8") for path in named]
    assert any(found) or not found


def test_index_groups_every_page_by_topic() -> None:
    expected = dict.fromkeys(TOPICS, "")
    for page in PAGES:
        head = HEAD.match(page.read_text(encoding="utf-8"))
        assert head is not None
        number, title, topic, status, _ = head.groups()
        note = "" if status == "accepted" else f" ({status})"
        expected[topic] += f"* {number}. [{title}]({page.name}){note}\n"
    index = (ROOT / "docs" / "decisions" / "README.md").read_text(encoding="utf-8")
    groups = [f"## {topic[0].upper()}{topic[1:]}\n\n{lines}" for topic, lines in expected.items()]
    assert index.partition("## ")[1:] == ("## ", "\n".join(groups).removeprefix("## "))


def test_oracles_import_nothing_of_ours() -> None:
    files = sorted((ROOT / "tests" / "oracles").glob("[!t]*.py"))
    assert len(files) >= 2
    for path in files:
        tree = ast.parse(path.read_text(encoding="utf-8"))
        imported = [alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names]
        imported += [node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
        assert [name for name in imported if name.startswith("spyre_mlir")] == [], path.name


class Affine(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = torch.nn.Parameter(torch.linspace(-1, 1, 64 * 64).reshape(64, 64))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(x @ self.weight)


@pytest.mark.filterwarnings("ignore:Implicitly cleaning up:ResourceWarning")
@pytest.mark.usefixtures("only_new_garbage")
def test_a_call_runs_the_files_on_disk() -> None:
    model, x = Affine(), torch.linspace(-1, 1, 128).reshape(2, 64)
    compiled = spyre_mlir.compile(model, (x,))
    assert isinstance(compiled, CompiledModel)
    file = compiled.bundle_directory() / "sdsc_1.json"
    # The function of the second file, by its name alone: relu becomes a change of sign.
    file.write_text(file.read_text().replace("relufwd", "neg"))
    torch.testing.assert_close(compiled(x), -(x @ model.weight).detach(), rtol=1e-2, atol=0.1)
    del compiled
    gc.collect()


def test_a_bundle_runs_without_the_compiler_that_wrote_it(tmp_path: Path) -> None:
    model, x = Affine(), torch.linspace(-1, 1, 128).reshape(2, 64)
    compiled = spyre_mlir.compile(model, (x,))
    assert isinstance(compiled, CompiledModel)
    compiled.save(tmp_path / "out")
    np.save(tmp_path / "x.npy", x.numpy())
    code = """
import sys
from spyre_mlir.cli.run import main
sys.argv = ["spyre-run", *sys.argv[1:]]
try:
    main()
except SystemExit as stop:
    assert not stop.code, stop.code
heavy = ("torch", "spyre_mlir.frontend", "spyre_mlir.transforms.convert")
assert not (loaded := [name for name in sys.modules if name.startswith(heavy)]), loaded
"""
    words = [str(tmp_path / "out"), "--input", f"x={tmp_path / 'x.npy'}", "--output", str(tmp_path / "y")]
    words += ["--numerics", "exact"]
    subprocess.run([sys.executable, "-c", code, *words], check=True, cwd=ROOT)
    (result,) = (tmp_path / "y").glob("*.npy")
    np.testing.assert_allclose(np.load(result), model(x).detach().numpy(), rtol=1e-4, atol=1e-4)


@pytest.mark.filterwarnings("ignore:Implicitly cleaning up:ResourceWarning")
@pytest.mark.usefixtures("only_new_garbage")
def test_the_device_error_is_at_most_half_again_the_emulations() -> None:
    generator = torch.Generator().manual_seed(0)
    model, x = Affine(), torch.randn(8, 64, generator=generator)
    compiled = spyre_mlir.compile(model, (x,), numerics="device")
    ours, wide = compiled(x), dl16_emulation.double(model, x)
    emulated = dl16_emulation.rms_error(dl16_emulation.emulate(model, x), wide)
    assert 0 < dl16_emulation.rms_error(ours, wide) <= 1.5 * emulated
    del compiled
    gc.collect()


PRODUCT = """func.func @main(%x: tensor<4x64xf16>, %w: tensor<64x128xf16>) -> tensor<4x128xf16> {
  %0 = aten.exp(%x) : (tensor<4x64xf16>) -> tensor<4x64xf16>
  %1 = aten.mm(%0, %w) : (tensor<4x64xf16>, tensor<64x128xf16>) -> tensor<4x128xf16>
  func.return %1 : tensor<4x128xf16>
}"""


def test_concrete_addresses_are_numbers_without_symbols() -> None:
    symbolic, concrete = files_of(PRODUCT), files_of(PRODUCT, addresses="concrete")
    assert all(op.ids for op in symbolic.walk() if isinstance(op, SdscExecuteOp))
    assert not any(op.ids or op.addresses for op in concrete.walk() if isinstance(op, SdscExecuteOp))
    assert not any(isinstance(op, DeviceMemAllocateOp) for op in concrete.walk())


def test_labels_follow_the_position_of_a_loop() -> None:
    exp, product = (describe(op) for op in files_of(PRODUCT).ops if isinstance(op, SdscOp))
    assert [(d.label, d.extent) for d in exp.dims] == [("mb", 4), ("out", 64)]
    # The 64 that exp calls out is what the product sums over, and there it is called in.
    assert [(d.label, d.extent) for d in product.dims] == [("mb", 4), ("out", 128), ("in", 64)]


def test_a_split_that_does_not_divide_is_refused() -> None:
    text = """func.func @main(%a: !spyre.tensor<[67, 64] x SEN169_FP16, order [1, 0], stick 1, hbm>,
                              %b: !spyre.tensor<[67, 64] x SEN169_FP16, order [1, 0], stick 1, hbm>) {
  spyre.kernel.compute "neg" [m = 67 over 32, n = 64]
    ins(%a[m, n] : !spyre.tensor<[67, 64] x SEN169_FP16, order [1, 0], stick 1, hbm>)
    outs(%b[m, n] : !spyre.tensor<[67, 64] x SEN169_FP16, order [1, 0], stick 1, hbm>)
  func.return
}"""
    with pytest.raises(VerifyException, match=r"67 elements, not divisible over 32 cores.*try"):
        parse(text)
    parse(text.replace("over 32", "over 67").replace("67", "32"))


def test_a_body_of_two_operations_is_refused() -> None:
    text = """func.func @main(%x: tensor<4xf32>) -> tensor<4xf32> {
  %0 = spyre.loop.nest [m = 4] ins(%x[m] : tensor<4xf32>) -> [m] : tensor<4xf32> {
  ^bb0(%1: f32):
    %2 = math.exp %1 : f32
    %3 = math.sqrt %2 : f32
    spyre.loop.yield %3 : f32
  }
  func.return %0 : tensor<4xf32>
}"""
    with pytest.raises(VerifyException, match="one scalar operation"):
        parse(text)


def test_mean_and_clamp_write_no_constants() -> None:
    module = files_of("""func.func @main(%x: tensor<4x64xf16>) -> tensor<4x1xf16> {
  %0 = aten.clamp(%x) {min = 0.1, max = 0.7} : (tensor<4x64xf16>) -> tensor<4x64xf16>
  %1 = aten.mean.dim(%0) {dim = array<i64: -1>, keepdim = true} : (tensor<4x64xf16>) -> tensor<4x1xf16>
  func.return %1 : tensor<4x1xf16>
}""")
    files = [op for op in module.walk() if isinstance(op, SdscOp)]
    assert [op.root_key for op in files] == ["0_maximum", "1_minimum", "2_sum", "3_realdiv"]
    assert not any(isinstance(op, SdscConstantOp) for op in module.walk())


def test_a_fully_masked_row_is_zero() -> None:
    module = parse("""func.func @main(%q: tensor<1x2x8xf32>, %k: tensor<1x3x8xf32>, %v: tensor<1x3x8xf32>,
                                %mask: tensor<2x3xi1>) -> tensor<1x2x8xf32> {
  %0 = aten.scaled_dot_product_attention(%q, %k, %v, %mask)
    : (tensor<1x2x8xf32>, tensor<1x3x8xf32>, tensor<1x3x8xf32>, tensor<2x3xi1>) -> tensor<1x2x8xf32>
  func.return %0 : tensor<1x2x8xf32>
}""")
    random = np.random.default_rng(0)
    q, k, v = (random.standard_normal(shape) for shape in ((1, 2, 8), (1, 3, 8), (1, 3, 8)))
    mask = np.array([[False, False, False], [False, True, False]])
    lowered = lower(module, make_context(), until="spyre.kernel").modules
    expected = np.stack([np.zeros((1, 8)), v[:, 1]], axis=1)
    assert len(lowered) == 3
    for level, program in lowered.items():
        (result,) = run_function(program, [q, k, v, mask])
        np.testing.assert_allclose(result, expected, atol=1e-12, err_msg=level)
