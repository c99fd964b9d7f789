"""Operators of torch, called by their schemas: host steps, and the reference for single ops of the aten level."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, cast

import numpy as np
import torch
from numpy.typing import NDArray
from xdsl.dialects.builtin import DYNAMIC_INDEX, ModuleOp, TensorType
from xdsl.ir import Attribute, Operation, SSAValue

from spyre_mlir.dialects.aten import AtenOp
from spyre_mlir.dialects.aten_build import TypeBuild
from spyre_mlir.dialects.host_call import HostCall, OperandSlot
from spyre_mlir.dialects.ir.functions import first_function
from spyre_mlir.dialects.tensors import TypedValue
from spyre_mlir.errors import FaultKind, MachineFault, RegistrationError, UnsupportedError
from spyre_mlir.frontend.arguments import DROPPED
from spyre_mlir.frontend.element_types import ELEMENT_TYPES
from spyre_mlir.frontend.process_groups import Collective
from spyre_mlir.frontend.reference.eager import to_numpy
from spyre_mlir.frontend.reference.generator import generator_kept
from spyre_mlir.frontend.reference.stable_order import EqualsInOrder
from spyre_mlir.ops import ATEN
from spyre_mlir.ops.call_info import MISTAKES, called_for
from spyre_mlir.ops.checks import refusal_text
from spyre_mlir.ops.draws import draws
from spyre_mlir.ops.native.collectives import RANKS, is_collective
from spyre_mlir.plugins import registry
from spyre_mlir.sizes import counted

Array = NDArray[Any]

_DTYPES = {str(element): dtype for dtype, element in ELEMENT_TYPES.items()}
# Where an entry of the op table calls a parameter otherwise than the operator it stands for.
_OTHER_NAMES = {"mat2": "other", "shape": "size"}
# These look at the bits of an element, which a wider type has others of.
_BITS = frozenset({"view.dtype", "view_copy.dtype"})


def torch_values(module: ModuleOp, inputs: Sequence[Array]) -> dict[Operation, list[Array]]:
    """Return the results of every op of an aten function, by calling the torch operator it names.

    They are those of eager; of a program in half precision, those of double precision.

    Args:
        module: at the aten level.
        inputs: one array per argument of `main`.
    """
    main = first_function(module)
    known: dict[SSAValue, Array] = dict(zip(main.body.block.args, inputs, strict=True))
    found: dict[Operation, list[Array]] = {}
    with generator_kept():
        for op in main.body.block.ops:
            if isinstance(op, AtenOp):
                call = HostCall.of(op)
                results = run_host_step(call, [known[v] for v in op.operands], wide=call.is_wide)
                known |= zip(op.results, results, strict=False)
                found[op] = results
    return found


def run_host_step(call: HostCall, operands: Sequence[Array], *, wide: bool) -> list[Array]:
    """Call an operator; see `machine.host_steps.HostExecutor`.

    An operator without a form for the dtype asked for computes in another one: what counts is its values.

    Raises:
        MachineFault: the operator refused these values.
        UnsupportedError: there is no such operator.
        RegistrationError: a function of a plugin failed, or gives other tensors than the operator has.
    """
    (plugin, run), refusal = _runner(call), None
    for floats in _float_types(call, wide=wide):
        try:
            with torch.no_grad(), EqualsInOrder():
                results = run(call, operands, floats)
                if plugin is not None:
                    _check_results(plugin, call, results)
                return [_result(t, k, wide) for t, k in zip(results, call.results, strict=False)]
        except RegistrationError:
            raise
        except MISTAKES as error:  # no form for a dtype, or not for these values
            refusal = refusal or error
    assert refusal is not None
    if plugin is not None:
        with called_for(call.where), plugin.blamed():
            raise refusal
    reason, remedy = refusal_text(call.overload, str(refusal))
    raise MachineFault(FaultKind.HOST_STEP, reason, where=call.where, hint=remedy) from refusal


def _check_results(plugin: registry.Registered, call: HostCall, results: Sequence[torch.Tensor]) -> None:
    """Raises RegistrationError unless a function gives as many tensors as the operator has, of its shapes."""
    wanted = [tuple(type_.get_shape()) for type_ in call.results]
    found = [tuple(result.shape) for result in results]
    if len(found) == len(wanted) and all(map(_fits, found, wanted)):
        return
    given, has = _tensors_of(found), _tensors_of(wanted)
    raise RegistrationError(
        f"{plugin.owner}, registered for {plugin.op}, gives {given}; the operation has {has}",
        where=call.where,
    )


def _fits(shape: tuple[int, ...], wanted: tuple[int, ...]) -> bool:
    known = len(shape) == len(wanted)
    return known and all(b in (a, DYNAMIC_INDEX) for a, b in zip(shape, wanted, strict=True))


def _tensors_of(shapes: Sequence[tuple[int, ...]]) -> str:
    return f"{counted(len(shapes), 'tensor')} of {' and '.join(map(str, shapes))}" if shapes else "no tensor"


def _float_types(call: HostCall, *, wide: bool) -> tuple[torch.dtype | None, ...]:
    """The types that all floats of a call get, one after the other until torch has a form for one; None for their own.

    Random numbers are other ones in another type; a collective runs once, in the type that every rank computes in.
    """
    if draws(call.overload):
        return (None,)
    if is_collective(call.overload):  # the other ranks would not try again
        return (torch.float64 if wide else None,)
    widest_first = wide and call.overload not in _BITS
    return (torch.float64, None, torch.float32) if widest_first else (None, torch.float32, torch.float64)


def _result(tensor: torch.Tensor, type_: TensorType[Attribute], wide: bool) -> Array:
    wanted = _DTYPES[str(type_.get_element_type())]
    keeps = tensor.dtype is wanted or (wide and tensor.is_floating_point() and wanted.is_floating_point)
    return to_numpy(tensor if keeps else tensor.to(wanted))


def _runner(
    call: HostCall,
) -> tuple[registry.Registered | None, Callable[[HostCall, Sequence[Array], torch.dtype | None], list[torch.Tensor]]]:
    """Return the runner of a call: the executor of a plugin, else its fallback that wants the call, else torch.

    A runner of a plugin stands behind what was registered.
    """
    registry.load_plugins()
    for registered in registry.find(registry.HookKind.EXECUTOR, call.overload):
        return registered, partial(_by_executor, registered)
    typed = {name: _filled(value, [TypedValue(t) for t in call.operands]) for name, value in call.arguments.items()}
    for registered in registry.find(registry.HookKind.FALLBACK, call.overload):
        build = TypeBuild()
        if registered.wants(build, build.arguments(ATEN.find(call.overload), typed)):
            return registered, partial(_by_fallback, registered.function)
    operator = _operator(call)
    if is_collective(call.overload):
        operator = Collective(operator, cast("Sequence[int]", call.arguments.get(RANKS, ())), call.where)
    return None, partial(_by_operator, operator)


def _filled(value: object, operands: Sequence[object]) -> Any:
    """An argument with operands in their slots."""
    if isinstance(value, (list, tuple)):
        return [_filled(v, operands) for v in cast("Sequence[object]", value)]
    return operands[value.number] if isinstance(value, OperandSlot) else value


def _by_fallback(
    function: Callable[..., Any], call: HostCall, operands: Sequence[Array], floats: torch.dtype | None
) -> list[torch.Tensor]:
    tensors = _tensors(call, operands, floats)
    named = {name: _filled(value, tensors) for name, value in call.arguments.items()}
    positional: list[object] = []
    for parameter in _positional(call):
        if parameter not in named:
            break
        positional.append(named.pop(parameter))
    return _flat(function(*positional, **named))


def _positional(call: HostCall) -> list[str]:
    """The arguments that the operator takes by position: functions of torch have other names for them."""
    try:
        return [a.name for a in _operator(call)._schema.arguments if not a.kwarg_only]
    except UnsupportedError:
        return []


def _by_executor(
    executor: registry.Registered, call: HostCall, operands: Sequence[Array], floats: torch.dtype | None
) -> list[torch.Tensor]:
    """Return the result of an executor.

    Raises:
        RegistrationError: it gives no list of tensors.
    """
    said = {name: value for name, value in call.arguments.items() if not _holds_slot(value)}
    out: object = executor.function(_tensors(call, operands, floats), _defaults(call) | said)
    several = cast("list[object]", out) if isinstance(out, list) else []
    if not isinstance(out, list) or not all(isinstance(t, torch.Tensor) for t in several):
        raise RegistrationError(
            f"the executor {executor.owner} of {executor.op} gives {type(cast(object, out)).__name__}, "
            "not a list of tensors",
            where=call.where,
        )
    return cast("list[torch.Tensor]", several)


def _defaults(call: HostCall) -> dict[str, object]:
    """Defaults of the arguments that are no tensors, as the schema has them; none if torch has no such operator."""
    try:
        schema = _operator(call)._schema
    except UnsupportedError:
        return {}
    return {
        a.name: a.default_value
        for a in schema.arguments
        if a.has_default_value() and a.name not in DROPPED and "Tensor" not in str(a.real_type)
    }


def _holds_slot(value: object) -> bool:
    if isinstance(value, list):
        return any(map(_holds_slot, cast("list[object]", value)))
    return isinstance(value, OperandSlot)


def _tensors(call: HostCall, operands: Sequence[Array], floats: torch.dtype | None) -> list[torch.Tensor]:
    return [_tensor(a, t, floats) for a, t in zip(operands, call.operands, strict=True)]


def _flat(out: object) -> list[torch.Tensor]:
    """The tensors among the results."""
    several = [out] if isinstance(out, torch.Tensor) else cast("Sequence[object]", out)
    return [o for o in several if isinstance(o, torch.Tensor)]


def _operator(call: HostCall) -> Any:
    overload = "reshape" if call.overload == "view" else call.overload  # strides are not part of a program
    return operator_of(overload, where=call.where)


def operator_of(overload: str, *, where: str | None = None) -> Any:
    """Return torch's operator of an overload, ``.default`` dropped, with its namespace unless that is aten.

    Raises:
        UnsupportedError: torch has none.
    """
    namespace, _, name = overload.rpartition("::")
    packet, _, rest = name.partition(".")
    try:
        return getattr(getattr(getattr(torch.ops, namespace or "aten"), packet), rest or "default")
    except AttributeError as error:
        raise UnsupportedError(
            f"the host has no operator {namespace or 'aten'}::{name}",
            where=where,
            hint="import the module that registers it with torch first",
        ) from error


def _by_operator(
    operator: Any, call: HostCall, operands: Sequence[Array], floats: torch.dtype | None
) -> list[torch.Tensor]:
    """The tensors among the results.

    Args:
        operator: what to call.
        call: its arguments.
        operands: their values.
        floats: the dtype all floats get; None for the one of each type.
    """
    tensors = _tensors(call, operands, floats)
    arguments = {name: _filled(value, tensors) for name, value in call.arguments.items()}
    numbers = floats or (torch.float64 if any(t.dtype is torch.float64 for t in tensors) else torch.float32)
    by_schema: dict[str, object] = {}
    for parameter in operator._schema.arguments:
        name = torch_name(parameter.name, arguments)
        given = None if name is None else arguments[name]
        if given is not None:
            by_schema[parameter.name] = _in_torch(parameter, given, floats, numbers)
        elif not parameter.has_default_value():
            by_schema[parameter.name] = None  # a program does not spell what is None
    if by_schema.get("dtype", 0) is None and draws(call.overload):  # not torch's default of the moment
        by_schema["dtype"] = _DTYPES[str(call.results[0].get_element_type())]
    return _flat(operator(**by_schema))


def torch_name(parameter: str, arguments: Mapping[str, object]) -> str | None:
    """Return the name that arguments of the op table have for a parameter of torch; None if it is not among them."""
    return next((n for n in (parameter, _OTHER_NAMES.get(parameter, "")) if n in arguments), None)


def _tensor(values: Array, type_: TensorType[Attribute], floats: torch.dtype | None) -> torch.Tensor:
    dtype = _DTYPES[str(type_.get_element_type())]
    tensor = torch.tensor(np.ascontiguousarray(values))
    return tensor.reshape(values.shape).to(floats if floats is not None and dtype.is_floating_point else dtype)


def _in_torch(parameter: Any, value: object, floats: torch.dtype | None, numbers: torch.dtype) -> object:
    """An argument as torch spells it: a type, a layout or a memory format is a number to its schema.

    A number in a tensor's place is one of a constant without dimensions, which decides no dtype; a float is held in
    the type `numbers`.
    """
    kind = str(parameter.real_type)
    if "Tensor" in kind and isinstance(value, int | float):
        return torch.tensor(value, dtype=numbers if isinstance(value, float) else None)
    found = in_torch(parameter, value)
    return floats if isinstance(found, torch.dtype) and floats is not None and found.is_floating_point else found


def in_torch(parameter: Any, value: object) -> object:
    """Return an argument without tensors as torch spells it: types, layouts and memory formats are not strings."""
    if not isinstance(value, str):
        return value
    kind = str(parameter.real_type)
    if "ScalarType" in kind:
        return _DTYPES[value]
    return getattr(torch, value) if "MemoryFormat" in kind or "Layout" in kind else value


__all__ = ["Array", "in_torch", "operator_of", "run_host_step", "torch_name", "torch_values"]
