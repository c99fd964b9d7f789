"""Planners, and models of a few ATen ops at the kernel level."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import ModuleOp, TensorType, f32
from xdsl.ir import Attribute, Block, SSAValue

from spyre_mlir.dialects.spyre.kernel import KernelOp
from spyre_mlir.dialects.spyre.loop import NestOp
from spyre_mlir.hw.spec import SPYRE, SpyreSpec
from spyre_mlir.transforms.loop_to_kernel.buffers import Define, PlannedKernel
from spyre_mlir.transforms.loop_to_kernel.layout_planner import LayoutPlanner
from tests.unit.transforms.levels import ops, passed


def tensor(*shape: int, element: Attribute = f32) -> SSAValue:
    """A value of a tensor type."""
    return Block(arg_types=[TensorType(element, shape)]).args[0]


def sent(p: LayoutPlanner, *shape: int, element: Attribute = f32, prepared: bool = False) -> SSAValue:
    """A tensor that the host has."""
    value = tensor(*shape, element=element)
    p.hosts[value] = prepared
    return value


def steps(p: LayoutPlanner) -> list[PlannedKernel]:
    """The kernels of a plan."""
    return [item for item in p.items if isinstance(item, PlannedKernel)]


def names(p: LayoutPlanner) -> list[str]:
    """The functions of its kernels."""
    return [step.function for step in steps(p)]


def defined(p: LayoutPlanner) -> list[tuple[tuple[int, ...], str, int]]:
    """Shapes, formats and stick dimensions of its buffers."""
    return [(i.buffer.shape, i.buffer.format, i.buffer.layout.stick) for i in p.items if isinstance(i, Define)]


def nest(text: str) -> NestOp:
    """The last nest of the body of a function; its arguments are %x and %y."""
    return ops(passed(text), NestOp)[-1]


def lowered(
    arguments: str, body: Sequence[str], result: str, *, keep: bool = False, spec: SpyreSpec = SPYRE
) -> ModuleOp:
    """ATen ops as kernels: every line defines the next of %0, %1, …, and the last is the result."""
    lines = "\n".join(f"%{n} = aten.{line}" for n, line in enumerate(body))
    text = f"func.func @main({arguments}) -> {result} {{\n{lines}\nfunc.return %{len(body) - 1} : {result}\n}}"
    passes = ("decompose-aten", "convert-aten-to-spyre-loop", "convert-spyre-loop-to-spyre-kernel")
    return passed(text, *passes, spec=spec, keep_float32=keep)


def functions_of(module: ModuleOp) -> list[str]:
    """The functions of the kernels of a module."""
    return [op.function_name for op in ops(module, KernelOp)]
