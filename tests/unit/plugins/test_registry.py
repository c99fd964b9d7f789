"""What can be added from outside: look-ups, priorities, clashes, order of passes, and that nothing stays behind."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch
from xdsl.passes import ModulePass

import spyre_mlir
from spyre_mlir.errors import RegistrationError
from spyre_mlir.frontend.capture.decomposition import whole_overloads
from spyre_mlir.ops import ATEN
from spyre_mlir.ops.annotations import Ints, Lanes, Number
from spyre_mlir.ops.value import Value
from spyre_mlir.plugins import registry
from spyre_mlir.plugins.registry import HookKind
from tests.functions import FunctionModel

X = torch.linspace(-3, 3, 3 * 65).reshape(3, 65)


@pytest.fixture(scope="module", autouse=True)
def operators() -> Iterator[None]:
    library = torch.library.Library("tried", "DEF")
    for name, meaning in (
        ("pair(Tensor self, float by) -> (Tensor, Tensor)", lambda x, by: (x + by, x - by)),
        ("same(Tensor self) -> Tensor", lambda x: x.clone()),
        ("soft(Tensor self, float beta=1.0) -> Tensor", lambda x, beta=1.0: torch.nn.functional.softplus(x, beta)),
    ):
        library.impl(library.define(name), meaning, "CompositeExplicitAutograd")
    yield
    library._destroy()


def at_aten(model: Any) -> list[Any]:
    """The results of the program at the highest level."""
    return model._run("aten", [X.double().numpy()])


def compiled(function: Any, **options: Any) -> Any:
    return spyre_mlir.compile(FunctionModel(function), (X,), host_fallback="allow", numerics="exact", **options)


def test_nothing_stays_behind() -> None:
    before = (registry.registered_ops(), registry.kept_whole(), len(list(ATEN)), len(registry.all_passes()))
    with registry.isolated():
        registry.map_op("tried::soft", "softplus", op_info={"beta": "softplusBeta"})(soft)
        registry.register_decomposition("tried::same")(returns_itself)
        registry.register_executor("tried::pair")(print)
        registry.keep_whole("sigmoid")
        registry.register_pass("aten")(named("tried-pass"))
        assert registry.registered_ops() == ["tried::pair", "tried::same", "tried::soft"]
        assert ATEN.named("soft") is not None
    after = (registry.registered_ops(), registry.kept_whole(), len(list(ATEN)), len(registry.all_passes()))
    assert before == after
    assert ATEN.find("tried::soft") is ATEN.named("soft") is None


def soft(self: Lanes, *, beta: float = 1.0) -> Lanes:
    """log(1 + exp(beta x)) / beta."""
    return np.logaddexp(0.0, beta * self) / beta


def returns_itself(build: Any, self: Value) -> Any:
    """The same."""
    return self


def scaled_by_one(build: Any, self: Value) -> Any:
    """The same, in a kernel."""
    return self * 1.0


def named(name: str, ran: list[str] | None = None) -> type[ModulePass]:
    """A pass that notes that it ran."""

    def apply(self: ModulePass, ctx: Any, op: Any) -> None:
        if ran is not None:
            ran.append(name)

    return type("Noting", (ModulePass,), {"name": name, "apply": apply})


def test_registrations_are_whatever_was_registered_in_one_order() -> None:
    def low(*_: Any) -> None: ...

    def high(*_: Any) -> None: ...

    assert registry.registrations() == []
    registry.keep_whole("acme::b", owner="me")
    registry.register_fallback("relu")(low)
    registry.register_fallback("relu", priority=1)(high)
    registry.register_executor("erfinv")(low)
    registry.register_decomposition("acme::c")(low)
    entry, *found = registry.registrations()
    assert entry is ATEN.find("acme::c")
    listed: Any = found[:-1]
    functions = [(kind.value, op, [r.function for r in rs]) for (kind, op), rs in listed]
    assert functions == [
        ("decomposition", "acme::c", [low]),
        ("executor", "erfinv", [low]),
        ("fallback", "relu", [high, low]),
    ]
    assert found[-1] == ("acme::b", "me")


def test_look_ups_give_lists_by_priority() -> None:
    functions = [lambda: 0, lambda: 1, lambda: 2]
    for priority, function in zip((0, 7, -2), functions, strict=True):
        registry.register_lowering("aten.erfinv.default", priority=priority)(function)
    found = registry.find(HookKind.LOWERING, "erfinv")
    assert [r.function for r in found] == [functions[1], functions[0], functions[2]]
    assert [r.priority for r in found] == [7, 0, -2]
    assert registry.find(HookKind.EXECUTOR, "erfinv") == []
    assert registry.find(HookKind.LOWERING, "nothing") == []
    found.clear()
    assert len(registry.find(HookKind.LOWERING, "erfinv")) == 3


def test_clashes_name_both_owners() -> None:
    def first(build: Any, self: Value) -> Any:
        """One."""

    def second(build: Any, self: Value) -> Any:
        """Two."""

    registry.register_decomposition("tried::same")(first)
    with pytest.raises(RegistrationError, match=r"tried::same .*locals>\.first and .*locals>\.second"):
        registry.register_decomposition("tried::same")(second)
    with pytest.raises(RegistrationError, match=r"tried::same .*locals>\.first and .*\.soft"):
        registry.map_op("tried::same", "softplus")(soft)
    with pytest.raises(RegistrationError, match=r"sigmoid is claimed by both spyre_mlir\.ops\.native\.\w+\.sigmoid"):
        registry.map_op("aten.sigmoid", "sigmoid")(soft)
    registry.register_pass("aten")(named("tried-pass"))
    with pytest.raises(RegistrationError, match="the pass tried-pass is claimed by both"):
        registry.register_pass("spyre.kernel")(named("tried-pass"))


def test_constant_that_the_function_lacks_is_refused() -> None:
    with pytest.raises(RegistrationError, match="softplus has no constant alpha"):
        registry.map_op("tried::soft", "softplus", op_info={"beta": "alpha"})


def test_constants_reach_the_file_and_come_back() -> None:
    registry.map_op("tried::soft", "softplus", op_info={"beta": "softplusBeta"})(soft)
    model = compiled(lambda x: torch.ops.tried.soft(x, 2.0))
    assert model.verify(X)
    assert model.host_steps == ()
    assert '"soft"(%1) {beta = 2.0' in model.mlir("spyre.loop")
    assert "softplusBeta = 2.0" in model.mlir("spyre.kernel")
    # 20 is the threshold of torch's softplus, which a function of this name has unless it is told otherwise.
    assert "softplusThresh = 20.0" in model.mlir("spyre.kernel") or "2.000000e+01" in model.mlir("spyre.kernel")
    torch.testing.assert_close(model(X), torch.nn.functional.softplus(X, 2.0))


def test_executor_goes_before_fallback_and_fallback_before_torch() -> None:
    def run() -> Any:
        model = compiled(lambda x: torch.ops.tried.pair(x, 2.0))
        assert [step.op for step in model.host_steps] == ["tried::pair"]
        found = model(X)
        for got, again in zip(found, at_aten(model), strict=True):
            np.testing.assert_allclose(got.numpy(), again, rtol=1e-6)
        return [t.double() for t in found]

    for got, sign in zip(run(), (1, -1), strict=True):
        torch.testing.assert_close(got, X.double() + sign * 2)
    registry.register_fallback("tried::pair")(lambda self, by: (self * by, self / by))
    for got, want in zip(run(), (X * 2, X / 2), strict=True):
        torch.testing.assert_close(got, want.double())
    told: list[Any] = []

    @registry.register_executor("tried::pair")
    def pair(tensors: list[torch.Tensor], attributes: dict[str, Any]) -> list[torch.Tensor]:
        told.append((len(tensors), attributes))
        return [tensors[0] * 0 + 5, tensors[0] * 0 + 6]

    for got, want in zip(run(), (5, 6), strict=True):
        assert (got == want).all()
    assert told[0] == (1, {"by": 2.0})


def test_fallback_may_give_one_tensor() -> None:
    registry.register_fallback("tried::same")(lambda self: self + 1)
    torch.testing.assert_close(compiled(torch.ops.tried.same)(X), X + 1)


def test_executor_must_give_a_list() -> None:
    registry.register_executor("tried::same")(lambda tensors, attributes: tensors[0])
    model = compiled(torch.ops.tried.same)
    with pytest.raises(RegistrationError, match=r"tried::same gives Tensor, not a list of tensors"):
        model(X)


@pytest.mark.parametrize(
    ("gives", "said"),
    [
        (lambda x: [x, x], r"2 tensors of \(3, 65\) and \(3, 65\)"),
        (lambda x: [], "no tensor"),
        (lambda x: [x[:2]], r"1 tensor of \(2, 65\)"),
    ],
)
@pytest.mark.parametrize("kind", ["executor", "fallback"])
def test_other_tensors_than_the_operation_has_are_a_mistake_of_the_function(kind: str, gives: Any, said: str) -> None:
    if kind == "executor":
        registry.register_executor("tried::same")(lambda tensors, attributes: gives(tensors[0]))
    else:
        registry.register_fallback("tried::same")(gives)
    model = compiled(torch.ops.tried.same)
    message = rf"<lambda>, registered for tried::same, gives {said}; the operation has 1 tensor of \(3, 65\)"
    with pytest.raises(RegistrationError, match=message) as refused:
        model(X)
    assert "test_registry.py:" in (refused.value.where or "") or "tried::same" in (refused.value.where or "")


def test_fallback_wants_some_calls_only() -> None:
    registry.register_fallback("relu", when=lambda build, self: self.shape[0] == 3)(torch.relu)
    model = compiled(torch.relu)
    assert [s.op for s in model.host_steps] == ["aten.relu"]
    torch.testing.assert_close(model(X), torch.relu(X))
    other = spyre_mlir.compile(FunctionModel(torch.relu), (torch.ones(4, 5),), host_fallback="allow")
    assert other.host_steps == ()


@pytest.mark.parametrize(
    ("name", "function"),
    [("reciprocal", torch.reciprocal), ("sigmoid", torch.sigmoid), ("gelu", torch.nn.functional.gelu)],
)
def test_kept_whole(name: str, function: Any) -> None:
    registry.register_decomposition(name, priority=-1)(lambda build, self, **_: None)
    registry.keep_whole(name)
    model = compiled(function)
    assert f"aten.{name}(" in model.mlir("aten")
    assert model.kernels == 1
    assert registry.kept_whole() == [name]


def test_an_op_that_may_give_its_input_back_stays_whole_if_asked() -> None:
    assert "contiguous.default" not in whole_overloads()
    registry.keep_whole("contiguous")
    assert "contiguous.default" in whole_overloads()


def test_keeping_an_op_whole_switches_off_both_tables() -> None:
    """aten.addcmul: torch's table decomposes it at export, ours in the pass."""
    ones = torch.ones(65)
    plain = compiled(lambda x: torch.addcmul(x, x, ones))
    assert plain.host_steps == ()
    registry.keep_whole("addcmul")
    kept = compiled(lambda x: torch.addcmul(x, x, ones))
    assert "aten.addcmul" in kept.mlir("aten")
    assert [s.op for s in kept.host_steps] == ["aten.addcmul"]
    assert kept.verify(X)


def test_conversion_is_told_of_the_call() -> None:
    told: list[registry.NodeInfo] = []

    @registry.register_op("tried::soft")
    def convert(node: registry.NodeInfo, build: Any) -> list[Any]:
        told.append(node)
        return [node.args[0] * node.attrs["beta"]]

    torch.testing.assert_close(compiled(lambda x: torch.ops.tried.soft(x, beta=3.0))(X), X * 3)
    (node,) = told
    assert (node.target, node.attrs, dict(node.kwargs).keys() | {"beta"}) == (
        torch.ops.tried.soft.default, {"beta": 3.0}, {"beta"},
    )  # fmt: skip
    assert node.input_metas == [registry.TensorMeta("args_0", (3, 65), "float32")]
    assert [(m.shape, m.dtype) for m in node.output_metas] == [((3, 65), "float32")]
    assert node.name == "soft"


def test_conversion_to_another_shape_is_refused() -> None:
    registry.register_op("tried::same")(lambda node, build: [node.args[0].amax(-1)])
    with pytest.raises(
        RegistrationError, match=r"converts tried::same to tensor<3xf32>; the operation has tensor<3x65xf32>"
    ):
        compiled(torch.ops.tried.same)


def test_decomposition_routes_by_element_type() -> None:
    registry.register_decomposition("tried::same", when=lambda build, self: self.element == "f16")(scaled_by_one)
    assert [s.op for s in compiled(torch.ops.tried.same).host_steps] == ["tried::same"]
    half = spyre_mlir.compile(FunctionModel(torch.ops.tried.same), (X.half(),), host_fallback="allow")
    assert half.host_steps == ()
    assert half.kernels == 1


def test_decomposition_goes_before_the_table_and_may_pass() -> None:
    registry.register_decomposition("silu", priority=1)(lambda build, self: None)
    assert "silu" in compiled(torch.nn.functional.silu).mlir("spyre.kernel")
    registry.register_decomposition("silu")(lambda build, self: self * build.call("sigmoid", self))
    other = compiled(torch.nn.functional.silu)
    assert '"sigmoid"' in other.mlir("spyre.kernel")
    assert '"silu"' not in other.mlir("spyre.kernel")
    assert other.verify(X)


def test_function_without_annotations_is_refused_and_leaves_nothing() -> None:
    with pytest.raises(RegistrationError, match="parameter self is annotated"):
        registry.register_decomposition("tried::same")(lambda build, self: self)
    assert registry.find(HookKind.DECOMPOSITION, "tried::same") == []
    assert registry.registered_ops() == []


def test_annotations_may_be_evaluated() -> None:
    """As they are in a module that does not import `annotations` from the future."""

    def scaled(build: Any, self: Any, other: Any = None, *, beta: Any = 1.0, dim: Any = ()) -> Any:
        return self * beta

    scaled.__annotations__ |= {"self": Value, "other": Value | None, "beta": Number | None, "dim": Ints}
    registry.register_decomposition("tried::soft")(scaled)
    entry = ATEN.find("tried::soft")
    assert entry is not None
    assert [p.kind.name for p in entry.params] == ["TENSOR", "TENSOR", "NUMBER", "INTS"]
    torch.testing.assert_close(compiled(lambda x: torch.ops.tried.soft(x, 2.0))(X), X * 2)


def test_annotations_may_be_types() -> None:
    def scaled(build: Any, self: Any, *, beta: Any = 1.0) -> Any:
        return self * beta

    scaled.__annotations__ |= {"self": "Value", "beta": float}
    registry.register_decomposition("tried::soft")(scaled)
    torch.testing.assert_close(compiled(lambda x: torch.ops.tried.soft(x, 2.0))(X), X * 2)
