"""Kernels of composite operators: those that torch puts in place, and gone when the block ends."""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any

import pytest
import torch
from torch._subclasses import fake_impls
from torch.export import exported_program

from spyre_mlir.frontend.capture.composite_kernels import CompositeKernels

aten: Any = torch.ops.aten
OPERATORS = (aten.silu.default, aten.matmul.default, aten.dropout.default, aten.conv2d.default)
TRACES = 3


def whole(*_: object, **__: object) -> Any:
    return NotImplemented


def table() -> dict[Any, Any]:
    return dict.fromkeys(OPERATORS, whole)


def present() -> tuple[list[set[Any]], set[Any]]:
    """The keys that each operator has a kernel for, and the operators with a rule for fake tensors."""
    return [set(o.py_kernels) for o in OPERATORS], {o for o in OPERATORS if o in fake_impls.op_implementations_dict}


def within(block: AbstractContextManager[None]) -> tuple[list[set[Any]], set[Any]]:
    with block:
        return present()


@pytest.fixture
def torchs_own() -> tuple[list[set[Any]], set[Any]]:
    return within(exported_program._override_composite_implicit_decomp(table()))  # type: ignore[attr-defined]


def test_every_trace_has_the_kernels_that_torch_gives_it(torchs_own: tuple[list[set[Any]], set[Any]]) -> None:
    before = present()
    kernels = CompositeKernels(table())
    for _ in range(TRACES):
        assert within(kernels.installed()) == torchs_own != before
        assert present() == before


def test_torch_makes_them_for_the_first_trace_alone(monkeypatch: pytest.MonkeyPatch, torchs_own: object) -> None:
    made = 0
    override = exported_program._override_composite_implicit_decomp  # type: ignore[attr-defined]

    def counted(operators: Any) -> Any:
        nonlocal made
        made += 1
        return override(operators)

    monkeypatch.setattr(exported_program, "_override_composite_implicit_decomp", counted)
    kernels = CompositeKernels(table())
    for _ in range(TRACES):
        within(kernels.installed())
    assert made == 1


def test_a_kernel_of_another_library_is_there_in_the_next_trace_and_behind_it() -> None:
    kernels, operator = CompositeKernels(table()), aten.silu.default
    within(kernels.installed())
    key = torch._C.DispatchKey.SparseCPU
    operator.py_impl(key)(whole)
    try:
        for _ in range(TRACES):
            assert key in within(kernels.installed())[0][0]
            assert operator.py_kernels[key] is whole
    finally:
        del operator.py_kernels[key]
        operator._dispatch_cache.clear()


def test_an_error_in_a_trace_leaves_nothing_behind() -> None:
    before, kernels = present(), CompositeKernels(table())
    for _ in range(TRACES):
        with pytest.raises(ZeroDivisionError), kernels.installed():
            raise ZeroDivisionError
        assert present() == before
