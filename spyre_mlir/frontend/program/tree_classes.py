"""Classes that torch flattens into its trees of arguments and results: the private names of `torch.utils._pytree`.

Decision: docs/decisions/0013-private-interfaces.md
"""

from __future__ import annotations

from typing import Any, cast

from torch.utils import _pytree

from spyre_mlir.frontend.torch_private import TreeSpec


def is_tree_node(kind: type) -> bool:
    """Return whether torch flattens instances of a class."""
    return kind in _pytree.SUPPORTED_NODES


def parts_of_tree(tree: TreeSpec) -> tuple[Any, Any, list[TreeSpec]]:
    """Return the class of a structure, what torch keeps of an instance, and what is inside; a leaf has no class."""
    return tree.type, cast(Any, tree)._context, tree.children()


def names_of_parts(kind: Any) -> list[str] | None:
    """Return what a named tuple, or a result of torch such as that of `sort`, calls its parts; None for others."""
    if _pytree.is_namedtuple_class(kind):
        return list(kind._fields)
    return list(kind.__match_args__) if _pytree.is_structseq_class(kind) else None


def tree_of_named(kind: Any, children: list[TreeSpec]) -> TreeSpec:
    """Return the structure of a class whose parts have names."""
    named = (cast(Any, _pytree).namedtuple, kind) if _pytree.is_namedtuple_class(kind) else (kind, None)
    return TreeSpec(*named, children)


def register_dataclass(kind: type) -> None:
    """Let torch flatten instances of a dataclass: its fields become a structure instead of one value."""
    names = cast("dict[str, type]", _pytree.SERIALIZED_TYPE_TO_PYTHON_TYPE)
    before = names.get(_pytree.NO_SERIALIZED_TYPE_NAME_FOUND)
    _pytree.register_dataclass(kind)
    if before is None:
        names.pop(_pytree.NO_SERIALIZED_TYPE_NAME_FOUND, None)
    else:
        names[_pytree.NO_SERIALIZED_TYPE_NAME_FOUND] = before


def unregister_dataclass(kind: type) -> None:
    """Undo `register_dataclass`; torch's own way also drops the entry shared by all unnamed classes."""
    cast(Any, _pytree.SUPPORTED_NODES).pop(kind, None)
    cast(Any, _pytree.SUPPORTED_SERIALIZED_TYPES).pop(kind, None)
