"""Passes over functions: each function with a body once, in order, with the card of the module."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from xdsl.dialects import func

from spyre_mlir.dialects.target import set_target
from spyre_mlir.hw.spec import SPYRE, SpyreSpec
from spyre_mlir.text.render import parse_module
from spyre_mlir.transforms.utils.function_pass import FunctionPass
from spyre_mlir.universe import make_context

MODULE = "func.func private @outside() func.func @first() { func.return } func.func @second() { func.return }"


@dataclass(frozen=True)
class _Noting(FunctionPass):
    """Notes the functions that it is given."""

    name = "noting"

    seen: list[tuple[str, int]] = field(default_factory=list[tuple[str, int]])

    def rewrite(self, function: func.FuncOp, spec: SpyreSpec) -> None:
        """Note a function and the cores of its card."""
        self.seen.append((function.sym_name.data, spec.cores_per_card))


def test_functions_with_a_body_are_rewritten_in_order_for_the_card_of_the_module() -> None:
    context, noting = make_context(), _Noting()
    module = parse_module(MODULE, context)
    set_target(module, replace(SPYRE, cores_per_card=8))
    noting.apply(context, module)
    assert noting.seen == [("first", 8), ("second", 8)]
