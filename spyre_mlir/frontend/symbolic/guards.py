"""Guards of an exported program: conditions on sizes that torch took for granted while it traced."""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from typing import Any

import torch
from torch.export import ExportedProgram
from torch.export.graph_signature import InputKind
from torch.fx import Node

from spyre_mlir.dialects.size_expressions import symbols_in
from spyre_mlir.errors import UnsupportedError
from spyre_mlir.frontend.symbolic.sizes import STATIC, Sizes
from spyre_mlir.frontend.torch_private import guard_codes

_NOT_IN_NAMES = re.compile(r"\W+")
_OF_TORCH = {"sym_max": "max", "sym_min": "min"}  # torch 2.15 writes torch.sym_max where earlier ones wrote max


def guards_of(exported: ExportedProgram, sizes: Sizes) -> list[str]:
    """Return the conditions on the symbols of a program, besides their ranges.

    Raises:
        UnsupportedError: a condition is about something else than sizes and symbolic numbers.
    """
    nodes = {node.name: node for node in exported.graph.find_nodes(op="placeholder")}
    given = [spec.arg for spec in exported.graph_signature.input_specs if spec.kind is InputKind.USER_INPUT]
    # A strict export numbers the leaves of the call.
    inputs = nodes | {f"flat_args_{n}": nodes[arg.name] for n, arg in enumerate(given) if arg.name in nodes}
    return list(
        dict.fromkeys(text for code in guard_codes(exported) if (text := _guard(code, inputs, sizes)) is not None)
    )


def _guard(code: str, inputs: Mapping[str, Node], sizes: Sizes) -> str | None:
    """A condition in our symbols; None if it has none of them in it, so that it held at export."""
    try:
        tree = _Resolve(inputs, sizes).visit(ast.parse(code, mode="eval"))
        text = ast.unparse(tree)
        return text if symbols_in(text) else None
    except (ValueError, KeyError, SyntaxError) as error:
        raise UnsupportedError(
            f"the export takes for granted that {code}, which is no condition on sizes", hint=STATIC
        ) from error


class _Resolve(ast.NodeTransformer):
    """Puts symbols in the place of ``L['x'].size()[0]`` and ``L['n']``, and Python's functions in that of torch's."""

    def __init__(self, inputs: Mapping[str, Node], sizes: Sizes) -> None:
        self._inputs, self._sizes = inputs, sizes

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        """Replace an extent, or a number that is an input."""
        match node:
            case ast.Subscript(
                value=ast.Call(func=ast.Attribute(value=source, attr="size")), slice=ast.Constant(value=int(dim))
            ):
                return self._tree(self._value(source).shape[dim])
            case _:
                return self._tree(self._value(node))

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        """Replace a function of torch on symbolic numbers."""
        match node:
            case ast.Attribute(value=ast.Name(id="torch"), attr=name) if name in _OF_TORCH:
                return ast.Name(_OF_TORCH[name], ast.Load())
            case _:
                return self.generic_visit(node)

    def _value(self, source: ast.expr) -> Any:
        name = "_".join(_path(source))
        return self._inputs[name].meta["val"]

    def _tree(self, size: object) -> ast.expr:
        text = self._sizes.text(size) if isinstance(size, torch.SymInt) else repr(size)
        return ast.parse(text, mode="eval").body


def _path(source: ast.expr) -> list[str]:
    """The steps from the arguments of a call to a leaf, which torch names placeholders by."""
    match source:
        case ast.Subscript(value=ast.Name(id="L"), slice=ast.Constant(value=name)):
            return [str(name)]
        case ast.Subscript(value=inner, slice=ast.Constant(value=key)):
            return [*_path(inner), _NOT_IN_NAMES.sub("_", str(key)).lower()]
        case ast.Attribute(value=inner, attr=name):
            return [*_path(inner), name]
        case _:
            raise ValueError(ast.unparse(source))
