"""Contents of the graph of a level: nodes with what they read and their figures, and modules with theirs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

SEPARATOR = "/"


@dataclass(frozen=True)
class LevelNode:
    """One operation, input or output.

    Attributes:
        id: unique at its level. The operation at the aten level, and the last of those made from it at a lower
            level, have the same.
        label: operation or hardware function.
        group: parts of the path of the module it belongs to; below the aten level the operation follows, if several
            nodes come from it.
        kind: ``input``, ``output``, ``host``, ``op``, or at the aten level the support of the operation.
        reads: of what it reads, the ids of the nodes that made it, each with the number of the result.
        types: of its results.
        figures: everything else, by name, with units.
        us: predicted time of the kernels that it stands for.
    """

    id: str
    label: str
    group: tuple[str, ...]
    kind: str
    reads: tuple[tuple[str, int], ...] = ()
    types: tuple[str, ...] = ()
    figures: Mapping[str, str] = field(default_factory=dict[str, str])
    us: float = 0.0


@dataclass(frozen=True)
class LevelGraph:
    """The graph of one level, in program order.

    Attributes:
        level: its name.
        nodes: every node behind those it reads.
        groups: figures of modules, by group; those of the program are at the empty one.
    """

    level: str
    nodes: tuple[LevelNode, ...]
    groups: Mapping[tuple[str, ...], Mapping[str, str]]
