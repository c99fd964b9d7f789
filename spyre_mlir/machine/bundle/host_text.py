"""Python code of a host program: a line per transfer, launch and host step, to read, to change and to run."""

from __future__ import annotations

import keyword
import re
from collections.abc import Iterator, Mapping, Sequence

from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.func import FuncOp
from xdsl.ir import Operation, SSAValue

from spyre_mlir.dialects.ir.functions import functions_by_name
from spyre_mlir.dialects.ir.module_control import refuse_control_flow
from spyre_mlir.dialects.places import source_of
from spyre_mlir.dialects.spyre.host import KernelHostOp
from spyre_mlir.dialects.spyre.kernel import LaunchOp
from spyre_mlir.errors import UnsupportedError
from spyre_mlir.machine.bundle.host_code import KINDS
from spyre_mlir.machine.bundle.schedule import Launch
from spyre_mlir.text.render import value_names

_DEVICE = "!spyre.tensor<"
_HEAD = '''"""Host code of {name}: what the host does in a call, step by step.

The bundle directory holds kernels, layouts and weights. A number is the place of the step in its program.mlir.

    python THIS_FILE.py            # on random inputs
    python THIS_FILE.py x.pt       # on the tuple of inputs that torch.save wrote; results go to x.out.pt
"""

import sys
from pathlib import Path

import torch

import spyre_mlir

BUNDLE = Path(__file__).resolve().parent / "{directory}"


'''
_TAIL = '''

def load():
    """The compiled model, whose calls run `main`."""
    return spyre_mlir.load(BUNDLE, host=main)


if __name__ == "__main__":
    model = load()
    if len(sys.argv) > 1:
        path = Path(sys.argv[1])
        torch.save(model(*torch.load(path)), path.with_suffix(".out.pt"))
    else:
        args, kwargs = model.random_inputs()
        print(model(*args, **kwargs))
'''


def python_text(name: str, program: ModuleOp, launches: Sequence[Launch], directory: str) -> str:
    """Return the Python code of a host program.

    Args:
        name: of the model.
        program: the host program.
        launches: of all its kernels, in order.
        directory: of the bundle, beside the file of the code.

    Raises:
        UnsupportedError: the host decides what runs, or a step is no transfer, launch or host step.
    """
    refuse_control_flow(program, "host code")
    main = functions_by_name(program)["main"]
    names = _identifiers(value_names(main))
    *steps, last = main.body.block.ops
    body = [line for number, op in enumerate(steps) for line in _step(number, op, names)]
    parts = iter(range(len(steps)))
    kernels = {number: _kernels(next(parts), launches) for number, op in enumerate(steps) if isinstance(op, LaunchOp)}
    lines = [f"    {line}" for line in _with_kernels(body, kernels)]
    arguments = ", ".join(["card", *(names[a] for a in main.args)])
    results = ", ".join(names[value] for value in last.operands)
    head = f'def main({arguments}):\n    """{_summary(main)}"""\n'
    return _HEAD.format(name=name, directory=directory) + head + "\n".join(lines) + f"\n    return {results}\n" + _TAIL


def _summary(main: FuncOp) -> str:
    return f"Send {len(main.args)} tensors as they are needed, launch the kernels, and read the results back."


def _with_kernels(body: Sequence[tuple[int, str]], kernels: Mapping[int, Sequence[str]]) -> Iterator[str]:
    for number, line in body:
        yield from (f"# {text}" for text in kernels.get(number, ()))
        yield line


def _kernels(part: int, launches: Sequence[Launch]) -> list[str]:
    """A line for each kernel of a launch: its file, function, module and line."""
    rows = [(one.file, one.descriptor.op_func_name, one.module, one.source) for one in launches if one.part == part]
    widths = [max(map(len, column)) for column in list(zip(*rows, strict=True))]
    return ["  ".join(c.ljust(w) for c, w in zip(row, widths, strict=True)).rstrip() for row in rows]


def _step(number: int, op: Operation, names: Mapping[SSAValue, str]) -> Iterator[tuple[int, str]]:
    kind = next((kind for kind, type_ in KINDS.items() if isinstance(op, type_)), None)
    if kind is None:
        raise UnsupportedError(f"{op.name} has no line of host code", hint="compile with regions=False")
    given = ", ".join([str(number), *(names[value] for value in op.operands)])
    made = ", ".join(names[value] for value in op.results)
    yield number, f"{made + ' = ' if made else ''}card.{kind}({given}){_remark(op)}"


def _remark(op: Operation) -> str:
    """What a step is about: the layout of its buffer, or operator and line."""
    if isinstance(op, KernelHostOp):
        return "  # " + " ".join(filter(None, (op.overload, str(source_of(op.location)))))
    if isinstance(op, LaunchOp):
        return ""
    text = str(op.results[0].type)
    return f"  # {text.removeprefix(_DEVICE).removesuffix('>') if text.startswith(_DEVICE) else text}"


def _identifiers(names: Mapping[SSAValue, str]) -> dict[SSAValue, str]:
    """Names of the text as names of Python: ``%3`` is ``v3``."""
    taken: set[str] = {"card", "load", "main", "sys", "torch", "spyre_mlir", "Path", "BUNDLE"}
    found: dict[SSAValue, str] = {}
    for value, name in names.items():
        plain = re.sub(r"\W", "_", name.removeprefix("%"))
        plain = f"v{plain}" if plain[:1].isdigit() else plain
        while plain in taken or keyword.iskeyword(plain):
            plain += "_"
        taken.add(plain)
        found[value] = plain
    return found
