"""Structures of calls as text that people can read, where torch's serialisation is JSON in JSON.

Two usual ones have a word. Others are written as Python writes values, with `_` for a leaf, such as
``{'logits': _, 'past': [(_, _)]}`` and ``package.Output(logits=_, past=_)``. What Python cannot spell is written as
torch does. Named tuples, results such as that of `sort`, and dataclasses need no name that torch knows: they are found
in the modules that are loaded when the text is read.
"""

from __future__ import annotations

import ast
import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import is_dataclass
from typing import Any, cast

from spyre_mlir.frontend.program.tree_classes import names_of_parts, parts_of_tree, tree_of_named
from spyre_mlir.frontend.program.unknown_classes import is_stand_in
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
Unknown = Callable[[list[TreeSpec]], TreeSpec]
_LEAF_NODE: Node = {"type": None, "context": None, "children_spec": []}


def text_of_tree(tree: TreeSpec) -> str | None:
    """Return the text of a structure; None if it has classes of other kinds."""
    if (word := word_of_tree(tree)) is not None:
        return word
    try:
        text = ast.unparse(_expression(_node_of(tree)))
    except (NotImplementedError, TypeError, ValueError):
        text = None  # as a context that is a dictionary of its own, which `defaultdict` has
    if text is not None and (_has_stand_in(tree) or tree_of_text(text, tree.num_leaves) == tree):
        return text
    try:
        return treespec_dumps(tree)
    except (NotImplementedError, TypeError, ValueError):
        return text  # of a class of a function, which is nowhere to be found


def _has_stand_in(tree: TreeSpec) -> bool:
    kind, context, children = parts_of_tree(tree)
    return is_stand_in(kind) or is_stand_in(context) or any(map(_has_stand_in, children))


def tree_of_text(
    text: str, leaves: int, unknown: Callable[[list[TreeSpec]], TreeSpec] | None = None
) -> TreeSpec | None:
    """Return the structure that a text stands for; None if nothing can be made of it.

    Args:
        text: as `text_of_tree` writes it, or torch's own.
        leaves: how many there are.
        unknown: makes the structure of a class that is not loaded, from what is inside.
    """
    if (tree := tree_of_word(text, leaves)) is not None:
        return tree
    try:
        node = _node(ast.parse(text, mode="eval").body)
        return treespec_loads(text) if node is None else _tree_of(node, unknown)
    except (SyntaxError, *_UNREADABLE):
        return None


def _node_of(tree: TreeSpec) -> Node:
    """A node of torch's JSON, with the names of classes in the place of names that torch would need."""
    kind, context, children = parts_of_tree(tree)
    if kind is None:
        return _LEAF_NODE
    inside = [_node_of(child) for child in children]
    named = context if isinstance(context, type) else kind
    if is_stand_in(context):  # of a named tuple, the names of whose parts no file has
        return _named_node(named, None, inside)
    if (names := names_of_parts(named)) is not None:
        return _named_node(named, names, inside)
    try:
        return json.loads(treespec_dumps(_shallow(kind, context, len(inside))))[1] | {"children_spec": inside}
    except NotImplementedError:
        if not is_dataclass(kind):
            raise
        return _named_node(kind, context, inside)


def _named_node(kind: Any, context: object, inside: list[Node]) -> Node:
    name = f"{kind.__module__}.{kind.__qualname__}".replace("<locals>", "locals")
    return {"type": name, "context": json.dumps(context), "children_spec": inside}


def _tree_of(node: Node, unknown: Unknown | None) -> TreeSpec:
    name, children = node["type"], [_tree_of(child, unknown) for child in node["children_spec"]]
    if name is None:
        return tree_flatten(0)[1]
    try:
        alone = {**node, "children_spec": [_LEAF_NODE] * len(children)}
        kind, context, _ = parts_of_tree(treespec_loads(json.dumps([_PROTOCOL, alone])))
        return TreeSpec(kind, context, children)
    except _UNREADABLE:
        kind, context = _loaded_class(name), json.loads(node["context"])
        if is_dataclass(kind):
            return TreeSpec(kind, context, children)
        if context is not None and names_of_parts(kind) == context:
            return tree_of_named(kind, children)
        if unknown is None:
            raise
        return unknown(children)


def _shallow(kind: object, context: object, parts: int) -> TreeSpec:
    return TreeSpec(kind, context, [tree_flatten(0)[1]] * parts)


def _loaded_class(name: str) -> object:
    """The class of a dotted name in a module that is loaded; None if there is none."""
    words = name.split(".")
    modules = (n for n in range(len(words) - 1, 0, -1) if ".".join(words[:n]) in sys.modules)
    if (at := next(modules, None)) is None:
        return None
    found: object = sys.modules[".".join(words[:at])]
    for word in words[at:]:
        found = getattr(found, word, None)
    return found if isinstance(found, type) else None


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
            return _LEAF_NODE
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
