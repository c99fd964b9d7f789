"""Contents of a model and the support of its operations, found without compiling it to files."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from io import StringIO
from math import prod
from typing import TYPE_CHECKING, cast

from rich.console import Console
from rich.table import Table
from rich.text import Text
from xdsl.dialects.builtin import ArrayAttr, DictionaryAttr, StringAttr, TensorType
from xdsl.ir import Attribute

from spyre_mlir.dialects.ir.functions import first_function
from spyre_mlir.ops.table import Support
from spyre_mlir.report.models.graph import Graph, graph_of
from spyre_mlir.report.models.op_support import support_of
from spyre_mlir.text.notebook import ShownAsText
from spyre_mlir.transforms.utils.host_fallback import HostStep

if TYPE_CHECKING:
    from spyre_mlir.frontend import Program
    from spyre_mlir.pipeline import Lowered

COLUMNS = ("what", "name", "count", "bytes", "detail")
_WIDTH = 160  # of the text where nobody looks


@dataclass(frozen=True)
class TensorFacts:
    """Facts about a tensor of a program.

    Attributes:
        name: in the program.
        shape: extents.
        dtype: torch's name of it, e.g. ``float16``.
        bytes: of its elements on the host.
    """

    name: str
    shape: tuple[int, ...]
    dtype: str
    bytes: int

    def __str__(self) -> str:
        """Shape and dtype, e.g. ``64x128 float32``."""
        return f"{'x'.join(map(str, self.shape)) or 'scalar'} {self.dtype}"


@dataclass(frozen=True, repr=False)
class ModelInfo(ShownAsText):
    """Facts about a model.

    Attributes:
        name: of the program.
        ops: by support (``native``, ``composed``, ``host``, and ``removed`` if a plugin removes any) the operators
            and their counts.
        inputs, parameters, buffers, constants, outputs: the tensors of the program.
        host_steps: what would run on the host, why, and where it is in the model.
        graph: the operations and what flows between them.
    """

    name: str
    ops: Mapping[str, Mapping[str, int]]
    inputs: tuple[TensorFacts, ...]
    parameters: tuple[TensorFacts, ...]
    buffers: tuple[TensorFacts, ...]
    constants: tuple[TensorFacts, ...]
    outputs: tuple[TensorFacts, ...]
    host_steps: tuple[HostStep, ...]
    graph: Graph

    def rows(self) -> list[tuple[str, ...]]:
        """The facts as rows of `COLUMNS`."""
        rows = [
            ("ops", support, str(sum(ops.values())), "", ", ".join(f"{op} {n}" for op, n in ops.items()))
            for support, ops in self.ops.items()
        ]
        for what, tensors in (
            ("parameters", self.parameters),
            ("buffers", self.buffers),
            ("constants", self.constants),
        ):
            elements = sum(prod(t.shape) for t in tensors)
            rows.append((what, "", str(len(tensors)), str(_bytes(tensors)), f"{elements} elements" if tensors else ""))
        for what, tensors in (("input", self.inputs), ("output", self.outputs)):
            rows += [(what, t.name, "", str(t.bytes), str(t)) for t in tensors]
        counts = Counter((s.op, s.reason, s.place) for s in self.host_steps)
        for (op, reason, place), count in counts.items():
            rows.append(
                ("host step", op, str(count), "", f"{reason}; time unknown" + (f", at {place}" if place else ""))
            )
        return rows

    def __rich__(self) -> Table:
        """The facts as a table."""
        table = Table(title=Text(self.name))
        for column in COLUMNS:
            table.add_column(column, justify="right" if column in ("count", "bytes") else "left", overflow="fold")
        for row in self.rows():
            table.add_row(*(Text(f"{int(cell):,}") if cell.isdigit() else Text(cell) for cell in row))
        return table

    def __str__(self) -> str:
        """The table as text."""
        stream = StringIO()
        Console(file=stream, width=_WIDTH, force_jupyter=False).print(self)
        return stream.getvalue().rstrip("\n")


def _bytes(tensors: Iterable[TensorFacts]) -> int:
    return sum(t.bytes for t in tensors)


def model_info(program: Program, lowered: Lowered) -> ModelInfo:
    """Collect the facts about an imported program.

    Args:
        program: the model; its weights need not be there.
        lowered: the program at the loop level at least.
    """
    of_ops = support_of(program.module, lowered.modules["spyre.loop"])
    ops: dict[str, Counter[str]] = {kind.value: Counter() for kind in Support}
    for op, support in of_ops.items():
        ops.setdefault(support, Counter())[op.operation] += 1
    by_kind: dict[str, list[TensorFacts]] = {}
    for a in program.arguments:
        facts = TensorFacts(a.name, a.shape, str(a.dtype).removeprefix("torch."), prod(a.shape) * a.dtype.itemsize)
        by_kind.setdefault(a.kind, []).append(facts)
    inputs, parameters, buffers, constants = (
        tuple(by_kind.get(kind, ())) for kind in ("input", "parameter", "buffer", "constant")
    )
    return ModelInfo(
        name=program.name,
        ops={support: dict(counter.most_common()) for support, counter in ops.items()},
        inputs=inputs,
        parameters=parameters,
        buffers=buffers,
        constants=constants,
        outputs=tuple(_outputs(program)),
        host_steps=lowered.host_steps,
        graph=graph_of(program.module, of_ops),
    )


def _outputs(program: Program) -> Iterable[TensorFacts]:
    from spyre_mlir.frontend.element_types import DTYPES

    main = first_function(program.module)
    named = cast("Sequence[DictionaryAttr]", (main.res_attrs or ArrayAttr[DictionaryAttr](())).data)
    for number, attribute in enumerate(main.function_type.outputs.data):
        type_ = cast("TensorType[Attribute]", attribute)
        dtype, shape = DTYPES[type_.get_element_type()], type_.get_shape()
        name = named[number].data.get("aten.name") if number < len(named) else None
        text = name.data if isinstance(name, StringAttr) else f"output{number}"
        yield TensorFacts(text, shape, str(dtype).removeprefix("torch."), prod(shape) * dtype.itemsize)


__all__ = ["COLUMNS", "ModelInfo", "TensorFacts", "model_info"]
