"""torch-spyre's cookbooks and deep dive, recipe by recipe, with this package's registrations."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch
from xdsl.passes import ModulePass

import spyre_mlir
from spyre_mlir.ops import ATEN
from spyre_mlir.ops.annotations import Ints, Lanes
from spyre_mlir.ops.value import Value
from spyre_mlir.plugins import registry
from spyre_mlir.transforms.aten_to_loop.nests import TensorView
from tests.functions import FunctionModel

X = torch.linspace(-3, 3, 4 * 64).reshape(4, 64)


@pytest.fixture(autouse=True)
def operators() -> Iterator[None]:
    library = torch.library.Library("recipes", "DEF")
    for signature, meaning in (
        ("soft(Tensor self, float beta=1.0) -> Tensor", lambda x, beta=1.0: torch.nn.functional.softplus(x, beta)),
        ("steps(Tensor self) -> Tensor", lambda x: x[:, 1:] - x[:, :-1]),
        ("marker(Tensor self) -> Tensor", lambda x: x.clone()),
        ("plus(Tensor self, Tensor other) -> Tensor", lambda x, y: x + y),
        ("total(Tensor self, int[] dim, bool keepdim=False) -> Tensor", torch.sum),
        ("within(Tensor self, float min, float max) -> Tensor", torch.clamp),
    ):
        library.impl(library.define(signature), meaning, "CompositeExplicitAutograd")
    with registry.isolated():
        yield
    library._destroy()


def compiled(function: Any, x: torch.Tensor = X, **options: Any) -> Any:
    return spyre_mlir.compile(FunctionModel(function), (x,), host_fallback="allow", numerics="exact", **options)


def agrees(model: Any, function: Any, x: torch.Tensor = X) -> bool:
    torch.testing.assert_close(model(x), function(x), rtol=1e-5, atol=1e-5)
    return bool(model.verify(x))


def test_add_is_mapped_directly() -> None:
    @registry.map_op("recipes.plus", "add", source="the OpFunc list")
    def plus(self: Lanes, other: Lanes) -> Lanes:
        """The sum of both."""
        return self + other

    def function(x: torch.Tensor) -> torch.Tensor:
        return torch.ops.recipes.plus(x, x * x)

    model = compiled(function)
    assert model.mlir("spyre.kernel").count('spyre.kernel.compute "add"') == 1
    assert agrees(model, function)


def test_sum_is_mapped_directly() -> None:
    @registry.map_op("recipes.total", "sum", combine="arith.addf", source="the OpFunc list")
    def total(self: Lanes, *, dim: Ints, keepdim: bool = False) -> Lanes:
        """The sum over `dim`."""
        return np.sum(self, axis=tuple(dim), keepdims=keepdim)

    def function(x: torch.Tensor) -> torch.Tensor:
        return torch.ops.recipes.total(x, [1])

    model = compiled(function)
    assert 'spyre.kernel.compute "sum"' in model.mlir("spyre.kernel")
    assert agrees(model, function)


def test_a_custom_op_with_a_lowering_and_a_hardware_function() -> None:
    """As torch-spyre's clamp: an operator of one's own, lowered to one hardware function with two constants."""

    @registry.map_op("recipes.within", "clip", op_info={"min": "clipMin", "max": "clipMax"}, source="the OpFunc list")
    def within(self: Lanes, *, min: float, max: float) -> Lanes:
        """The nearest number between both."""
        return np.minimum(np.maximum(self, min), max)

    def function(x: torch.Tensor) -> torch.Tensor:
        return torch.ops.recipes.within(x, -1.0, 0.5)

    model = compiled(function)
    assert model.kernels == 1 and model.host_steps == ()
    assert "clipMin = -1.0" in model.mlir("spyre.kernel")
    assert agrees(model, function)


def test_an_operator_is_mapped_to_one_hardware_function_with_a_constant() -> None:
    @registry.map_op("recipes.soft", "softplus", op_info={"beta": "softplusBeta"}, source="the OpFunc list")
    def soft(self: Lanes, *, beta: float = 1.0) -> Lanes:
        """log(1 + exp(beta x)) / beta."""
        return np.logaddexp(0.0, beta * self) / beta

    def function(x: torch.Tensor) -> torch.Tensor:
        return torch.ops.recipes.soft(x, 2.0)

    model = compiled(function)
    assert "softplusBeta = 2.0" in model.mlir("spyre.kernel")
    assert agrees(model, function)


@pytest.mark.parametrize(
    ("name", "meaning"), [("sigmoid", lambda x: 1 / (1 + np.exp(-x))), ("reciprocal", np.reciprocal)]
)
def test_a_known_operator_is_mapped_to_another_function(name: str, meaning: Any) -> None:
    def own(self: Lanes) -> Lanes:
        """The same in our words."""
        return meaning(self)

    registry.map_op(f"aten.{name}.default", name, override=True, source="the OpFunc list")(own)
    model = compiled(getattr(torch, name))
    assert f'spyre.kernel.compute "{name}"' in model.mlir("spyre.kernel")
    assert agrees(model, getattr(torch, name))


def test_a_decomposition_goes_before_a_native_operator() -> None:
    @registry.register_decomposition(torch.ops.aten.gelu.default)
    def gelu(build: Any, self: Value, *, approximate: str = "none") -> Value:
        return self * build.call("sigmoid", self * 1.702)

    model = compiled(torch.nn.functional.gelu)
    torch.testing.assert_close(model(X), X * torch.sigmoid(1.702 * X), rtol=1e-5, atol=1e-5)
    assert "gelu" not in model.mlir("spyre.loop")


def test_a_lowering_builds_a_nest() -> None:
    """Differences of neighbours: one nest that reads the operand twice, at two places."""

    @registry.register_lowering("recipes.steps")
    def steps(builder: Any, op: Any, entry: Any) -> Any:
        whole = builder.readings[op.operands[0]]
        right, left = (TensorView(whole.base, whole.view.slice(1, start, start + 63)) for start in (1, 0))
        return builder.pointwise(ATEN.named("sub"), [right, left], op.results[0].type)

    model = compiled(torch.ops.recipes.steps)
    assert model.host_steps == ()
    assert model.mlir("spyre.loop").count("spyre.loop.nest") == 1
    assert agrees(model, torch.ops.recipes.steps)


def test_a_custom_op_of_torch_with_a_decomposition_never_runs_its_body() -> None:
    @torch.library.custom_op("recipes_own::doubled", mutates_args=())
    def doubled(x: torch.Tensor) -> torch.Tensor:
        raise AssertionError("the body ran")

    @doubled.register_fake
    def _(x: torch.Tensor) -> torch.Tensor:
        return torch.empty_like(x)

    @registry.register_decomposition("recipes_own::doubled")
    def twice(build: Any, x: Value) -> Value:
        return x * 2.0

    model = compiled(lambda x: torch.ops.recipes_own.doubled(x) + 1)
    torch.testing.assert_close(model(X), X * 2 + 1)
    assert model.host_steps == ()


def test_a_fallback_by_element_type_through_a_custom_op() -> None:
    called: list[torch.dtype] = []

    @torch.library.custom_op("recipes_own::max_fallback", mutates_args=())
    def max_fallback(x: torch.Tensor, dim: int, keepdim: bool = False) -> tuple[torch.Tensor, torch.Tensor]:
        called.append(x.dtype)
        return tuple(t.clone() for t in torch.max(x, dim, keepdim))

    @max_fallback.register_fake
    def _(x: torch.Tensor, dim: int, keepdim: bool = False) -> tuple[torch.Tensor, torch.Tensor]:
        shape = [1 if d == dim else e for d, e in enumerate(x.shape) if keepdim or d != dim]
        return x.new_empty(shape), x.new_empty(shape, dtype=torch.int64)

    @registry.register_decomposition(torch.ops.aten.max.dim)
    def max_dim(build: Any, self: Value, dim: int, keepdim: bool = False) -> Any:
        return (
            build.call_all("recipes_own::max_fallback", self, dim=dim, keepdim=keepdim)
            if self.element == "i64"
            else None
        )

    whole = torch.arange(256).reshape(4, 64) * 2**40
    model = compiled(lambda x: torch.max(x, 1), whole)
    assert [step.op for step in model.host_steps] == ["recipes_own::max_fallback"]
    values, places = model(whole)
    assert torch.equal(values, whole[:, -1])
    assert torch.equal(places, torch.full((4,), 63))
    assert set(called) == {torch.int64}
    assert compiled(lambda x: torch.max(x, 1)).host_steps == ()


def drop_markers(graph: torch.fx.Graph) -> None:
    for node in list(graph.nodes):
        if node.target is torch.ops.recipes.marker.default:
            node.replace_all_uses_with(node.args[0])
            graph.erase_node(node)


@pytest.mark.parametrize("point", ["exported", "decomposed"])
def test_passes_before_and_after_the_decompositions_remove_an_operator(point: str) -> None:
    registry.register_graph_pass(point)(drop_markers)
    model = compiled(lambda x: torch.ops.recipes.marker(torch.relu(x)))
    assert "marker" not in model.mlir("aten")
    assert agrees(model, torch.relu)


def test_a_pass_sees_the_schedule_of_kernels() -> None:
    seen: list[str] = []

    @registry.register_pass("spyre.kernel")
    class Look(ModulePass):
        name = "recipes-look"

        def apply(self, ctx: Any, op: Any) -> None:
            seen.extend(str(o.function.data) for o in op.walk() if o.name == "spyre.kernel.compute")

    compiled(lambda x: torch.exp(torch.relu(x)))
    assert seen == ["relufwd", "exp"]
