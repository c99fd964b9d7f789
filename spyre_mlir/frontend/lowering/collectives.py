"""The group of a collective, by the ranks it has at import: its name alone says nothing to another process."""

from __future__ import annotations

from typing import cast

from torch.fx import Node

from spyre_mlir.frontend.arguments import BoundArgument, bind, exchanges
from spyre_mlir.frontend.locations import place_of
from spyre_mlir.frontend.process_groups import ranks_of
from spyre_mlir.ops.native.collectives import RANKS


def ranks_at(node: Node) -> dict[str, BoundArgument]:
    """Return the argument of a collective that is not torch's; nothing for other nodes.

    Raises:
        InputError: this process has no such group.
    """
    if not exchanges(node):
        return {}
    name = cast(str, bind(node)["group_name"].value)
    return {RANKS: BoundArgument(ranks_of(name, place_of(node)), False)}


__all__ = ["ranks_at"]
