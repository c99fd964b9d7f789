"""Every use of an interface of Dynamo without a stability promise: the file to check at a torch upgrade.

Used: `torch._dynamo.config`, `convert_frame`, `utils` and `exc` (what it traces, for whom, why it compiled again, and
what it cannot capture), `torch._guards` (which compilation runs), `torch._inductor.list_mode_options` (what a mode of
torch.compile stands for). Loading Dynamo takes a second, so nothing outside
of `torch_compile` imports this module.

Decision: docs/decisions/0013-private-interfaces.md
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import nullcontext
from functools import wraps
from types import SimpleNamespace
from typing import Any, cast

import torch
from torch._dynamo import config as _dynamo_config
from torch._dynamo.convert_frame import ConvertFrameAssert
from torch._dynamo.exc import Unsupported
from torch._dynamo.utils import get_compilation_metrics
from torch._guards import CompileContext

__all__ = [
    "Unsupported",
    "compile_id",
    "forget_example",
    "inductor_mode",
    "recompile_reason",
    "source_name",
    "trace_recurrent_layers_for",
]


def trace_recurrent_layers_for(back_end: Callable[..., Any]) -> None:
    """Let Dynamo trace `nn.LSTM` and related layers while it compiles for a back end, and only then.

    It leaves them to eager by default, by a setting that it reads while it traces, long before a back end is called.
    So its tracer sets it for the thread, where the graph is for this back end.
    """
    tracer = ConvertFrameAssert.__call__
    if getattr(tracer, "_for", None) is back_end:
        return

    @wraps(tracer)
    def trace(self: Any, *args: Any, skip: int = 0, **kwargs: Any) -> Any:
        mine = _innermost(self._torchdynamo_orig_backend) is back_end
        with cast(Any, _dynamo_config).patch(allow_rnn=True) if mine else nullcontext():
            return tracer(self, *args, skip=skip + 1, **kwargs)

    cast(Any, trace)._for = back_end
    cast(Any, ConvertFrameAssert).__call__ = trace


def _innermost(back_end: Any) -> Any:
    """The function that wrappers of a back end call in the end."""
    for name in ("_torchdynamo_orig_backend", "compiler_fn", "func"):
        if (inner := getattr(back_end, name, None)) is not None:
            return _innermost(inner)
    return back_end


def inductor_mode(settings: Mapping[str, Any]) -> str | None:
    """Return the torch.compile mode that stands for settings of Inductor; None if there is none."""
    from torch._inductor import list_mode_options  # seconds

    modes = cast("dict[str, dict[str, Any]]", cast(Any, list_mode_options)())
    return next((name for name, options in modes.items() if options and options == dict(settings)), None)


def recompile_reason(of: str) -> str:
    """Return why Dynamo recompiled, in its own words, for a `compile_id`; "" for the first time."""
    for metrics in reversed(list(get_compilation_metrics())):  # a reset of Dynamo starts the numbers anew
        if metrics.compile_id == of and metrics.recompile_reason:
            return " ".join(metrics.recompile_reason.partition("\n")[0].split())
    return ""


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
