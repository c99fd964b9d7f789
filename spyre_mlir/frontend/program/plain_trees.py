"""Structures of calls as text that people can read, where torch's serialisation is JSON in JSON.

Two usual ones have a word. Others are written as Python writes values, with `_` for a leaf, such as
``{'logits': _, 'past': [(_, _)]}`` and ``package.Output(logits=_, past=_)``. What Python cannot spell is written as
torch does.
"""

from __future__ import annotations

import ast
import json
from collections.abc import Sequence
from typing import Any, cast

from spyre_mlir.frontend.torch_private import TreeSpec, tree_flatten, treespec_dumps, treespec_loads

POSITIONAL = "positional"
SINGLE = "single"
_LEAF = "_"
_CONTEXT = "context"
_TUPLE, _LIST, _DICT = "builtins.tuple", "builtins.list", "builtins.dict"
_SEQUENCES = {_TUPLE: ast.Tuple, _LIST: ast.List}
_PROTOCOL = 1  # of torch's serialisation; it stands in front of the tree
# What torch and its users' functions for classes raise where a class is unknown, or has another form by now.
_UNREADABLE = (NotImplementedError, ValueError, TypeError, KeyError, AttributeError, ImportError)

Node = dict[str, Any]


def text_of_tree(tree: TreeSpec) -> str | None:
    """Return the text of a structure; None if it has classes that torch cannot serialise."""
    if (word := word_of_tree(tree)) is not None:
        return word
    try:
        serialised = treespec_dumps(tree)
    except (NotImplementedError, TypeError, ValueError):
        return None
    text = ast.unparse(_expression(json.loads(serialised)[1]))
    return text if tree_of_text(text, tree.num_leaves) == tree else serialised


def tree_of_text(text: str, leaves: int) -> TreeSpec | None:
    """Return the structure that a text stands for; None if nothing can be made of it.

    Args:
        text: as `text_of_tree` writes it, or torch's own.
        leaves: how many there are.
    """
    if (tree := tree_of_word(text, leaves)) is not None:
        return tree
    try:
        node = _node(ast.parse(text, mode="eval").body)
        return treespec_loads(text if node is None else json.dumps([_PROTOCOL, node]))
    except (SyntaxError, *_UNREADABLE):
        return None


def word_of_tree(tree: TreeSpec) -> str | None:
    """Return ``positional`` for leaves by position, ``single`` for one leaf, and None for any other structure."""
    for word in (POSITIONAL, SINGLE):
        if tree == tree_of_word(word, tree.num_leaves):
            return word
    return None


def tree_of_word(word: str, leaves: int) -> TreeSpec | None:
    """Return the structure that a word stands for; None if it is no such word.

    Args:
        word: ``positional`` or ``single``.
        leaves: how many there are.
    """
    if word == POSITIONAL:
        return tree_flatten(((0,) * leaves, {}))[1]
    return tree_flatten(0)[1] if word == SINGLE else None


def _expression(node: Node) -> ast.expr:
    """Return a node of torch's JSON in Python's notation."""
    kind, children = node["type"], [_expression(child) for child in node["children_spec"]]
    if kind is None:
        return ast.Name(_LEAF)
    if kind in _SEQUENCES:
        return _SEQUENCES[kind](elts=children, ctx=ast.Load())
    context = json.loads(node["context"])
    if kind == _DICT:
        return ast.Dict(keys=[ast.Constant(key) for key in context], values=children)
    name = ast.Name(kind)
    if _are_names(context, len(children)):
        named = zip(context, children, strict=True)
        return ast.Call(name, [], [ast.keyword(key, child) for key, child in named])
    return ast.Call(name, children, [ast.keyword(_CONTEXT, ast.parse(repr(context), mode="eval").body)])


def _are_names(context: object, children: int) -> bool:
    """Whether what a class says of itself are the names of its parts."""
    names = cast("Sequence[object]", context) if isinstance(context, list) else ()
    return len(names) == children > 0 and all(
        isinstance(name, str) and name.isidentifier() and name != _CONTEXT for name in names
    )


def _node(expression: ast.expr) -> Node | None:
    """Return the node of torch's JSON that an expression stands for; None if it is in another form."""
    match expression:
        case ast.Name(id=word) if word == _LEAF:
            return {"type": None, "context": None, "children_spec": []}
        case ast.Tuple(elts=parts):
            return _with_children(_TUPLE, None, parts)
        case ast.List(elts=parts):
            return _with_children(_LIST, None, parts)
        case ast.Dict(keys=keys, values=parts) if all(isinstance(key, ast.Constant) for key in keys):
            return _with_children(_DICT, [cast(ast.Constant, key).value for key in keys], parts)
        case ast.Call(func=name, args=[], keywords=named) if all(k.arg not in (None, _CONTEXT) for k in named):
            return _with_children(ast.unparse(name), [k.arg for k in named], [k.value for k in named])
        case ast.Call(func=name, args=parts, keywords=[ast.keyword(arg=word, value=context)]) if word == _CONTEXT:
            return _with_children(ast.unparse(name), ast.literal_eval(context), parts)
        case _:
            return None


def _with_children(kind: str, context: object, parts: Sequence[ast.expr]) -> Node | None:
    children = [_node(part) for part in parts]
    if any(child is None for child in children):
        return None
    return {"type": kind, "context": json.dumps(context), "children_spec": children}
