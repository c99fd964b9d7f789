"""Bodies of loop nests: the mapping between scalar ops and op-table entries."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from xdsl.dialects import arith, math
from xdsl.dialects.builtin import DictionaryAttr, FloatAttr, StringAttr, f64, i1
from xdsl.ir import Attribute, Block, Dialect, Operation, SSAValue
from xdsl.irdl import (
    IRDLOperation,
    irdl_op_definition,
    opt_prop_def,
    prop_def,
    result_def,
    traits_def,
    var_operand_def,
)
from xdsl.traits import Pure
from xdsl.utils.exceptions import VerifyException

from spyre_mlir.dialects.aten_arguments import as_arguments, said_arguments
from spyre_mlir.dialects.directives import Arguments, Quoted
from spyre_mlir.dialects.tensors import integer_bits, is_unsigned
from spyre_mlir.ops import ATEN
from spyre_mlir.ops.table import OpEntry


@irdl_op_definition
class ApplyOp(IRDLOperation):
    """A scalar function that arith and math lack: ``spyre.loop.apply "silu"(%x) : (f32) -> f32``.

    Arguments that are no tensors are its `numbers`: ``spyre.loop.apply "softplus"(%x) {beta = 2.0 : f64} : …``.
    """

    name = "spyre.loop.apply"

    function = prop_def(StringAttr)
    given = opt_prop_def(DictionaryAttr, prop_name="numbers")
    args = var_operand_def()
    result = result_def()

    traits = traits_def(Pure())
    custom_directives = (Arguments, Quoted)
    assembly_format = (
        "custom<Quoted>($function) `(` $args `)` custom<Arguments>($numbers) attr-dict-with-keyword "
        "`:` functional-type($args, $result)"
    )

    def __init__(
        self, function: str, args: Sequence[SSAValue], result: Attribute, numbers: Mapping[str, Attribute] | None = None
    ) -> None:
        """Applies the op-table entry called `function` to scalars; `numbers` are its other arguments."""
        super().__init__(
            operands=[list(args)],
            properties={"function": StringAttr(function), "numbers": as_arguments(numbers or {})},
            result_types=[result],
        )

    @property
    def numbers(self) -> dict[str, float]:
        """The non-tensor arguments."""
        return {name: float(a.value.data) for name, a in said_arguments(self.given).items() if isinstance(a, FloatAttr)}

    def verify_(self) -> None:
        """The function is in the op table, and takes numbers of these names."""
        entry = _applied(self.function.data)
        if entry is None:
            known = ", ".join(e.name for e in ATEN if _applied(e.name))
            raise VerifyException(f"no op-table entry is called '{self.function.data}'; known: {known}")
        for name, value in said_arguments(self.given).items():
            if name not in entry.op_info or not isinstance(value, FloatAttr):
                known = ", ".join(entry.op_info) or "none"
                raise VerifyException(f"'{entry.name}' takes no number {name} = {value}; it takes {known}")


def _known_scalar_classes() -> dict[str, type[Operation]]:
    dialects: tuple[Dialect, ...] = (arith.Arith, math.Math)
    return {op.name: op for dialect in dialects for op in dialect.operations}


_CLASSES = _known_scalar_classes()
_BY_SCALAR: dict[str, OpEntry] = {e.scalar: e for e in ATEN if e.scalar is not None}
_WITH_OVERFLOW = ("arith.addi", "arith.subi", "arith.muli")


# The operations of arith and math on integers that stand for those on floats; both are one entry of the op table.
_ON_INTEGERS = {
    "arith.addf": "arith.addi",
    "arith.subf": "arith.subi",
    "arith.mulf": "arith.muli",
    "arith.maximumf": "arith.maxsi",
    "arith.minimumf": "arith.minsi",
    "math.absf": "math.absi",
    "arith.floordivsi": "arith.floordivsi",
    "arith.cmpf oeq": "arith.cmpi eq",
    "arith.cmpf une": "arith.cmpi ne",
    "arith.cmpf oge": "arith.cmpi sge",
    "arith.cmpf ogt": "arith.cmpi sgt",
    "arith.cmpf ole": "arith.cmpi sle",
    "arith.cmpf olt": "arith.cmpi slt",
}
# One bit compares as an unsigned number: true is 1, not -1.
_ON_TRUTHS = {
    spelling: integer.replace(" s", " u").replace("arith.maxsi", "arith.maxui").replace("arith.minsi", "arith.minui")
    for spelling, integer in _ON_INTEGERS.items()
    if not spelling.startswith(("math.", "arith.floordivsi"))
}
_BY_SCALAR.update({i: _BY_SCALAR[s] for table in (_ON_INTEGERS, _ON_TRUTHS) for s, i in table.items()})


def _spelled(entry: OpEntry, element: Attribute) -> str | None:
    """Return the spelling of an entry on scalars of an element type; None where neither arith nor math has one."""
    if entry.scalar is None or not integer_bits(element):
        return entry.scalar
    if is_unsigned(element):
        return None
    return (_ON_TRUTHS if element == i1 else _ON_INTEGERS).get(entry.scalar)


def _applied(name: str) -> OpEntry | None:
    """The entry of a function that a body may apply by name."""
    entry = ATEN.named(name)
    return entry if entry is not None and (entry.scalar is not None or entry.opfunc is not None) else None


def scalar_op(
    entry: OpEntry, args: Sequence[SSAValue], result: Attribute, numbers: Mapping[str, float] | None = None
) -> Operation:
    """Return the body operation that computes `entry` on scalars; `numbers` are its non-tensor arguments."""
    spelled = _spelled(entry, args[0].type)
    if spelled is None:
        said = {name: FloatAttr(value, f64) for name, value in (numbers or {}).items()}
        return ApplyOp(entry.name, args, result, said)
    name, _, predicate = spelled.partition(" ")
    if predicate:
        compare = arith.CmpiOp if name == arith.CmpiOp.name else arith.CmpfOp
        return compare(args[0], args[1], predicate)
    return _CLASSES[name].create(operands=list(args), result_types=[result], properties=_default_properties(name))


def _default_properties(name: str) -> dict[str, Attribute]:
    if name in _WITH_OVERFLOW:
        return {"overflowFlags": arith.IntegerOverflowAttr("none")}
    has_flags = name.startswith(("arith.", "math.")) and name not in {*_ON_INTEGERS.values(), *_ON_TRUTHS.values()}
    return {"fastmath": arith.FastMathFlagsAttr("none")} if has_flags else {}


def spelling(op: Operation) -> str:
    """Return the arith or math spelling of a body operation: its name, and the predicate of a comparison."""
    if isinstance(op, arith.CmpiOp):
        known = ("eq", "ne", "slt", "sle", "sgt", "sge", "ult", "ule", "ugt", "uge")
        return f"{op.name} {known[op.predicate.value.data]}"
    if isinstance(op, arith.CmpfOp):
        predicates = (
            "false",
            "oeq",
            "ogt",
            "oge",
            "olt",
            "ole",
            "one",
            "ord",
            "ueq",
            "ugt",
            "uge",
            "ult",
            "ule",
            "une",
            "uno",
            "true",
        )
        return f"{op.name} {predicates[op.predicate.value.data]}"
    return op.name


def scalar_classes() -> tuple[type[Operation], ...]:
    """Return the operations of arith and math that a body may use."""
    names = {spelling.partition(" ")[0] for spelling in _BY_SCALAR}
    return tuple(_CLASSES[name] for name in sorted(names))


def entry_of(op: Operation) -> OpEntry | None:
    """Return the op-table entry that a body operation computes, or None."""
    if isinstance(op, ApplyOp):
        return _applied(op.function.data)
    return _BY_SCALAR.get(spelling(op))


def numbers_of(op: Operation) -> dict[str, float]:
    """Return the arguments of a body operation that are not scalars of the tensors."""
    return op.numbers if isinstance(op, ApplyOp) else {}


def body_numbers(body: Block) -> dict[str, float]:
    """Return the non-tensor arguments of the function that a nest's body computes."""
    return {} if body.first_op is None else numbers_of(body.first_op)
