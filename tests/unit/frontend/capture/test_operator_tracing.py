"""Traces of calls: each of torch's private names does what we rely on."""

from __future__ import annotations

from typing import Any, cast

import pytest
import torch
from torch.export import exported_program

from spyre_mlir.frontend.capture.operator_tracing import Tables, TensorForm, TensorNumber, TracedCall, trace_calls
from spyre_mlir.frontend.capture.torch_warnings import torch_noise_hidden
from spyre_mlir.frontend.capture.value_memory import Unfollowed

aten = torch.ops.aten
X, Y = TensorNumber(0), TensorNumber(1)


def of(tensor: torch.Tensor) -> TensorForm:
    return TensorForm.of(tensor, offset=True)


@pytest.fixture(scope="module")
def tables() -> Tables:
    """Torch's default table, but for two operators that stay."""
    table: Any = torch.export.default_decompositions()
    for kept in (aten.linear.default, aten.silu.default):
        table.pop(kept, None)
    return Tables(table)


def traced(tables: Tables, called: Any, args: tuple[Any, ...], *tensors: torch.Tensor, **kwargs: Any) -> TracedCall:
    found: list[TracedCall] = []
    trace_calls(tables, lambda trace: found.append(trace(called, args, kwargs, [of(t) for t in tensors])))
    return found[0]


def targets(call: TracedCall) -> list[Any]:
    return [node.target for node in call.nodes]


@pytest.mark.parametrize(
    "tensor", [torch.ones(2, 3), torch.ones(5, 4).t()[1:], torch.ones(0, 2), torch.ones(()), torch.ones(1).expand(3)]
)
def test_a_form_makes_a_tensor_of_that_form(tensor: torch.Tensor) -> None:
    made = of(tensor).made()
    assert of(made) == of(tensor)
    assert TensorForm.of(tensor, offset=False).offset == 0
    assert of(torch.nn.Parameter(tensor.clone())).made().requires_grad


def test_kept_operators_stay_and_others_are_taken_apart(tables: Tables) -> None:
    x, w = torch.ones(2, 3), torch.ones(4, 3)
    assert targets(traced(tables, aten.linear.default, (X, Y), x, w)) == [aten.linear.default]
    assert targets(traced(tables, aten.silu.default, (X,), x)) == [aten.silu.default]
    assert targets(traced(tables, aten.transpose.int, (X, 0, 1), x)) == [aten.permute.default]
    assert targets(traced(tables, aten.reshape.default, (X, [6]), x)) == [aten.view.default]
    assert targets(traced(tables, aten.reshape.default, (X, [6]), torch.ones(3, 2).t())) == [
        aten.clone.default,
        aten.view.default,
    ]


def test_names_and_forms_of_the_parts(tables: Tables) -> None:
    call = traced(tables, aten.reshape.default, (X, [6]), torch.ones(3, 2).t())
    assert [call.names[node] for node in call.nodes] == ["clone", "view"]
    assert [call.forms[node].shape for node in call.nodes] == [(2, 3), (6,)]
    assert not call.walks
    assert traced(tables, aten.as_strided.default, (X, [2], [1]), torch.ones(3)).walks


def test_a_write_is_a_new_value(tables: Tables) -> None:
    call = traced(tables, aten.add_.Tensor, (X, Y), torch.ones(2), torch.ones(2))
    assert targets(call) == [aten.add.Tensor]
    assert call.written == {0: call.nodes[0]}
    assert call.results is call.nodes[0]
    assert not call.views


def test_views_know_whose_memory_they_lie_in(tables: Tables) -> None:
    call = traced(tables, aten.transpose.int, (X, 0, 1), torch.ones(2, 3))
    assert call.views == {call.nodes[-1]: call.inputs[0]}
    same = traced(tables, aten.to.dtype, (X, torch.float32), torch.ones(2))
    assert same.results is same.inputs[0]
    assert not traced(tables, aten.neg.default, (X,), torch.ones(2)).views


def test_several_results_have_a_node_each(tables: Tables) -> None:
    values, indices = traced(tables, aten.max.dim, (X, 0), torch.ones(2, 3)).results
    assert (values.meta["val"].dtype, indices.meta["val"].dtype) == (torch.float32, torch.int64)


def test_calls_are_traced_one_by_one_in_one_session(tables: Tables) -> None:
    found: list[TracedCall] = []

    def run(trace: Any) -> None:
        for number in (1, 2):
            found.append(trace(aten.add.Scalar, (X, number), {}, [of(torch.ones(2))]))

    trace_calls(tables, run)
    assert [call.nodes[0].args[1] for call in found] == [1, 2]
    assert [len(call.nodes) for call in found] == [1, 1]


def test_constants_in_a_decomposition_are_not_followed(tables: Tables) -> None:
    library = torch.library.Library("tracing_test", "FRAGMENT")
    library.define("shifted(Tensor x) -> Tensor")
    library.impl("shifted", lambda x: x + torch.tensor([1.0, 2.0]), "CompositeImplicitAutograd")
    with pytest.raises(Unfollowed, match="get_attr"):
        traced(tables, torch.ops.tracing_test.shifted.default, (X,), torch.ones(2))


def test_as_many_calls_are_kept_as_fit(tables: Tables, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("spyre_mlir.frontend.capture.operator_tracing._MOST_KEPT", 2)
    call = traced(tables, aten.neg.default, (X,), torch.ones(2))
    for key in "abc":
        tables.keep(key, call)
    assert list(tables.traced) == ["c"]


class Scores(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.softmax(torch.nn.functional.linear(x, x), -1).var(-1)


def test_torch_makes_the_same_graph_with_the_parts_and_kernels_that_are_kept() -> None:
    table = dict(cast("dict[Any, Any]", torch.export.default_decompositions()))
    del table[torch.ops.aten.linear.default]
    exported = torch.export.export(Scores(), (torch.ones(4, 4),))

    def graph() -> str:
        with torch_noise_hidden():
            return str(exported.run_decompositions(dict(table)).graph)

    wanted = graph()
    kept = Tables(dict(table))
    private = cast(Any, exported_program)
    before = private._split_decomp_table_to_cia_and_python_decomp, private._override_composite_implicit_decomp
    for _ in range(3):
        with kept.given_to_torch():
            assert private._split_decomp_table_to_cia_and_python_decomp is not before[0]
            assert graph() == wanted
        after = private._split_decomp_table_to_cia_and_python_decomp, private._override_composite_implicit_decomp
        assert after == before
    assert "aten.linear" in wanted and "aten.softmax" not in wanted
