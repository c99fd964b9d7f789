"""A graph in the language of Graphviz: a cluster per module, figures as tooltips."""

from __future__ import annotations

from collections.abc import Iterator

from spyre_mlir.report.graphs.colours import colour_of
from spyre_mlir.report.graphs.level_graph import SEPARATOR, LevelGraph, LevelNode


def dot_text(name: str, graph: LevelGraph, below: LevelGraph | None = None) -> str:
    """Return the text of a directed graph; nodes have the same ids at every level, in an SVG picture too.

    Args:
        name: of the program.
        graph: of one level.
        below: of the level below, to whose picture, ``LEVEL.dot.svg``, nodes lead.
    """
    lines = [
        f"digraph {_quoted(f'{name} {graph.level}')} {{",
        f"  label={_quoted(_titled(f'{name}, {graph.level}', graph, ()))}; labelloc=t; rankdir=TB; compound=true;",
        '  fontname="sans-serif"; node [shape=box, style=filled, fontname="sans-serif", fontsize=10];',
        *_cluster(graph, (), {node.id for node in below.nodes} if below is not None else set(), below),
    ]
    for node in graph.nodes:
        lines += [f"  {_quoted(maker)} -> {_quoted(node.id)};" for maker in dict.fromkeys(m for m, _ in node.reads)]
    return "\n".join([*lines, "}"]) + "\n"


def _cluster(graph: LevelGraph, group: tuple[str, ...], known: set[str], below: LevelGraph | None) -> Iterator[str]:
    """The nodes of a group, and the groups in it as clusters."""
    margin = "  " * (len(group) + 1)
    longest = max((node.us for node in graph.nodes), default=0.0)
    inside = [node for node in graph.nodes if node.group[: len(group)] == group]
    for node in inside:
        if node.group == group:
            target = f"{below.level}.dot.svg#{node.id}" if below is not None and node.id in known else ""
            yield f"{margin}{_quoted(node.id)} [{', '.join(_attributes(node, longest, target))}];"
    for part in dict.fromkeys(node.group[len(group)] for node in inside if len(node.group) > len(group)):
        own = (*group, part)
        yield f"{margin}subgraph {_quoted('cluster_' + SEPARATOR.join(own))} {{"
        yield f"{margin}  id={_quoted(SEPARATOR.join(own))}; label={_quoted(_titled(part, graph, own))};"
        yield from _cluster(graph, own, known, below)
        yield f"{margin}}}"


def _attributes(node: LevelNode, longest_us: float, target: str) -> Iterator[str]:
    lines = [node.label, *node.types]
    figures = node.figures
    if node.us:
        lines.append(f"{figures['time, us']} us")
    yield f"id={_quoted(node.id)}"
    yield f"label={_quoted(chr(10).join(lines))}"
    yield f"fillcolor={_quoted(colour_of(node, longest_us))}"
    yield f"tooltip={_quoted(chr(10).join(f'{key}: {value}' for key, value in figures.items()) or node.label)}"
    if target:
        yield f"URL={_quoted(target)}"


def _titled(title: str, graph: LevelGraph, group: tuple[str, ...]) -> str:
    figures = graph.groups.get(group)
    return title if figures is None else f"{title}\n{figures['time, us']} us, {figures['part of the time']}"


def _quoted(text: str) -> str:
    """Text in quotation marks; a backslash in it stands for itself."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'
