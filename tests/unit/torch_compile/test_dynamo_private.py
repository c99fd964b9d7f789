"""Uses of Dynamo's private interfaces: each does what our code relies on, in the version at hand."""

from __future__ import annotations

import logging
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch
from torch._dynamo import config
from torch._dynamo.convert_frame import CatchErrorsWrapper, ConvertFrameAssert
from torch._logging._internal import TorchLogsFormatter
from torch.fx import Graph

from spyre_mlir.torch_compile import dynamo_private
from spyre_mlir.torch_compile.dynamo_private import (
    _innermost,
    compile_id,
    inductor_mode,
    recompile_reason,
    source_name,
    trace_artifact,
    trace_whole_graphs_for,
)


@pytest.mark.parametrize("name", dynamo_private.__all__)
def test_every_name_is_there(name: str) -> None:
    assert getattr(dynamo_private, name) is not None


@pytest.fixture
def tracer(monkeypatch: pytest.MonkeyPatch) -> list[tuple[bool, int]]:
    """What Dynamo's tracer finds when it is called: whether it may trace recurrent layers, and the frames to skip."""
    seen: list[tuple[bool, int]] = []

    def trace(self: Any, *args: Any, skip: int = 0, **kwargs: Any) -> tuple[Any, ...]:
        seen.append((config.allow_rnn, skip))
        return args

    monkeypatch.setattr(ConvertFrameAssert, "__call__", trace)
    monkeypatch.setattr(CatchErrorsWrapper, "__call__", CatchErrorsWrapper.__call__)  # to be what it was
    return seen


def test_recurrent_layers_are_traced_for_one_back_end(tracer: list[tuple[bool, int]]) -> None:
    def mine() -> None: ...

    trace_whole_graphs_for(mine)
    once = ConvertFrameAssert.__call__
    trace_whole_graphs_for(mine)
    assert ConvertFrameAssert.__call__ is once
    frame: Any = SimpleNamespace(f_locals={})
    for back_end in (mine, SimpleNamespace(compiler_fn=SimpleNamespace(func=mine)), print):
        assert once(SimpleNamespace(_torchdynamo_orig_backend=back_end), frame, skip=2) == (frame,)  # type: ignore[arg-type]
    once(SimpleNamespace(_torchdynamo_orig_backend=print), frame)  # type: ignore[arg-type, call-arg]
    assert tracer == [(True, 3), (True, 3), (False, 3), (False, 1)]
    assert config.allow_rnn is False


def test_artifacts_of_a_trace(tmp_path: Path) -> None:
    handler = logging.FileHandler(tmp_path / "trace.log")
    trace = logging.getLogger("torch.__trace")
    before = trace.handlers[:]
    trace.handlers[:] = [handler]
    handler.setFormatter(TorchLogsFormatter(trace=True))
    try:
        trace_artifact("a name", lambda: "a text")
    finally:
        trace.handlers[:] = before
        handler.close()
    head, *lines = (tmp_path / "trace.log").read_text().splitlines()
    assert '"artifact": {"name": "a name", "encoding": "string"}' in head
    assert lines[-1].strip() == "a text"


def test_no_text_is_made_without_a_trace(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logging.getLogger("torch.__trace"), "handlers", [])

    def text() -> str:
        raise AssertionError("made")

    trace_artifact("a name", text)


def test_wrappers_of_a_back_end_are_looked_through() -> None:
    for name in ("_torchdynamo_orig_backend", "compiler_fn", "func"):
        assert _innermost(SimpleNamespace(**{name: SimpleNamespace(func=print)})) is print
    assert _innermost(print) is print


def test_modes_of_torch_compile_by_their_settings() -> None:
    from torch._inductor import list_mode_options

    options = list_mode_options()["reduce-overhead"]
    assert inductor_mode(options) == "reduce-overhead"
    assert inductor_mode({}) is None
    assert inductor_mode({"nonesuch": True}) is None


def test_why_dynamo_compiled_again(monkeypatch: pytest.MonkeyPatch) -> None:
    metrics = [
        SimpleNamespace(compile_id="0/1", recompile_reason="an older   run"),
        SimpleNamespace(compile_id="0/1", recompile_reason="size   mismatch\nand more"),
        SimpleNamespace(compile_id="0/1", recompile_reason=None),
        SimpleNamespace(compile_id="0/0", recompile_reason=None),
    ]
    monkeypatch.setattr(dynamo_private, "get_compilation_metrics", lambda: iter(metrics))
    assert recompile_reason("0/1") == "size mismatch"
    assert recompile_reason("0/0") == ""
    assert recompile_reason("1/0") == ""


def test_the_compilation_at_hand_has_a_name() -> None:
    seen: list[str] = []

    def back_end(graph: Any, inputs: Any) -> Any:
        seen.append(compile_id())
        return graph.forward

    torch._dynamo.reset()
    torch.compile(lambda x: x + 1, backend=back_end)(torch.ones(2))
    assert len(seen) == 1
    assert seen[0].partition("/")[2] == "0"
    assert compile_id() == ""


@pytest.mark.parametrize(
    ("source", "name"),
    [
        (SimpleNamespace(name="L['x']"), "L['x']"),
        (SimpleNamespace(name=lambda: "L['self']._buffers['mask']"), "L['self']._buffers['mask']"),
        (None, ""),
    ],
)
def test_where_an_input_comes_from(source: object, name: str) -> None:
    node = Graph().placeholder("x")
    assert source_name(node) == ""
    node.meta["grapharg"] = SimpleNamespace(source=source)
    assert source_name(node) == name
