"""Functions of torch that are replaced while the frontend traces: an export does less, and takes no tensors for one.

Used, private: `GraphModule.recompile` and `utils._traceback` (code and lines of an export that are not used),
`_higher_order_ops.scan` (tensors that bodies of loops are traced with), `_functional_collectives` (what torch calls in
place of other collectives). `torch_private` has what is used as it is.

Decision: docs/decisions/0201-exports-compile-only-graphs-that-run.md
"""

from __future__ import annotations

from collections.abc import Generator
from contextlib import contextmanager
from importlib import import_module
from threading import get_ident
from traceback import FrameSummary, StackSummary
from typing import Any, cast
from weakref import WeakSet

import torch
from torch.distributed import _functional_collectives
from torch.fx import GraphModule
from torch.utils import _traceback


@contextmanager
def unread_left_out() -> Generator[None]:
    """Within the block, graphs of this thread get their Python code at its end, and frames of traces their lines late.

    An export writes the code of a graph after each of its passes, and compiles it; only the last one is run. Of the
    frames behind an operator a trace keeps those of the model.
    """
    graphs, traces = cast(Any, GraphModule), cast(Any, _traceback)
    thread, recompile, extract = get_ident(), graphs.recompile, traces._extract_symbolized_tb
    pending = WeakSet[Any]()

    def recompile_later(module: Any) -> Any:
        if get_ident() != thread:
            return recompile(module)
        if (tree := getattr(module.graph._codegen, "pytree_info", None)) is not None:
            module._in_spec, module._out_spec = tree.in_spec, tree.out_spec

        def forward(called: Any, *args: Any, **kwargs: Any) -> Any:
            recompile(called)
            return called.forward(*args, **kwargs)

        type(module).forward = forward
        pending.add(module)
        return None

    def frames(traced: Any, skip: int) -> StackSummary:
        found = [(f["filename"], f["line"], f["name"]) for f in reversed(traced[skip:])]
        return StackSummary(FrameSummary(*frame, lookup_line=False) for frame in found)

    graphs.recompile, traces._extract_symbolized_tb = recompile_later, frames
    try:
        yield
    finally:
        graphs.recompile, traces._extract_symbolized_tb = recompile, extract
    for module in list(pending):  # after an error each gets its code when it is called
        recompile(module)


@contextmanager
def carried_apart() -> Generator[None]:
    """Trace bodies of `scan` with a tensor of its own for each argument.

    Torch hands them one tensor for what is carried from a tensor and for the tensor itself, and then takes every use in
    the body for one of the last argument.
    """
    scan = cast(Any, import_module("torch._higher_order_ops.scan"))  # the name in the package is the function
    traced = scan.reenter_make_fx

    def apart(body: Any, *options: Any, **named: Any) -> Any:
        def trace(*args: Any) -> Any:
            tensors = [a if isinstance(a, torch.Tensor) else None for a in args]
            seen = [t is not None and any(t is before for before in tensors[:n]) for n, t in enumerate(tensors)]
            return traced(body, *options, **named)(*[a.clone() if s else a for a, s in zip(args, seen, strict=True)])

        return trace

    scan.reenter_make_fx = apart
    try:
        yield
    finally:
        scan.reenter_make_fx = traced


@contextmanager
def collectives_left_alone() -> Generator[None]:
    """Let torch trace collectives that write to their arguments as calls, which a mode of functions sees."""
    others: dict[Any, Any] = cast(Any, _functional_collectives).traceable_collective_remaps
    kept = dict(others)
    others.clear()
    try:
        yield
    finally:
        others.update(kept)


__all__ = ["carried_apart", "collectives_left_alone", "unread_left_out"]
