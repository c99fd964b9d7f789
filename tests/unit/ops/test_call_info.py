"""What plugins get wrong is told with their names: when they register, when a model is compiled, and on the host."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch
from xdsl.passes import ModulePass

import spyre_mlir
from spyre_mlir.errors import RegistrationError
from spyre_mlir.ops.annotations import Lanes
from spyre_mlir.ops.value import Value
from spyre_mlir.plugins import registry

X = torch.linspace(-3, 3, 3 * 65).reshape(3, 65)


@pytest.fixture(scope="module", autouse=True)
def operators() -> Iterator[None]:
    library = torch.library.Library("mistaken", "DEF")
    library.impl(library.define("same(Tensor self) -> Tensor"), lambda x: x.clone(), "CompositeExplicitAutograd")
    yield
    library._destroy()


@pytest.fixture(autouse=True)
def clean() -> Iterator[None]:
    with registry.isolated():
        yield


class Same(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.ops.mistaken.same(x)


def compiled() -> Any:
    return spyre_mlir.compile(Same(), (X,), host_fallback="allow", numerics="exact")


def soft(self: Lanes, *, beta: float = 1.0) -> Lanes:
    """log(1 + exp(beta x)) / beta."""
    return np.logaddexp(0.0, beta * self) / beta


def failing(*_: Any, **__: Any) -> Any:
    """Makes the mistake of plugins."""
    return dict[str, int]()["key"]


def small(build: Any, self: Value) -> Any:
    return build.cast(self, "f16")


def text(build: Any, self: Value) -> Any:
    return "hello"


def without_operand(build: Any, self: Value) -> Any:
    return build.call("mul.Tensor", self)


def wrong(build: Any, self: Value) -> Any:
    return failing()


WRONG: dict[str, tuple[Any, str]] = {
    "decomposition fails": (
        lambda: registry.register_decomposition("mistaken::same")(wrong),
        r"\.wrong, registered for mistaken",
    ),
    "when fails": (
        lambda: registry.register_decomposition("mistaken::same", when=failing)(small),
        r"\.small, registered for",
    ),
    "decomposition lacks an operand": (
        lambda: registry.register_decomposition("mistaken::same")(without_operand),
        "(?s)without_operand, registered .*mul.Tensor needs other",
    ),
    "decomposition gives text": (
        lambda: registry.register_decomposition("mistaken::same")(text),
        r"\.text decomposes mistaken::same to 'hello', not to a value",
    ),
    "decomposition gives another type": (
        lambda: registry.register_decomposition("mistaken::same")(small),
        r"\.small, registered for mistaken::same, gives tensor<3x65xf16>; the operation has tensor<3x65xf32>",
    ),
    "conversion fails": (
        lambda: registry.register_op("mistaken::same")(failing),
        r"\.failing, registered for mistaken::same",
    ),
    "conversion gives no list": (
        lambda: registry.register_op("mistaken::same")(lambda node, build: node.args[0]),
        "converts mistaken::same to tensor<3x65xf32>;",
    ),
    "conversion gives another type": (
        lambda: registry.register_op("mistaken::same")(lambda node, build: [build.cast(node.args[0], "f16")]),
        "converts mistaken::same to tensor<3x65xf16>; the operation has tensor<3x65xf32>",
    ),
    "lowering fails": (
        lambda: registry.register_lowering("mistaken::same")(failing),
        r"\.failing, registered for mistaken",
    ),
    "lowering gives nothing": (
        lambda: registry.register_lowering("mistaken::same")(lambda builder, op, entry: None),
        "gives None, not a Reading for each of 1 results",
    ),
    "pass fails": (
        lambda: registry.register_pass("aten")(type("Bad", (ModulePass,), {"name": "tried-bad", "apply": failing})),
        r"\.Bad, registered for tried-bad, failed: KeyError",
    ),
    "pass breaks the program": (
        lambda: registry.register_pass("aten")(type("Bad", (ModulePass,), {"name": "tried-bad", "apply": detach_all})),
        r"the pass tried-bad of .*\.Bad leaves IR that does not verify",
    ),
    "pass has the name of ours": (
        lambda: registry.register_pass("aten")(type("Ours", (ModulePass,), {"name": "divide-work"})),
        "both spyre_mlir and",
    ),
    "op to keep is none": (lambda: registry.keep_whole("nothing"), "torch has no operator aten.nothing"),
}


def detach_all(self: ModulePass, ctx: Any, op: Any) -> None:
    for inner in [o for o in op.walk() if o.name.startswith("aten.")]:
        inner.detach()


@pytest.mark.parametrize(("register", "message"), WRONG.values(), ids=WRONG)
def test_mistakes_of_plugins_name_their_owner(register: Any, message: str) -> None:
    register()
    with pytest.raises(RegistrationError, match=message):
        compiled()


@pytest.mark.parametrize("kind", [registry.register_fallback, registry.register_executor])
def test_mistakes_on_the_host_name_their_owner(kind: Any) -> None:
    kind("mistaken::same")(lambda *_: 1 / 0)
    with pytest.raises(RegistrationError) as found:
        compiled()(X)
    said = r"test_call_info\..*lambda>, registered for mistaken::same, failed: ZeroDivisionError: division by zero"
    assert re.search(said, str(found.value))
    line = inspect.getsourcelines(Same.forward)[1] + 1
    assert f"called for mistaken::same at {__file__}:{line}" in str(found.value)


@pytest.mark.parametrize(
    ("register", "message"),
    [
        (
            lambda: registry.register_fallback(42),  # pyright: ignore[reportArgumentType]
            "an operation is named by text or an operator of torch, got 42",
        ),
        (lambda: registry.register_lowering("")(print), "an operation is named by text"),
        (
            lambda: registry.register_executor("mistaken::same")(42),
            "a function is registered for mistaken::same, got 42",
        ),
        (lambda: registry.register_decomposition("mistaken::same")(42), "a function is registered"),
        (lambda: registry.map_op("mistaken::soft", "softplus")(42), "a function is registered"),
        (
            lambda: registry.map_op("mistaken::soft", "softplus", op_info={"slope": "softplusBeta"})(soft),
            r"soft has no parameter slope, which op_info names",
        ),
        (
            lambda: registry.register_pass("nowhere"),
            "there is no point 'nowhere' .*\n.*aten, aten-decomposed, spyre.loop",
        ),
        (lambda: registry.passes_at("nowhere"), "there is no point 'nowhere'"),
        (lambda: registry.register_pass("aten")(42), "a pass is a class, .* got 42"),
        (lambda: registry.register_pass("aten")(type("Nameless", (), {})), "a pass is a class"),
    ],
)
def test_arguments_that_cannot_be_registered_say_so(register: Any, message: str) -> None:
    with pytest.raises(RegistrationError, match=message):
        register()(print)  # those that take the name first complain of it when they get the function
    assert registry.registered_ops() == []
