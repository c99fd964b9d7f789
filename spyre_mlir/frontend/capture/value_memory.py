"""Memory behind the values of a graph that becomes functional: what is a view of what, and who has to see a write."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from torch.fx import Node


class Unfollowed(Exception):  # no error: torch goes on
    """Operations on memory, or calls, that cannot be followed call by call."""


class ValueMemory:
    """Views and holders of the values of a new graph.

    A holder is a node of the old graph: it has a value, and another one after a write to its memory.
    """

    def __init__(self, still_read: Callable[[Node], bool]) -> None:
        """Starts without values; `still_read` says whether a holder is read after the call at hand."""
        self._still_read = still_read
        self._wholes: dict[Node, Node] = {}
        self._views: dict[Node, list[Node]] = {}
        self._holders: dict[Node, list[Node]] = {}

    def whole(self, value: Node) -> Node:
        """Return the value that has all the memory of another one: itself, if it is no view."""
        return self._wholes.get(value, value)

    def hold(self, holder: Node, value: Node) -> None:
        """Note that an old node has a value."""
        self._holders.setdefault(value, []).append(holder)

    def view(self, value: Node, of: Node) -> None:
        """Note that a value lies in the memory of another one."""
        if value is not of:
            self._wholes[value] = self.whole(of)
            self._views.setdefault(self.whole(of), []).append(value)

    def written(self, value: Node) -> Iterator[Node]:
        """Return the holders that have a new value after a write.

        Raises:
            Unfollowed: it writes to a part of a tensor, or to a tensor with parts that are read later.
        """
        if self.whole(value) is not value:
            raise Unfollowed("a write through a view")
        for view in self._views.get(value, ()):
            if any(self._still_read(holder) for holder in self._holders.get(view, ())):
                raise Unfollowed("a write behind a view")
        return iter(self._holders.get(value, ()))
