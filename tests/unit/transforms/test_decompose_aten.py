"""Composite ops taken apart, what stays whole for the host, and what is left out; meanings against numpy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp, TensorType, f32, i64

from spyre_mlir.dialects import operator_calls
from spyre_mlir.dialects.aten import AtenOp
from spyre_mlir.dialects.operator_calls import OperatorCall
from spyre_mlir.dialects.places import source_of
from spyre_mlir.errors import RegistrationError
from spyre_mlir.machine.levels.run import run_function
from spyre_mlir.plugins import registry
from spyre_mlir.transforms.decompose_aten import CAP, DecomposeAtenPass, reason_for
from tests.unit.machine.modules import numbers
from tests.unit.transforms.levels import ops, passed

X = "tensor<4x8xf32>"
SOFTMAX = f"softmax.int(%x) {{dim = -1 : i64}} : ({X}) -> {X}"
PARTS = ["amax", "sub.Tensor", "exp", "sum.dim_IntList", "div.Tensor"]


def module(lines: str, result: str = X, argument: str = X, **options: Any) -> ModuleOp:
    """Each line defines the next of %0, %1, …; the last is the result."""
    body = [line.strip() for line in lines.strip().splitlines()]
    text = "\n".join(f"%{n} = aten.{line}" for n, line in enumerate(body))
    source = f"func.func @main(%x: {argument}) -> {result} {{\n{text}\nfunc.return %{len(body) - 1} : {result}\n}}"
    return passed(source, "decompose-aten", **options)


def overloads(made: ModuleOp) -> list[str]:
    return [op.overload for op in ops(made, AtenOp)]


def reasons(made: ModuleOp) -> list[str | None]:
    """Why the host runs each op; None for those of the device, and "" for those that only follow others."""
    return [None if not op.on_host else "" if op.reason is None else op.reason.data for op in ops(made, AtenOp)]


def test_softmax_is_five_ops_that_are_softmax() -> None:
    made = module(SOFTMAX)
    assert overloads(made) == PARTS and reasons(made) == [None] * 5
    x = numbers(4, 8)
    e = np.exp(x - x.max(1, keepdims=True))
    (found,) = run_function(made, [x])
    np.testing.assert_allclose(found, e / e.sum(1, keepdims=True), rtol=1e-6)


def test_operators_are_named_in_the_locations_of_what_they_become_if_asked_for() -> None:
    two = f"softmax.int(%x) {{dim = -1 : i64}} : ({X}) -> {X}\nexp(%0) : ({X}) -> {X}"
    made = module(two, name_operators=True)
    assert [source_of(op.location).operator for op in ops(made, AtenOp)] == [*["aten.softmax.int"] * 5, "aten.exp"]
    assert {source_of(op.location).operator for op in ops(module(two), AtenOp)} == {""}


def test_what_has_a_lowering_stays_as_it_is() -> None:
    made = module(f"exp(%x) : ({X}) -> {X}\nneg(%0) : ({X}) -> {X}")
    assert overloads(made) == ["exp", "neg"] and reasons(made) == [None, None]


def test_parts_are_not_rounded_but_the_result_is() -> None:
    def wide(made: ModuleOp) -> list[bool]:
        return [op.is_wide for op in ops(made, AtenOp)]

    # Eager rounds what it subtracts and exponentiates too.
    assert wide(module(SOFTMAX))[-1] is False and wide(module(SOFTMAX))[0] is True
    whole = SOFTMAX.replace("i64}", "i64} wide")
    assert wide(module(whole))[-1] is True
    assert wide(module(f"exp(%x) : ({X}) -> {X}")) == [False]
    twice = module(f"{SOFTMAX}\n{SOFTMAX.replace('%x', '%0')}")
    assert wide(twice) == wide(module(SOFTMAX)) * 2


@pytest.mark.parametrize(
    ("options", "whole"),
    [({"cap": 5}, False), ({"cap": 4}, True), ({"cap": 4, "prefer_device": True}, False), ({}, False)],
)
def test_a_composition_of_too_many_kernels_stays_whole(options: dict[str, Any], whole: bool) -> None:
    made = module(SOFTMAX, **options)
    assert overloads(made) == (["softmax.int"] if whole else PARTS)
    assert reasons(made) == (["it would take more than 4 kernels"] if whole else [None] * 5)


def test_views_and_known_numbers_are_no_kernels() -> None:
    """A flip by a view of single rows: `stack` is a `cat` of views."""
    line = f"stack(%x, %x) {{dim = 0 : i64}} : ({X}, {X}) -> tensor<2x4x8xf32>"
    made = module(line, "tensor<2x4x8xf32>", cap=1)
    assert overloads(made).count("cat") == 1 and len(overloads(made)) > 1 and reasons(made)[-1] is None


def test_compositions_read_in_lists_what_others_became() -> None:
    """`stack` is a composition itself, of the five parts of a softmax and an argument."""
    wide = "tensor<2x4x8xf32>"
    made = module(f"{SOFTMAX}\nstack(%0, %x) {{dim = 0 : i64}} : ({X}, {X}) -> {wide}", wide)
    assert overloads(made)[:5] == PARTS and "stack" not in overloads(made)
    x = numbers(4, 8)
    e = np.exp(x - x.max(1, keepdims=True))
    (found,) = run_function(made, [x])
    np.testing.assert_allclose(found, np.stack([e / e.sum(1, keepdims=True), x]), rtol=1e-6)


def test_what_was_made_before_a_refusal_is_gone() -> None:
    """The second softmax is too large; the first stays taken apart."""
    made = module(f"log_softmax.int(%x) {{dim = -1 : i64}} : ({X}) -> {X}\nexp(%0) : ({X}) -> {X}", cap=3)
    assert overloads(made) == ["log_softmax.int", "exp"]


def test_defaults() -> None:
    assert (CAP, DecomposeAtenPass().cap, DecomposeAtenPass().prefer_device) == (500, 500, False)


def test_what_the_table_lacks_is_marked() -> None:
    call = 'call "aten.special_bessel_j1"(%x) {self = #aten.operands<1>}'
    assert reasons(module(f"{call} : ({X}) -> {X}")) == ["the op table has no entry for it"]


def test_elements_that_the_device_lacks_are_marked() -> None:
    kind = "tensor<4x8xf64>"
    said = "the device has no form for elements of type f64"
    assert reasons(module(f"neg(%x) : ({kind}) -> {kind}", kind, kind)) == [said]
    to_double = module(f"_to_copy(%x) {{dtype = f64}} : ({X}) -> {kind}", kind)
    assert reasons(to_double) == [said]
    (op,) = ops(to_double, AtenOp)
    assert reason_for(op) == said
    assert reason_for(ops(module(f"neg(%x) : ({X}) -> {X}"), AtenOp)[0]) is None


def test_arguments_without_a_composition_are_marked_with_its_reason() -> None:
    kind = "tensor<1x1x4x8xf32>"
    line = f"scaled_dot_product_attention(%x, %x, %x) {{dropout_p = 0.5 : f64}} : ({kind}, {kind}, {kind}) -> {kind}"
    made = module(line, kind, kind)
    assert overloads(made) == ["scaled_dot_product_attention"] and reasons(made) == ["attention with dropout 0.5"]


def test_what_is_marked_already_stays() -> None:
    made = module(SOFTMAX.replace("i64}", 'i64} host because "asked"'))
    assert overloads(made) == ["softmax.int"] and reasons(made) == ["asked"]


def test_views_that_a_host_step_reads_stay_with_it() -> None:
    call = 'call "aten.special_bessel_j1"(%0) {self = #aten.operands<1>}'
    made = module(f"t(%x) : ({X}) -> tensor<8x4xf32>\n{call} : (tensor<8x4xf32>) -> tensor<8x4xf32>", "tensor<8x4xf32>")
    assert overloads(made) == ["t", "t", "special_bessel_j1"]
    assert reasons(made) == [None, "", "the op table has no entry for it"]


def test_what_nobody_reads_is_left_out() -> None:
    """Largest values and their places: only the values are read."""
    text = f"""func.func @main(%x: {X}) -> tensor<4xf32> {{
      %0, %1 = aten.max.dim(%x) {{dim = 1 : i64}} : ({X}) -> (tensor<4xf32>, tensor<4xi64>)
      %2 = aten.exp(%x) : ({X}) -> {X}
      func.return %0 : tensor<4xf32>
    }}"""
    made = passed(text, "decompose-aten")
    # What a decomposition made for the places is gone; an op of the model stays.
    assert overloads(made) == ["amax", "exp"]
    x = numbers(4, 8)
    assert np.array_equal(run_function(made, [x])[0], x.max(1))


def test_several_results_are_replaced_one_by_one() -> None:
    text = f"""func.func @main(%x: {X}) -> (tensor<4xi64>, tensor<4xf32>) {{
      %0, %1 = aten.max.dim(%x) {{dim = 1 : i64}} : ({X}) -> (tensor<4xf32>, tensor<4xi64>)
      func.return %1, %0 : tensor<4xi64>, tensor<4xf32>
    }}"""
    x = numbers(4, 8)
    places, values = run_function(passed(text, "decompose-aten"), [x])
    assert np.array_equal(places, x.argmax(1)) and np.array_equal(values, x.max(1))


def test_lists_of_tensors_are_followed() -> None:
    line = f"{SOFTMAX}\ncat(%0, %x) {{dim = 0 : i64}} : ({X}, {X}) -> tensor<8x8xf32>"
    made = module(line, "tensor<8x8xf32>")
    assert overloads(made) == [*PARTS, "cat"]
    *_, quotient, cat = ops(made, AtenOp)
    assert cat.operands[0] is quotient.results[0]


def test_an_executor_takes_what_the_table_has_unless_a_decomposition_is_registered_too() -> None:
    with registry.isolated():
        registry.register_executor("softmax.int")(lambda tensors, attributes: tensors)
        made = module(SOFTMAX)
        assert (overloads(made), reasons(made)) == (["softmax.int"], ["an executor is registered for it"])
        registry.register_decomposition("softmax.int")(lambda build, self, **_: build.call("exp", self))
        made = module(SOFTMAX)
        assert (overloads(made), reasons(made)) == (["exp"], [None])


def test_a_decomposition_may_call_what_only_torch_has(monkeypatch: pytest.MonkeyPatch) -> None:
    call = OperatorCall({"self": None, "k": 2}, [TensorType(f32, [4, 8]), TensorType(i64, [4, 8])])

    def schemas(overload: str, positional: Sequence[object], named: Mapping[str, object]) -> OperatorCall:
        return replace(call, arguments={"self": positional[0], **named})

    monkeypatch.setattr(operator_calls, "_PROVIDED", [schemas])
    with registry.isolated():
        registry.register_decomposition("relu")(lambda build, self: build.call_all("acme::pair", self, k=2)[0] + 1.0)
        line = f"relu(%x) : ({X}) -> {X}"
        made = module(line)
        assert overloads(made) == ["acme::pair", "add.Tensor"]
        assert reasons(made) == ["the op table has no entry for it", None]
        registry.register_fallback("acme::pair")(lambda x, k: (x, x))
        assert reasons(module(line)) == ["a fallback is registered for it", None]


def test_mistakes_of_a_decomposition_name_the_line_of_the_model() -> None:
    with registry.isolated():
        registry.register_decomposition("relu")(lambda build, self: 1 / 0)
        with pytest.raises(RegistrationError, match="registered for relu, failed: ZeroDivisionError") as refused:
            module(f'relu(%x) : ({X}) -> {X} loc("net.py":7:0)')
        assert (refused.value.where or "").endswith(", called for relu at net.py:7")


def test_a_decomposition_that_gives_another_type_is_named_with_the_line_of_the_model() -> None:
    def halved(build: Any, self: Any) -> Any:
        return build.cast(self, "f16")

    with registry.isolated():
        registry.register_decomposition("relu")(halved)
        named = r"halved, registered for relu, gives tensor<4x8xf16>; the operation has tensor<4x8xf32>"
        with pytest.raises(RegistrationError, match=named) as refused:
            module(f'relu(%x) : ({X}) -> {X} loc("net.py":7:0)')
        assert (refused.value.where or "").endswith("relu at net.py:7")


def test_an_argument_of_a_decomposition_that_has_no_place_is_refused_and_not_dropped() -> None:
    with registry.isolated():
        registry.register_decomposition("relu")(lambda build, self: build.call("add.Tensor", self, self, 2))
        with pytest.raises(RegistrationError, match=r"failed: TypeError: add\.Tensor got 3 arguments without"):
            module(f"relu(%x) : ({X}) -> {X}")


def test_an_operator_that_nobody_has_is_a_mistake_of_the_decomposition_and_no_host_step() -> None:
    with registry.isolated():
        registry.register_decomposition("relu")(lambda build, self: build.call("mull.Tensor", self, self))
        with pytest.raises(RegistrationError, match=r"operator mull\.Tensor; did you mean mul\.Tensor\?") as refused:
            module(f'relu(%x) : ({X}) -> {X} loc("net.py":7:0)')
        assert "registered for relu, failed" in refused.value.message
        assert (refused.value.where or "").endswith("relu at net.py:7")
