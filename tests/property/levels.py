"""Runs a module through every pass and holds every stage against the meaning of the aten function."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from xdsl.dialects.builtin import ModuleOp

from spyre_mlir.dialects.superdsc.codec.describe import describe
from spyre_mlir.dialects.superdsc.codec.mirror import sdsc_to_json
from spyre_mlir.dialects.superdsc.dialect.ops import SdscOp
from spyre_mlir.dialects.superdsc.model.descriptor import Descriptor, IndirectKind, Operand, start_offsets
from spyre_mlir.machine.bundle.host_program import DeviceProgram, run_program
from spyre_mlir.machine.levels.run import run_function
from spyre_mlir.machine.superdsc.run import element_addresses
from spyre_mlir.pipeline import LEVELS, passes_to
from spyre_mlir.text.render import module_text, parse_module, verify_module
from spyre_mlir.transforms import get_all_passes
from spyre_mlir.universe import make_context
from tests.oracles.superdsc_decoder import Decoder

Array = NDArray[Any]

PASSES = tuple(name for name in passes_to(LEVELS[-1]).split(",") if name in get_all_passes())
TOLERANCE = 1e-9


def apply(module: ModuleOp, name: str) -> None:
    """Runs one pass with its default options."""
    get_all_passes()[name]()().apply(make_context(), module)


def device_program(module: ModuleOp) -> DeviceProgram:
    """The module of the last pass as something the machine runs."""
    sdscs = [op for op in module.ops if isinstance(op, SdscOp)]
    files = {f"sdsc_{number}.json": op for number, op in enumerate(sdscs)}
    return DeviceProgram(module, module, lambda name: describe(files[name]))


def run(module: ModuleOp, inputs: Sequence[Array], *, device: bool) -> list[Array]:
    """What the module computes, on the level it is at."""
    return run_program(device_program(module), inputs) if device else run_function(module, inputs)


def close(got: Sequence[Array], wanted: Sequence[Array], stage: str) -> None:
    """Equal up to the order of sums; the scale is that of the whole tensor."""
    assert len(got) == len(wanted), stage
    for one, other in zip(got, wanted, strict=True):
        assert one.shape == other.shape, stage
        scale = max(1.0, float(np.abs(other).max(initial=0.0)))
        np.testing.assert_allclose(one, other, rtol=TOLERANCE, atol=TOLERANCE * scale, err_msg=f"after {stage}")


def check_text(module: ModuleOp, stage: str) -> None:
    """The text of a module reads back to an equal module with the same text."""
    text = module_text(module)
    again = parse_module(text, make_context())
    verify_module(again)
    assert module_text(again) == text, f"after {stage}: the text changes when read and written"
    assert again.is_structurally_equivalent(module), f"after {stage}: reading the text gives another module"


def check_files(module: ModuleOp) -> None:
    """The independent oracle agrees with the machine about every SuperDSC."""
    for op in module.ops:
        if isinstance(op, SdscOp):
            check_file(op)


def check_file(op: SdscOp) -> None:
    """Addresses, coverage and soundness of one SuperDSC."""
    view = describe(op)
    symbols = made_up_addresses(view)
    extents = {n: dict(zip(o.order, o.extents, strict=True)) for n, o in enumerate(view.operands)}
    decoder = Decoder(sdsc_to_json(op), symbols, extents)
    # An index tensor alone may end inside a stick; the oracle has no exception for it.
    indices = tuple(f"operand {n} " for n, o in enumerate(view.operands) if is_index(o))
    assert [problem for problem in decoder.problems() if not problem.startswith(indices)] == [], op.root_key
    if not indices:
        report = decoder.output_coverage()
        assert report.ok, f"{op.root_key}: {report}"
    for number in range(len(view.operands)):
        if view.operands[number].indirect is None:
            same_addresses(decoder, view, number, symbols)


def is_index(operand: Operand) -> bool:
    return operand.indirect is not None and operand.indirect.kind is IndirectKind.INDEX


def made_up_addresses(view: Descriptor) -> dict[int, int]:
    """An address per symbol; symbols of one operand must lie apart as its starts do, so every core gets its slice."""
    addresses: dict[int, int] = {}
    for number, operand in enumerate(view.operands):
        offsets = start_offsets(view.dims, operand, view.op_class)
        for symbol, offset in zip(operand.start, offsets, strict=True):
            addresses.setdefault(int(symbol), number * 2**34 + offset)
    return addresses


def same_addresses(decoder: Decoder, view: Descriptor, number: int, symbols: dict[int, int]) -> None:
    """The machine and the oracle find every element at the same byte."""
    for core in {decoder.cores[0], decoder.cores[len(decoder.cores) // 2], decoder.cores[-1]}:
        found, addresses = element_addresses(view, number, core, symbols)
        wanted, places = decoder.addresses(number, core)
        assert as_set(found, addresses, wanted) == as_set(wanted, places, wanted), f"operand {number}, core {core}"


def as_set(coords: dict[str, Any], addresses: Any, labels: dict[str, Any]) -> set[tuple[int, ...]]:
    return set(zip(*(np.asarray(coords[d]).tolist() for d in labels), addresses.tolist(), strict=True))


def check_every_level(module: ModuleOp, inputs: Sequence[Array], *, text: bool = True, files: bool = True) -> None:
    """Everything that must hold of one function on its way down.

    Raises:
        SpyreError: a pass says it cannot lower the function.
        AssertionError: a stage is wrong.
    """
    verify_module(module)
    wanted = run(module, inputs, device=False)
    if text:
        check_text(module, "building")
    for name in PASSES:
        apply(module, name)
        verify_module(module)
        if text:
            check_text(module, name)
        close(run(module, inputs, device=name == PASSES[-1]), wanted, name)
    if files:
        check_files(module)
