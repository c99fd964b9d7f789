"""The calling convention: names, kinds, buffers, ties, trees, mutation, saved programs, weightless models."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from torch._subclasses.fake_tensor import FakeTensorMode

import spyre_mlir
from spyre_mlir.errors import ImportProgramError, InputError
from spyre_mlir.frontend import Argument, import_program, load_pt2, torch_reference
from spyre_mlir.frontend.calling.call import signature_of
from tests.end_to_end.importing.evaluate import evaluate

X = torch.arange(6.0).reshape(2, 3)


class Nested(nn.Module):
    def forward(self, x: torch.Tensor, pair: dict[str, Any], n: float, *, extra: torch.Tensor | None = None) -> Any:
        total = x + pair["a"][0]
        return {"sum": total, "rest": (x, None, 7, total * n), "same": total}


def nested_arguments() -> tuple[Any, ...]:
    return X, {"a": (X + 1, X + 2)}, 2.5


def test_nested_inputs_and_outputs_keep_their_structure() -> None:
    program = import_program(Nested(), nested_arguments(), {"extra": None})
    assert [a.name for a in program.inputs] == ["x", "pair_a_0", "pair_a_1"]
    assert program.results == ("sum", "rest.0", "rest.3", "same")
    flat = program.flatten(nested_arguments(), {"extra": None})
    assert [t[0, 0].item() for t in flat] == [0.0, 1.0, 2.0]
    returned = program.unflatten(evaluate(program, nested_arguments(), {"extra": None}))
    total = np.array([[1.0, 3, 5], [7, 9, 11]])
    assert np.array_equal(returned["sum"], total)
    assert np.array_equal(returned["same"], total)
    x, nothing, seven, scaled = returned["rest"]
    assert nothing is None
    assert seven == 7
    assert np.array_equal(x, X)
    assert np.array_equal(scaled, total * 2.5)


def test_module_attributes_hold_the_calling_convention() -> None:
    program = import_program(Nested(), nested_arguments(), {"extra": None})
    attributes = program.module.attributes
    assert program.module.sym_name is not None
    assert program.module.sym_name.data == "Nested"
    assert attributes["aten.input_tree"].data == "((_, {'a': (_, _)}, _), {'extra': _})"
    assert attributes["aten.output_tree"].data == "{'sum': _, 'rest': (_, _, _, _), 'same': _}"
    assert (
        str(attributes["aten.output_leaves"])
        == "[0 : i64, 1 : i64, {value = #aten.none}, {value = 7 : i64}, 2 : i64, 3 : i64]"
    )
    assert '"x", "pair_a_0", "pair_a_1", {value = 2.500000e+00 : f64}' in str(attributes["aten.input_leaves"])


@pytest.mark.parametrize(
    ("args", "kwargs", "message"),
    [
        ((X,), {"extra": None}, "expected 3 positional arguments, got 1"),
        ((*nested_arguments(), X), {"extra": None}, "expected 3 positional arguments, got 4"),
        (nested_arguments(), {}, "missing keyword arguments extra"),
        (nested_arguments(), {"extra": None, "bogus": 1}, "unknown keyword arguments bogus"),
        ((X, {"b": (X, X)}, 2.5), {"extra": None}, "nested otherwise"),
        ((X.double(), {"a": (X, X)}, 2.5), {"extra": None}, "argument 'x': expected float32[2, 3], got float64[2, 3]"),
        (
            (X, {"a": (X, X[:1])}, 2.5),
            {"extra": None},
            "argument 'pair_a_1': expected float32[2, 3], got float32[1, 3]",
        ),
        ((3, {"a": (X, X)}, 2.5), {"extra": None}, "argument 'x': expected a tensor float32[2, 3], got int"),
        ((X.to_sparse(), {"a": (X, X)}, 2.5), {"extra": None}, "got a tensor of layout torch.sparse_coo"),
        ((X.to("meta"), {"a": (X, X)}, 2.5), {"extra": None}, "got a tensor without elements"),
        ((X, {"a": (X, X)}, 2.0), {"extra": None}, "argument 'n' is 2.0, but the program was made for 2.5"),
        ((X, {"a": (X, X)}, 2.5), {"extra": 1}, "argument 'extra' is 1, but the program was made for None"),
    ],
)
def test_wrong_arguments_are_named(args: tuple[Any, ...], kwargs: dict[str, Any], message: str) -> None:
    program = import_program(Nested(), nested_arguments(), {"extra": None})
    with pytest.raises(InputError) as caught:
        program.flatten(args, kwargs)
    assert message in str(caught.value)


def test_keyword_arguments_may_come_in_any_order() -> None:
    class Two(nn.Module):
        def forward(self, *, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
            return a - b

    program = import_program(Two(), (), {"b": X, "a": X + 1})
    (result,) = evaluate(program, (), {"a": X + 1, "b": X})
    assert np.array_equal(result, np.ones((2, 3)))
    (result,) = evaluate(program, (), {"b": X, "a": X + 1})
    assert np.array_equal(result, np.ones((2, 3)))


def test_same_tensor_twice_is_two_inputs() -> None:
    class Subtract(nn.Module):
        def forward(self, a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
            return a - b

    program = import_program(Subtract(), (X, X))
    assert np.array_equal(evaluate(program, (X, X + 2))[0], np.full((2, 3), -2.0))


class Buffers(nn.Module):
    """A persistent and a non-persistent buffer, both used as they are and in arithmetic, and an unused one."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.full((3,), 2.0))
        self.register_buffer("kept", torch.tensor([1.0, 2, 3]))
        self.register_buffer("table", torch.tensor([4.0, 5, 6]), persistent=False)
        self.register_buffer("unused", torch.tensor([4.0, 5, 6]))

    def forward(self, weight: torch.Tensor) -> Any:
        return weight * self.weight + self.table, weight * self.kept * 2 * (self.table * 2)


def test_names_kinds_and_values_of_arguments() -> None:
    program = import_program(Buffers(), (X,))
    assert [(a.name, a.kind) for a in program.arguments] == [
        ("weight_in", "input"),
        ("weight", "parameter"),
        ("kept", "buffer"),
        ("table", "buffer"),
        ("constant_0", "constant"),
    ]
    assert program.arguments[0] == Argument("weight_in", "input", (2, 3), torch.float32)
    assert {n: v.tolist() for n, v in program.values.items()} == {
        "weight": [2, 2, 2],
        "kept": [1, 2, 3],
        "table": [4, 5, 6],
        "constant_0": [8, 10, 12],
    }
    first, second = evaluate(program, (X,))
    assert np.array_equal(first, X.numpy() * 2 + [4, 5, 6])
    assert np.array_equal(second, X.numpy() * [16, 40, 72])
    assert 'aten.name = "weight", aten.kind = "parameter"' in str(program.module)


def test_equal_constants_are_shared_and_never_in_the_text() -> None:
    class Constants(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x * torch.tensor([1.25, 2, 3]) + torch.tensor([1.25, 2, 3]) - torch.arange(3)

    program = import_program(Constants(), (X,))
    assert {n: v.tolist() for n, v in program.values.items()} == {"constant_0": [1.25, 2, 3], "constant_1": [0, 1, 2]}
    assert program.values["constant_1"].dtype is torch.float32  # converted here, not on the device
    assert "dense" not in str(program.module)
    assert "1.25" not in str(program.module)


def test_repeated_constant_is_kept_once_and_expanded() -> None:
    class Repeated(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.cat([x, torch.arange(3.0).expand(1000, 3)])

    program = import_program(Repeated(), (X,))
    assert tuple(program.values["constant_0"].shape) == (1, 3)
    assert evaluate(program, (X,))[0].shape == (1002, 3)


def test_tied_weights_are_one_argument() -> None:
    class Tied(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.a, self.b = nn.Linear(3, 3, bias=False), nn.Linear(3, 3, bias=False)
            self.b.weight = self.a.weight

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.b(self.a(x))

    program = import_program(Tied(), (X,))
    assert [a.name for a in program.arguments] == ["x", "a.weight"]


class Counter(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("cache", torch.zeros(2, 3))

    def forward(self, x: torch.Tensor, out: torch.Tensor) -> torch.Tensor:
        self.cache.add_(x)
        out.mul_(2)
        return self.cache * 10


def test_mutation_is_a_result_that_names_its_argument() -> None:
    model = Counter()
    program = import_program(model, (X, X))
    assert program.results == ("output", "new.cache", "new.out")
    assert dict(program.mutations) == {1: "cache", 2: "out"}
    assert {a.name for a in program.arguments if a.mutated} == {"cache", "out"}
    assert 'aten.name = "new.cache", aten.mutates = "cache"' in str(program.module)
    apart = (X, X.clone())
    for results in (evaluate(program, apart), torch_reference(program, apart)):
        assert [r.tolist() for r in results] == [(X * 10).tolist(), X.tolist(), (X * 2).tolist()]
    assert model.cache.abs().sum() == 0
    assert apart[1][0, 1] == 1
    assert np.array_equal(program.unflatten(evaluate(program, apart)), X * 10)


def test_instance_norm_updates_its_statistics() -> None:
    """Its schema does not say that it writes."""
    torch.manual_seed(1)
    model, x = nn.InstanceNorm1d(3, track_running_stats=True), torch.randn(2, 3, 5)
    compiled, torchs = spyre_mlir.compile(copy.deepcopy(model), (x,), numerics="exact"), copy.deepcopy(model)
    for _ in range(2):
        assert torch.allclose(compiled(x), torchs(x), atol=1e-5)
    held = compiled._program.values
    assert torch.allclose(held["running_mean"], torchs.running_mean, atol=1e-6)
    assert torch.allclose(held["running_var"], torchs.running_var, atol=1e-6)
    whole = import_program(model.eval(), (x,))
    assert not whole.mutations
    assert "aten.instance_norm" in str(whole.module)


def test_buffer_reached_through_an_object_is_a_mutated_buffer() -> None:
    class Holder:
        def __init__(self, tensor: torch.Tensor) -> None:
            self.tensor = tensor

    class Cached(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("keys", torch.zeros(4, 3))
            self.cache = Holder(self.keys)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            self.cache.tensor[1:3] = x
            return self.cache.tensor * 2

    program = import_program(Cached(), (X,))
    assert dict(program.mutations) == {1: "keys"}


def test_write_to_a_stray_tensor_is_refused() -> None:
    stray = torch.zeros(2, 3)

    class Stray(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return stray.add_(x)

    with pytest.raises(ImportProgramError, match="neither a buffer, a parameter nor an input") as caught:
        import_program(Stray(), (X,))
    assert Path(__file__).name in str(caught.value)


def test_saved_program_is_the_same_program(tmp_path: Path) -> None:
    model = Buffers()
    torch.export.save(torch.export.export(model, (X,)), tmp_path / "model.pt2")
    saved, direct = import_program(tmp_path / "model.pt2"), import_program(model, (X,))
    assert str(saved.module) == str(direct.module)
    assert {n: v.tolist() for n, v in saved.values.items()} == {n: v.tolist() for n, v in direct.values.items()}
    assert np.array_equal(torch_reference(saved, (X,))[1], X.numpy() * [16, 40, 72])
    assert str(import_program(load_pt2(str(tmp_path / "model.pt2"))).module) == str(direct.module)


def test_files_that_are_no_programs(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    torch.export.save(torch.export.export(Buffers(), (X,)), tmp_path / "good.pt2")
    good = (tmp_path / "good.pt2").read_bytes()
    torch.save({"a": X}, tmp_path / "weights.pt2")
    (tmp_path / "short.pt2").write_bytes(good[: len(good) // 2])
    (tmp_path / "text.pt2").write_text("hello")
    (tmp_path / "folder.pt2").mkdir()
    for name, message in (
        ("absent", "no such file"),
        ("folder", "this is no file"),
        ("short", "truncated"),
        ("text", "not a zip archive"),
        ("weights", "torch.save has written this file"),
    ):
        with pytest.raises(ImportProgramError, match=message) as caught:
            import_program(tmp_path / f"{name}.pt2")
        assert f"{name}.pt2" in str(caught.value)
        assert "torch.export.save" in str(caught.value)
    assert not [r for r in caplog.records if r.levelname in ("WARNING", "ERROR")]


def test_graph_module() -> None:
    graph = torch.fx.symbolic_trace(nn.Sequential(nn.Linear(3, 2), nn.ReLU()))
    program = import_program(graph, (X,))
    assert [a.name for a in program.arguments] == ["input", "0.weight", "0.bias"]
    np.testing.assert_allclose(evaluate(program, (X,))[0], graph(X).detach().numpy(), atol=1e-6)


def test_module_without_examples_and_program_with_examples() -> None:
    with pytest.raises(InputError, match="needs example arguments"):
        import_program(Buffers())
    with pytest.raises(InputError, match="knows its example arguments"):
        import_program(torch.export.export(Buffers(), (X,)), (X,))


class Tower(nn.Module):
    """Two layers that share their weight, and a table made from numbers."""

    def __init__(self) -> None:
        super().__init__()
        self.a, self.b = nn.Linear(3, 3), nn.Linear(3, 3)
        self.b.weight = self.a.weight
        self.register_buffer("table", torch.tensor([4.0, 5, 6]), persistent=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.b(self.a(x) * torch.cos(self.table) + torch.arange(3))


def test_model_without_weights_imports_to_the_same_module() -> None:
    full = import_program(Tower(), (X,))
    weightless = Tower()
    mode = FakeTensorMode(allow_non_fake_inputs=True)
    weightless.a.weight = weightless.b.weight = nn.Parameter(mode.from_tensor(weightless.a.weight))
    weightless.a.bias = nn.Parameter(mode.from_tensor(weightless.a.bias))
    weightless.b.bias = nn.Parameter(mode.from_tensor(weightless.b.bias))
    empty = import_program(weightless, (X,))
    assert str(empty.module) == str(full.module)
    assert {n: v.tolist() for n, v in empty.values.items()} == {
        n: v.tolist() for n, v in full.values.items() if "constant" in n
    }
    assert len(empty.values) == 2


def test_model_on_meta_imports_to_the_same_module() -> None:
    full = import_program(Tower(), (X,))
    weightless = Tower()
    for layer in (weightless.a, weightless.b):
        layer.to("meta")
    weightless.b.weight = weightless.a.weight
    empty = import_program(weightless, (X,))
    assert str(empty.module) == str(full.module)
    assert len(empty.values) == 2
    assert weightless.a.weight.device.type == "meta"  # the model is as it was


def test_a_signature_has_shapes_and_types_and_no_numbers_of_tensors() -> None:
    x = torch.zeros(2, 3)
    assert signature_of((x,), {}) == signature_of((x + 1,), {})
    others = [((x.double(),), {}), ((x[:1],), {}), ((x, 1), {}), ((x, 2), {}), ((), {"x": x}), (([x],), {})]
    assert len({signature_of((x,), {}), *(signature_of(args, kwargs) for args, kwargs in others)}) == 7
