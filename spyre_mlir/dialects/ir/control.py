"""Control flow at every level: what the host decides by a value, with functions of the module as branches and bodies.

``%r = control.cond %p then @a else @b (%x) : tensor<i1>, (tensor<4xf32>) -> tensor<4xf32>`` calls one of two functions.
``%r = control.while_loop @go do @step (%i, %n) : (tensor<i64>, tensor<i64>) -> tensor<i64>`` calls `@step` as long as
`@go` gives true. Its first operands, one per result, are carried; the others are the same in every trip.
``%r:2 = control.for_loop @step trips 64 carrying 1 slicing 1 (%h, %x, %w) : (tensor<8x4xf32>, tensor<64x8x4xf32>, …)``
calls `@step` 64 times with what is carried, one entry of every sliced tensor, and the others.

Operands and results are host tensors at the aten and spyre.loop levels. Below, they are device tensors where caller and
functions agree on a form; else functions send what their kernels read, and fetch what they give.

Decision: docs/decisions/0143-the-host-decides-between-launches.md
Decision: docs/decisions/0197-loops-over-slices-are-loops-of-the-bundle.md
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import (
    I64,
    FlatSymbolRefAttrConstr,
    IntegerAttr,
    ModuleOp,
    SymbolRefAttr,
    TensorType,
    UnitAttr,
    i64,
)
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Dialect, Operation, SSAValue
from xdsl.irdl import (
    IRDLOperation,
    irdl_op_definition,
    operand_def,
    opt_prop_def,
    prop_def,
    var_operand_def,
    var_result_def,
)
from xdsl.rewriter import Rewriter
from xdsl.utils.exceptions import VerifyException

from spyre_mlir.dialects.ir.functions import functions_by_name
from spyre_mlir.dialects.tensors import as_tensor_type


class ControlOp(IRDLOperation):
    """Base of the ops that call functions of the module as values decide, or a known number of times.

    Attributes:
        inputs: what every function gets.
        outputs: what comes back.
    """

    inputs = var_operand_def()
    outputs = var_result_def()

    @property
    def callees(self) -> tuple[SymbolRefAttr, ...]:
        """The functions that it may call."""
        raise NotImplementedError

    @property
    def carried_inputs(self) -> int:
        """How many of the first inputs it carries from trip to trip; branches carry nothing."""
        return 0

    @property
    def varying_inputs(self) -> int:
        """How many of the first inputs are others in each trip: what it carries, and what it slices."""
        return self.carried_inputs

    def functions(self) -> list[FuncOp]:
        """Return the functions that it may call.

        Raises:
            VerifyException: the module has no such function.
        """
        module: Operation | None = self
        while module is not None and not isinstance(module, ModuleOp):
            module = module.parent_op()
        found = {} if module is None else functions_by_name(module)
        names = [callee.root_reference.data for callee in self.callees]
        for name in names:
            if name not in found:
                raise VerifyException(f"{self.name} calls @{name}, which is not in the module")
        return [found[name] for name in names]

    def _check(self, function: FuncOp, results: Sequence[Attribute], inputs: Sequence[Attribute] | None = None) -> None:
        """Raises VerifyException unless a function takes the inputs, or these types, and gives these results."""
        name, given = function.sym_name.data, [v.type for v in self.inputs] if inputs is None else inputs
        for verb, got, wanted in (
            ("takes", function.function_type.inputs.data, given),
            ("gives", function.function_type.outputs.data, results),
        ):
            if list(got) != list(wanted):
                texts = [", ".join(map(str, types)) for types in (got, wanted)]
                raise VerifyException(f"@{name} {verb} ({texts[0]}), {self.name} expects ({texts[1]})")


@irdl_op_definition
class CondOp(ControlOp):
    """Calls one function if the predicate is true, else the other one; both take and give the same types.

    Constraints:
        C1: the predicate is a host tensor with one truth value.
    """

    name = "control.cond"

    predicate = operand_def()
    then = prop_def(FlatSymbolRefAttrConstr)
    otherwise = prop_def(FlatSymbolRefAttrConstr)

    assembly_format = (
        "$predicate `then` $then `else` $otherwise `(` $inputs `)` attr-dict `:` "
        "type($predicate) `,` functional-type($inputs, $outputs)"
    )

    def __init__(
        self, predicate: SSAValue, then: str, otherwise: str, inputs: Sequence[SSAValue], results: Sequence[Attribute]
    ) -> None:
        """Makes the op from the names of its functions."""
        super().__init__(
            operands=[predicate, list(inputs)],
            properties={"then": SymbolRefAttr(then), "otherwise": SymbolRefAttr(otherwise)},
            result_types=[list(results)],
        )

    @property
    def callees(self) -> tuple[SymbolRefAttr, ...]:
        """The functions that it may call."""
        return self.then, self.otherwise

    def verify_(self) -> None:
        """Checks C1 and the functions."""
        _check_truth(self.predicate.type, "the predicate of control.cond")
        for function in self.functions():
            self._check(function, [r.type for r in self.outputs])


@irdl_op_definition
class WhileLoopOp(ControlOp):
    """Calls the body with its own results as long as the condition gives true; its first inputs are carried.

    Constraints:
        C1: there are as many inputs as results, or more; those that are carried have the types of the results.
        C2: the condition gives a host tensor with one truth value.
    """

    name = "control.while_loop"

    condition = prop_def(FlatSymbolRefAttrConstr)
    body = prop_def(FlatSymbolRefAttrConstr)

    assembly_format = "$condition `do` $body `(` $inputs `)` attr-dict `:` functional-type($inputs, $outputs)"

    def __init__(self, condition: str, body: str, inputs: Sequence[SSAValue], results: Sequence[Attribute]) -> None:
        """Makes the op from the names of its functions."""
        super().__init__(
            operands=[list(inputs)],
            properties={"condition": SymbolRefAttr(condition), "body": SymbolRefAttr(body)},
            result_types=[list(results)],
        )

    @property
    def callees(self) -> tuple[SymbolRefAttr, ...]:
        """The functions that it may call."""
        return self.condition, self.body

    @property
    def carried_inputs(self) -> int:
        """How many of the first inputs it carries: one for each result."""
        return len(self.outputs)

    def verify_(self) -> None:
        """Checks C1, C2 and the functions."""
        results, given = [r.type for r in self.outputs], [v.type for v in self.inputs]
        if given[: len(results)] != results:
            texts = [", ".join(map(str, types)) for types in (given[: len(results)], results)]
            raise VerifyException(f"control.while_loop begins with ({texts[0]}) and gives ({texts[1]})")
        condition, body = self.functions()
        outputs = condition.function_type.outputs.data
        if len(outputs) != 1:
            raise VerifyException(f"@{condition.sym_name.data} gives {len(outputs)} values, expected a truth value")
        _check_truth(outputs[0], f"what @{condition.sym_name.data} gives")
        self._check(condition, list(outputs))
        self._check(body, results)


@irdl_op_definition
class ForLoopOp(ControlOp):
    """Calls the body a known number of times: with what it carries, with one entry of each sliced tensor, and others.

    The results are what is carried in the end, and then the entries that the trips give, one behind the other. With
    `backwards` the first trip takes and gives the last entries.

    Constraints:
        C1: there is at least one trip, and as many inputs as are carried and sliced, or more.
        C2: what is carried has the types of the first results.
        C3: sliced tensors and further results have one entry per trip along their dimension 0; the body takes and
            gives tensors of one entry.
    """

    name = "control.for_loop"

    body = prop_def(FlatSymbolRefAttrConstr)
    trips = prop_def(IntegerAttr[I64])
    carried = prop_def(IntegerAttr[I64])
    sliced = prop_def(IntegerAttr[I64])
    backwards = opt_prop_def(UnitAttr)

    assembly_format = (
        "$body `trips` $trips `carrying` $carried `slicing` $sliced (`backwards` $backwards^)? `(` $inputs `)` "
        "attr-dict `:` functional-type($inputs, $outputs)"
    )

    def __init__(
        self,
        body: str,
        trips: int,
        carried: int,
        sliced: int,
        inputs: Sequence[SSAValue],
        results: Sequence[Attribute],
        *,
        backwards: bool = False,
    ) -> None:
        """Makes the op from the name of its function, and the numbers of trips, carried and sliced inputs."""
        numbers = {"trips": trips, "carried": carried, "sliced": sliced}
        super().__init__(
            operands=[list(inputs)],
            properties={
                "body": SymbolRefAttr(body),
                **{name: IntegerAttr(number, i64) for name, number in numbers.items()},
                **({"backwards": UnitAttr()} if backwards else {}),
            },
            result_types=[list(results)],
        )

    @property
    def callees(self) -> tuple[SymbolRefAttr, ...]:
        """The function that it calls."""
        return (self.body,)

    @property
    def carried_inputs(self) -> int:
        """How many of the first inputs it carries."""
        return self.carried.value.data

    @property
    def varying_inputs(self) -> int:
        """How many of the first inputs it carries or slices."""
        return self.carried_inputs + self.sliced.value.data

    @property
    def order(self) -> range:
        """The numbers of the entries, trip by trip."""
        trips = self.trips.value.data
        return range(trips) if self.backwards is None else range(trips - 1, -1, -1)

    @property
    def numbers(self) -> tuple[int, int, int]:
        """How many trips it makes, and how many inputs are carried and sliced."""
        return self.trips.value.data, self.carried.value.data, self.sliced.value.data

    def verify_(self) -> None:
        """Checks C1 to C3 and the function."""
        trips, carried, sliced = self.numbers
        given, results = [v.type for v in self.inputs], [r.type for r in self.outputs]
        if trips < 1 or min(carried, sliced) < 0 or carried + sliced > len(given) or carried > len(results):
            raise VerifyException(
                f"control.for_loop makes {trips} trips, carries {carried} and slices {sliced} of {len(given)} inputs, "
                f"and gives {len(results)} results"
            )
        if given[:carried] != results[:carried]:
            texts = [", ".join(map(str, types)) for types in (given[:carried], results[:carried])]
            raise VerifyException(f"control.for_loop begins with ({texts[0]}) and ends with ({texts[1]})")
        slices = [entry_type(type_, trips) for type_ in given[carried : carried + sliced]]
        rows = [entry_type(type_, trips) for type_ in results[carried:]]
        (body,) = self.functions()
        wanted = [*given[:carried], *slices, *given[carried + sliced :]]
        self._check(body, [*results[:carried], *rows], wanted)


def entry_type(type_: Attribute, trips: int) -> TensorType[Attribute]:
    """Return the type of one entry of a tensor that has one for each trip of a loop.

    Raises:
        VerifyException: it has another number of entries, or is no host tensor.
    """
    tensor = as_tensor_type(type_)
    if tensor is None or tensor.get_shape()[:1] != (trips,):
        raise VerifyException(f"a loop of {trips} trips takes or gives {type_}, expected one entry per trip")
    return TensorType(tensor.get_element_type(), (1, *tensor.get_shape()[1:]), tensor.encoding)


def with_operands(op: ControlOp, operands: Sequence[SSAValue]) -> ControlOp:
    """Return a copy of an op with other operands of the same types."""
    made = op.clone()
    for number, value in enumerate(operands):
        made.operands[number] = value
    return made


def with_types(op: ControlOp, inputs: Sequence[SSAValue], results: Sequence[Attribute]) -> ControlOp:
    """Put an op with other inputs and types of results in the place of one, and return it."""
    predicate = [op.predicate] if isinstance(op, CondOp) else []
    made = type(op).create(
        operands=[*predicate, *inputs], result_types=results, properties=op.properties, attributes=op.attributes
    )
    made.location = op.location
    for old, new in zip(op.results, made.results, strict=True):
        new.name_hint = old.name_hint
    Rewriter.replace_op(op, made)
    return made


def _check_truth(type_: Attribute, value: str) -> None:
    """Raises VerifyException unless a value, as the message calls it, has the type of one truth value on the host."""
    tensor = as_tensor_type(type_)
    if tensor is None or tensor.get_shape() != () or str(tensor.get_element_type()) != "i1":
        raise VerifyException(f"{value} is {type_}, expected tensor<i1>")


Control = Dialect("control", [CondOp, WhileLoopOp, ForLoopOp])

__all__ = [
    "CondOp",
    "Control",
    "ControlOp",
    "ForLoopOp",
    "WhileLoopOp",
    "entry_type",
    "with_operands",
    "with_types",
]
