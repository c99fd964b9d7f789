"""One core that runs a KTIR function, until it ends or must wait for other cores."""

from __future__ import annotations

from collections.abc import Generator, Mapping, Sequence
from typing import Any

import numpy as np
from xdsl.dialects import arith, func, scf
from xdsl.ir import Block, Operation, Region
from xdsl.traits import IsTerminator

from spyre_mlir.dialects.ktdp import CoreidOp, GetComputeTileIdOp, InterTileProduceOp, InterTileReduceOp
from spyre_mlir.errors import UnsupportedError
from spyre_mlir.machine.faults import FaultKind, fault
from spyre_mlir.machine.ktdp import transfer
from spyre_mlir.machine.ktdp.arithmetic import constant
from spyre_mlir.machine.ktdp.state import CoreState
from spyre_mlir.machine.ktdp.structured import compute
from spyre_mlir.machine.ktdp.values import Data, dtype_of, known, shape_of

Waiting = Generator[None, None, list[Any]]  # each time it yields, the core waits for another


class Core(CoreState):
    """A core that runs ops; its initial values are the function's arguments."""

    def run(self, function: func.FuncOp) -> Waiting:
        """Run a function; arguments are in `values`."""
        block = function.body.blocks.first
        return (yield from self.block(block)) if block is not None else []

    def block(self, block: Block) -> Waiting:
        """Run a block; return the operands of its terminator."""
        for op in block.ops:
            if op is block.last_op and op.has_trait(IsTerminator):
                found = [self.values[value] for value in op.operands]
                self._bury(op)
                return found
            results = yield from self._op(op)
            self._settle(op, results)
        return []

    # --- ops ---

    def _op(self, op: Operation) -> Waiting:
        match op:
            case scf.ForOp():
                return (yield from self._for(op))
            case scf.IfOp():
                return (yield from self._if(op))
            case InterTileProduceOp():
                return (yield from self._produce(op))
            case InterTileReduceOp():
                return (yield from self._reduce(op))
            case _:
                results = self._simple(op)
                _require_declared(op, results)
                return results

    def _simple(self, op: Operation) -> list[Any]:
        match op:
            case arith.ConstantOp():
                return [constant(op)]
            case GetComputeTileIdOp():
                return [Data(np.asarray(coordinate, np.int64)) for coordinate in self.place[: len(op.ids)]]
            case CoreidOp():
                return [Data(np.asarray(self._number_at([self.whole(v) for v in op.coordinates]), np.int64))]
            case _ if op.name in transfer.RULES:
                return transfer.RULES[op.name](op, self)
            case _ if op.dialect_name() in ("arith", "math", "linalg", "tensor"):
                return list(compute(op, [self.values[value] for value in op.operands], self._scalars))
            case _:
                raise UnsupportedError(f"{op.name} does not run in KTIR programs here")

    def _number_at(self, coordinates: Sequence[int]) -> int:
        number, step = 0, 1
        for coordinate, extent in zip(coordinates, self.machine.grid, strict=True):
            number += coordinate * step
            step *= extent
        return number

    def _scalars(self, region: Region, arguments: Sequence[Data], given: Mapping[Operation, Data]) -> list[Data]:
        """Run a region of ops on scalars, on arrays that hold all points; it takes no room of its own."""
        block = region.blocks.first
        if block is None:
            return []
        for argument, data in zip(block.args, arguments, strict=True):
            self.values[argument] = data
        for op in block.ops:
            if op is block.last_op:
                break
            results = [given[op]] if op in given else self._simple(op)
            for value, result in zip(op.results, results, strict=True):
                self.values[value] = result
        last = block.last_op
        return [] if last is None else [self.values[value] for value in last.operands]

    def _for(self, op: scf.ForOp) -> Waiting:
        low, high, step = (self.whole(value) for value in (op.lb, op.ub, op.step))
        if step <= 0:
            raise fault(FaultKind.LOOP_STEP, f"a loop with step {step} has no end", op, core=self.number)
        carried = [self.values[value] for value in op.iter_args]
        block = op.body.blocks[0]
        used_inside = {value for value in op.iter_args if any(_inside(use.operation, op) for use in value.uses)}
        for value in self.machine.liveness.dying.get(op, ()):
            if value in op.iter_args and value not in used_inside:
                self._forget(value)
        for index in range(low, high, step):
            self._bind(block.args[0], Data(np.asarray(index, np.int64)), op)
            for argument, data in zip(block.args[1:], carried, strict=True):
                self._bind(argument, data, op)
            carried = yield from self.block(block)
        return carried

    def _if(self, op: scf.IfOp) -> Waiting:
        chosen = op.true_region if self.whole(op.cond) else op.false_region
        block = chosen.blocks.first
        return (yield from self.block(block)) if block is not None else []

    def _produce(self, op: InterTileProduceOp) -> Waiting:
        turn = self.turns[op] = self.turns.get(op, 0) + 1
        group = self.machine.exchange.group(op, self.number)
        if group is not None:
            block = op.body.blocks[0]
            self._bind(block.args[0], Data(np.asarray(group, np.int64)), op)
            (partial,) = yield from self.block(block)
            known(partial, op, "the partial result")
            self.machine.exchange.publish(op, turn, group, self.number, partial, self.clocks)
            self.clocks[self.number] += 1
        return [(op, turn)]

    def _reduce(self, op: InterTileReduceOp) -> Waiting:
        producer, turn = self.values[op.future]
        exchange = self.machine.exchange
        group = exchange.consumer_group(op, producer, self.number)
        if group is None:
            return [exchange.nothing(op)]
        while not exchange.ready(producer, turn, group):
            yield
        exchange.learn(producer, turn, group, self.clocks)
        total: Data = self.values[op.identity]
        for partial in exchange.partials(producer, turn, group):
            block = op.combiner.blocks[0]
            for argument, data in zip(block.args, (total, partial), strict=True):
                self._bind(argument, data, op)
            (total,) = yield from self.block(block)
        return [Data(total.values.reshape(shape_of(op.result.type)), total.defined)]


def _require_declared(op: Operation, results: Sequence[Any]) -> None:
    """Refuse a tensor that is not of the type that the text gives it."""
    for value, result in zip(op.results, results, strict=True):
        if isinstance(result, Data):
            shape, kind = shape_of(value.type), dtype_of(value.type)
            if (result.values.shape, result.values.dtype) != (shape, kind):
                found = f"{result.values.shape} of {result.values.dtype}"
                raise fault(FaultKind.WRONG_FORMAT, f"the result is {found}, its type says {shape} of {kind}", op)


def _inside(op: Operation, outer: Operation) -> bool:
    current = op.parent_op()
    while current is not None and current is not outer:
        current = current.parent_op()
    return current is not None
