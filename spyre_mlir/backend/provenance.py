"""Origin of a launch on the levels above it.

Decision: docs/decisions/0034-provenance-by-place.md
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from xdsl.dialects import func, scf
from xdsl.dialects.builtin import ModuleOp
from xdsl.ir import Operation, SSAValue
from xdsl.traits import IsTerminator

from spyre_mlir.dialects.ir.control import ControlOp
from spyre_mlir.dialects.ir.functions import functions_by_name
from spyre_mlir.dialects.ir.module_control import called_by_control
from spyre_mlir.dialects.places import Source, source_of
from spyre_mlir.dialects.sdscbundle import CARRIED, PARAMETER
from spyre_mlir.dialects.spyre.attributes import DeviceTensorType
from spyre_mlir.dialects.spyre.kernel import (
    AllocOp,
    KernelConstantOp,
    KernelOp,
    ToDeviceOp,
)
from spyre_mlir.dialects.spyre.kernel_gather import GatherOp
from spyre_mlir.dialects.spyre.kernel_loop import buffer_behind, launch_arguments, view_behind
from spyre_mlir.dialects.spyre.static_loop import loop_bounds
from spyre_mlir.dialects.superdsc.model.json_value import Json, JsonObject

Levels = Mapping[str, ModuleOp]
KERNELS = "spyre.kernel"
_BUFFER = "buffer "


def origins(sources: Sequence[Source], levels: Levels) -> list[JsonObject]:
    """Return per launch its kernel op, and on the levels above that the ops of the same line and module.

    A kernel op becomes one launch, or one for every trip of the loops around it where these were unrolled, so the two
    go together by number. Above, several ops share a line and several kernels come from one op; the place in the model
    is what they have in common.

    Args:
        sources: the place of every launch.
        levels: modules by level; a level that is not there is left out.
    """
    kernels = _launched(levels[KERNELS], len(sources)) if KERNELS in levels else None
    tensors = _operands(kernels, levels)
    above = {level: _by_source(module) for level, module in levels.items() if level != KERNELS}
    found: list[JsonObject] = []
    for number, source in enumerate(sources):
        entry: JsonObject = {}
        if kernels is not None:
            entry["kernel"] = _kernel(*kernels[number])
            entry["tensors"] = list[Json](tensors[number])
            entry["maps"] = [", ".join(map(str, index.data)) for index in kernels[number][1].maps]
            if views := _views(kernels[number][1]):
                entry["views"] = views
        for level, places in above.items():
            if source and source in places:
                entry[level] = list[Json](places[source])
        found.append(entry)
    return found


def _views(op: KernelOp) -> JsonObject:
    """The layouts in which a kernel sees operands that are views, by their numbers."""
    found = {str(number): view_behind(value) for number, value in enumerate(op.operands)}
    return {number: layout_text(view) for number, view in found.items() if view is not None}


def launched_tensors(count: int, levels: Levels) -> list[tuple[str | None, ...]]:
    """Return per launch which tensor each of its operands is; empty where that is not known.

    Args:
        count: launches of the bundle.
        levels: modules by level.
    """
    return _operands(_launched(levels[KERNELS], count) if KERNELS in levels else None, levels)


def _operands(kernels: Sequence[tuple[int, KernelOp]] | None, levels: Levels) -> list[tuple[str | None, ...]]:
    named = tensor_names(levels[KERNELS]) if kernels is not None else {}
    ops = [op for _, op in kernels or ()]
    return [tuple(named.get(buffer_behind(value)) for value in (*op.inputs, op.output)) for op in ops]


def buffer_layouts(levels: Levels) -> JsonObject:
    """Return the layouts of the kernel-level buffers that are not bundle arguments, by name."""
    named = tensor_names(levels[KERNELS]) if KERNELS in levels else {}
    return {name: layout_text(value) for value, name in named.items() if name.startswith(_BUFFER)}


def layout_text(value: SSAValue) -> str:
    """Format shape, format and layout of a device tensor."""
    return str(value.type).removeprefix("!spyre.tensor<").removesuffix(">")


def tensor_names(kernels: ModuleOp) -> dict[SSAValue, str]:
    """Name the buffers of a module of kernels: bundle arguments by their number, pool buffers by theirs.

    What a region takes has another name at every launch; here it is a parameter.
    """
    arguments: list[SSAValue] = []
    buffers: list[SSAValue] = []
    parameters: dict[SSAValue, str] = {}
    for op in kernels.walk():
        if isinstance(op, (ToDeviceOp, KernelConstantOp)) or (isinstance(op, AllocOp) and op.offset is None):
            arguments.append(op.results[0])
        elif isinstance(op, AllocOp):
            buffers.append(op.result)
        elif isinstance(op, func.FuncOp) and op.body.blocks:
            handed = list(enumerate(launch_arguments(op.body.block)))
            # A block is a part of its tensor, which need not be handed over itself.
            parameters |= {buffer_behind(value): f"{PARAMETER}{number}" for number, value in reversed(handed)}
        elif isinstance(op, ControlOp):
            parameters |= {result: CARRIED for result in op.outputs if isinstance(result.type, DeviceTensorType)}
    by_control = called_by_control(kernels)
    for function in (op for op in kernels.ops if isinstance(op, func.FuncOp) and op.sym_name.data in by_control):
        parameters |= {a: CARRIED for a in function.body.block.args if a in parameters}
    names = parameters | {value: f"argument {number}" for number, value in enumerate(arguments)}
    return names | {value: f"{_BUFFER}{number}" for number, value in enumerate(buffers)}


def _launched(module: ModuleOp, launches: int) -> list[tuple[int, KernelOp]] | None:
    """The number and op of every launch, whether loops were kept or unrolled; None if the counts do not agree."""
    parts = _in_launch_order(module)
    kernels = list(enumerate(kernel for part in parts for kernel in part.walk() if isinstance(kernel, KernelOp)))
    if len(kernels) != launches:
        numbers = {op: number for number, op in kernels}
        kernels = [(numbers[op], op) for part in parts for op in _unrolled(part)]
    return kernels if len(kernels) == launches else None


def _in_launch_order(module: ModuleOp) -> list[Operation]:
    """The functions of a module, that of a region in place of its first call."""
    called = {op.callee.root_reference.data for op in module.walk() if isinstance(op, func.CallOp)}
    functions = functions_by_name(module)
    found: dict[Operation, None] = {}
    for function in functions.values():
        if function.sym_name.data in called:
            continue
        for op in (op for block in function.body.blocks for op in block.ops):
            callee = functions.get(op.callee.root_reference.data) if isinstance(op, func.CallOp) else None
            found[callee or op] = None
    return list(found)


def _unrolled(op: Operation) -> list[KernelOp]:
    """The kernels that an op runs, in order, each as often as it runs."""
    if isinstance(op, KernelOp):
        return [op]
    inside = [
        kernel for region in op.regions for block in region.blocks for one in block.ops for kernel in _unrolled(one)
    ]
    return inside * loop_bounds(op).trips if isinstance(op, scf.ForOp) else inside


def _kernel(number: int, op: KernelOp) -> JsonObject:
    loops: JsonObject = {dim.name: [dim.extent, dim.split] for dim in op.space.data}
    entry: JsonObject = {"number": number, "op": op.name, "function": op.function_name, "loops": loops}
    return {**entry, "axis": op.axis.value.data} if isinstance(op, GatherOp) else entry


def _by_source(module: ModuleOp) -> dict[Source, list[str]]:
    """The ops of the functions of a module by their place in the model; an op is its number, its name, its result."""
    found: dict[Source, list[str]] = {}
    for function in module.ops:
        blocks = function.body.blocks if isinstance(function, func.FuncOp) else ()
        ops = [op for block in blocks for op in block.ops if not op.has_trait(IsTerminator)]
        for number, op in enumerate(ops):
            if source := source_of(op.location):
                found.setdefault(source, []).append(_called(number, op))
    return found


def _called(number: int, op: Operation) -> str:
    hint = op.results[0].name_hint if op.results else None
    return f"{op.name} #{number}" if hint is None else f"{op.name} #{number} %{hint}"
