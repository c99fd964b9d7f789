"""Kernels written by hand as KTIR programs that run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spyre_mlir.hw.spec import SPYRE, SpyreSpec
from spyre_mlir.text.ktir_program import program_text
from tests.unit.machine.modules import device
from tests.unit.transforms.ktir_programs import Program, program_of
from tests.unit.transforms.levels import passed

Array = NDArray[Any]


def matrix(*shape: int, space: str = "hbm") -> str:
    """A tensor whose last dimension is in the lanes, its sticks outermost but one; one row is a vector."""
    last = len(shape) - 1
    order = (*range(last - 1), last, last - 1) if last else (0,)
    return device(shape, last, order).replace("hbm", space)


def sparse(*shape: int) -> str:
    """A tensor of one element in a stick."""
    return device(shape, None)


def kernels(inputs: Mapping[str, str], body: str, out: str, elements: Mapping[str, str] | None = None) -> str:
    """A function that sends inputs of device types, runs kernels that write %out, and reads it back."""

    def host(name: str, kind: str) -> str:
        extents = kind.partition("<[")[2].partition("]")[0].split(", ")
        return f"tensor<{'x'.join([*(e for e in extents if e), (elements or {}).get(name, 'f16')])}>"

    listed = ", ".join(f"%h{n}: {host(n, k)}" for n, k in inputs.items())
    sent = "".join(f"%{n} = spyre.kernel.to_device %h{n} : {host(n, k)} to {k}\n" for n, k in inputs.items())
    return f"""func.func @main({listed}) -> {host("out", out)} {{
    {sent} %out = spyre.kernel.alloc : {out}
    {body}
    %r = spyre.kernel.from_device %out : {out} to {host("out", out)}
    func.return %r : {host("out", out)}
    }}"""


def gather(rows: int, width: int, count: int, split: int = 1) -> str:
    """Rows of a table %t that indices %i name."""
    index = device((count,), 0, (0,), "SENUINT32")
    table = device((rows, width), 1, (0, 1))
    out = matrix(count, width)
    uses = f"ins(%i[i] : {index}, %t[0, n] : {table}) outs(%out[i, n] : {out})"
    over = f" over {split}" if split > 1 else ""
    body = f"spyre.kernel.gather axis 0 [i = {count}{over}, n = {width}] {uses}"
    return kernels({"i": index, "t": table}, body, out, {"i": "i32"})


def written(text: str, tile: int = 0, spec: SpyreSpec = SPYRE) -> Program:
    """The program of a function of kernels; its text keeps the rules when it runs."""
    module = passed(text, "convert-spyre-kernel-to-ktdp", spec=spec, tile=tile)
    return program_of(text, program_text(module))


def result(text: str, *inputs: Array, tile: int = 0, spec: SpyreSpec = SPYRE) -> Array:
    """The one result of a program."""
    (found,) = written(text, tile, spec).run(list(inputs))
    return found


def whole(*shape: int, low: int = -8, high: int = 9, seed: int = 0) -> Array:
    """Small whole numbers: half precision has them, and sums of a few hundred of them, exactly."""
    return np.random.default_rng([seed, *shape]).integers(low, high, shape).astype(np.float16)


def lines(program: Program, *words: str) -> Sequence[int]:
    """How often words stand in a program."""
    return [program.text.count(word) for word in words]
