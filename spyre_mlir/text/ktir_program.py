"""A KTIR program as a file: its text, under comments that say what every function points to."""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.dialects import func
from xdsl.dialects.builtin import ArrayAttr, IntegerAttr, ModuleOp, StringAttr
from xdsl.utils.hints import isa

from spyre_mlir.text.ktir import ktir_text

# Attribute of a function: one text per argument. KTIR has no place for it, so the file has it as comments.
BUFFERS = "spyre.buffers"


def program_text(module: ModuleOp, *, older_spaces: bool = False) -> str:
    """The text of a KTIR module with a comment per argument; the module stays as it is.

    Args:
        module: KTIR functions, run in order.
        older_spaces: spell memory spaces `#ktdp.spyre_memory_space<HBM>` instead of `#ktdp.memory_space<global>`.
    """
    plain = module.clone()
    lines = list(_comments(plain))
    for function in _functions(plain):
        function.attributes.pop(BUFFERS, None)
    return "".join(f"// {line}\n" for line in lines) + ktir_text(plain, older_spaces=older_spaces)


def _comments(module: ModuleOp) -> Iterator[str]:
    functions = list(_functions(module))
    if len(functions) > 1:
        yield f"{len(functions)} functions, run one after another; one name is one buffer in all of them."
    yield "Arguments are places in device memory, counted in elements."
    for function in functions:
        grid = function.attributes.get("grid")
        cores = [n.value.data for n in grid] if isa(grid, ArrayAttr[IntegerAttr]) else []
        yield f"@{function.sym_name.data} on {' x '.join(map(str, cores))} cores"
        texts = function.attributes.get(BUFFERS)
        for text in texts if isa(texts, ArrayAttr[StringAttr]) else ():
            yield f"  {text.data}"


def _functions(module: ModuleOp) -> Iterator[func.FuncOp]:
    return (op for op in module.ops if isinstance(op, func.FuncOp))


__all__ = ["BUFFERS", "program_text"]
