"""Hand-written modules through passes, for the tests of transforms."""

from __future__ import annotations

from typing import Any, TypeVar

from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation

from spyre_mlir.hw.spec import SPYRE, SpyreSpec
from spyre_mlir.text.render import parse_module, verify_module
from spyre_mlir.transforms import get_all_passes
from spyre_mlir.universe import make_context


def passed(text: str, *passes: str, spec: SpyreSpec = SPYRE, verify: bool = True, **options: Any) -> ModuleOp:
    """The module after passes on a machine, verified before and after each. The options are the last pass's."""
    context = make_context(spec)
    module = parse_module(text, context)
    if verify:
        verify_module(module)
    for name in passes:
        one = get_all_passes()[name]()(**(options if name == passes[-1] else {}))
        assert one.name == name
        one.apply(context, module)
        verify_module(module)
    return module


Op = TypeVar("Op", bound=Operation)


def ops(module: Operation, kind: type[Op]) -> list[Op]:
    """The ops of one kind, in order."""
    return [op for op in module.walk() if isinstance(op, kind)]
