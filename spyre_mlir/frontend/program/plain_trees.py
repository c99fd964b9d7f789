"""Words for the two usual structures of calls, which torch's serialisation spells with hundreds of characters."""

from __future__ import annotations

from spyre_mlir.frontend.torch_private import TreeSpec, tree_flatten

POSITIONAL = "positional"
SINGLE = "single"


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
