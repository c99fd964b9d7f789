"""Every use of an interface without a stability promise of torch: the one file to check at a torch upgrade.

Used: `torch._subclasses` (which tensors are fake, or stand for others in a trace, and what they cannot do),
`torch._export.verifier` and `symbolic_shapes` (what export and capture raise, and expressions of symbolic sizes),
`proxy_tensor` (nodes that tensors of a trace stand for),
`ExportedProgram._guards_code` (what an export takes for granted), `torch.utils._pytree`
(argument and output trees), `torch.utils._python_dispatch` (running in double
precision, or outside of a trace), `torch._ops` (classes of operators), `OpOverload._schema` and `_can_decompose`
(their arguments, and whether they are composite), `_neg_view` (a view with other signs), `UntypedStorage._cdata`
(identity of memory, also for tensors without any), `Module._parameters` and `_buffers` (where a module holds its
tensors), `torch._transformer_encoder_layer_fwd` (what an encoder layer calls), `pt2_archive._package` (members of saved
programs, read as torch reads them), `_export.utils` (how torch finds its composite operators), `distributed_c10d`
(process groups by the names that graphs have), `torch._C._functorch` (levels of derivatives and maps),
`torch._functorch.predispatch` (where these begin and end in graphs),
`torch._C._SetExcludeDispatchKeyGuard` (conjugate views inside of operators that a mode runs),
`torch.amp.autocast_mode._enter_autocast` and `_exit_autocast` (calls in graphs of Dynamo),
`_higher_order_ops.auto_functionalize` (calls without writes of operators that write),
`_higher_order_ops.flex_attention` and a switch of `nn.attention.flex_attention` (what attention computes, uncompiled).
`frontend.program.tree_classes` has those of classes that torch sees into, `frontend.capture.operator_tracing` and
`composite_kernels` those of tracing calls of operators, `torch_device.registration` those of a device,
`torch_compile.dynamo_private` those of Dynamo, which takes a second to load, `frontend.torch_tracing` and `first_steps`
what is replaced in a trace.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any, cast

import torch
from torch._export import utils as export_utils
from torch._export.verifier import SpecViolationError
from torch._higher_order_ops import auto_functionalize
from torch._ops import HigherOrderOperator, OpOverload
from torch._subclasses.fake_tensor import (
    DataDependentOutputException,
    DynamicOutputShapeException,
    FakeTensorMode,
    UnsupportedOperatorException,
    is_fake,
)
from torch._subclasses.functional_tensor import FunctionalTensor
from torch.amp import autocast_mode
from torch.distributed import distributed_c10d
from torch.export import ExportedProgram
from torch.fx.experimental.proxy_tensor import get_proxy_mode, get_proxy_slot
from torch.fx.experimental.symbolic_shapes import (
    GuardOnDataDependentSymNode,
    PendingUnbackedSymbolNotFound,
    ShapeEnv,
    free_unbacked_symbols,
)
from torch.utils import _python_dispatch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import (
    TreeSpec,
    tree_flatten,
    tree_flatten_with_path,
    tree_map,
    tree_unflatten,
    treespec_dumps,
    treespec_loads,
)

Operator = OpOverload[..., Any]
FUSED_ENCODER_LAYER: Callable[..., Any] = cast(Any, torch)._transformer_encoder_layer_fwd
ENTER_AUTOCAST: Callable[..., Any] = cast(Any, autocast_mode)._enter_autocast
EXIT_AUTOCAST: Callable[..., Any] = cast(Any, autocast_mode)._exit_autocast
_functional = cast(Any, auto_functionalize)
# Calls of operators that write, as graphs have them that write to nothing, and what makes them: without bases of views,
# and with them.
WITHOUT_WRITES: dict[HigherOrderOperator, Callable[..., Any]] = {
    _functional.auto_functionalized: _functional.auto_functionalized_dense,
    _functional.auto_functionalized_v2: _functional.auto_functionalized_v2_dense,
}

__all__ = [
    "ENTER_AUTOCAST",
    "EXIT_AUTOCAST",
    "FUSED_ENCODER_LAYER",
    "WITHOUT_WRITES",
    "DataDependentOutputException",
    "DynamicOutputShapeException",
    "FakeTensorMode",
    "GuardOnDataDependentSymNode",
    "HigherOrderOperator",
    "OpOverload",
    "Operator",
    "PendingUnbackedSymbolNotFound",
    "SpecViolationError",
    "TorchDispatchMode",
    "TreeSpec",
    "UnsupportedOperatorException",
    "composites_loaded",
    "disable_modes",
    "expression_of",
    "flex_attention_of",
    "flex_attention_uncompiled",
    "free_unbacked_symbols",
    "functorch_levels_kept",
    "group_called",
    "group_names",
    "guard_codes",
    "hint_of_symbol",
    "holders",
    "is_composite",
    "is_differentiated",
    "is_fake",
    "is_functional",
    "is_level_change",
    "is_real",
    "is_wrapped",
    "is_wrapper",
    "is_written",
    "negated_view",
    "parts_of",
    "pt2_records",
    "return_and_correct_aliasing",
    "schema_of",
    "size_bounds",
    "sizes_from_inputs",
    "storage_identity",
    "traced_node",
    "tree_flatten",
    "tree_flatten_with_path",
    "tree_map",
    "tree_unflatten",
    "treespec_dumps",
    "treespec_loads",
    "views_resolved",
]


def expression_of(number: Any) -> Any:
    """Return the expression, of sympy, that a symbolic number of torch stands for."""
    return number.node.expr


def sizes_from_inputs() -> ShapeEnv:
    """Return an environment for sizes in which no operator makes a size that data decides; numbers may be symbols."""
    return ShapeEnv(allow_dynamic_output_shape_ops=False)


def guard_codes(exported: ExportedProgram) -> list[str]:
    """Return the conditions on inputs that an export takes for granted, besides ranges, as Python on ``L['x']``."""
    return list(cast(Any, exported)._guards_code)


def return_and_correct_aliasing(operator: Operator, args: Any, kwargs: Any, result: Any) -> Any:
    """Return an operator's result on wrapper tensors, with the aliases that its schema promises."""
    return cast(Any, _python_dispatch).return_and_correct_aliasing(operator, args, kwargs, result)


def disable_modes() -> AbstractContextManager[object]:
    """Compute with real values inside the block, whatever is being traced."""
    return cast(Any, _python_dispatch)._disable_current_modes()


@contextmanager
def views_resolved() -> Generator[None]:
    """Conjugate and negative views inside of operators are what they stand for, also where a mode runs them.

    Torch takes the keys of the dispatcher that resolve them away from what a mode calls, and so from the inside of
    operators such as `linalg_pinv`, which then read a conjugate view as the tensor that it is a view of.
    """
    bindings = cast(Any, torch)._C
    keys, guard = bindings.DispatchKey, bindings._SetExcludeDispatchKeyGuard
    with guard(keys.Conjugate, False), guard(keys.Negative, False):
        yield


def is_functional(value: torch.Tensor) -> bool:
    """Return whether a tensor is a traced functional wrapper, so that writes to it can be followed."""
    return type(value) is FunctionalTensor or bool(cast(Any, torch)._is_functional_tensor(value))


def is_written(value: torch.Tensor) -> bool:
    """Return whether a functional wrapper of a trace has been written to."""
    return type(value) is FunctionalTensor and bool(cast(Any, torch)._functionalize_has_data_mutation(value.elem))


def is_differentiated(value: torch.Tensor) -> bool:
    """Return whether a tensor stands for another inside of `torch.func.grad`, `vjp` or `jvp`."""
    functorch = cast(Any, torch)._C._functorch
    while functorch.is_batchedtensor(value):
        value = functorch.get_unwrapped(value)
    return bool(functorch.is_gradtrackingtensor(value))


def is_level_change(target: object) -> bool:
    """Return whether a call of an exported graph begins or ends a map or a derivative (`vmap`, `grad`)."""
    return getattr(target, "__module__", None) == "torch._functorch.predispatch"


@contextmanager
def functorch_levels_kept() -> Generator[None]:
    """Leave the levels of `vmap` and `grad` as they were, also if a graph that enters some fails on its way."""
    functorch = cast(Any, torch)._C._functorch
    depth = functorch.get_dynamic_layer_stack_depth()
    try:
        yield
    finally:
        functorch.pop_dynamic_layer_stack_and_undo_to_depth(depth)


def is_wrapper(value: torch.Tensor) -> bool:
    """Return whether a tensor only stands for others, as a `DTensor` does for the part that a rank has."""
    return bool(cast(Any, _python_dispatch).is_traceable_wrapper_subclass(value))


def parts_of(value: torch.Tensor) -> list[torch.Tensor]:
    """Return the tensors that a tensor stands for; none if it stands for itself."""
    names: list[str] = cast(Any, value).__tensor_flatten__()[0] if is_wrapper(value) else []
    found = [getattr(value, name) for name in names]
    return [part for part in found if isinstance(part, torch.Tensor)]  # meshes of ranks are among them


def hint_of_symbol(size: torch.SymInt, symbol: Any) -> int | None:
    """Return the value that a symbol of a size had at export; None if torch does not know it."""
    environment = cast(Any, size).node.shape_env
    newer = hasattr(environment, "backed_var_to_val")  # other versions of torch have another name
    found = environment.backed_var_to_val if newer else environment.var_to_val
    return int(found[symbol]) if symbol in found else None


def size_bounds(size: torch.SymInt) -> tuple[int, int | None]:
    """Return the least and the largest value that shapes and checks of a program allow a size.

    The largest one is None if torch knows no such.
    """
    bounds = cast(Any, size).node.shape_env.bound_sympy(expression_of(size))
    lower, upper = bounds.lower, bounds.upper
    known = upper.is_Integer and upper < sys.maxsize - 1
    return max(int(lower), 0) if lower.is_Integer else 0, int(upper) if known else None


def storage_identity(value: torch.Tensor) -> int:
    """Return an identity common to tensors on the same storage."""
    return value.untyped_storage()._cdata  # pyright: ignore[reportPrivateUsage]


def schema_of(target: Operator) -> torch.FunctionSchema:
    """Return the schema of an operator: its arguments with names, types and defaults."""
    return target._schema  # pyright: ignore[reportPrivateUsage, reportUnknownMemberType]


def is_composite(target: Operator) -> bool:
    """Return whether torch may replace an operator by its constituent operators."""
    return target._can_decompose()  # pyright: ignore[reportPrivateUsage]


def negated_view(value: torch.Tensor) -> torch.Tensor:
    """Return a view of a tensor that is its negative, as torch has the imaginary part of a conjugate."""
    return cast(Any, torch)._neg_view(value)


def flex_attention_of(*args: Any, in_order_of_queries: bool = True, **kwargs: Any) -> Any:
    """Return the results of `flex_attention` for the arguments of its operator, computed by plain operators.

    Args:
        args: as the operator takes them.
        in_order_of_queries: whether the first result lies in memory as torch's does.
        kwargs: as the operator takes them.
    """
    module = cast(Any, import_module("torch._higher_order_ops.flex_attention"))
    return (module.sdpa_dense if in_order_of_queries else module.math_attention)(*args, **kwargs)


@contextmanager
def flex_attention_uncompiled() -> Generator[None]:
    """Let `flex_attention` in the block call its operator itself; else Dynamo, which allows no mode, calls it."""
    module = cast(Any, sys.modules.get("torch.nn.attention.flex_attention"))
    if module is None:
        yield
        return
    before = module._FLEX_ATTENTION_DISABLE_COMPILE_DEBUG
    module._FLEX_ATTENTION_DISABLE_COMPILE_DEBUG = True
    try:
        yield
    finally:
        module._FLEX_ATTENTION_DISABLE_COMPILE_DEBUG = before


@contextmanager
def composites_loaded() -> Generator[None]:
    """Load the composite operators of all libraries once; torch, asked for them in the block, does not load them again.

    Torch goes through the operators of all libraries for each library. No library may be imported in the block.
    """
    private = cast(Any, export_utils)
    load = private._materialize_cpp_cia_ops
    load()
    private._materialize_cpp_cia_ops = lambda: None
    try:
        yield
    finally:
        private._materialize_cpp_cia_ops = load


def holders(model: torch.nn.Module) -> list[dict[str, torch.Tensor | None]]:
    """Return the dictionaries that hold the parameters and buffers of a model's modules."""
    found: list[Any] = []
    for module in model.modules():
        found += [module._parameters, module._buffers]  # pyright: ignore[reportPrivateUsage]
    return found


def traced_node(tensor: torch.Tensor) -> torch.fx.Node | None:
    """Return the node that a tensor of the trace that is going on stands for; None for other tensors."""
    mode = get_proxy_mode()
    slot: Any = None if mode is None else get_proxy_slot(tensor, mode.tracer, None)
    return None if slot is None else slot.proxy.node


def group_names() -> list[str]:
    """Return the names of the process groups of this process."""
    return [str(name) for name in cast(Any, distributed_c10d)._world.pg_names.values()]


def group_called(name: str) -> Any:
    """Return the process group of a name that graphs have; None if this process has none."""
    try:
        return cast(Any, distributed_c10d)._resolve_process_group(name)
    except (RuntimeError, ValueError, LookupError):
        return None


def pt2_records(path: Path) -> tuple[list[str], Callable[[str], bytes]] | None:
    """Return member names of a saved program, and a reader, by torch's own reader; None for the older format."""
    from torch.export.pt2_archive._package import PT2ArchiveReader

    try:
        reader: Any = PT2ArchiveReader(str(path))
        return reader.get_file_names(), reader.read_bytes
    except (RuntimeError, AssertionError, UnicodeDecodeError):
        return None


def is_wrapped(value: torch.Tensor) -> bool:
    """Return whether a tensor is one of a function transform, as all rows of `vmap` together."""
    return bool(cast(Any, torch)._C._functorch.is_functorch_wrapped_tensor(value))


def is_real(value: torch.Tensor) -> bool:
    """Return whether a tensor has elements: fake and meta tensors have only a shape."""
    return not is_fake(value) and value.device.type != "meta"
