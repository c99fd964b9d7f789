"""Pass `specialize-shapes`: replaces the symbols of a program by numbers.

```mlir
// specialize-shapes{s0=32}
%1 = aten.view(%0) {size = [1 : i64, #aten.size<"s0 // 2">, 128 : i64]} : (tensor<1x?x64xf32, #aten.extents<"s0">>) -> …
%1 = aten.view(%0) {size = array<i64: 1, 16, 128>} : (tensor<1x32x64xf32>) -> tensor<1x16x128xf32>
```
The symbols are the options of the pass. Ranges and guards are checked, and the guards dropped.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import ClassVar, Self, cast

from typing_extensions import override
from xdsl.context import Context
from xdsl.dialects.builtin import (
    ArrayAttr,
    DictionaryAttr,
    FunctionType,
    ModuleOp,
    TensorType,
)
from xdsl.dialects.func import FuncOp
from xdsl.ir import Attribute, Operation, SSAValue
from xdsl.passes import ModulePass
from xdsl.rewriter import Rewriter
from xdsl.utils.arg_spec import ArgSpec

from spyre_mlir.dialects.aten import AtenOp
from spyre_mlir.dialects.aten_arguments import to_attribute, to_value
from spyre_mlir.dialects.aten_sizes import (
    SYMBOLS,
    GuardOp,
    SizeAttr,
    SymbolRange,
    declared_symbols,
    extents_at,
    has_symbols,
    is_symbolic,
)
from spyre_mlir.dialects.ir.functions import functions
from spyre_mlir.dialects.places import source_of
from spyre_mlir.dialects.size_expressions import evaluate
from spyre_mlir.errors import InputError, LoweringError


@dataclass(frozen=True)
class SpecializeShapesPass(ModulePass):
    """Replaces symbols by numbers.

    Attributes:
        sizes: values by symbol; in a pipeline, the symbols themselves are the options.
    """

    name = "specialize-shapes"
    takes_any_option: ClassVar[bool] = True

    sizes: Mapping[str, int] = field(default_factory=dict[str, int])

    @classmethod
    @override
    def from_spec(cls, spec: ArgSpec) -> Self:
        """Read ``specialize-shapes{s0=33}``.

        Raises:
            ValueError: a value is no whole number.
        """
        sizes: dict[str, int] = {}
        for name, values in spec.parameters.items():
            (value,) = values if len(values) == 1 else (None,)
            if type(value) is not int:
                raise ValueError(f"symbol {name} is a whole number, as {name}=33")
            sizes[name] = value
        return cls(sizes)

    @override
    def spec(self, *, include_default: bool = False) -> ArgSpec:
        """Return the pass with its options, as a pipeline spells it."""
        return ArgSpec(self.name, {name: (value,) for name, value in self.sizes.items()})

    @override
    def apply(self, ctx: Context, op: ModuleOp) -> None:
        """Specialise every function of the module that declares symbols.

        Raises:
            InputError: a symbol is unknown or has no value, or a value is out of range or violates a guard.
        """
        for function in self.check(op):
            _specialize(function, self.sizes)
        op.attributes.update({name: _numbers(value, self.sizes) for name, value in op.attributes.items()})

    def check(self, op: ModuleOp) -> list[FuncOp]:
        """Return the functions of a module that declare symbols, if they take these values.

        Raises:
            InputError: a symbol is unknown or has no value, or a value is out of range or violates a guard.
        """
        with_symbols = [function for function in functions(op) if SYMBOLS in function.attributes]
        if not with_symbols:
            raise InputError("the program has no symbols", hint="leave specialize-shapes out")
        for function in with_symbols:
            _check(function, self.sizes)
        return with_symbols


def check_sizes(ranges: Mapping[str, SymbolRange], sizes: Mapping[str, int]) -> None:
    """Check that every symbol has a value in its range.

    Raises:
        InputError: a symbol is unknown or has no value, or its value is out of range.
    """
    known = ", ".join(f"{name} ({range_})" for name, range_ in ranges.items())
    if unknown := [name for name in sizes if name not in ranges]:
        raise InputError(f"the program has no symbol {unknown[0]}", hint=f"its symbols are {known}")
    if missing := [name for name in ranges if name not in sizes]:
        raise InputError(f"symbol {missing[0]} has no value", hint=f"give each symbol one: {known}")
    for name, range_ in ranges.items():
        if sizes[name] not in range_:
            raise InputError(
                f"symbol {name} is {sizes[name]}, expected {range_}",
                hint="export the model with another range of Dim; sizes 0 and 1 need a program of their own",
            )


def _check(function: FuncOp, sizes: Mapping[str, int]) -> None:
    check_sizes(declared_symbols(function.attributes[SYMBOLS]), sizes)
    for op in function.body.block.ops:
        if isinstance(op, GuardOp):
            check_guards([op.condition.data], sizes, str(source_of(op.location)) or None)


def check_guards(guards: Iterable[str], sizes: Mapping[str, int], where: str | None = None) -> None:
    """Check that sizes fulfil conditions.

    Raises:
        InputError: they violate one.
    """
    for condition in guards:
        if not evaluate(condition, sizes):
            given = ", ".join(f"{name} = {value}" for name, value in sizes.items())
            raise InputError(
                f"the program takes for granted that {condition}, got {given}",
                where=where,
                hint="give a size that fulfils it, or export the model for this size",
            )


def _specialize(function: FuncOp, sizes: Mapping[str, int]) -> None:
    for value in list(function.body.block.args):
        _set_type(value, sizes)
    for op in list(function.body.block.ops):
        if isinstance(op, GuardOp):
            Rewriter.erase_op(op)
            continue
        if isinstance(op, AtenOp) and op.given is not None and has_symbols(op.given):
            op.given = cast(DictionaryAttr, _numbers(op.given, sizes))
        for value in list(op.results):
            _set_type(value, sizes)
    kept = function.function_type
    function.function_type = FunctionType.from_lists(
        [_type(t, sizes, function) for t in kept.inputs], [_type(t, sizes, function) for t in kept.outputs]
    )
    if function.arg_attrs is not None:
        function.arg_attrs = cast("ArrayAttr[DictionaryAttr]", _numbers(function.arg_attrs, sizes))
    del function.attributes[SYMBOLS]


def _set_type(value: SSAValue, sizes: Mapping[str, int]) -> None:
    if is_symbolic(value.type):
        name = value.name_hint
        owner = value.owner if isinstance(value.owner, Operation) else cast(Operation, value.owner.parent_op())
        Rewriter.replace_value_with_new_type(value, _type(value.type, sizes, owner)).name_hint = name


def _type(type_: Attribute, sizes: Mapping[str, int], owner: Operation) -> Attribute:
    """The type with numbers in it.

    Raises:
        LoweringError: an extent is less than nothing.
    """
    if not is_symbolic(type_):
        return type_
    tensor = cast("TensorType[Attribute]", type_)
    extents = extents_at(tensor, sizes)
    if min(extents) < 0:
        given = ", ".join(f"{name} = {value}" for name, value in sizes.items())
        raise LoweringError(
            f"{tensor} has an extent of {min(extents)} for {given}", where=str(source_of(owner.location))
        )
    return TensorType(tensor.get_element_type(), extents)


def _numbers(attribute: Attribute, sizes: Mapping[str, int]) -> Attribute:
    """The attribute with numbers for sizes; a list of nothing but numbers has the form of one."""
    match attribute:
        case SizeAttr():
            return to_attribute(evaluate(attribute.text.data, sizes))
        case ArrayAttr() if has_symbols(attribute):
            values = [to_value(_numbers(item, sizes)) for item in attribute]
            return to_attribute(values)
        case DictionaryAttr() if has_symbols(attribute):
            return DictionaryAttr({name: _numbers(item, sizes) for name, item in attribute.data.items()})
        case _:
            return attribute
