"""Every use of an interface of Dynamo without a stability promise: the file to check at a torch upgrade.

Used: `torch._dynamo.config`, `convert_frame`, `eval_frame`, `external_utils`, `resume_execution`, `utils` and `exc`
(what it traces, for whom, which compilations a function has, why it compiled again, and what it cannot capture),
`torch._dynamo.backends.registry` (which back ends have a name), `torch._guards` (which compilation runs),
`torch._logging` (artifacts of a trace), `torch._inductor.list_mode_options` (what a mode of torch.compile stands for).
Loading Dynamo takes a second, so nothing outside of `torch_compile` imports this module.

Decision: docs/decisions/0013-private-interfaces.md
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager, nullcontext
from functools import wraps
from types import SimpleNamespace
from typing import Any, cast

import torch
from torch._dynamo import config as _dynamo_config
from torch._dynamo.backends import registry as _registry
from torch._dynamo.convert_frame import CatchErrorsWrapper, ConvertFrameAssert
from torch._dynamo.eval_frame import _debug_get_cache_entry_list  # pyright: ignore[reportPrivateUsage]
from torch._dynamo.exc import Unsupported
from torch._dynamo.external_utils import wrap_inline
from torch._dynamo.resume_execution import ContinueExecutionCache
from torch._dynamo.utils import get_compilation_metrics
from torch._guards import CompileContext
from torch._logging import trace_structured  # pyright: ignore[reportPrivateImportUsage]

from spyre_mlir.frontend.first_steps import first_steps_traced
from spyre_mlir.torch_compile.eager_modules import warn_of_compiled_method, warn_of_eager_modules

__all__ = [
    "Unsupported",
    "any_number_of_graphs",
    "back_ends",
    "compile_id",
    "compile_ids",
    "ends_in_break",
    "forget_example",
    "inductor_mode",
    "inductor_modes",
    "recompile_reason",
    "register_back_end",
    "source_name",
    "trace_artifact",
    "trace_whole_graphs_for",
]


# Recurrent layers, which Dynamo leaves to eager; and a program per value of a Python float, which Dynamo makes a tensor
# once it changes: the layer_norm of such an epsilon cannot be exported.
_SETTINGS: Mapping[str, Any] = {"allow_rnn": True, "specialize_float": True}

# The code that the method `compile` of a module hands to Dynamo.
_CALL = cast(Any, torch.nn.Module)._call_impl.__code__


# Behind so many graphs of a function, Dynamo leaves it to eager, or ends in an error.
_LIMITS: Mapping[str, Any] = {"recompile_limit": 1 << 20, "accumulated_recompile_limit": 1 << 20}


def any_number_of_graphs() -> AbstractContextManager[object]:
    """Let Dynamo capture functions in the block as often as they differ.

    Its limit is for a function of Python, and all models of a class have one forward pass.
    """
    return cast(Any, _dynamo_config).patch(_LIMITS)


def trace_whole_graphs_for(back_end: Callable[..., Any]) -> None:
    """Let Dynamo trace recurrent layers and take floats for constants while it compiles for a back end, and only then.

    Dynamo reads its settings while it traces, long before a back end is called. So its tracer sets them for the thread,
    where the graph is for this back end. Modules that it leaves to eager are named.
    """
    tracer = ConvertFrameAssert.__call__
    if getattr(tracer, "_for", None) is back_end:
        return

    @wraps(tracer)
    def trace(self: Any, frame: Any, *args: Any, skip: int = 0, **kwargs: Any) -> Any:
        mine = _innermost(self._torchdynamo_orig_backend) is back_end
        if mine:
            warn_of_eager_modules(list(frame.f_locals.values()))
        with (
            cast(Any, _dynamo_config).patch(_SETTINGS) if mine else nullcontext(),
            first_steps_traced() if mine else nullcontext(),
        ):
            return tracer(self, frame, *args, skip=skip + 1, **kwargs)

    called = CatchErrorsWrapper.__call__

    @wraps(called)
    def call(self: Any, frame: Any, *args: Any, **kwargs: Any) -> Any:
        if frame.f_code is _CALL and _innermost(self) is back_end:
            warn_of_compiled_method(frame.f_locals.get("self"))
        return called(self, frame, *args, **kwargs)

    cast(Any, trace)._for = back_end
    cast(Any, ConvertFrameAssert).__call__ = trace
    cast(Any, CatchErrorsWrapper).__call__ = call


def _innermost(back_end: Any) -> Any:
    """The function that wrappers of a back end call in the end."""
    for name in ("_torchdynamo_orig_backend", "compiler_fn", "func"):
        if (inner := getattr(back_end, name, None)) is not None:
            return _innermost(inner)
    return back_end


def back_ends() -> list[str]:
    """Return the names that ``torch.compile(backend=…)`` knows."""
    return cast(Any, _registry).list_backends(exclude_tags=())


def register_back_end(name: str, back_end: Callable[..., Any]) -> None:
    """Give a back end a name in this process; torch never takes one back."""
    _registry.register_backend(back_end, name)


def trace_artifact(name: str, text: Callable[[], str]) -> None:
    """Add a text to the trace that ``TORCH_TRACE`` asks for; without one the text is not made."""
    trace_structured(
        "artifact",
        metadata_fn=lambda: {"name": name, "encoding": "string"},
        payload_fn=text,
        expect_trace_id=False,  # graphs are compiled when they are called, after Dynamo has done its part
    )


def inductor_mode(settings: Mapping[str, Any]) -> str | None:
    """Return the torch.compile mode that stands for settings of Inductor; None if there is none."""
    return next((name for name, options in inductor_modes().items() if options and options == dict(settings)), None)


def inductor_modes() -> Mapping[str, Mapping[str, Any]]:
    """Return the modes of torch.compile, each with the settings of Inductor that it stands for."""
    from torch._inductor import list_mode_options  # seconds

    return cast("dict[str, dict[str, Any]]", cast(Any, list_mode_options)())


def recompile_reason(of: str) -> str:
    """Return why Dynamo recompiled, in its own words, for a `compile_id`; "" for the first time."""
    for metrics in reversed(list(get_compilation_metrics())):  # a reset of Dynamo starts the numbers anew
        if metrics.compile_id == of and metrics.recompile_reason:
            return " ".join(metrics.recompile_reason.partition("\n")[0].split())
    return ""


def compile_ids(function: Any) -> set[str]:
    """Return Dynamo's names of the compilations that calls of a function or module may run, behind graph breaks too.

    Modules of torch itself, such as `nn.Sequential`, are called through one function of Dynamo, so they share names.

    Args:
        function: what ``torch.compile`` gave, or the function or module that it was given.
    """
    inner = getattr(function, "_orig_mod", getattr(function, "_torchdynamo_orig_callable", function))
    called = (type(inner).forward, wrap_inline(inner)) if isinstance(inner, torch.nn.Module) else (inner,)
    codes: list[Any] = [each.__code__ for each in called if hasattr(each, "__code__")]
    for known in codes:  # grows: what goes on behind a break may break again
        codes += cast(Any, ContinueExecutionCache).cache.get(known, {}).values()
    back_end = _back_end(function)
    entries: list[Any] = [entry for each in codes for entry in _debug_get_cache_entry_list(each)]
    return {str(entry.compile_id) for entry in entries if back_end is None or entry.backend == back_end}


def _back_end(function: Any) -> Any:
    """The back end of a compiled module, with its options; None for anything else, as functions do not say theirs."""
    callback: Any = getattr(getattr(function, "dynamo_ctx", None), "callback", None)
    while (inner := getattr(callback, "_torchdynamo_orig_backend", None)) is not None:
        callback = inner
    return callback


def ends_in_break(graph: Any) -> bool:
    """Return whether Dynamo ended a graph in the middle of a function."""
    reason = getattr(graph, "compile_subgraph_reason", None)
    return reason is not None and bool(reason.graph_break)


def compile_id() -> str:
    """Return Dynamo's name of the current compilation, frame and number, e.g. ``0/1``; "" outside of one."""
    return str(CompileContext.current_compile_id() or "")


def source_name(placeholder: torch.fx.Node) -> str:
    """Return Dynamo's source of an input, e.g. ``L['self']._buffers['mask']``; "" if unknown."""
    name = getattr(getattr(placeholder.meta.get("grapharg"), "source", None), "name", "")
    return str(name() if callable(name) else name)  # a method in torch 2.12, a property since


def forget_example(placeholder: torch.fx.Node) -> None:
    """Reduce Dynamo's note on an input to its source: a tensor that the note refers to could not be swapped."""
    if (note := placeholder.meta.get("grapharg")) is not None:
        placeholder.meta["grapharg"] = SimpleNamespace(source=note.source)
