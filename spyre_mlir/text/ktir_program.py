"""A KTIR program as a file: its text, with comments that describe the pointers of every function."""

from __future__ import annotations

from collections.abc import Iterator

from xdsl.dialects import func
from xdsl.dialects.builtin import ArrayAttr, IntegerAttr, ModuleOp, StringAttr
from xdsl.utils.hints import isa

from spyre_mlir.dialects.target import module_like
from spyre_mlir.text.ktir import ktir_text

# Attribute of a function: one text per argument. KTIR has no place for it, so the file has it as comments.
BUFFERS = "spyre.buffers"


def program_text(module: ModuleOp, *, older_spaces: bool = False) -> str:
    """Return the text of a KTIR module with a comment per argument; the module is not modified.

    Args:
        module: KTIR functions, launched in order.
        older_spaces: spell memory spaces `#ktdp.spyre_memory_space<HBM>` instead of `#ktdp.memory_space<global>`.
    """
    functions = list(_functions(module))
    heads = [f"{len(functions)} functions: {_ORDER[0]}.", _ORDER[1]] if len(functions) > 1 else []
    return _text(module, [*heads, _POINTERS], older_spaces=older_spaces)


def function_texts(module: ModuleOp, *, older_spaces: bool = False) -> dict[str, str]:
    """Return by function name, in order, the text of a module with this function only.

    Args:
        module: KTIR functions, launched in order.
        older_spaces: as for `program_text`.
    """
    functions, found = list(_functions(module)), dict[str, str]()
    for number, function in enumerate(functions, 1):
        heads = [f"Function {number} of {len(functions)}: {_ORDER[0]}.", _ORDER[1]] if len(functions) > 1 else []
        alone = module_like(module, [function.clone()])
        found[function.sym_name.data] = _text(alone, [*heads, _POINTERS], older_spaces=older_spaces)
    return found


# KTIR orders nothing beyond the end of a function: launching is the host's part, so the order is said to people.
_ORDER = (
    "the host launches them in this order, each when the one before has ended on all cores",
    "One name is one buffer in all of them.",
)
_POINTERS = "Arguments are places in device memory, counted in elements."


def _text(module: ModuleOp, heads: list[str], *, older_spaces: bool) -> str:
    plain = module.clone()
    lines = [*heads, *_comments(plain)]
    for function in _functions(plain):
        function.attributes.pop(BUFFERS, None)
    return "".join(f"// {line}\n" for line in lines) + ktir_text(plain, older_spaces=older_spaces)


def _comments(module: ModuleOp) -> Iterator[str]:
    for function in _functions(module):
        grid = function.attributes.get("grid")
        cores = [n.value.data for n in grid] if isa(grid, ArrayAttr[IntegerAttr]) else []
        yield f"@{function.sym_name.data} on {' x '.join(map(str, cores))} cores"
        texts = function.attributes.get(BUFFERS)
        for text in texts if isa(texts, ArrayAttr[StringAttr]) else ():
            yield f"  {text.data}"


def _functions(module: ModuleOp) -> Iterator[func.FuncOp]:
    return (op for op in module.ops if isinstance(op, func.FuncOp))


__all__ = ["BUFFERS", "function_texts", "program_text"]
