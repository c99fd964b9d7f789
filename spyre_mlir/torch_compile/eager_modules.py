"""Modules that torch runs in eager though their model is compiled: a warning names them.

`fully_shard` gives a module steps that Dynamo does not trace, so it captures the forward of that module alone. And it
never captures a forward of torch's own, as that of `nn.Linear`, by itself: no back end hears of such a module, and
``nn.Linear(8, 8).compile()`` does nothing.
"""

from __future__ import annotations

import sys
import warnings
from collections.abc import Iterable
from typing import Any, cast
from weakref import WeakSet

from torch import nn

from spyre_mlir.errors import frames_of_ours

_SHARDING = "torch.distributed.fsdp"
_SHOWN = 3
_told: WeakSet[nn.Module] = WeakSet()


class EagerModulesWarning(UserWarning):
    """Torch runs modules of a compiled model in eager."""


def warn_of_eager_modules(traced: Iterable[object]) -> None:
    """Name modules that `fully_shard` divides among ranks, and that have a forward of torch's own; once per module.

    Args:
        traced: what a function that Dynamo traces was given.
    """
    if (sharding := sys.modules.get(_SHARDING)) is None:
        return
    kind: type = sharding.FSDPModule
    for value in traced:
        if not isinstance(value, nn.Module):
            continue
        every: dict[str, nn.Module] = dict(cast(Any, value).named_modules())
        new = {n: m for n, m in every.items() if isinstance(m, kind) and _is_torchs(m) and m not in _told}
        _told.update(new.values())
        if new:
            warnings.warn(_text(value, new), EagerModulesWarning, stacklevel=frames_of_ours())


def warn_of_compiled_method(module: object) -> None:
    """Say that `compile` of a module does nothing, if its forward is torch's own; once per module.

    Args:
        module: on which `compile` was called, and which is called now.
    """
    asked = isinstance(module, nn.Module) and getattr(module, "_compiled_call_impl", None) is not None
    if isinstance(module, nn.Module) and asked and _is_torchs(module) and module not in _told:
        _told.add(module)
        name = _class_of(module)
        warnings.warn(
            f"the method `compile` of torch's own {name} does nothing, as Dynamo captures no forward of torch: "
            'torch runs it in eager\n  try: torch.compile(module, backend="spyre")',
            EagerModulesWarning,
            stacklevel=frames_of_ours(),
        )


def _is_torchs(module: nn.Module) -> bool:
    forward: Any = type(module).forward
    return str(forward.__module__).partition(".")[0] == "torch"


def _text(model: nn.Module, modules: dict[str, nn.Module]) -> str:
    shown = [f"{name or 'the model itself'} ({_class_of(m)})" for name, m in list(modules.items())[:_SHOWN]]
    more = f" and {len(modules) - _SHOWN} more" if len(modules) > _SHOWN else ""
    return (
        f"torch runs modules of {_class_of(model)} in eager, as fully_shard divides them and their forward is torch's "
        f"own: {', '.join(shown)}{more}\n  try: fully_shard modules of your own whose forward calls them"
    )


def _class_of(module: nn.Module) -> str:
    """The class that a module had before `fully_shard` gave it another one."""
    own = [c for c in type(module).__mro__ if not c.__module__.startswith(_SHARDING)]
    return own[0].__name__
