"""A small program, and the passes that lower it."""

from __future__ import annotations

from typing import Any

from xdsl.dialects.builtin import ModuleOp

from spyre_mlir.pipeline import lower
from spyre_mlir.text.render import parse_module
from spyre_mlir.universe import make_context


def program(op: str = "relu") -> ModuleOp:
    """A function and a sigmoid behind it, on 4 x 128 numbers."""
    return parse_module(
        f"""func.func @main(%x: tensor<4x128xf32>) -> tensor<4x128xf32> {{
          %0 = aten.{op}(%x) : (tensor<4x128xf32>) -> tensor<4x128xf32>
          %1 = aten.sigmoid(%0) : (tensor<4x128xf32>) -> tensor<4x128xf32>
          func.return %1 : tensor<4x128xf32>
        }}""",
        make_context(),
    )


class Passes:
    """Watches, and notes the passes."""

    def __init__(self) -> None:
        self.seen: list[str] = []
        self.open: list[str] = []

    def before(self, name: str, module: ModuleOp) -> None:
        self.open.append(name)

    def after(self, name: str, module: ModuleOp) -> None:
        assert self.open.pop() == name
        assert isinstance(module, ModuleOp)
        self.seen.append(name)


def passes_of(until: str = "superdsc", **named: Any) -> str:
    """The passes that run on the way to a level, separated by commas."""
    watch = Passes()
    lower(program(), make_context(), until=until, watch=watch, **named)
    assert not watch.open
    return ",".join(watch.seen)
