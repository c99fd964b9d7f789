"""`torch.compile(backend="spyre")`: breaks, mutation, sizes, frozen buffers, aliases, and what is refused."""

from __future__ import annotations

import copy
from collections.abc import Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from functools import partial
from typing import Any

import pytest
import torch
from torch import nn
from torch._dynamo.convert_frame import ConvertFrameAssert

from spyre_mlir import torch_compile
from spyre_mlir.errors import UnsupportedError
from spyre_mlir.frontend.torch_tracing import is_tracing
from spyre_mlir.torch_compile.dynamo_private import trace_whole_graphs_for
from spyre_mlir.torch_compile.graph import CapturedGraph

EXACT = {"numerics": "exact"}


@pytest.fixture(autouse=True)
def fresh() -> Generator[None]:
    torch._dynamo.reset()
    torch_compile.forget()
    with torch.no_grad():
        yield


def compiled(model: Any) -> Callable[..., Any]:
    return torch.compile(model, backend=torch_compile.spyre, options=EXACT)


def close(got: torch.Tensor, wanted: torch.Tensor) -> None:
    assert got.dtype is wanted.dtype
    torch.testing.assert_close(got, wanted, rtol=1e-4, atol=1e-5)


class Counted(nn.Module):
    """Writes to a buffer, takes a keyword, and breaks its graph."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(4, 4)
        self.register_buffer("scale", torch.arange(4.0), persistent=False)
        self.register_buffer("count", torch.zeros(2, 4))

    def forward(self, x: torch.Tensor, *, factor: int = 1) -> torch.Tensor:
        self.count.add_(1)
        y = self.linear(x) * self.scale
        if y.sum() > 1e6:
            y = y + 1
        return y * factor


def test_graph_break_keyword_and_mutated_buffer() -> None:
    model = Counted()
    twin, fast = copy.deepcopy(model), compiled(model)
    for factor in (1, 3):
        x = torch.randn(2, 4)
        close(fast(x, factor=factor), twin(x, factor=factor))
    assert torch.equal(model.count, torch.full((2, 4), 2.0))
    assert len({c.graph.split("/")[0] for c in torch_compile.compilations()}) == 2


def test_other_sizes_are_compiled_again_and_explained() -> None:
    fast = compiled(lambda x: torch.softmax(x, -1) * 2)
    for rows in (2, 3, 5, 3):
        x = torch.randn(rows, 7)
        close(fast(x), torch.softmax(x, -1) * 2)
    reasons = [c.reason for c in torch_compile.compilations()]
    assert len(reasons) == 3, "the second call with three rows finds its program"
    assert reasons[0] == "captured"
    assert "size" in reasons[1]
    assert "size" in reasons[2]
    assert torch_compile.explain().row_count == 3


def test_changed_small_buffer_is_noticed() -> None:
    model = Counted()
    twin, fast = copy.deepcopy(model), compiled(model)
    x = torch.randn(2, 4)
    close(fast(x), twin(x))
    for _ in range(3):
        model.scale.mul_(2)
        twin.scale.mul_(2)
        close(fast(x), twin(x))
    reasons = [c.reason for c in torch_compile.compilations()]
    assert reasons.count("a buffer of the model has changed") == 1, "it is an input from then on"


def test_statistics_of_batch_norm_are_written_in_training() -> None:
    model = nn.Sequential(nn.Linear(4, 3), nn.BatchNorm1d(3)).train()
    twin, fast = copy.deepcopy(model), compiled(model)
    for _ in range(3):
        x = torch.randn(5, 4)
        close(fast(x), twin(x))
    for got, wanted in zip(model.buffers(), twin.buffers(), strict=True):
        close(got, wanted)
    assert len(torch_compile.compilations()) == 1


def test_buffer_with_nan_is_compiled_once() -> None:
    model = Counted()
    model.scale[1] = torch.nan
    fast, x = compiled(model), torch.randn(2, 4)
    for _ in range(3):
        assert fast(x)[:, 1].isnan().all()
    reasons = [c.reason for c in torch_compile.compilations()]
    assert "a buffer of the model has changed" not in reasons
    model.scale[2] = torch.nan
    assert fast(x)[:, 1:3].isnan().all(), "another NaN is a change"


def test_swapped_module_and_changed_weights() -> None:
    model = nn.Sequential(nn.Linear(4, 4), nn.ReLU())
    fast, x = compiled(model), torch.randn(3, 4)
    close(fast(x), model(x))
    model[0].weight.mul_(3)
    close(fast(x), model(x))
    model[1] = nn.Tanh()
    close(fast(x), model(x))


def test_inference_mode() -> None:
    with torch.inference_mode():
        model, x = nn.Linear(4, 4), torch.randn(3, 4)
        close(compiled(model)(x), model(x))


def test_tensors_of_inference_mode_are_written() -> None:
    def function(cache: torch.Tensor, x: torch.Tensor) -> torch.Tensor:
        cache.add_(x)
        return cache * 2

    with torch.inference_mode():
        cache, x = torch.zeros(3), torch.ones(3)
        fast = compiled(function)
        assert [fast(cache, x).tolist() for _ in range(2)] == [[2] * 3, [4] * 3]
        assert cache.tolist() == [2] * 3


def test_write_through_a_view_across_a_break() -> None:
    def function(x: torch.Tensor) -> torch.Tensor:
        y = x.view(-1)
        torch._dynamo.graph_break()
        y.add_(1)
        return x * 2

    a = torch.randn(2, 3)
    b = a.clone()
    fast = compiled(function)
    close(fast(a), function(b))
    close(a, b)
    fast(torch.randn(2, 3))
    assert len([c for c in torch_compile.compilations() if "on the host" in c.reason]) == 1


def test_mutated_input() -> None:
    def function(x: torch.Tensor) -> torch.Tensor:
        x.mul_(2)
        return x + 1

    a = torch.randn(2, 3)
    b = a.clone()
    close(compiled(function)(a), function(b))
    close(a, b)


def test_forward_runs_with_gradients_on_and_backward_says_why_not() -> None:
    model = nn.Linear(4, 4)
    with torch.enable_grad():
        out = compiled(model)(torch.randn(3, 4))
        with pytest.raises(UnsupportedError, match="backward pass"):
            out.sum().backward()


def test_shape_that_depends_on_data_is_refused_with_its_line_where_host_steps_are() -> None:
    def places(x: torch.Tensor) -> torch.Tensor:
        return x.nonzero() * 2

    whole = torch.compile(places, backend=torch_compile.spyre, options={"host_fallback": "error"}, fullgraph=True)
    with pytest.raises(UnsupportedError, match=r"aten.nonzero: data decides the size of its result") as caught:
        whole(torch.ones(3))
    assert "test_backend.py" in str(caught.value)


def test_place_of_a_layer_of_torch_is_not_ours() -> None:
    layer = torch.compile(nn.Tanhshrink(), backend=torch_compile.spyre, options=EXACT | {"host_fallback": "error"})
    with pytest.raises(UnsupportedError, match="would run on the host") as caught:
        layer(torch.ones(3, dtype=torch.float64))
    assert "spyre_mlir" not in str(caught.value)


@pytest.mark.parametrize("settings", [{}, {"norm_first": True, "activation": "gelu"}])
def test_encoder_layers_are_captured_whatever_the_setting_of_their_fast_path(settings: dict[str, Any]) -> None:
    layer = nn.TransformerEncoderLayer(8, 2, 16, batch_first=True, **settings).eval()
    for weight in layer.parameters():
        weight.copy_(torch.randn(weight.shape) / 2)
    x, hidden = torch.randn(2, 3, 8), torch.tensor([[False, False, True], [False, True, False]])
    causal = torch.ones(3, 3, dtype=torch.bool).triu(1)
    fast = compiled(layer)
    masks: list[dict[str, Any]] = [{}, {"src_key_padding_mask": hidden}, {"src_mask": causal}]
    both, square = masks[1] | masks[2], {"src_mask": nn.Transformer.generate_square_subsequent_mask(3)}
    for given in [both] if settings else [*masks, both, square]:
        close(fast(x, **given), layer(x, **given))
    assert torch.backends.mha.get_fastpath_enabled()
    assert all(c.kernels for c in torch_compile.compilations())


def test_graphs_are_traced_and_compiled_by_one_thread_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    seen = list[bool]()

    for name in ("_run_without_values", "_program"):
        known: Any = getattr(CapturedGraph, name)

        def observed(*args: Any, known: Any = known) -> Any:
            seen.append(is_tracing())
            return known(*args)

        monkeypatch.setattr(CapturedGraph, name, observed)
    x = torch.randn(3)
    close(compiled(torch.neg)(x), -x)
    assert seen == [True, True]


def test_recurrent_layers_are_captured() -> None:
    layer, x = nn.LSTM(3, 4), torch.randn(2, 3)
    close(compiled(layer)(x)[0], layer(x)[0])
    assert torch_compile.compilations()[-1].kernels


def test_recurrent_layers_are_traced_for_one_back_end_in_one_thread() -> None:
    config, seen = torch._dynamo.config, list[bool]()

    def mine(graph: Any, inputs: Any, *, fail: bool = False) -> Any:
        seen.append(config.allow_rnn)
        with ThreadPoolExecutor(1) as thread:
            seen.append(thread.submit(lambda: config.allow_rnn).result())
        if fail:
            raise RuntimeError("no")
        return graph.forward

    def other(graph: Any, inputs: Any) -> Any:
        seen.append(config.allow_rnn)
        return graph.forward

    tracer = ConvertFrameAssert.__call__
    try:
        trace_whole_graphs_for(mine)
        for back_end in (mine, partial(mine, fail=True), other):
            torch._dynamo.reset()
            with pytest.raises(Exception, match="no") if isinstance(back_end, partial) else nullcontext():
                torch.compile(nn.LSTM(3, 4), backend=back_end)(torch.randn(2, 3))
            assert not config.allow_rnn
    finally:
        ConvertFrameAssert.__call__ = tracer
    assert seen == [True, False, True, False], "the third one has no graph at all: it leaves the layer to eager"


@pytest.mark.parametrize("make", [lambda: nn.LayerNorm(4), lambda: nn.RMSNorm(4, eps=1e-3), lambda: nn.Softplus(2.0)])
def test_floats_of_a_model_are_constants_of_its_dynamic_graph(make: Callable[[], nn.Module]) -> None:
    model = nn.Sequential(nn.Linear(4, 4), make())
    fast = torch.compile(model, backend=torch_compile.spyre, options=EXACT, dynamic=True)
    for rows in (1, 2, 5):
        close(fast(x := torch.randn(rows, 4)), model(x))
    assert all(c.kernels for c in torch_compile.compilations())


def test_a_float_that_changes_has_a_program_per_value() -> None:
    def shifted(x: torch.Tensor, by: float) -> torch.Tensor:
        return nn.functional.layer_norm(x, (4,), eps=by) + by

    fast, x = compiled(shifted), torch.randn(2, 4)
    for by in (0.1, 0.2, 0.3, 0.2):
        close(fast(x, by), shifted(x, by))
    assert len(torch_compile.compilations()) == 3
    assert all(c.kernels for c in torch_compile.compilations())


def test_places_are_those_of_the_model() -> None:
    from spyre_mlir.torch_compile.graph import CapturedGraph

    found: list[CapturedGraph] = []

    def keep(graph: Any, inputs: Any) -> Any:
        found.append(CapturedGraph(graph, EXACT))
        return found[0]

    torch.compile(lambda x: x.exp(), backend=keep)(torch.randn(3))
    (made,) = found[0].programs
    assert "test_backend.py" in made.mlir("aten", locations=True)


def test_results_that_share_memory_share_it_across_a_break() -> None:
    def model(x: torch.Tensor) -> tuple[torch.Tensor, ...]:
        y = x + 1
        flat, turned, wide, bits = y.view(-1), y.t(), y[0].expand(3, 2), y.view(torch.int32)
        torch._dynamo.graph_break()
        turned.add_(1)
        return flat, y, wide, bits

    x = torch.arange(4.0).view(2, 2)
    fast = torch.compile(model, backend=torch_compile.spyre, options=EXACT | {"host_fallback": "allow"})
    for got, wanted in zip(fast(x), model(x), strict=True):
        close(got, wanted)


def test_results_without_elements_share_memory() -> None:
    part, flat = compiled(lambda x: ((x + 1)[:0], (x + 1)[:0].view(-1)))(torch.ones(2, 3))
    assert (part.shape, flat.shape) == ((0, 3), (0,))
