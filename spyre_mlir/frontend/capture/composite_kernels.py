"""Kernels that keep composite operators whole in a trace, or take them apart by a table: put in place in a millisecond.

Torch makes a score of kernels for each of its 500 composite operators whenever a trace begins, which takes a tenth of a
second, a third of the time to compile a small program. They are the same every time, so those of the first trace are
kept.

Used, all private: `_override_composite_implicit_decomp` of `export.exported_program`, `OpOverload.py_kernels` and
`_dispatch_cache`, `torch._C.DispatchKey`, `torch._decomp.decomposition_table`, and `op_implementations_dict` of
`fake_impls`, which the first one writes.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Hashable, Iterable, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, cast

import torch
from torch._subclasses import fake_impls
from torch.export import exported_program

from spyre_mlir.frontend.torch_private import Operator, is_composite

Composites = Mapping[Operator, Callable[..., Any]]
_FORMS = cast("dict[Operator, Callable[..., Any]]", cast(Any, torch)._decomp.decomposition_table)
_Kernels = dict[Hashable, Callable[..., Any]]
_RULES = cast("dict[Operator, Callable[..., Any]]", cast(Any, fake_impls).op_implementations_dict)


class CompositeKernels:
    """Kernels for the composite operators of a table of decompositions.

    Attributes:
        table: what takes each of them apart.
    """

    def __init__(self, composites: Composites) -> None:
        """Keeps the table; the first trace makes the kernels."""
        self.table = dict(composites)
        self._usual: _State | None = None
        self._kept = _State([], {})

    @contextmanager
    def installed(self) -> Generator[None]:
        """Have the kernels in place while the block runs."""
        usual = _State.of(self.table)
        if usual == self._usual:
            self._kept.put_in_place(self.table)
            try:
                yield
            finally:
                usual.put_in_place(self.table)
            return
        # The first trace, or an operator has got another kernel since, as from a library that was imported.
        with cast(Any, exported_program)._override_composite_implicit_decomp(dict(self.table)):
            self._usual, self._kept = usual, _State.of(self.table)
            yield


@contextmanager
def kept_whole(operators: Iterable[Operator]) -> Generator[None]:
    """Have no kernels of Python, while the block runs, that take these operators apart although torch has others.

    That of `multilabel_margin_loss_forward` gives other numbers than torch's own. What torch takes for a form of
    `nll_loss` where sizes are symbols reads the reduction as another argument: `reduction="none"` had no dimension.
    """
    keys = cast(Any, torch)._C.DispatchKey
    taken: list[tuple[Any, Any]] = []
    for operator in operators:
        private = cast(Any, operator)
        if keys.Autograd in private.py_kernels and not is_composite(operator):
            taken.append((private, private.py_kernels.pop(keys.Autograd)))
            private._dispatch_cache.clear()
    other_signature = torch.ops.aten.nll_loss.default
    form = _FORMS.pop(other_signature, None)
    try:
        yield
    finally:
        if form is not None:
            _FORMS[other_signature] = form
        for private, kernel in taken:
            private.py_kernels[keys.Autograd] = kernel
            private._dispatch_cache.clear()


@dataclass(frozen=True)
class _State:
    """Kernels and rules for fake tensors that operators have at one time.

    Attributes:
        kernels: one mapping for each operator, in order.
        rules: of the operators that have one.
    """

    kernels: list[_Kernels]
    rules: dict[Operator, Callable[..., Any]]

    @classmethod
    def of(cls, operators: Composites) -> _State:
        """Return the present state."""
        rules = {operator: _RULES[operator] for operator in operators if operator in _RULES}
        return cls([dict(cast(Any, operator).py_kernels) for operator in operators], rules)

    def put_in_place(self, operators: Composites) -> None:
        """Give the operators these kernels and rules, and no others."""
        for operator, kernels in zip(operators, self.kernels, strict=True):
            private = cast(Any, operator)
            private.py_kernels.clear()
            private.py_kernels.update(kernels)
            private._dispatch_cache.clear()
            _RULES.pop(operator, None)
        _RULES.update(self.rules)
