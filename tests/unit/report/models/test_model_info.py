"""What a model is made of, from a small program by hand."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
import torch
from xdsl.dialects.builtin import ModuleOp

from spyre_mlir.frontend.program.program import Argument
from spyre_mlir.report.models.graph import Graph
from spyre_mlir.report.models.model_info import COLUMNS, ModelInfo, TensorFacts, model_info
from spyre_mlir.text.render import parse_module
from spyre_mlir.transforms.utils.host_fallback import HostStep
from spyre_mlir.universe import make_context

T = "tensor<4x8xf32>"
RESULTS = f'({T} {{aten.name = "out"}}, tensor<4xi64>, tensor<f16> {{aten.name = 1 : i64}})'
PROGRAM = f"""func.func @main(%x: {T}, %i: tensor<4xi64>, %h: tensor<f16>) -> RESULTS {{
  %0 = aten.relu(%x) : ({T}) -> {T}
  %1 = aten.abs(%0) : ({T}) -> {T}
  %2 = aten.relu(%1) : ({T}) -> {T}
  %3 = aten.softmax.int(%2) {{dim = -1}} : ({T}) -> {T}
  %4 = aten.call "mine::op"(%3) {{self = #aten.operands<1>}} : ({T}) -> {T}
  func.return %4, %i, %h : {T}, tensor<4xi64>, tensor<f16>
}}"""
ARGUMENTS = (
    Argument("x", "input", (4, 8), torch.float32),
    Argument("w", "parameter", (16, 2), torch.float16),
    Argument("b", "parameter", (2,), torch.float16),
    Argument("m", "buffer", (3,), torch.int64),
    Argument("c", "constant", (), torch.bool),
)


def info(results: str = RESULTS, arguments: tuple[Argument, ...] = ARGUMENTS) -> ModelInfo:
    context = make_context()
    module = parse_module(PROGRAM.replace("RESULTS", results), context, "m.py")
    steps = (HostStep("aten.relu", "why", "m.py:1"),)
    lowered = SimpleNamespace(modules={"spyre.loop": ModuleOp([])}, host_steps=steps)
    program: Any = SimpleNamespace(module=module, name="model", arguments=arguments)
    return model_info(program, lowered)  # pyright: ignore[reportArgumentType]


def test_operators_are_counted_by_their_support() -> None:
    found = info()
    assert found.ops == {
        "native": {"aten.relu": 2, "aten.abs": 1},
        "composed": {"aten.softmax.int": 1},
        "host": {},
        "removed": {"mine::op": 1},
    }
    assert list(found.ops["native"]) == ["aten.relu", "aten.abs"]
    assert found.name == "model"
    assert found.host_steps == (HostStep("aten.relu", "why", "m.py:1"),)
    assert [node.label for node in found.graph.nodes.values()][:4] == ["x", "i", "h", "relu"]


def test_tensors_by_kind() -> None:
    found = info()
    assert found.inputs == (TensorFacts("x", (4, 8), "float32", 128),)
    assert found.parameters == (TensorFacts("w", (16, 2), "float16", 64), TensorFacts("b", (2,), "float16", 4))
    assert found.buffers == (TensorFacts("m", (3,), "int64", 24),)
    assert found.constants == (TensorFacts("c", (), "bool", 1),)


def test_results_have_their_names_or_numbers() -> None:
    expected = (
        TensorFacts("out", (4, 8), "float32", 128),
        TensorFacts("output1", (4,), "int64", 32),
        TensorFacts("output2", (), "float16", 2),
    )
    assert info().outputs == expected
    bare = info(f"({T}, tensor<4xi64>, tensor<f16>)").outputs
    assert [one.name for one in bare] == ["output0", "output1", "output2"]


@pytest.mark.parametrize(("shape", "text"), [((64, 128), "64x128 float32"), ((), "scalar float32")])
def test_a_tensor_in_words(shape: tuple[int, ...], text: str) -> None:
    assert str(TensorFacts("x", shape, "float32", 4)) == text


def by_hand() -> ModelInfo:
    step = HostStep("aten.topk", "no kernel", "m.py:3")
    return ModelInfo(
        name="model",
        ops={"native": {"aten.relu": 2, "aten.abs": 1}, "host": {}},
        inputs=(TensorFacts("x", (4, 8), "float32", 128),),
        parameters=(TensorFacts("w", (16, 200), "float16", 6400), TensorFacts("s", (), "float16", 2)),
        buffers=(),
        constants=(),
        outputs=(TensorFacts("y", (), "int64", 8),),
        host_steps=(step, HostStep("aten.sort", "no kernel", ""), step),
        graph=Graph(),
    )


def test_rows() -> None:
    assert COLUMNS == ("what", "name", "count", "bytes", "detail")
    assert by_hand().rows() == [
        ("ops", "native", "3", "", "aten.relu 2, aten.abs 1"),
        ("ops", "host", "0", "", ""),
        ("parameters", "", "2", "6402", "3201 elements"),
        ("buffers", "", "0", "0", ""),
        ("constants", "", "0", "0", ""),
        ("input", "x", "", "128", "4x8 float32"),
        ("output", "y", "", "8", "scalar int64"),
        ("host step", "aten.topk", "2", "", "no kernel; time unknown, at m.py:3"),
        ("host step", "aten.sort", "1", "", "no kernel; time unknown"),
    ]


def test_the_table() -> None:
    text = str(by_hand())
    assert text == text.rstrip("\n")
    assert "model" in text.splitlines()[0]
    assert "6,402" in text
    assert "3201 elements" in text
    columns = by_hand().__rich__().columns
    assert [column.header for column in columns] == list(COLUMNS)
    assert [column.justify for column in columns] == ["left", "left", "right", "right", "left"]
    assert {column.overflow for column in columns} == {"fold"}


def test_the_table_is_text_in_a_notebook_too(monkeypatch: pytest.MonkeyPatch) -> None:
    plain = str(by_hand())
    monkeypatch.setattr("rich.console._is_jupyter", lambda: True)
    assert str(by_hand()) == plain


def test_the_text_is_160_columns_wide() -> None:
    wide = ModelInfo("m", {"native": {"aten.relu": 1}}, (), (), (), (), (), (HostStep("a", "x" * 300, ""),), Graph())
    assert max(map(len, str(wide).splitlines())) == 160
