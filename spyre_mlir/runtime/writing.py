"""Directories of steps, as the back-end compiler takes them, and the tensors a card gets and gives.

bundle.mlir         the step's launches; every tensor is an argument
sdsc_….json         its files, unchanged
argument_N.npy      ours: what argument N holds before the step, a row of elements
result_N.npy        ours: what it holds behind it, written by the process that runs the step
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from xdsl.dialects import arith, func
from xdsl.dialects.builtin import IndexType, IntegerAttr, ModuleOp
from xdsl.ir import Block, Operation, Region, SSAValue

from spyre_mlir.backend.stored import BUNDLE_FILE
from spyre_mlir.dialects.sdscbundle import BUNDLE_FUNCTION, InputArgExtractOp, InputArgType, SdscExecuteOp
from spyre_mlir.machine.memory.exact import Memory
from spyre_mlir.runtime.steps import HOST_TYPES, CardStep, Stretch
from spyre_mlir.text.render import module_text

Array = NDArray[Any]


def step_bundle(step: CardStep) -> ModuleOp:
    """Return the bundle of a step: a function with an argument per stretch of memory."""
    block = Block(arg_types=[InputArgType()] * len(step.stretches))
    body: list[Operation] = []
    known: dict[tuple[int, int], SSAValue] = {}

    def add(op: Operation, hint: str) -> SSAValue:
        op.results[0].name_hint = hint
        body.append(op)
        return op.results[0]

    for number, argument in enumerate(block.args):
        argument.name_hint = f"arg_{number}_base_addr"
        known[number, 0] = add(InputArgExtractOp(argument), f"arg{number}")
    for launch in step.launches:
        for address in launch.symbols.values():
            number, offset = step.place(address)
            if (number, offset) not in known:
                constant = add(arith.ConstantOp(IntegerAttr(offset, IndexType())), f"c{offset}")
                known[number, offset] = add(arith.AddiOp(known[number, 0], constant), f"arg{number}_at{offset}")
    for launch in step.launches:
        ids = launch.op.ids
        addresses = [known[step.place(launch.symbols[i])] for i in ids]
        body.append(SdscExecuteOp(launch.op.sdsc_filename.data, addresses, ids))
    block.add_ops([*body, func.ReturnOp()])
    function = func.FuncOp(BUNDLE_FUNCTION, ([InputArgType()] * len(step.stretches), []), Region(block))
    return ModuleOp([function])


def write_step(step: CardStep, directory: Path, files: Mapping[str, Path]) -> None:
    """Write the public files of a step.

    Args:
        step: what to write.
        directory: where; made if it is not there.
        files: the folder of each SuperDSC file.
    """
    directory.mkdir(parents=True, exist_ok=True)
    (directory / BUNDLE_FILE).write_text(module_text(step_bundle(step)) + "\n", encoding="utf-8")
    for name in dict.fromkeys(launch.op.sdsc_filename.data for launch in step.launches):
        shutil.copyfile(files[name] / name, directory / name)


def _addresses(stretch: Stretch) -> Array:
    return np.arange(stretch.low, stretch.high, HOST_TYPES[stretch.format].itemsize)


def write_arguments(step: CardStep, directory: Path, memory: Memory) -> str:
    """Write what the step's tensors hold; return what a tensor of torch cannot hold of it, if anything.

    A half has fewer small numbers than a DLFloat16: those are rounded, and the machine goes on with the rounded ones
    too. Where nothing was written a card gets 0.
    """
    for number, stretch in enumerate(step.stretches):
        addresses, kind = _addresses(stretch), HOST_TYPES[stretch.format]
        values, written = memory.load(addresses, stretch.format)
        wide = np.where(written, values, 0.0).astype(np.float64)
        with np.errstate(over="ignore"):
            narrow = wide.astype(kind)
        lost = (narrow.astype(np.float64) != wide) & ~np.isnan(wide)
        if beyond := int((lost & ~np.isfinite(narrow)).sum()):
            return f"{beyond} numbers of an input are beyond {kind.name}, which is what a transfer takes"
        if lost.any():
            memory.amend(addresses[lost], narrow[lost].astype(np.float64), stretch.format)
        np.save(directory / f"argument_{number}.npy", narrow)
    return ""


def read_results(step: CardStep, directory: Path, memory: Memory) -> None:
    """Put what a card left in the step's tensors into a memory.

    Raises:
        ValueError: a result is missing or has another size.
    """
    for number, stretch in enumerate(step.stretches):
        path = directory / f"result_{number}.npy"
        if not path.is_file():
            raise ValueError(f"the card left no {path.name}")
        values = np.load(path, allow_pickle=False)
        if values.shape != (stretch.elements,):
            raise ValueError(f"{path.name} has shape {list(values.shape)}, expected [{stretch.elements}]")
        memory.add_region(f"argument {number}", stretch.low, stretch.high - stretch.low)
        memory.store(_addresses(stretch), values.astype(np.float64), stretch.format)


__all__ = ["read_results", "step_bundle", "write_arguments", "write_step"]
