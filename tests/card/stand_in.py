"""A STAND-IN for a card: what IBM's back-end compiler and runtime do with a directory, as far as it is published.

It is neither of them. It is written from the published description of the bundle, reads directories with the
independent decoder of `tests/oracles`, and imports nothing of the compiler. It knows a few functions, computes in
float64, and rounds what it stores with the independent emulation of DLFloat16.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from tests.oracles.bundle_reader import BundleSyntaxError, Launch, argument_count, read_bundle
from tests.oracles.superdsc_decoder import Decoder, WitnessError

if TYPE_CHECKING:
    import torch

# Any addresses do, if they are on sticks and in different segments.
ARGUMENT_BYTES = 16 * 1024**3
SCRATCHPAD_BYTES = 2 * 1024**2
CODE = "spyreCodeDir"
PROGRAM = "spyrecode.json"

Array = Any


class RejectedError(Exception):
    """The directory is not one that a back end takes."""


def launches_of(directory: Path) -> list[Launch]:
    """The launches of a directory's bundle, with the addresses that its arguments get here."""
    bundle = directory / "bundle.mlir"
    if not bundle.is_file():
        raise RejectedError("no bundle.mlir")
    text = bundle.read_text()
    try:
        return read_bundle(text, [(n + 1) * ARGUMENT_BYTES for n in range(argument_count(text))])
    except BundleSyntaxError as error:
        raise RejectedError(f"bundle.mlir: {error}") from error


def decoder_of(directory: Path, launch: Launch) -> Decoder:
    """The decoder of a launch's file."""
    path = directory / launch.filename
    if not path.is_file():
        raise RejectedError(f"bundle.mlir runs {launch.filename}, which is not there")
    try:
        return Decoder(json.loads(path.read_text()), launch.symbols)
    except (WitnessError, KeyError, ValueError) as error:
        raise RejectedError(f"{launch.filename}: {error}") from error


def compile_directory(directory: Path) -> None:
    """Check a directory, and leave what the runtime looks for."""
    for launch in launches_of(directory):
        decoder = decoder_of(directory, launch)
        problems = decoder.problems()
        if not problems and not (coverage := decoder.output_coverage()).ok:
            problems = [*coverage.overlaps, *coverage.cohort_mismatches, f"{coverage.missing} elements are not written"]
        if problems:
            raise RejectedError(f"{launch.filename}: {problems[0]}")
        if decoder.op_func not in FUNCTIONS:
            raise RejectedError(f"{launch.filename}: the stand-in does not know {decoder.op_func}")
    code = directory / CODE
    code.mkdir(exist_ok=True)
    (code / PROGRAM).write_text(json.dumps({"made_by": "a stand-in of the tests", "JobExecutionPlan": []}))


# --- execution -------------------------------------------------------------------------------------------------------


def _matmul(decoder: Decoder, values: Sequence[Array]) -> Array:
    """The product over `in`, whatever the other dims are: each operand has its own."""
    names = [decoder.operands[n].dims for n in (*decoder.inputs, decoder.output)]
    letters = {dim: chr(ord("a") + n) for n, dim in enumerate(decoder.sizes)}
    spelled = ["".join(letters[d] for d in decoder.sizes if d in dims) for dims in names]
    return np.einsum(f"{spelled[0]},{spelled[1]}->{spelled[2]}", *values)


def _pointwise(function: Any) -> Any:
    def run(decoder: Decoder, values: Sequence[Array]) -> Array:
        axes = decoder.operands[decoder.output].dims
        wide = []
        for index, value in zip(decoder.inputs, values, strict=True):
            own = decoder.operands[index].dims
            wide.append(value[tuple(slice(None) if d in own else None for d in decoder.sizes if d in axes)])
        return np.broadcast_to(function(*wide), [decoder.sizes[d] for d in decoder.sizes if d in axes])

    return run


FUNCTIONS: Mapping[str, Any] = {
    "add": _pointwise(np.add),
    "sub": _pointwise(np.subtract),
    "mul": _pointwise(np.multiply),
    "maximum": _pointwise(np.maximum),
    "relufwd": _pointwise(lambda x: np.maximum(x, 0.0)),
    "exp": _pointwise(np.exp),
    "neg": _pointwise(np.negative),
    "identity": _pointwise(lambda x: x),
    "batchmatmul": _matmul,
}


class CardMemory:
    """Elements by the address of their first byte; a scratchpad per core behind all arguments."""

    def __init__(self) -> None:
        self.cells: dict[int, float] = {}

    def _places(self, decoder: Decoder, index: int, core: int) -> tuple[Mapping[str, Array], Array]:
        coords, addresses = decoder.addresses(index, core)
        if decoder.operands[index].component == "lx":
            addresses = addresses - (core + 1) * SCRATCHPAD_BYTES  # negative: no argument is there
        return coords, addresses

    def read(self, decoder: Decoder, index: int) -> Array:
        """An operand as all cores see it together, over its dims in the order of the sizes."""
        axes = [d for d in decoder.sizes if d in decoder.operands[index].dims]
        values = np.full([decoder.sizes[d] for d in axes], np.nan)
        for core in decoder.cores:
            coords, addresses = self._places(decoder, index, core)
            values[tuple(coords[d] for d in axes)] = [self.cells.get(a, np.nan) for a in addresses.tolist()]
        return values

    def write(self, decoder: Decoder, values: Array) -> None:
        """Store the result, rounded to its format."""
        import torch  # slow to load, and only a process that runs needs it

        from tests.oracles.dl16_emulation import rounded

        operand, stored = decoder.operands[decoder.output], values
        if operand.data_format == "SEN169_FP16":
            stored = rounded(torch.from_numpy(np.array(values))).numpy()
        axes = [d for d in decoder.sizes if d in operand.dims]
        for core in decoder.cores:
            coords, addresses = self._places(decoder, decoder.output, core)
            self.cells.update(zip(addresses.tolist(), stored[tuple(coords[d] for d in axes)].tolist(), strict=True))


def launch_directory(directory: Path, tensors: Sequence[torch.Tensor]) -> None:
    """Run a compiled directory on tensors that lie stick after stick, in place."""
    if not (directory / CODE / PROGRAM).is_file():
        raise RuntimeError(f"{directory / CODE} has no {PROGRAM}")
    import torch

    memory = CardMemory()
    for number, tensor in enumerate(tensors):
        base = (number + 1) * ARGUMENT_BYTES
        at = range(base, base + tensor.numel() * tensor.element_size(), tensor.element_size())
        memory.cells.update(zip(at, tensor.double().tolist(), strict=True))
    for launch in launches_of(directory):
        decoder = decoder_of(directory, launch)
        values = [memory.read(decoder, index) for index in decoder.inputs]
        memory.write(decoder, FUNCTIONS[decoder.op_func](decoder, values))
    for number, tensor in enumerate(tensors):
        base = (number + 1) * ARGUMENT_BYTES
        at = range(base, base + tensor.numel() * tensor.element_size(), tensor.element_size())
        tensor.copy_(torch.tensor([memory.cells[a] for a in at], dtype=torch.float64))
