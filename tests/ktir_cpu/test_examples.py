"""The examples of KTIR's authors here: all are read and verified, and what they compute is what numpy computes.

The files are not ours and stay where they are; what each computes is written down here from its meaning.
"""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from xdsl.dialects.builtin import ModuleOp

from spyre_mlir.machine.ktdp import run_ktir
from spyre_mlir.text.ktir import ktir_text
from spyre_mlir.text.render import parse_module, verify_module
from spyre_mlir.universe import make_context
from tests.ktir_cpu.interpreter import checkout
from tests.ktir_cpu.recorder import KEPT

EXAMPLES = 33
RNG = np.random.default_rng(5)


def half(*shape: int) -> Any:
    return RNG.standard_normal(shape).astype(np.float16)


def read(path: Path) -> ModuleOp:
    module = parse_module(path.read_bytes(), make_context(), path.name)
    verify_module(module)
    return module


def test_every_example_is_read_verified_and_written() -> None:
    files = [p for p in sorted((checkout() / "examples").rglob("*")) if p.suffix in (".mlir", ".ktir")]
    assert len(files) >= EXAMPLES
    for file in files:
        text = ktir_text(read(file))
        assert ktir_text(parse_module(text.encode(), make_context(), "again")) == text, file.name


def softmax(x: Any) -> Any:
    e = np.exp(x.astype(np.float64) - x.max(-1, keepdims=True))
    return e / e.sum(-1, keepdims=True)


def swiglu(x: Any, gate: Any, up: Any, down: Any) -> Any:
    x, gate, up, down = (a.astype(np.float64) for a in (x, gate, up, down))
    g = x @ gate
    return x + (g / (1 + np.exp(-g)) * (x @ up)) @ down


Example = tuple[dict[str, Any], dict[str, int], str, Callable[[dict[str, Any]], Any]]

# Arguments, byte addresses of arrays that the file places itself, the result's name, and the result.
CASES: dict[str, Example] = {
    "triton-ktir/vector_add_ktir.mlir": (
        {"x_ptr": half(4096), "y_ptr": half(4096), "output_ptr": np.zeros(4096, np.float16), "BLOCK_SIZE": 128},
        {},
        "output_ptr",
        lambda a: a["x_ptr"].astype(np.float64) + a["y_ptr"],
    ),
    "triton-ktir/vector_add_dynamic_ktir.mlir": (
        {n: half(700).astype(np.float32) for n in ("x_ptr", "y_ptr", "output_ptr")} | {"n_elements": 700},
        {},
        "output_ptr",
        lambda a: a["x_ptr"].astype(np.float64) + a["y_ptr"],
    ),
    "latency/matmul_small.mlir": (
        {"a_ptr": half(16, 64), "b_ptr": half(64, 64), "c_ptr": np.zeros((16, 64), np.float16), "K": 64}
        | {"BLOCK_SIZE_M": 8, "BLOCK_SIZE_N": 32, "BLOCK_SIZE_K": 32},
        {},
        "c_ptr",
        lambda a: a["a_ptr"].astype(np.float64) @ a["b_ptr"],
    ),
    **{
        f"latency/softmax_small{kind}.mlir": (
            {"output_ptr": np.zeros((64, 64), np.float16), "input_ptr": half(64, 64), "n_rows": 64},
            {},
            "output_ptr",
            lambda a: softmax(a["input_ptr"]),
        )
        for kind in ("", "_explicit")
    },
    "ktir/ring_reduce.mlir": (
        {"in_ptr": half(4, 128), "out_ptr": np.zeros((1, 128), np.float16)},
        {},
        "out_ptr",
        lambda a: a["in_ptr"].astype(np.float64).sum(0, keepdims=True),
    ),
    "latency/ring_reduce_multi_group.mlir": (
        {"in_ptr": half(16, 128), "out_ptr": np.zeros((4, 128), np.float16)},
        {},
        "out_ptr",
        lambda a: a["in_ptr"].astype(np.float64).reshape(4, 4, 128).sum(1),
    ),
    "ktir/ffn_swiglu_4core.mlir": (
        {"x_ptr": half(4, 256), "w_gate_ptr": half(256, 1024) / 16, "w_up_ptr": half(256, 1024) / 16}
        | {"w_down_ptr": half(1024, 256) / 32, "out_ptr": np.zeros((4, 256), np.float16)},
        {},
        "out_ptr",
        lambda a: swiglu(a["x_ptr"], a["w_gate_ptr"], a["w_up_ptr"], a["w_down_ptr"]),
    ),
    "ktir/nested_yield.ktir": ({"out": np.zeros(4, np.float32)}, {}, "out", lambda a: np.full(4, 2.0)),
    "rfc/add-with-control-flow.mlir": (
        {"A": half(96, 64), "B": half(96, 64), "C": np.zeros((96, 64), np.float16)},
        {"A": 2 * 1024, "B": 2 * 12288, "C": 2 * 18432},
        "C",
        lambda a: np.where(np.arange(96)[:, None] < 3, a["A"].astype(np.float64) + a["B"], 0),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_an_example_computes_what_it_says(name: str) -> None:
    arguments, places, result, meaning = CASES[name]
    got = run_ktir(read(checkout() / "examples" / name), None, arguments, places=places)[result]
    wanted = meaning(arguments)
    assert np.abs(got.astype(np.float64) - wanted).max() <= 3e-3 * max(1.0, np.abs(wanted).max())


@pytest.mark.slow
def test_calls_of_its_own_tests_are_answered_alike(tmp_path: Path) -> None:
    """Its tests bind inputs to the examples and compare with numpy; ours give what theirs gave."""
    tests = checkout() / "tests" / "test_examples.py"
    environment = {**os.environ, KEPT: str(tmp_path), "PYTHONDONTWRITEBYTECODE": "1"}
    environment["PYTHONPATH"] = os.pathsep.join([str(Path(__file__).parents[2]), str(checkout())])
    command = ["-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "tests.ktir_cpu.recorder", str(tests)]
    subprocess.run([sys.executable, *command], cwd=tmp_path, env=environment, check=True)
    answered = set[str]()
    for file in sorted(tmp_path.glob("*.pickle")):
        source, function, given, found = pickle.loads(file.read_bytes())
        if not found or not Path(source).is_file():
            continue  # addresses that the test itself fills
        got = run_ktir(read(Path(source)), function, given)
        for name, other in found.items():
            reference = np.asarray(other, np.float64)
            error = np.abs(got[name].astype(np.float64).reshape(-1) - reference.reshape(-1)).max()
            assert error <= 3e-3 * max(1.0, np.abs(reference).max()), (source, name)
        answered.add(Path(source).name)
    assert len(answered) >= 17
