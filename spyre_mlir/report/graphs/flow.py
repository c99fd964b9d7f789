"""Makers of the values that an op reads; weights and constants are not drawn, they belong to whoever reads them."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from xdsl.ir import Operation, SSAValue

from spyre_mlir.dialects.spyre.attributes import DeviceTensorType
from spyre_mlir.report.graphs.level_graph import LevelNode
from spyre_mlir.report.models.graph import type_text

Made = tuple[str, int]  # a node by its id, and which of its results


@dataclass
class Flow:
    """Collector of the nodes of a graph in program order."""

    _nodes: dict[str, LevelNode] = field(default_factory=dict[str, LevelNode])
    _makers: dict[SSAValue, tuple[Made, ...]] = field(default_factory=dict[SSAValue, tuple[Made, ...]])
    _folded: dict[SSAValue, str] = field(default_factory=dict[SSAValue, str])

    def nodes(self) -> tuple[LevelNode, ...]:
        """The nodes so far."""
        return tuple(self._nodes.values())

    def argument(self, value: SSAValue, name: str, *, is_input: bool) -> None:
        """Add an input of the program, or remember a weight by its name."""
        if is_input:
            self._made(LevelNode(f"input {name}", name, (), "input", (), (value_text(value),)), (value,))
        else:
            self.fold(value, name)

    def fold(self, value: SSAValue, text: str) -> None:
        """Remember a value that is not drawn."""
        self._folded[value] = text

    def follow(self, value: SSAValue, source: SSAValue) -> None:
        """Let a value be another one: a view of it, or a copy that is not drawn."""
        if source in self._folded:
            self._folded[value] = self._folded[source]
        elif source in self._makers:
            self._makers[value] = self._makers[source]

    def is_folded(self, value: SSAValue) -> bool:
        """Return whether a value is not drawn."""
        return value in self._folded

    def op(self, op: Operation, node: LevelNode) -> None:
        """Add an operation that reads its operands and makes its results."""
        self.add(node, op.operands, op.results)

    def add(self, node: LevelNode, reads: Iterable[SSAValue], results: Iterable[SSAValue]) -> None:
        """Add a node that reads and makes values; what it reads and its types are added here."""
        reads, results = list(reads), list(results)
        makers = dict.fromkeys(maker for value in reads for maker in self._makers.get(value, ()))
        folded = dict.fromkeys(self._folded[value] for value in reads if value in self._folded)
        figures = dict(node.figures) | ({"reads": ", ".join(folded)} if folded else {})
        types = tuple(map(value_text, results))
        self._made(replace(node, reads=tuple(makers), types=types, figures=figures), results)

    def update(self, node: LevelNode, reads: Iterable[SSAValue], buffer: SSAValue) -> None:
        """Add a node that writes into a buffer; whoever reads that later reads all who have written there."""
        earlier = self._makers.get(buffer, ())
        self.add(node, reads, (buffer,))
        self._makers[buffer] = tuple(dict.fromkeys((*earlier, *self._makers[buffer])))

    def outputs(self, op: Operation) -> None:
        """Add a node for every result of the program."""
        for number, value in enumerate(op.operands):
            self.add(LevelNode(f"output {number}", "output", (), "output"), (value,), ())
            last = self._nodes[f"output {number}"]
            self._nodes[last.id] = replace(last, types=(value_text(value),))

    def _made(self, node: LevelNode, results: Iterable[SSAValue]) -> None:
        unique, count = node.id, 0
        while unique in self._nodes:
            count += 1
            unique = f"{node.id} again {count}"
        self._nodes[unique] = replace(node, id=unique)
        self._makers |= {value: ((unique, number),) for number, value in enumerate(results)}


def value_text(value: SSAValue) -> str:
    """Return shape and element type of a tensor; of one on the device also its format and memory."""
    if isinstance(value.type, DeviceTensorType):
        tensor = value.type.data
        return f"{'x'.join(map(str, (*tensor.shape, tensor.format)))} {tensor.space}"
    return type_text(value)
