"""A function of the loop level as its builder makes it, and what it computes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from numpy.typing import NDArray
from xdsl.dialects import func
from xdsl.dialects.builtin import ModuleOp, TensorType, f32
from xdsl.ir import Attribute, Block, Operation, Region

from spyre_mlir.dialects.spyre.loop import NestOp
from spyre_mlir.machine.levels.run import run_function
from spyre_mlir.text.render import verify_module
from spyre_mlir.transforms.aten_to_loop.loop_builder import LoopBuilder
from spyre_mlir.transforms.aten_to_loop.nests import TensorView, whole
from spyre_mlir.transforms.utils.rebuild import Emitter


class Built:
    """A builder and the arguments of its function."""

    def __init__(self, *arguments: tuple[Sequence[int], Attribute] | Sequence[int]) -> None:
        """Starts without nests; arguments are shapes of float32 tensors, or shapes and element types."""
        types = list[TensorType[Attribute]]()
        for argument in arguments:
            match argument:
                case (Sequence() as shape, Attribute() as element):
                    types.append(TensorType(element, shape))
                case shape:
                    types.append(TensorType(f32, shape))
        self.block = Block(arg_types=types)
        self.b = LoopBuilder(Emitter())

    def arg(self, number: int = 0) -> TensorView:
        """An argument as it is."""
        return whole(self.block.args[number])

    @property
    def made(self) -> list[Operation]:
        """The ops so far."""
        return self.b.emitter.ops

    @property
    def loops(self) -> list[dict[str, int]]:
        """The loops of every nest so far."""
        return [dict(op.space.extents) for op in self.made if isinstance(op, NestOp)]

    def run(self, result: TensorView, *inputs: NDArray[Any]) -> NDArray[Any]:
        """The elements of a reading; it ends the function."""
        value = (result if result.is_base else self.b.copy(result)).base
        self.block.add_ops([*self.made, func.ReturnOp(value)])
        kinds = ([a.type for a in self.block.args], [value.type])
        module = ModuleOp([func.FuncOp("main", kinds, Region(self.block))])
        verify_module(module)
        (found,) = run_function(module, inputs)
        return found
