"""Plans that are printed, changed by hand, read again and run: each change takes effect and gives eager's numbers."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
import pytest
import torch
from torch import nn
from xdsl.dialects.builtin import ModuleOp
from xdsl.dialects.scf import ForOp

from spyre_mlir.backend.directory import split_module
from spyre_mlir.debug.remaining_passes import lower_on
from spyre_mlir.dialects.spyre.hints import HINT, HintError
from spyre_mlir.dialects.spyre.kernel import AllocOp, KernelOp, device_tensor
from spyre_mlir.dialects.superdsc.codec.describe import describe
from spyre_mlir.frontend import import_program
from spyre_mlir.machine.bundle.host_program import DeviceProgram, run_program
from spyre_mlir.text.render import module_text, parse_module, verify_module
from spyre_mlir.universe import make_context

RANDOM = torch.Generator().manual_seed(0)
KERNEL = re.compile(r"spyre\.kernel\.(compute|restickify|convert)")


class Gated(nn.Module):
    """Two products with a function between them, and a softmax."""

    def __init__(self) -> None:
        super().__init__()
        self.up = nn.Linear(128, 256, bias=False)
        self.down = nn.Linear(256, 128, bias=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.softmax(self.down(nn.functional.silu(self.up(x))), -1)


class Attention(nn.Module):
    """Causal attention of two heads."""

    def forward(self, q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        return nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)


class Image(nn.Module):
    """A convolution beside a shortcut."""

    def __init__(self) -> None:
        super().__init__()
        self.convolution = nn.Conv2d(64, 64, 3, padding=1)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(self.convolution(x) + x)


class Norm(nn.Module):
    """A normalization before a product."""

    def __init__(self) -> None:
        super().__init__()
        self.norm = nn.LayerNorm(128)
        self.linear = nn.Linear(128, 64)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.linear(self.norm(x)) + 1


class Branches(nn.Module):
    """Two results of functions that share one."""

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        x = torch.exp(x)
        return x * 2, torch.sigmoid(y) + x


class Rows(nn.Module):
    """A softmax."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.softmax(x, -1)


MODELS: dict[str, tuple[Callable[[], nn.Module], list[tuple[int, ...]]]] = {
    "gated": (Gated, [(64, 128)]),
    "attention": (Attention, [(1, 2, 64, 64)] * 3),
    "image": (Image, [(1, 64, 8, 8)]),
    "norm": (Norm, [(64, 128)]),
    "branches": (Branches, [(64, 128)] * 2),
    "rows": (Rows, [(256, 128)]),
}


@dataclass(frozen=True)
class Case:
    """A model with its inputs, and what eager mode makes of them."""

    model: nn.Module
    inputs: list[torch.Tensor]
    expected: list[torch.Tensor]

    def stopped(self, place: str) -> str:
        """The text of the program behind a pass."""
        module = import_program(self.model, tuple(self.inputs)).module
        lower_on(module, make_context(), place)
        return module_text(module)


@cache
def case(name: str) -> Case:
    torch.manual_seed(0)
    make, shapes = MODELS[name]
    model, inputs = make().eval(), [torch.randn(shape, generator=RANDOM) for shape in shapes]
    with torch.no_grad():
        made = model(*inputs)
    return Case(model, inputs, list(made) if isinstance(made, tuple) else [made])


def run(case: Case, text: str) -> ModuleOp:
    """Go on with a text to the bundle, run that, and hold the numbers against eager's; return the kernels placed."""
    module = parse_module(text, make_context())
    verify_module(module)
    lower_on(module, make_context(), "spyre.kernel")
    placed = parse_module(module_text(module), make_context())
    lower_on(module, make_context(), "superdsc")
    host, bundle, files = split_module(module)
    weights: dict[str, Any] = dict(case.model.named_parameters())
    inputs = [x.numpy() for x in case.inputs]
    names = re.findall(r'aten\.name = "([^"]*)", aten\.kind = "(?:parameter|input)"', text.split(" -> (")[0])
    arguments = [weights[n].detach().numpy() if n in weights else inputs.pop(0) for n in names]
    got = run_program(DeviceProgram(host, bundle, lambda name: describe(files[name])), arguments)
    for one, wanted in zip(got, case.expected, strict=True):
        np.testing.assert_allclose(np.asarray(one, dtype=np.float32), wanted.numpy(), rtol=1e-4, atol=1e-5)
    return placed


def kernels(module: ModuleOp) -> list[KernelOp]:
    return [op for op in module.walk() if isinstance(op, KernelOp)]


def places(module: ModuleOp, attribute: str = "") -> list[tuple[str, int]]:
    """Memory and address of every buffer, or of those with an attribute."""
    found = [op for op in module.walk() if isinstance(op, AllocOp) and attribute in ("", *op.attributes)]
    return [(device_tensor(op.result).space, -1 if op.offset is None else op.offset.value.data) for op in found]


@pytest.mark.parametrize("name", MODELS)
def test_another_division_runs(name: str) -> None:
    text = case(name).stopped("plan")
    usual = [op.space_splits() for op in kernels(run(case(name), text))]
    halved = re.sub(r"over (\d+)", lambda found: f"over {max(1, int(found[1]) // 2)}", text)
    changed = [op.space_splits() for op in kernels(run(case(name), halved))]
    assert changed != usual and len(changed) == len(usual)


@pytest.mark.parametrize("name", MODELS)
def test_a_buffer_moves_to_device_memory_or_to_another_address(name: str) -> None:
    planned = case(name).stopped("plan")
    usual = places(run(case(name), planned))
    hinted = planned.replace("spyre.kernel.alloc", 'spyre.kernel.alloc {spyre.hint = {place = "hbm"}}')
    assert {space for space, _ in places(run(case(name), hinted), HINT)} == {"hbm"} and ("lx", 0) in usual
    placed = case(name).stopped("spyre.kernel")
    moved = re.sub(r"(alloc at )(\d+)( : i64 : [^\n]*lx>)", lambda m: f"{m[1]}{int(m[2]) + 2**17}{m[3]}", placed)
    assert min(at for space, at in places(run(case(name), moved)) if space == "lx") >= 2**17


@pytest.mark.parametrize("name", MODELS)
def test_a_kernel_is_put_into_a_loop(name: str) -> None:
    """The first kernel that has rows which two trips can share."""
    lines = case(name).stopped("order-batches").splitlines()
    for number, line in enumerate(lines):
        loops = re.findall(r"\b(\w+) = (\d+)", line.partition("] ins")[0]) if KERNEL.search(line) else []
        tiled = [loop for loop, extent in loops[:-1] if int(extent) % 2 == 0 and loop != "r"]
        for loop in tiled:
            said = f" attributes {{spyre.hint = {{tile = {{{loop} = 2}}}}}}"
            try:
                made = run(case(name), "\n".join([*lines[:number], line + said, *lines[number + 1 :]]))
            except HintError:
                continue  # the layout has no blocks of this loop
            assert sum(isinstance(op, ForOp) for op in made.walk()) == 1
            return
    pytest.fail("no kernel was found")


@pytest.mark.parametrize(("name", "at"), [("attention", 0), ("branches", 1), ("image", 1)])
def test_kernels_that_do_not_read_each_other_change_places(name: str, at: int) -> None:
    """Buffers, constants and inputs stand first then, so that lines of kernels can move."""
    lines = case(name).stopped("plan").splitlines()
    head = next(n for n, line in enumerate(lines) if "func.func" in line)
    makers = [line for line in lines if re.search(r"spyre\.kernel\.(alloc|constant|to_device)", line)]
    others = [line for line in lines[head + 1 :] if line not in makers]
    first, second = [n for n, line in enumerate(others) if KERNEL.search(line)][at : at + 2]
    others[first], others[second] = others[second], others[first]
    made = run(case(name), "\n".join([*lines[: head + 1], *makers, *others]))
    usual = [op.function_name for op in kernels(parse_module("\n".join(lines), make_context()))]
    found = [op.function_name for op in kernels(made)]
    assert found[at : at + 2] == usual[at : at + 2][::-1] and len({*usual[at : at + 2]}) == 2
