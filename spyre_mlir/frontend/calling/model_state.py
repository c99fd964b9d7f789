"""The state of a model that its program takes for granted: its modules, hooks, modes and Python values.

`torch.export` writes all of this into the program, and nothing of the program follows a later change. Calls compare.

Decision: docs/decisions/0242-changes-of-a-model-are-said.md
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import cast
from weakref import ref

import torch

from spyre_mlir.frontend.calling.model_glance import ModelGlance, hooks_of, parameters_of
from spyre_mlir.frontend.calling.model_values import ABSENT, is_same, shown, values_of
from spyre_mlir.frontend.calling.tensor_states import TensorState


class ModelChangedWarning(UserWarning):
    """A model is no longer what its program was made of, and the program computes what it was."""


@dataclass(frozen=True)
class _ModuleState:
    """A module at the moment of its import.

    Attributes:
        module: the module, which may be gone.
        kind: its class, which parametrizations change.
        forward: a forward of this module alone.
        hooks: torch's numbers of its forward hooks.
        parameters: names of those it has.
        values: of the attributes that its forward reads.
    """

    module: ref[torch.nn.Module]
    kind: type[torch.nn.Module]
    forward: object
    hooks: tuple[int, ...]
    parameters: tuple[str, ...]
    values: Mapping[str, object]

    @classmethod
    def of(cls, module: torch.nn.Module) -> _ModuleState:
        held = vars(module)
        own, values = parameters_of(held), dict(values_of(module, held))
        return cls(ref(module), type(module), held.get("forward"), hooks_of(held), own, values)

    def changes(self, name: str, module: torch.nn.Module) -> Iterator[str]:
        """Say how a module differs from what it was: that it is another one, or else which attributes differ."""
        now = _ModuleState.of(module)
        if (text := self._structure(now)) is not None:
            yield f"module '{name}' {text}" if name else f"the model {text}"
            return
        for attribute in sorted({*self.values, *now.values}):
            before, after = self.values.get(attribute, ABSENT), now.values.get(attribute, ABSENT)
            if not is_same(before, after):
                place = f"{name}.{attribute}".lstrip(".") if " of " not in attribute else attribute
                yield f"'{place}' {_difference(before, after)}"

    def _structure(self, now: _ModuleState) -> str | None:
        if self.module() is not now.module() or self.kind is not now.kind:
            return f"is another one: {now.kind.__name__}, was {self.kind.__name__}"
        if self.parameters != now.parameters:
            return f"has parameters {', '.join(now.parameters) or 'none'}, had {', '.join(self.parameters) or 'none'}"
        if self.forward is not now.forward:
            return "has another forward"
        return "has other hooks" if self.hooks != now.hooks else None


def autocast_now() -> str:
    """Return the type to which `torch.autocast` casts on the host now; "" if it does not."""
    return str(torch.get_autocast_dtype("cpu")) if torch.is_autocast_enabled("cpu") else ""


class ModelState:
    """The state of a model when a program was made of it."""

    def __init__(self, model: torch.nn.Module) -> None:
        """Takes the state that it has now; keeps no module alive."""
        now = _named(model)
        self._model = ref(model)
        self._glance, self._texts = ModelGlance(now.values()), tuple[str, ...]()
        self._modules = {name: _ModuleState.of(module) for name, module in now.items()}
        self._autocast = autocast_now()

    def changes(self) -> tuple[str, ...]:
        """Say what differs now, one text each."""
        if (model := self._model()) is None:
            return ()
        if not self._glance.lasts():
            now = _named(model)
            # The glance comes first: what another thread changes between the two is seen by the next call.
            self._glance = ModelGlance(now.values())
            self._texts = self._of_modules(now)
        return (*self._of_autocast(), *self._texts)

    def _of_modules(self, now: Mapping[str, torch.nn.Module]) -> tuple[str, ...]:
        gone = [f"there is no module '{name}'" for name in self._modules if name not in now]
        new = [f"module '{name}' is new" for name in now if name not in self._modules]
        changed = [text for name, module in now.items() for text in self._of(name, module)]
        return (*changed, *gone, *new)

    def _of(self, name: str, module: torch.nn.Module) -> Iterator[str]:
        return iter(()) if (before := self._modules.get(name)) is None else before.changes(name, module)

    def _of_autocast(self) -> Iterator[str]:
        """A program that was made under autocast has its types wherever it is called."""
        if (now := autocast_now()) and now != self._autocast:
            yield f"the call is under autocast to {now}, which compilation was not"


def _named(model: torch.nn.Module) -> dict[str, torch.nn.Module]:
    return dict(cast("Iterator[tuple[str, torch.nn.Module]]", model.named_modules()))


def _difference(before: object, after: object) -> str:
    if isinstance(before, TensorState) or isinstance(after, TensorState):
        return "is another tensor, or has other numbers"
    return f"is {shown(after)}, was {shown(before)}"


__all__ = ["ModelChangedWarning", "ModelState", "autocast_now"]
