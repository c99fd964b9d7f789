"""The six programs give what numpy computes in double; tolerances are the roundings to half on the way."""

import numpy as np
import pytest

from spyre_mlir.machine.ktdp import arguments, find_kernel, run_ktir
from spyre_mlir.text.ktir import ktir_text
from spyre_mlir.text.render import parse_module
from spyre_mlir.universe import make_context
from tests.unit.machine.ktdp.ktir_programs import Array, halves, program


def wide(array: Array) -> Array:
    return array.astype(np.float64)


X, Y = halves(1, 2048, 4096), halves(2, 2048, 4096)
A, B = halves(3, 256, 1024), halves(4, 1024, 512)
AK, BK = halves(5, 64, 2048), halves(6, 2048, 64)
S = halves(7, 2048, 1024)
EXP = np.exp(wide(S) - wide(S).max(axis=1, keepdims=True))
TABLE, IDS = halves(8, 1000, 256), np.random.default_rng(9).integers(0, 1000, 128).astype(np.int32)
H = halves(10, 1024, 256)

# The difference from the maximum is below 16, so it rounds by 2**-8 at most; exp, the sum (a tree of ten levels) and
# the quotient round by 2**-11 of themselves. The largest value of a row is below 0.1.
SOFTMAX = 0.1 * (2**-8 + 12 * 2**-11)

CASES = {
    "add_32core": ({"x": X, "y": Y}, "z", wide(X + Y), 0.0),
    "matmul_tiled": ({"a": A, "b": B}, "c", wide(A) @ wide(B), 0.0625),
    "matmul_ksplit": ({"a": AK, "b": BK}, "c", wide(AK) @ wide(BK), 0.0625),
    "softmax_rows": ({"x": S}, "y", EXP / EXP.sum(axis=1, keepdims=True), SOFTMAX),
    "gather_rows": ({"table": TABLE, "ids": IDS}, "y", wide(TABLE[IDS]), 0.0),
    "lx_handoff": ({"x": H}, "z", np.exp(-(wide(H) ** 2)), 5e-4),
}


@pytest.mark.parametrize("name", CASES)
def test_equals_numpy(name: str) -> None:
    inputs, result, expected, most = CASES[name]
    blank = np.zeros(expected.shape, np.float16)
    found = run_ktir(program(name), None, {**inputs, result: blank}, blank=[result])
    assert np.abs(wide(found[result]) - expected).max() <= most
    for given, array in inputs.items():
        assert np.array_equal(found[given], array)


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("older", [False, True])
def test_text_for_others_runs_the_same(name: str, older: bool) -> None:
    inputs, result, expected, _ = CASES[name]
    text = ktir_text(program(name), older_spaces=older)
    assert ("spyre_memory_space<HBM>" in text) == older
    assert "memory_space<global>" not in text if older else "memory_space<HBM>" not in text
    module = parse_module(text, make_context())
    assert module.is_structurally_equivalent(program(name)) != older
    if name in ("gather_rows", "matmul_ksplit"):
        arrays = {**inputs, result: np.zeros(expected.shape, np.float16)}
        assert np.array_equal(run_ktir(module, None, arrays)[result], run_ktir(program(name), None, arrays)[result])


def test_what_a_function_takes() -> None:
    table, ids, y = arguments(find_kernel(program("gather_rows")))
    assert (table.name, table.shape, str(table.element), table.read, table.written) == (
        "table",
        (1000, 256),
        "f16",
        True,
        False,
    )
    assert (ids.name, ids.shape, str(ids.element), ids.read) == ("ids", (128,), "i32", True)
    assert (y.name, y.read, y.written) == ("y", False, True)
