"""Programs at the aten level with equal regions."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import CallOp, FuncOp

from spyre_mlir.text.render import parse_module, verify_module
from spyre_mlir.universe import make_context

T = "tensor<4x8xf32>"
OPS = ("exp", "neg", "tanh", "abs", "sigmoid")


def parsed(text: str) -> ModuleOp:
    module = parse_module(text, make_context(), "program.mlir")
    verify_module(module)
    return module


def layer(
    number: int, ops: Sequence[str], *, path: str = "layers", scale: float = 2.0, weight: str | None = None
) -> str:
    """Lines of a layer that reads ``%xN`` and makes ``%xN+1``: its weight, the ops over and over, a number."""
    place = f'loc("{path}.{number}.inner"("m.py":1:0))'
    lines = [f"%v{number}_0 = aten.add.Tensor(%x{number}, %{weight or f'w{number}'}) : ({T}, {T}) -> {T} {place}"]
    for at, op in enumerate(ops):
        lines.append(f"%v{number}_{at + 1} = aten.{op}(%v{number}_{at}) : ({T}) -> {T} {place}")
    last = f"%v{number}_{len(ops)}"
    lines.append(f"%x{number + 1} = aten.mul.Tensor({last}) {{other = {scale} : f64}} : ({T}) -> {T} {place}")
    return "\n".join(lines)


def program(lines: Sequence[str], layers: int, before: str = "") -> ModuleOp:
    weights = ", ".join(f'%w{n}: {T} {{aten.name = "layers.{n}.w", aten.kind = "parameter"}}' for n in range(layers))
    body = "\n".join((before, *lines))
    return parsed(
        f'func.func @main(%x0: {T} {{aten.name = "x", aten.kind = "input"}}, {weights}) -> {T} {{\n{body}\n'
        f"func.return %x{layers} : {T}\n}}"
    )


def stacked(layers: int, ops: int = 30, scale: Callable[[int], float] = lambda _: 2.0) -> ModuleOp:
    """Layers of `ops` ops between their first and their last."""
    names = [OPS[at % len(OPS)] for at in range(ops)]
    return program([layer(n, names, scale=scale(n)) for n in range(layers)], layers)


def calls(module: ModuleOp) -> list[CallOp]:
    return [op for op in module.walk() if isinstance(op, CallOp)]


def functions(module: ModuleOp) -> dict[str, FuncOp]:
    return {op.sym_name.data: op for op in module.ops if isinstance(op, FuncOp)}
