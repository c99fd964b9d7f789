"""Colours of nodes: operations redder the longer they take, and the kinds of the picture of a model."""

from __future__ import annotations

from spyre_mlir.report.graphs.level_graph import LevelNode
from spyre_mlir.report.models.graph import COLOURS

_COLD, _HOT, _PLAIN = (255, 255, 255), (240, 110, 80), "#ffffff"


def colour_of(node: LevelNode, longest_us: float) -> str:
    """Return the fill of a node, ``#rrggbb``.

    Args:
        node: with its time.
        longest_us: the time of the node that takes longest.
    """
    if node.us and longest_us:
        part = node.us / longest_us
        return "#" + "".join(f"{round(cold + (hot - cold) * part):02x}" for cold, hot in zip(_COLD, _HOT, strict=True))
    return COLOURS[node.kind] if node.kind in ("input", "output", "host", "removed") else _PLAIN
