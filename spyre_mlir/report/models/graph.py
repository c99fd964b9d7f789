"""The graph of a program as a picture: Mermaid text for pages that render it, SVG for everything else."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from xdsl.dialects.builtin import ModuleOp, StringAttr
from xdsl.ir import SSAValue

from spyre_mlir.dialects.aten import AtenOp
from spyre_mlir.dialects.ir.functions import first_function
from spyre_mlir.dialects.places import source_of
from spyre_mlir.dialects.tensors import as_tensor_type

BOX_WIDTH, BOX_HEIGHT, GAP_X, GAP_Y, MARGIN = 168, 40, 24, 36, 16


@dataclass(frozen=True)
class Node:
    """One operation or argument.

    Attributes:
        key: unique in its graph.
        label: the operation, without the dialect.
        detail: types of the results.
        kind: ``input``, ``parameter``, …, or the support of an operation.
        source: line of the model.
    """

    key: str
    label: str
    detail: str
    kind: str
    source: str = ""


@dataclass
class Graph:
    """Operations and the values that flow between them, in program order."""

    nodes: dict[str, Node] = field(default_factory=dict[str, Node])
    edges: list[tuple[str, str]] = field(default_factory=list[tuple[str, str]])


def graph_of(module: ModuleOp, support: Mapping[AtenOp, str]) -> Graph:
    """Build the graph of a program at the aten level; weights belong to the operation that reads them.

    Args:
        module: the program.
        support: what becomes of every operation.
    """
    main = first_function(module)
    graph, makers = Graph(), dict[SSAValue, str]()
    for number, argument in enumerate(main.body.block.args):
        kind = main.arg_attrs.data[number].data.get("aten.kind") if main.arg_attrs is not None else None
        if not isinstance(kind, StringAttr) or kind.data == "input":
            makers[argument] = _add(
                graph, Node(f"in{number}", argument.name_hint or "input", type_text(argument), "input")
            )
    for number, op in enumerate(main.body.block.ops):
        name = op.operation if isinstance(op, AtenOp) else "output"
        detail = ", ".join(map(type_text, op.results if op.results else op.operands))
        node = Node(
            f"op{number}",
            name.removeprefix("aten."),
            detail,
            support[op] if isinstance(op, AtenOp) else "output",
            str(source_of(op.location) or ""),
        )
        key = _add(graph, node)
        graph.edges += dict.fromkeys((makers[v], key) for v in op.operands if v in makers)
        makers |= dict.fromkeys(op.results, key)
    return graph


def _add(graph: Graph, node: Node) -> str:
    graph.nodes[node.key] = node
    return node.key


def type_text(value: SSAValue) -> str:
    """Return shape and element type of a tensor, e.g. ``64x128xf32``; nothing for other values."""
    found = as_tensor_type(value.type)
    return "" if found is None else "x".join(map(str, (*found.get_shape(), found.get_element_type())))


def mermaid(graph: Graph) -> str:
    """Render the graph as a Mermaid flowchart."""
    lines = ["flowchart TD"]
    for node in graph.nodes.values():
        text = f"{node.label}<br/>{node.detail}".replace('"', "'")
        lines.append(f'  {node.key}["{text}"]:::{node.kind}')
    lines += [f"  {a} --> {b}" for a, b in graph.edges]
    lines += [f"  classDef {kind} fill:{colour}" for kind, colour in COLOURS.items()]
    return "\n".join(lines) + "\n"


COLOURS = {
    "native": "#cfe8cf",
    "composed": "#d5e3f7",
    "removed": "#eeeeee",
    "host": "#f7c9c2",
    "input": "#fff3c4",
    "output": "#fff3c4",
}


def svg(graph: Graph) -> str:
    """Render the graph as an SVG picture: operations in layers, every layer below the ones it reads."""
    places = _places(graph)
    width = max((x for x, _ in places.values()), default=0) + BOX_WIDTH + MARGIN
    height = max((y for _, y in places.values()), default=0) + BOX_HEIGHT + MARGIN
    from jinja2 import Environment, PackageLoader, select_autoescape  # loaded for graphs alone

    environment = Environment(loader=PackageLoader("spyre_mlir.report"), autoescape=select_autoescape(default=True))
    return environment.get_template("graph.svg.j2").render(
        nodes=[(n, *places[n.key]) for n in graph.nodes.values()],
        edges=[_edge(places[a], places[b]) for a, b in graph.edges],
        box=(BOX_WIDTH, BOX_HEIGHT),
        size=(width, height),
        colours=COLOURS,
    )


def _edge(above: tuple[int, int], below: tuple[int, int]) -> str:
    """The path of an edge; one that passes other layers swings out to the right of their boxes."""
    x1, y1, x2, y2 = above[0] + BOX_WIDTH // 2, above[1] + BOX_HEIGHT, below[0] + BOX_WIDTH // 2, below[1]
    if y2 - y1 <= GAP_Y:
        return f"M{x1} {y1} L{x2} {y2}"
    side = max(x1, x2) + BOX_WIDTH // 2 + GAP_X // 2
    return f"M{x1} {y1} C{side} {y1 + GAP_Y} {side} {y1 + GAP_Y} {side} {(y1 + y2) // 2} S{side} {y2 - GAP_Y} {x2} {y2}"


def _places(graph: Graph) -> dict[str, tuple[int, int]]:
    """The upper left corner of every box."""
    reads: dict[str, list[str]] = {key: [] for key in graph.nodes}
    for maker, reader in graph.edges:
        reads[reader].append(maker)
    depths: dict[str, int] = {}
    layers: dict[int, list[str]] = {}
    for key, makers in reads.items():  # the program has every node behind those it reads
        depths[key] = max((depths[m] + 1 for m in makers), default=0)
        layers.setdefault(depths[key], []).append(key)
    above: dict[str, float] = {}
    found: dict[str, tuple[int, int]] = {}
    for depth, layer in sorted(layers.items()):
        ordered = sorted(layer, key=lambda key: _mean([above[m] for m in reads[key]]))
        for column, key in enumerate(ordered):
            above[key] = column
            found[key] = (MARGIN + column * (BOX_WIDTH + GAP_X), MARGIN + depth * (BOX_HEIGHT + GAP_Y))
    return found


def _mean(numbers: Sequence[float]) -> float:
    return sum(numbers) / len(numbers) if numbers else 0.0
