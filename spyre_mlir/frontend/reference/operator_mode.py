"""Modes of torch that see each operator, also in the graphs of control flow and of attention."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, cast

import torch

from spyre_mlir.frontend.torch_private import (
    HigherOrderOperator,
    Operator,
    TorchDispatchMode,
    flex_attention_of,
    tree_flatten,
    tree_map,
    views_resolved,
)


class OperatorMode(TorchDispatchMode):
    """A mode that runs every operator in its own way."""

    supports_higher_order_operators = True

    @abstractmethod
    def run(self, func: Operator, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        """Run one operator; the mode is off inside."""

    def __torch_dispatch__(
        self, func: object, types: Any, args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None
    ) -> Any:
        """Runs one operator, or the operators of the graphs that one runs."""
        if isinstance(func, HigherOrderOperator):
            return self._run_graphs(func, args, kwargs or {})
        with views_resolved():
            return self.run(cast(Operator, func), args, kwargs or {})

    def _run_graphs(self, func: HigherOrderOperator, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        run = _GRAPHS.get(func.name())
        if run is None:
            return cast(Any, func)(*args, **kwargs)
        with self:
            return run(*args, **kwargs)


def _scan(body: Callable[..., Any], init: Sequence[Any], xs: Sequence[torch.Tensor], others: Sequence[Any]) -> Any:
    carried, made = list(init), list[Any]()
    for row in zip(*xs, strict=True):
        made.append(body(*carried, *row, *others))
        carried = tree_flatten(made[-1])[0][: len(init)]
    if not isinstance(body, torch.nn.Module):  # a model's own function gives what it carries, and a result, as trees
        return made[-1][0], _stacked([out for _, out in made])
    return [*carried, *_stacked([list(given)[len(init) :] for given in made])]


def _stacked(trees: Sequence[Any]) -> Any:
    return tree_map(lambda *column: torch.stack(column), *trees)


def _map(
    body: Callable[..., Any], xs: Sequence[torch.Tensor], others: Sequence[Any], *, mutated_arg_indices: str = ""
) -> Any:
    # Torch 2.15 says which arguments the body writes to; rows are views, so that what is written arrives by itself.
    del mutated_arg_indices
    rows = [body(*row, *others) for row in zip(*xs, strict=True)]
    return _stacked(rows)


def _cond(holds: Any, then: Callable[..., Any], otherwise: Callable[..., Any], given: Sequence[Any]) -> Any:
    return (then if bool(holds) else otherwise)(*given)


def _while_loop(holds: Callable[..., Any], body: Callable[..., Any], init: Sequence[Any], others: Sequence[Any]) -> Any:
    carried = tuple(init)
    while bool(holds(*carried, *others)):
        carried = tuple(tree_flatten(body(*carried, *others))[0])
    return carried


_GRAPHS: dict[str, Callable[..., Any]] = {
    "scan": _scan,
    "map_impl": _map,
    "cond": _cond,
    "while_loop": _while_loop,
    "flex_attention": flex_attention_of,
}
