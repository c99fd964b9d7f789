"""A program from what its module says of how it is called, without the model it was made from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

import torch
from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, IntegerAttr, ModuleOp, StringAttr, TensorType
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute
from xdsl.traits import SymbolTable

from spyre_mlir.dialects.aten_arguments import to_value
from spyre_mlir.errors import ReadError
from spyre_mlir.frontend.element_types import DTYPES
from spyre_mlir.frontend.program.plain_trees import Unknown, tree_of_text
from spyre_mlir.frontend.program.program import Argument, ArgumentKind, Program, TreeConstant
from spyre_mlir.frontend.program.result_memory import ResultMemory
from spyre_mlir.frontend.torch_private import TreeSpec, tree_flatten

_KINDS: dict[str, ArgumentKind] = {
    "input": "input",
    "parameter": "parameter",
    "buffer": "buffer",
    "constant": "constant",
}
_LEAF = tree_flatten(0)[1]
_SAYS_NOTHING = "the program does not say what its arguments and results are"
_AGAIN = "compile and save the model again"


def described_program(module: ModuleOp, values: Mapping[str, torch.Tensor]) -> Program:
    """Return the program of a module that says what its arguments and results are, as those of `import_program` do.

    Results have memory of their own, without the strides that the model gave them. Classes of the outputs that this
    process has not loaded become tuples.

    Args:
        module: of any level; host programs of bundles as well.
        values: tensors of parameters, buffers and constants, by name.

    Raises:
        ReadError: the module does not say how it is called.
    """
    main = SymbolTable.lookup_symbol(module, "main")
    if not isinstance(main, FuncOp):
        raise ReadError(_SAYS_NOTHING, hint=_AGAIN)
    pairs = zip(_entries(main.arg_attrs, main.function_type.inputs), main.function_type.inputs, strict=True)
    arguments = tuple(_argument(entry, kind) for entry, kind in pairs)
    results = [_words(entry) for entry in _entries(main.res_attrs, main.function_type.outputs)]
    changed = {entry["aten.mutates"] for entry in results if "aten.mutates" in entry}
    outputs = _leaves(module, "aten.output_leaves")
    return Program(
        module=module,
        name="program" if module.sym_name is None else module.sym_name.data,
        arguments=tuple(a if a.name not in changed else _changed(a) for a in arguments),
        values=values,
        results=tuple(entry["aten.name"] for entry in results),
        mutations={n: entry["aten.mutates"] for n, entry in enumerate(results) if "aten.mutates" in entry},
        input_leaves=tuple(_input(leaf, arguments) for leaf in _leaves(module, "aten.input_leaves")),
        output_leaves=tuple(_output(leaf) for leaf in outputs),
        input_tree=_input_tree(module),
        output_tree=_output_tree(module, len(outputs)),
        reference=_no_model,
        memory=_own_memory,
        names=frozenset(a.name for a in arguments if a.kind != "input"),
        stored=True,
        complex_results=frozenset(n for n, entry in enumerate(results) if "aten.complex" in entry),
    )


def _no_model(*_: object, **__: object) -> object:
    raise ReadError("a program from a directory has no model to compare with", hint="compile the model")


def _own_memory(_: Mapping[str, torch.Tensor]) -> tuple[ResultMemory, Sequence[Any]]:
    return ResultMemory(frozenset(), {}, ()), ()


def _entries(described: ArrayAttr[DictionaryAttr] | None, kinds: ArrayAttr[Attribute]) -> Sequence[DictionaryAttr]:
    """What is said of arguments or results; a function that has none says nothing."""
    if described is None and kinds.data:
        raise ReadError(_SAYS_NOTHING, hint=_AGAIN)
    return () if described is None else described.data


def _words(entry: DictionaryAttr) -> dict[str, str]:
    return {name: value.data for name, value in entry.data.items() if isinstance(value, StringAttr)}


def _argument(entry: DictionaryAttr, kind: Attribute) -> Argument:
    words = _words(entry)
    of = _KINDS.get(words.get("aten.kind", ""))
    if of is None or "aten.name" not in words or not isinstance(kind, TensorType):
        raise ReadError("the program does not say what its arguments are", hint=_AGAIN)
    tensor = cast("TensorType[Attribute]", kind)
    return Argument(
        words["aten.name"],
        of,
        tuple(tensor.get_shape()),
        DTYPES[tensor.get_element_type()],
        is_complex="aten.complex" in words,
    )


def _changed(a: Argument) -> Argument:
    return replace(a, mutated=True)


def _leaves(module: ModuleOp, name: str) -> list[Attribute]:
    leaves = module.attributes.get(name)
    if not isinstance(leaves, ArrayAttr):
        raise ReadError(f"the program has no {name}", hint=_AGAIN)
    return list(cast("ArrayAttr[Attribute]", leaves))


def _input(leaf: Attribute, arguments: Sequence[Argument]) -> Argument | TreeConstant:
    if isinstance(leaf, StringAttr):
        found = next((a for a in arguments if a.name == leaf.data), None)
        if found is None:
            raise ReadError(f"the program has no argument {leaf.data}", hint=_AGAIN)
        return found
    return _constant(leaf)


def _output(leaf: Attribute) -> int | TreeConstant:
    return leaf.value.data if isinstance(leaf, IntegerAttr) else _constant(leaf)


def _constant(leaf: Attribute) -> TreeConstant:
    value = leaf.data.get("value") if isinstance(leaf, DictionaryAttr) else None
    if value is None:
        raise ReadError(f"a leaf is a name, a number or a value, got {leaf}", hint=_AGAIN)
    return TreeConstant("constant", to_value(value))


def _input_tree(module: ModuleOp) -> TreeSpec:
    tree = _tree(module, "aten.input_tree", len(_leaves(module, "aten.input_leaves")))
    if tree is None:
        raise ReadError(
            "the arguments of the program are of classes that are not loaded",
            hint="import what defines them, or run the directory with spyre-run",
        )
    return tree


def _output_tree(module: ModuleOp, leaves: int) -> TreeSpec:
    tree = _tree(module, "aten.output_tree", leaves, _tuple)
    return _tuple([_LEAF] * leaves) if tree is None else tree


def _tuple(children: list[TreeSpec]) -> TreeSpec:
    return TreeSpec(tuple, None, children)


def _tree(module: ModuleOp, name: str, leaves: int, unknown: Unknown | None = None) -> TreeSpec | None:
    text = module.attributes.get(name)
    return tree_of_text(text.data, leaves, unknown) if isinstance(text, StringAttr) else None
