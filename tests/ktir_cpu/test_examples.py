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

from spyre_mlir.errors import MachineFault
from spyre_mlir.machine.ktdp import run_ktir
from spyre_mlir.text.ktir import ktir_text
from spyre_mlir.text.render import parse_module, verify_module
from spyre_mlir.universe import make_context
from tests.ktir_cpu.interpreter import checkout
from tests.ktir_cpu.recorder import KEPT
from tests.paths import ROOT

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


def rms_norm(a: dict[str, Any]) -> Any:
    x = a["X"].astype(np.float64)
    return x / np.sqrt((x * x).mean(-1, keepdims=True) + a["eps"]) * a["W"]


def rows(*shape: int, below: int) -> Any:
    return RNG.integers(0, below, shape).astype(np.int32)


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
    "ktir/ring_reduce_inner_loop.mlir": (
        {"in_ptr": half(4, 128), "out_ptr": np.zeros((1, 128), np.float16), "n_iters": 3},
        {},
        "out_ptr",
        lambda a: 3 * a["in_ptr"].astype(np.float64).sum(0, keepdims=True),
    ),
    "ktir/reduce_multiop.mlir": (
        {"arg0": half(1, 8)},
        {},
        "arg0",
        lambda a: np.broadcast_to(a["arg0"].max(-1, keepdims=True), (1, 8)),
    ),
    "ktir/softmax_wide.mlir": (
        {"input_ptr": (half(2, 262144) / 8 + 8 * np.eye(2, 262144)).astype(np.float16)}
        | {"output_ptr": np.zeros((2, 262144), np.float16)},
        {},
        "output_ptr",
        lambda a: softmax(a["input_ptr"]),
    ),
    **{
        f"latency/rmsnorm_4core_{grid}.mlir": (
            {"X": half(256, 4096), "W": half(256, 4096), "Y": np.zeros((256, 4096), np.float16)}
            | {"N": 4096, "eps": 1e-5, "BLOCK_SIZE": 1024},
            {},
            "Y",
            rms_norm,
        )
        for grid in ("4x1", "2x2")
    },
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


def assert_near(got: Any, wanted: Any) -> None:
    """Within what adding up in half precision loses."""
    assert got.shape == wanted.shape
    assert np.abs(got.astype(np.float64) - wanted).max() <= 3e-3 * np.abs(wanted).max()


@pytest.mark.slow(reason="replays every test of another project")
def test_calls_of_its_own_tests_are_answered_alike(tmp_path: Path) -> None:
    """Its tests bind inputs to the examples and compare with numpy; ours give what theirs gave."""
    tests = checkout() / "tests" / "test_examples.py"
    environment = {**os.environ, KEPT: str(tmp_path), "PYTHONDONTWRITEBYTECODE": "1"}
    environment["PYTHONPATH"] = os.pathsep.join([str(ROOT), str(checkout())])
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
            near = 3e-3 * max(1.0, np.abs(reference[np.isfinite(reference)]).max(initial=0.0))
            ours = got[name].astype(np.float64).reshape(reference.shape)
            np.testing.assert_allclose(ours, reference, rtol=0, atol=near, err_msg=f"{source} {name}")
        answered.add(Path(source).name)
    assert len(answered) >= 16


@pytest.mark.parametrize("name", CASES)
def test_an_example_computes_what_it_says(name: str) -> None:
    arguments, places, result, meaning = CASES[name]
    got = run_ktir(read(checkout() / "examples" / name), None, arguments, places=places)[result]
    assert_near(got, meaning(arguments))


# The files of RFC 0682 fix the places of their arrays, which overlap, or take tiles beyond a scratchpad; hence what is
# changed in the text, arguments and places, the result's name, and the result.
PAGES = {"2048": "128", "2047": "127", "-d1 + 31": "-d1 + 1", "4x32x": "4x2x", "10000 :": "100 :"}
PAGES |= {"10000x": "100x", "9999": "99"}
PAGED = np.zeros((100, 8, 64, 128), np.float16)
FLAT = np.zeros((4, 128, 8, 128), np.float16)
SQUARE = np.zeros((64, 64), np.float16)
APART = {
    "IDX1_addr = arith.constant 64": "IDX1_addr = arith.constant 4096",
    "IDX2_addr = arith.constant 128": "IDX2_addr = arith.constant 8192",
    "Y_addr    = arith.constant 192": "Y_addr = arith.constant 32768",
}
INDICES = {"I": rows(64, 64, below=64), "J": rows(64, 64, below=64)}
SQUARES = {"X": 0, "I": 4 * 4096, "J": 4 * 8192, "Y": 2 * 32768}


def paged(pages: Any) -> Any:
    """Pages of 64 tokens of each head as sequences: [batch, token, head, feature]."""
    return pages.transpose(0, 1, 3, 2, 4).reshape(FLAT.shape)


def written(pages: Any, index: Any, flat: Any) -> Any:
    """The pages with the sequences put where the index says."""
    pages = pages.copy()
    pages[index] = flat.reshape(4, 2, 64, 8, 128).transpose(0, 1, 3, 2, 4)
    return pages


def scattered(a: dict[str, Any]) -> Any:
    """Each element of the source at a place of its own."""
    result = np.zeros_like(a["X"])
    result[a["I"], a["J"]] = a["X"]
    return result


Restated = tuple[dict[str, str], dict[str, Any], dict[str, int], str, Callable[[dict[str, Any]], Any]]
RESTATED: dict[str, Restated] = {
    "paged-tensor-copy": (
        PAGES,
        {"X": half(*PAGED.shape), "I": rows(4, 2, below=100), "Y": FLAT},
        {"X": 2 * 30_000_000, "I": 4 * 20_000_000, "Y": 2 * 10_000_000},
        "Y",
        lambda a: paged(a["X"][a["I"]]),
    ),
    "paged-tensor-write": (
        PAGES,
        {"X": half(*FLAT.shape), "I": RNG.permutation(100)[:8].reshape(4, 2).astype(np.int32), "Y": PAGED},
        {"X": 2 * 10_000_000, "I": 4 * 30_000_000, "Y": 2 * 40_000_000},
        "Y",
        lambda a: written(a["Y"], a["I"], a["X"]),
    ),
    "indirect-access-copy": (
        APART,
        {"X": half(64, 64), **INDICES, "Y": SQUARE},
        SQUARES,
        "Y",
        lambda a: a["X"][a["I"], a["J"]],
    ),
    "indirect-scatter": (
        APART,
        {"X": half(64, 64), "I": np.tile(np.arange(64, dtype=np.int32)[::-1], (64, 1))}
        | {"J": np.tile(np.arange(64, dtype=np.int32)[:, None], (1, 64)), "Y": SQUARE},
        SQUARES,
        "Y",
        scattered,
    ),
}


@pytest.mark.parametrize("name", RESTATED)
def test_an_example_with_room_for_its_arrays(name: str) -> None:
    changes, arguments, places, result, meaning = RESTATED[name]
    text = (checkout() / "examples" / "rfc" / f"{name}.mlir").read_text()
    for old, new in changes.items():
        assert old in text
        text = text.replace(old, new)
    module = parse_module(text.encode(), make_context(), name)
    assert_near(run_ktir(module, None, arguments, places=places)[result], meaning(arguments))


def test_a_tile_beyond_a_scratchpad_is_a_fault() -> None:
    """As it stands: one tensor of 16 MiB on one core, which its authors expect to fail too."""
    arguments = {"X": np.zeros((4, 2048, 8, 128), np.float16), "I": np.zeros((4, 32), np.int32)}
    places = {"X": 2 * 10_000_000, "I": 4 * 30_000_000}
    with pytest.raises(MachineFault, match="do not fit"):
        run_ktir(read(checkout() / "examples" / "rfc" / "paged-tensor-write.mlir"), None, arguments, places=places)


def test_scratchpads_that_nobody_filled_are_a_fault() -> None:
    """A third of what it copies lies in scratchpads; no op of the file writes there, and no caller can."""
    arguments = {"A": half(96, 64), "B": np.zeros((192, 64), np.float16)}
    places = {"A": 0, "B": 2 * 24576}
    with pytest.raises(MachineFault, match=r"LX of core 0.*were never written"):
        run_ktir(read(checkout() / "examples" / "rfc" / "distributed-view-copy.mlir"), None, arguments, places=places)
