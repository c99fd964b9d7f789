"""Row loops of one kernel, by hand."""

from __future__ import annotations

import pytest

from spyre_mlir.dialects.spyre.kernel import KernelOp
from spyre_mlir.transforms.kernel_loops.row_loops import pieces_of, reads_beside, row_loops
from tests.unit.transforms.kernel_loops.test_row_groups import BIAS, EXP, FOLD, MAX, SUB, T, kernel, module
from tests.unit.transforms.levels import ops, passed


def test_loops_that_walk_rows_of_all_operands() -> None:
    exp, fold, sub, bias, total = ops(module(EXP, MAX, SUB, BIAS, FOLD), KernelOp)
    assert row_loops(exp) == {"m": (0, 0), "n": (1, 1)}
    assert row_loops(fold) == {"m": (0, 0)}  # n is folded
    assert row_loops(sub) == {"m": (0, 0, 0), "n": (1, None, 1)}
    assert row_loops(bias) == {"m": (0, None, 0), "n": (1, 0, 1)}
    assert row_loops(total) == {"n": (1, 0)}


BLOCKS, BLOCKS_OF_ROWS = {"a": (0, 0), "n": (1, 1)}, {"m": (0, 0), "n": (1, 1)}
ODD = {
    "a part": ("[64, 128]", "m, n", "[32, 128]", "m, n", "m = 32, n = 128", {"m": (0, 0), "n": (1, 1)}),
    "an offset": ("[64, 128]", "m + 1, n", "[63, 128]", "m, n", "m = 63, n = 128", {"m": (0, 0), "n": (1, 1)}),
    "every second row": ("[64, 128]", "m * 2 + 1, n", "[32, 128]", "m, n", "m = 32, n = 128", BLOCKS_OF_ROWS),
    "an offset of what is written": ("[63, 128]", "m, n", "[64, 128]", "m + 1, n", "m = 63, n = 128", {"n": (1, 1)}),
    "an offset in the lanes": ("[64, 128]", "m, n + 64", "[64, 64]", "m, n", "m = 64, n = 64", {"m": (0, 0)}),
    "one row": ("[1, 128]", "m, n", "[1, 128]", "m, n", "m = 1, n = 128", {"n": (1, 1)}),
    "turned": ("[128, 64]", "n, m", "[64, 128]", "m, n", "m = 64, n = 128", {"m": (1, 0), "n": (0, 1)}),
    "two loops": (
        "[64, 128]",
        "a * 8 + b, n",
        "[64, 128]",
        "a * 8 + b, n",
        "a = 8, b = 8, n = 128",
        {"a": (0, 0), "n": (1, 1)},
    ),
    "a diagonal": ("[64, 128]", "m, m", "[64]", "m", "m = 64", {}),
}


@pytest.mark.parametrize("name", ODD)
def test_rows_of_other_walks(name: str) -> None:
    shape, read, other, written, loops, wanted = ODD[name]
    a, b = f"!spyre.tensor<{shape} x SEN169_FP16", f"!spyre.tensor<{other} x SEN169_FP16"
    layouts = {2: ", order [1, 0], stick 1, hbm>", 1: ", order [0, unit], stick unit, hbm>"}
    a += ", order [1, 0], stick 0, hbm>" if name == "turned" else layouts[2]
    b += layouts[other.count(",") + 1]
    text = f"""func.func @main() {{
      %a = spyre.kernel.alloc : {a}
      %b = spyre.kernel.alloc : {b}
      spyre.kernel.compute "identity" [{loops}] ins(%a[{read}] : {a}) outs(%b[{written}] : {b})
      func.return
    }}"""
    (op,) = ops(passed(text, verify=name not in ("turned", "a diagonal")), KernelOp)
    assert row_loops(op) == wanted


def test_rows_of_a_gather_are_those_that_indices_name() -> None:
    """In whole sticks of indices; nothing walks the table, which starts at one address for all."""
    i, table = "!spyre.tensor<[64] x SENUINT32, order [0], stick 0, hbm>", T.replace("[1, 0]", "[0, 1]")
    text = f"""func.func @main() {{
      %i = spyre.kernel.alloc : {i}
      %t = spyre.kernel.alloc : {table}
      %o = spyre.kernel.alloc : {T}
      spyre.kernel.gather axis 0 [i = 64, n = 128] ins(%i[i] : {i},
        %t[0, n] : {table}) outs(%o[i, n] : {T})
      func.return
    }}"""
    (op,) = ops(passed(text), KernelOp)
    assert row_loops(op) == {"i": (0, None, 0)}
    assert pieces_of(op, "i", (0, None, 0)) == 2


def test_copies_of_a_tensor_in_one_layout_are_no_rows() -> None:
    """A restickify to sparse reads a buffer that has room for 64 copies of the tensor."""
    t = "!spyre.tensor<[64, 3] x SEN169_FP16, order [1, unit, 0], stick 0, unit 64, hbm>"
    text = f"""func.func @main() {{
      %a = spyre.kernel.alloc : {t}
      %b = spyre.kernel.alloc : {t}
      spyre.kernel.compute "exp" [m = 64, n = 3] ins(%a[m, n] : {t}) outs(%b[m, n] : {t})
      func.return
    }}"""
    (op,) = ops(passed(text), KernelOp)
    assert row_loops(op) == {}


# Row m of 63 reads row m + 1 of 64.
NEXT = "m = 63, n = 128"


def test_rows_beside_those_that_an_op_is_at() -> None:
    both = kernel("add", NEXT, "t0[m, n]", "t0[m + 1, n]", "t1[m, n]")
    (op,) = ops(module(both, result="t1"), KernelOp)
    assert row_loops(op) == {"n": (1, 1, 1)}  # the result has a row more than are written
    text = f"""func.func @main() {{
      %a = spyre.kernel.alloc : {T}
      %b = spyre.kernel.alloc : {T.replace("64, 128", "63, 128")}
      spyre.kernel.compute "add" [{NEXT}] ins(%a[m, n] : {T}, %a[m + 1, n] : {T})
        outs(%b[m, n] : {T.replace("64, 128", "63, 128")})
      func.return
    }}"""
    (op,) = ops(passed(text), KernelOp)
    assert row_loops(op) == {"m": (0, 0, 0), "n": (1, 1, 1)}
    assert reads_beside(op) == {"m": {0, 1}}
