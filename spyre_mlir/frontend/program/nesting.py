"""Where the arguments of a call are nested otherwise than those of the example, in words."""

from __future__ import annotations

from collections import OrderedDict
from typing import Any

from spyre_mlir.frontend.program.tree_classes import parts_of_tree
from spyre_mlir.frontend.torch_private import TreeSpec


def difference(expected: TreeSpec, got: TreeSpec) -> str:
    """Return the first place in which two structures of calls differ, and what is there in each.

    Args:
        expected: of the example: a tuple of arguments and a dictionary of keyword arguments.
        got: of the call, with as many arguments and the same keywords.
    """
    (args, kwargs), (other_args, other_kwargs) = expected.children(), got.children()
    by_place = [f"args[{n}]" for n in range(args.num_children)]
    by_name = [f"argument '{name}'" for name in kwargs.context]
    found = _first(by_place, args.children(), other_args.children())
    found = found or _first(by_name, kwargs.children(), other_kwargs.children())
    return found or f"expected {expected}, got {got}"


def _first(places: list[str], expected: list[TreeSpec], got: list[TreeSpec]) -> str | None:
    differences = (_difference(*each) for each in zip(places, expected, got, strict=True))
    return next((text for text in differences if text is not None), None)


def _difference(place: str, expected: TreeSpec, got: TreeSpec) -> str | None:
    if expected == got:
        return None
    (kind, context, parts), (other_kind, other_context, other_parts) = parts_of_tree(expected), parts_of_tree(got)
    if kind is not None and (kind, context, len(parts)) == (other_kind, other_context, len(other_parts)):
        steps = context if _is_dictionary(kind) else range(len(parts))
        return _first([f"{place}[{step!r}]" for step in steps], parts, other_parts)
    return f"{place}: expected {_words(expected)}, got {_words(got)}"


def _words(tree: TreeSpec) -> str:
    kind, context, parts = parts_of_tree(tree)
    if kind is None:
        return "one value"
    if _is_dictionary(kind):
        return f"a {kind.__name__} of {', '.join(map(repr, context)) or 'nothing'}"
    named = context if isinstance(context, type) else kind
    return f"a {named.__name__} of {len(parts)}"


def _is_dictionary(kind: Any) -> bool:
    return kind in (dict, OrderedDict)
