"""Pass `convert-spyre-kernel-to-ktdp`: the kernels become KTIR functions, which every core runs.

The module then holds KTIR only, one function per group of kernels, to be run in order. Arguments are pointers to the
buffers in device memory, counted in elements; the same name is the same buffer in every function.

Decision: docs/decisions/0038-ktir-functions-and-views.md
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from xdsl.context import Context
from xdsl.dialects import arith, func, scf
from xdsl.dialects.builtin import ArrayAttr, IndexType, IntegerAttr, ModuleOp, StringAttr, i64
from xdsl.ir import Block, Region, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter

from spyre_mlir.dialects.ir.functions import functions
from spyre_mlir.dialects.ir.module_control import refuse_control_flow
from spyre_mlir.dialects.spyre import kernel
from spyre_mlir.dialects.spyre.host import HostOp
from spyre_mlir.dialects.spyre.kernel_gather import GatherOp
from spyre_mlir.dialects.spyre.kernel_loop import BlockNumberOp, TileOp
from spyre_mlir.dialects.spyre.kernel_view import ViewOp
from spyre_mlir.dialects.spyre.static_loop import loop_bounds
from spyre_mlir.dialects.target import spec_of
from spyre_mlir.errors import LoweringError, SpyreError, UnsupportedError
from spyre_mlir.hw.arrangement import STANDARD
from spyre_mlir.hw.spec import SpyreSpec
from spyre_mlir.ops.native.contractions import matmul
from spyre_mlir.ops.table import Family
from spyre_mlir.text.ktir_program import BUFFERS
from spyre_mlir.transforms.kernel_to_ktdp.buffer_names import describe_buffers, named_buffers
from spyre_mlir.transforms.kernel_to_ktdp.contractions import TiledMatmul
from spyre_mlir.transforms.kernel_to_ktdp.elementwise import folded_number, pointwise, reduction, tile_limit
from spyre_mlir.transforms.kernel_to_ktdp.function_builder import ELEMENTS, Code, Held
from spyre_mlir.transforms.kernel_to_ktdp.function_groups import (
    FunctionGroup,
    Item,
    grouped,
    kernels_of,
    spill,
    to_device_memory,
)
from spyre_mlir.transforms.kernel_to_ktdp.gathers import Gather
from spyre_mlir.transforms.kernel_to_ktdp.hardware_functions import folds, has_form, known_functions
from spyre_mlir.transforms.kernel_to_ktdp.operands import Operands, blank, converted
from spyre_mlir.transforms.kernel_to_ktdp.tiles import kernel_in_tiles
from spyre_mlir.transforms.kernel_to_ktdp.value_threading import Threads, threads_of
from spyre_mlir.transforms.utils.rebuild import describe_location

# What stands around kernels and needs no KTIR: it says what the buffers are.
_AROUND = (
    kernel.ToDeviceOp,
    kernel.FromDeviceOp,
    kernel.KernelConstantOp,
    kernel.AllocOp,
    kernel.FreeOp,
    TileOp,
    ViewOp,
    arith.ConstantOp,
    scf.YieldOp,
    func.ReturnOp,
)


@dataclass(frozen=True)
class ConvertSpyreKernelToKtdpPass(ModulePass):
    """Writes kernel ops as KTIR functions.

    Attributes:
        tile: elements a tile may have at most; 0 for what fits into the scratchpad.
    """

    name = "convert-spyre-kernel-to-ktdp"

    tile: int = 0

    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Convert the one function of the module that has kernel ops.

        Raises:
            UnsupportedError: kernels have no KTIR, all of them are listed; or the host decides what runs.
            LoweringError: more than one function has kernel ops, or other ops stand among them.
        """
        refuse_control_flow(op, "KTIR")
        chosen = [f for f in functions(op) if any(isinstance(o, kernel.KernelOp) for o in f.walk())]
        if len(chosen) > 1:
            raise LoweringError(
                f"{len(chosen)} functions have kernel ops, a KTIR module comes from one",
                hint="put them into separate modules",
            )
        if not chosen and not all(map(_is_host, functions(op))):
            return  # of another level; KTIR stays as it is
        written = [f for function in chosen for f in self._convert(function, spec_of(ctx, op))]
        op.attributes.clear()
        op.sym_name = None
        for old in reversed(list(op.body.block.ops)):
            Rewriter.erase_op(old, safe_erase=False)
        op.body.block.add_ops(written)

    def _convert(self, function: func.FuncOp, spec: SpyreSpec) -> list[func.FuncOp]:
        items = _items(function.body.block)
        refuse_unsupported([op for item in items for op in kernels_of(item)])
        groups = grouped(items)
        spill(groups)
        planned = [threads_of(group, spec) for group in groups]
        to_device_memory(buffer for _, refused in planned for buffer in refused)
        names = named_buffers(function)
        base = function.sym_name.data
        return [
            self._function(f"{base}_{number}" if len(groups) > 1 else base, group, names, threads)
            for number, (group, (threads, _)) in enumerate(zip(groups, planned, strict=True))
        ]

    def _function(
        self, name: str, group: FunctionGroup, names: Mapping[SSAValue, str], threads: Threads
    ) -> func.FuncOp:
        outside = [v for v in names if v in group.buffers() and _is_argument(v)]
        block = Block(arg_types=[IndexType()] * len(outside))
        for argument, buffer in zip(block.args, outside, strict=True):
            argument.name_hint = names[buffer]
        code = Code(dict(zip(outside, block.args, strict=True)))
        writer = KtirWriter(code, threads, self.tile)
        for item in group.items:
            writer.write(item)
        block.add_ops([*code.block_ops(), func.ReturnOp()])
        written = func.FuncOp(name, ([IndexType()] * len(outside), []), Region(block))
        written.attributes["grid"] = ArrayAttr([IntegerAttr(group.cores, i64)])
        written.attributes[BUFFERS] = ArrayAttr([StringAttr(t) for t in describe_buffers(outside, names)])
        return written


def _is_host(function: func.FuncOp) -> bool:
    """Return whether a function of the kernel level leaves nothing to the device."""
    return "grid" not in function.attributes and all(isinstance(o, _AROUND) for o in function.body.block.ops)


def _is_argument(buffer: SSAValue) -> bool:
    return kernel.device_tensor(buffer).space == "hbm" and folded_number(buffer) is None


def _items(block: Block) -> list[Item]:
    """The kernels and loops of a block.

    Raises:
        LoweringError: something else stands among them.
    """
    found = list[Item]()
    for op in block.ops:
        match op:
            case kernel.KernelOp():
                found.append(op)
            case scf.ForOp():
                _items(op.body.block)
                found.append(op)
            case HostOp():
                raise UnsupportedError(
                    f"the host step {op.callee.data} has no KTIR",
                    where=describe_location(op),
                    hint="KTIR is for whole programs of the device; --host-fallback error lists the host steps",
                )
            case BlockNumberOp():
                raise UnsupportedError(
                    "a block that starts where the host says has no KTIR",
                    where=describe_location(op),
                    hint="lower again with in_place=False and chosen_experts=False",
                )
            case _ if not isinstance(op, _AROUND):
                raise LoweringError(
                    f"{op.name} among kernel ops",
                    where=describe_location(op),
                    hint="run the passes before this one first",
                )
            case _:
                pass
    return found


def refuse_unsupported(kernels: Sequence[kernel.KernelOp]) -> None:
    """Raise one UnsupportedError that lists every kernel without KTIR."""
    problems = list(dict.fromkeys(p for op in kernels if (p := _problem(op)) is not None))
    if problems:
        count = "a kernel has" if len(problems) == 1 else f"{len(problems)} kernels have"
        raise UnsupportedError(
            f"{count} no KTIR: {'; '.join(problems)}",
            hint=f"elements are {', '.join(ELEMENTS)}; functions are {', '.join(known_functions())}",
        )


def _keeps_places(op: kernel.KernelOp) -> bool:
    """Return whether a kernel is elementwise with one order in all sticks, so that the order is irrelevant."""
    if not isinstance(op, kernel.ComputeOp) or op.entry.family in (Family.CONTRACTION, Family.REDUCTION):
        return False
    walks = [(a.lane, t.arrangement, a.offset) for t, a in zip(op.tensors, op.accesses(), strict=True)]
    lane, arrangement, _ = walks[-1]
    return all(one is None or (one, order) == (lane, arrangement) for one, order, _ in walks) and not any(
        offset for *_, offset in walks
    )


def _has_ktir(op: kernel.ComputeOp) -> bool:
    """Return whether KTIR can say the function of a kernel."""
    match op.entry.family:
        case Family.CONTRACTION:
            return op.function_name == matmul.opfunc
        case Family.REDUCTION:
            return folds(op.function_name)
        case _:
            return has_form(op.function_name)


def _problem(op: kernel.KernelOp) -> str | None:
    where = f"{op.function_name} at {describe_location(op)}"
    if isinstance(op, kernel.ComputeOp) and not _has_ktir(op):
        return where
    for tensor in op.tensors:
        if tensor.format not in ELEMENTS:
            return f"{where} on {tensor.format}"
        if tensor.arrangement != STANDARD and not _keeps_places(op):
            return f"{where} on sticks in the arrangement {tensor.arrangement}"
    data = op.tensors[1:] if isinstance(op, GatherOp) else op.tensors
    if len({t.format for t in data}) > 1:
        return f"{where} from {' and '.join(t.format for t in data[:-1])} to {data[-1].format}"
    return None


@dataclass(frozen=True)
class KtirWriter:
    """Writer of the kernels of a function.

    Attributes:
        code: the function.
        threads: the buffers that are values.
        tile: elements a tile may have at most; 0 for what fits into the scratchpad.
    """

    code: Code
    threads: Threads
    tile: int

    def write(self, item: Item) -> None:
        """Write a kernel, or a loop of kernels that stays a loop in KTIR."""
        if isinstance(item, kernel.KernelOp):
            self._kernel(item)
            return
        bounds, body, code = loop_bounds(item), item.body.block, self.code
        held = self.threads.carried(item)
        for buffer in held:
            code.held.setdefault(buffer, blank(code, buffer, self.threads.forms[buffer]))
        with code.loop(bounds.upper, bounds.step, first=bounds.lower, held=held) as loop:
            code.trips[body.args[0]] = loop.step
            forms = {buffer: code.held[buffer].form for buffer in held}
            for inner in _items(body):
                self.write(inner)
            for buffer, form in forms.items():
                code.held[buffer] = Held(converted(code, code.held[buffer], form), form)

    def _kernel(self, op: kernel.KernelOp) -> None:
        self.code.current = op
        try:
            with self.code.kernel():
                operands = Operands(self.code, kernel_in_tiles(op))
                self._lower(operands, self.tile or tile_limit(self.threads.free[op]))
                operands.finish(self.threads.forms)
        except SpyreError as error:
            error.where = error.where or f"{op.name} at {describe_location(op)}"
            raise

    def _lower(self, operands: Operands, limit: int) -> None:
        match operands.kernel.op:
            case GatherOp():
                Gather(operands, limit).write()
            case kernel.ComputeOp() as op if op.entry.family is Family.CONTRACTION:
                TiledMatmul(operands, limit).write()
            case kernel.ComputeOp() as op if op.entry.family is Family.REDUCTION:
                reduction(operands, limit)
            case _:
                pointwise(operands, limit)
