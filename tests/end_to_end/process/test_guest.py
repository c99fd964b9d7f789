"""In a process of others: what importing, switching on and compiling leave behind in torch, each in a fresh process."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Sequence

import pytest

COMPILES = """
import torch
print(torch.compile(lambda x: x + 1, backend="spyre", options={"numerics": "exact"})(torch.ones(2)).tolist())
"""
# What torch-spyre's package does to torch when it is imported.
THEIRS = """
import sys, types, torch
theirs = types.ModuleType("torch_spyre")
theirs.is_available = lambda: False  # as without a card
torch.utils.rename_privateuse1_backend("spyre")
torch._register_device_module("spyre", theirs)
"""
SWITCH = """
try:
    import spyre_mlir.device
except ValueError as error:
    print(type(error).__name__, error)
"""


def run(code: str, python: Sequence[str] = (sys.executable,), **environment: str) -> tuple[str, str]:
    """What a script prints in a process of its own: standard output and error.

    Args:
        code: the script.
        python: starts Python; by default anew, for scripts that look at what is loaded.
        environment: variables.
    """
    variables = {k: v for k, v in os.environ.items() if k != "SPYRE_MLIR_DEVICE"}
    done = subprocess.run(
        [*python, "-c", code], capture_output=True, text=True, env=variables | environment, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout, done.stderr


def test_importing_claims_nothing() -> None:
    out, _ = run(
        "import torch, sys\n"
        "print(torch._C._get_privateuse1_backend_name(), hasattr(torch, 'spyre'))\n"
        "import spyre_mlir, spyre_mlir.torch_compile\n"
        "print('torch._dynamo' in sys.modules, 'spyre_mlir.frontend' in sys.modules)\n"
        "print(torch._C._get_privateuse1_backend_name(), hasattr(torch, 'spyre'))\n"
    )
    assert out.splitlines() == ["privateuseone False", "False False", "privateuseone False"]


def test_another_device_is_named_where_ours_is_asked_for(python: list[str]) -> None:
    out, _ = run("import spyre_mlir" + THEIRS.replace('"spyre"', '"npu"') + SWITCH + COMPILES, python)
    lines = out.splitlines()
    assert lines[0].startswith("RegistrationError")
    assert "room for one device from outside, and 'npu', <module 'torch_spyre'>, is there already" in lines[0]
    assert 'backend="spyre"' in lines[1]
    assert lines[-1] == "[2.0, 2.0]"


@pytest.mark.slow(reason="a second order of the same imports")
def test_beside_a_package_that_has_the_name_first() -> None:
    out, _ = run(THEIRS + SWITCH + COMPILES + "print(torch.spyre is theirs)")
    assert "and 'spyre', <module 'torch_spyre'>, is there already" in out
    assert out.endswith("[2.0, 2.0]\nTrue\n")


@pytest.mark.slow(reason="a third order of the same imports")
def test_beside_a_package_that_takes_the_name_later() -> None:
    out, _ = run("import spyre_mlir" + COMPILES + THEIRS + COMPILES + SWITCH + "print(torch.spyre is theirs)")
    assert out.count("[2.0, 2.0]") == 2
    assert "is there already" in out
    assert out.endswith("True\n")


def test_a_package_that_comes_after_the_switch_is_told_who_has_the_name(python: list[str]) -> None:
    caught = THEIRS.replace("\n", "\n    ")
    out, _ = run(f"import spyre_mlir.device\ntry:{caught}\nexcept RuntimeError as error: print(error)", python)
    assert "already been registered with 'the device of spyre-mlir" in out


def test_kernels_of_an_extension_that_has_no_name_are_seen(python: list[str]) -> None:
    code = (
        "import torch; l = torch.library.Library('aten', 'IMPL'); l.impl('empty.memory_format', print, 'PrivateUse1')"
    )
    assert "an extension without a name is there already" in run(code + SWITCH, python)[0]


def test_tensors_of_another_package_are_not_taken_for_ours(python: list[str]) -> None:
    code = """
class There:
    class device: type = "spyre"
from spyre_mlir.torch_compile.backend import Captured
from torch.fx import symbolic_trace
graph = symbolic_trace(lambda x: (x + 1,))
import unittest.mock as mock
with mock.patch("spyre_mlir.torch_compile.backend.is_on_device", lambda graph: True):
    try: Captured.of(graph, [{}])
    except Exception as error: print(error)
"""
    assert "tensors on the device spyre of another package, <module 'torch_spyre'>" in run(THEIRS + code, python)[0]


def test_the_variable_switches_the_device_on_for_unchanged_scripts() -> None:
    code = (
        "import torch, sys; print(hasattr(torch, 'spyre'), 'spyre_mlir.frontend' in sys.modules, "
        "'torch._dynamo' in sys.modules)"
    )
    out, errors = run(code, SPYRE_MLIR_DEVICE="1")
    assert out == "True False False\n"
    assert "Warning" not in errors


@pytest.mark.parametrize("value", ["0", ""])
def test_other_values_of_the_variable_leave_it_off(value: str, python: list[str]) -> None:
    code = "import torch, sys; print(hasattr(torch, 'spyre'), 'spyre_mlir.frontend' in sys.modules)"
    out, errors = run(code, python, SPYRE_MLIR_DEVICE=value)
    assert out == "False False\n"
    assert "Warning" not in errors


def test_the_variable_warns_where_it_cannot_be_followed(python: list[str]) -> None:
    assert "SPYRE_MLIR_DEVICE is 1 or 0, got 'yes'" in run("import torch", python, SPYRE_MLIR_DEVICE="yes")[1]
    late = "import os, torch; from spyre_mlir.torch_device import register\n" + THEIRS
    late += "os.environ['SPYRE_MLIR_DEVICE'] = '1'; register()"
    assert "SPYRE_MLIR_DEVICE=1: PyTorch has room for one device" in run(late, python)[1]


STATE = """
import logging, signal, sys, threading, warnings
import torch, torch._dynamo, torch._inductor, torch.export
import numpy as np

def state():
    return {
        "dynamo": torch._dynamo.config.get_config_copy(),
        "inductor": torch._inductor.config.get_config_copy(),
        "functorch": torch._functorch.config.get_config_copy(),
        "mha": torch.backends.mha.get_fastpath_enabled(),
        "default back end": torch.compiler.get_default_backend(),
        "default dtype": torch.get_default_dtype(),
        "default device": torch.get_default_device(),
        "threads": torch.get_num_threads(),
        "grad": (torch.is_grad_enabled(), torch.is_inference_mode_enabled()),
        "determinism": torch.are_deterministic_algorithms_enabled(),
        "random": torch.get_rng_state().tolist(),
        "slot": (torch._C._get_privateuse1_backend_name(), hasattr(torch, "spyre")),
        "filters": list(warnings.filters),
        "streams": (sys.stdout, sys.stderr, sys.excepthook),
        "recursion": sys.getrecursionlimit(),
        "loggers": {n: (l.level, l.filters[:], l.handlers[:]) for n, l in logging.root.manager.loggerDict.items()
                    if isinstance(l, logging.Logger) and not n.startswith("spyre_mlir")},
        "numpy": (np.geterr(), np.get_printoptions()),
        "signals": [signal.getsignal(s) for s in (signal.SIGINT, signal.SIGTERM, signal.SIGPIPE)],
        "threads running": threading.active_count(),
        "inductor's call": torch._TorchCompileInductorWrapper.__call__,
    }

def changed(since):
    now = state()
    return sorted(k for k in now if k in since and now[k] != since[k])

def first_use():
    # torch sets up its own loggers and caches on its first compilation
    torch.compile(torch.nn.Linear(2, 2), backend="eager")(torch.ones(1, 2))
    torch.export.export(torch.nn.Linear(2, 2), (torch.ones(1, 2),)).run_decompositions()
    return torch.nn.TransformerEncoderLayer(8, 2, 8, batch_first=True).eval(), torch.nn.Linear(2, 2)
layer, model = first_use()
start = state()
"""


def test_importing_and_compiling_leave_torch_and_python_as_they_were(python: list[str]) -> None:
    out, _ = run(
        STATE
        + """
import spyre_mlir, spyre_mlir.torch_compile, spyre_mlir.api, spyre_mlir.torch_compile.backend
print("import", changed(start))
with torch.no_grad():
    x = torch.ones(1, 2, 8)
    torch.compile(layer, backend="spyre")(x)
print("compile", changed(start))
program = spyre_mlir.compile(model, (torch.ones(1, 2),))
program.accuracy(torch.ones(1, 2))
print("direct", changed(start))
class Depends(torch.nn.Module):
    def forward(self, x): return x.add_(1).nonzero()
strict = {"host_fallback": "error"}
for refused in (lambda: spyre_mlir.compile(Depends(), (x,), **strict),
                lambda: torch.compile(Depends(), backend="spyre", fullgraph=True, options=strict)(x)):
    try: refused()
    except spyre_mlir.SpyreError: print("refused", changed(start))
""",
        python,
    )
    assert out.splitlines() == ["import []", "compile []", "direct []", "refused []", "refused []"]
