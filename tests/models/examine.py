"""Everything the zoo's tests and its page ask of a program, found by compiling it once."""

from __future__ import annotations

import copy
import time
import warnings
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache, lru_cache
from typing import Any

import torch
from torch import nn
from torch.utils._pytree import tree_leaves
from xdsl.dialects.builtin import ModuleOp

import spyre_mlir
from spyre_mlir.compiled import CompiledModel
from spyre_mlir.dialects.aten import AtenOp
from spyre_mlir.dialects.spyre.kernel import KernelOp
from spyre_mlir.dialects.superdsc.model.certainty import certainty_of
from spyre_mlir.hw.certainty import Tag
from tests.models.zoo import build
from tests.oracles.bundle_steps import Step, host_steps
from tests.oracles.dl16_emulation import double, emulate, rms_error

NATIVE, COMPOSED = "native", "composed"


@dataclass(frozen=True)
class Examined:
    """A program of the zoo, compiled.

    Attributes:
        kernels: kernels by the support of the op they come from: native or composed.
        host: steps that the host runs.
        levels: per level, the largest error against torch in exact numerics, relative to the largest result.
        device: root mean square error of device numerics, the worst of all results.
        emulated: the same of torch with every result rounded to DLFloat16; None where the emulation cannot follow.
        certainty: the weakest claim about the hardware that a kernel rests on, by letter.
        inferred: kernels that rest on what was only inferred, with the reason.
        seconds: to compile.
        trouble: what torch's verification found, or nothing.
    """

    name: str
    kernels: Mapping[str, int]
    host: tuple[Step, ...]
    levels: Mapping[str, float]
    device: float
    emulated: float | None
    certainty: str
    inferred: Mapping[str, str] = field(default_factory=dict[str, str])
    seconds: float = 0.0
    trouble: str = ""

    @property
    def worst(self) -> float:
        """The largest error of any level."""
        return max(self.levels.values())

    @property
    def reasons(self) -> dict[str, str]:
        """Operators of the host that the device could not run, and why; what only follows them is left out."""
        return {step.callee: step.reason for step in self.host if step.reason}


@cache
def examined(name: str) -> Examined:
    """Compiles and runs a program of the zoo; once per session, however many tests ask."""
    compiled, inputs, seconds = compiled_once(name)
    verification = compiled.verify(*copy.deepcopy(inputs))
    found = {kernel.launch.file: certainty_of(kernel.launch.descriptor) for kernel in compiled.timeline().kernels}
    return Examined(
        name,
        kernels_by_support(compiled),
        host_steps(compiled.bundle_directory()),
        {level.level: level.error for level in verification.levels},
        *device_errors(name, compiled),
        Tag.weakest(value.tag for value in found.values()).value,
        {file: str(value) for file, value in found.items() if value.tag is Tag.INFERRED},
        seconds,
        "" if verification else str(verification),
    )


@lru_cache(maxsize=1)  # the tests of a program follow one another: see conftest.py
def compiled_once(name: str) -> tuple[CompiledModel, tuple[torch.Tensor, ...], float]:
    """A program of the zoo, compiled, its inputs, and seconds; host steps are asserted elsewhere, not warned about."""
    model, inputs = build(name)
    start = time.monotonic()
    compiled = spyre_mlir.compile(model, copy.deepcopy(inputs), host_fallback="allow")
    assert isinstance(compiled, CompiledModel)
    return compiled, inputs, time.monotonic() - start


def kernels_by_support(compiled: CompiledModel) -> dict[str, int]:
    """How many kernels come from ops that are native, and how many from composed ones; told by their places."""
    modules = compiled._lowered.modules
    support = _support(modules["aten"])
    kernels = [op for op in modules["spyre.kernel"].walk() if isinstance(op, KernelOp)]
    return dict(Counter(support.get(str(op.location), COMPOSED) for op in kernels))


def _support(module: ModuleOp) -> dict[str, str]:
    """Support by place in the model's source; a place with several ops is composed if one of them is."""
    supports: dict[str, str] = {}
    for op in module.walk():
        if isinstance(op, AtenOp) and op.entry is not None:
            support = NATIVE if op.entry.decompose is None else COMPOSED
            place = str(op.location)
            supports[place] = COMPOSED if COMPOSED in (support, supports.get(place)) else NATIVE
    return supports


def device_errors(name: str, compiled: CompiledModel) -> tuple[float, float | None]:
    """The worst errors of the device and of the emulation; None for one that cannot follow."""
    model, inputs = build(name)
    with torch.no_grad():
        leaves = tree_leaves(copy.deepcopy(model)(*copy.deepcopy(inputs)))
    floating = [leaf for leaf in leaves if leaf.is_floating_point()]
    # What the program writes to buffers comes first among its results, and the emulation does not show it.
    device = max(compiled.accuracy(*copy.deepcopy(inputs)).errors[-len(floating) :])
    if len(floating) < len(leaves) or not all(bool(leaf.isfinite().all()) for leaf in floating):
        return device, None
    try:
        expected = tree_leaves(double(model, *copy.deepcopy(inputs)))
        rounded = tree_leaves(emulate(model, *copy.deepcopy(inputs)))
    except RuntimeError as error:
        if "got Double" not in str(error):
            raise
        return device, None  # torch multiplies groups of rows in single precision at best
    return device, max(rms_error(a, b) for a, b in zip(rounded, expected, strict=True))


def weightless(model: nn.Module) -> nn.Module:
    """The model with its parameters and buffers on the meta device; tensors that are one stay one."""
    empty: dict[torch.Tensor, torch.Tensor] = {}
    for module in model.modules():
        for holder in (module._parameters, module._buffers):
            for name, tensor in holder.items():
                if tensor is not None:
                    made = tensor.detach().to("meta")
                    kept = nn.Parameter(made, requires_grad=False) if isinstance(tensor, nn.Parameter) else made
                    holder[name] = empty.setdefault(tensor, kept)
    return model


@lru_cache(maxsize=1)
def compiled_without_weights(name: str) -> CompiledModel:
    """The program, compiled from a model whose parameters and buffers have no values."""
    model, inputs = build(name)
    compiled = spyre_mlir.compile(weightless(model), inputs, host_fallback="allow")
    assert isinstance(compiled, CompiledModel)
    return compiled


def by_compile(name: str) -> Any:
    """The results in exact numerics, by `spyre_mlir.compile`."""
    compiled, inputs, _ = compiled_once(name)
    return compiled.in_exact_numerics()(*copy.deepcopy(inputs))


def by_torch_compile(name: str) -> Any:
    """The results in exact numerics, by `torch.compile`."""
    from spyre_mlir import torch_compile

    torch._dynamo.reset()
    torch_compile.forget()
    model, inputs = build(name)
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return torch.compile(
            model, backend=torch_compile.spyre, options={"numerics": "exact", "host_fallback": "allow"}
        )(*inputs)


# Every way from a model to results; a row of the page is made by the first.
ROUTES: dict[str, Callable[[str], Any]] = {"compile": by_compile, "torch.compile": by_torch_compile}
