"""Copies of trips go where kernels can write what is copied, and stay where somebody would read another value."""

from __future__ import annotations

import pytest

from spyre_mlir.dialects.spyre import kernel
from tests.unit.transforms.levels import ops, passed

T = "!spyre.tensor<[4, 64] x SEN169_FP16, order [1, 0], stick 1, hbm>"
X = "!spyre.tensor<[8, 4, 64] x SEN169_FP16, order [1, 2, 0], stick 2, hbm>"
E = "!spyre.tensor<[1, 4, 64] x SEN169_FP16, order [1, 2, 0], stick 2, extents [8, 4, 64], hbm>"
Y = "!spyre.tensor<[1, 4, 64] x SEN169_FP16, order [1, 2, 0], stick 2, hbm>"
PART = "!spyre.tensor<[1, 64] x SEN169_FP16, order [1, 0], stick 1, extents [4, 64], hbm>"
K = "!spyre.tensor<[64, 64] x SEN169_FP16, order [1, 0], stick 1, hbm>"


def one(function: str, source: str, made: str, more: str = "") -> str:
    ins = ", ".join(f"%{name}[m, n] : {T}" for name in source.split())
    return f'spyre.kernel.compute "{function}" [m = 4, n = 64] ins({ins}) outs(%{made}[m, n] : {T}) {more}\n'


def copy(source: str, made: str, more: str = "") -> str:
    return one("identity", source, made, more)


def left(body: str, *buffers: str, before: str = "") -> list[str]:
    """The kernels that are left in front of the trips and in one that carries two tensors, with what they write."""
    allocs = "".join(f"%{name} = spyre.kernel.alloc : {T}\n" for name in buffers)
    text = f"""
func.func private @steps(%g: {T}, %h: {T}, %w: {T}, %y: {X}, %k: {K}) {{
  %0 = arith.constant 0 : index
  %1 = arith.constant 8 : index
  %2 = arith.constant 1 : index
  {before}
  scf.for %i = %0 to %1 step %2 {{
    {allocs}{body}
  }}
  func.return
}}
"""
    module = passed(text, "carry-in-place")
    kernels = ops(module, kernel.ComputeOp)
    assert all(alloc.result.uses for alloc in ops(module, kernel.AllocOp)), "a buffer of no kernel"
    return [f"{op.function_name} {op.output.name_hint}" for op in kernels]


def test_the_last_kernel_writes_what_is_carried() -> None:
    assert left(one("exp", "h", "a") + one("add", "a g", "b") + copy("b", "h"), "a", "b") == ["exp a", "add h"]


def test_a_kernel_may_read_each_element_before_it_writes_it() -> None:
    assert left(one("add", "h g", "a") + copy("a", "h"), "a") == ["add h"]


def row(of: str, function: str) -> str:
    """A kernel that writes the first row of a buffer through a tile."""
    return f"""
%row = spyre.kernel.tile %{of} dim 0 at %i * 0 : {T} to {PART}
spyre.kernel.compute "{function}" [n = 64] ins(%w[0, n] : {T}) outs(%row[0, n] : {PART})
"""


def read_late() -> str:
    """A kernel that reads the first row of what is carried, behind the one that makes the next value."""
    tiles = [
        f"%{name} = spyre.kernel.tile %{of} dim 0 at %i * 0 : {T} to {PART}\n" for name, of in (("o", "h"), ("p", "w"))
    ]
    reads = f'spyre.kernel.compute "abs" [n = 64] ins(%o[0, n] : {PART}) outs(%p[0, n] : {PART})\n'
    return "".join(tiles) + one("exp", "g", "a") + reads


@pytest.mark.parametrize(
    "body",
    [
        one("exp", "g", "a") + one("add", "h a", "g") + copy("a", "h"),  # the old value is read later
        one("exp", "g", "a") + copy("a", "h", "element f32"),  # the copy rounds
        one("exp", "g", "a") + copy("a", "h") + one("abs", "w", "a") + one("add", "a w", "g"),  # %a is used again
        one("exp", "g", "a") + copy("a", "h") + row("a", "abs"),  # and here in part
        read_late() + copy("a", "h"),  # and the old value in part
    ],
)
def test_copies_that_stay(body: str) -> None:
    assert left(body, "a").count("identity h") == 1


def test_one_tensor_that_is_carried_twice_is_copied_once() -> None:
    """Each is a buffer of its own: kernels of the next trip may fill the padding of one."""
    assert left(one("exp", "w", "a") + copy("a", "g") + copy("a", "h"), "a") == ["exp g", "identity h"]


def test_tensors_that_change_places_keep_a_copy() -> None:
    body = copy("h", "b") + one("exp", "g", "a") + copy("a", "h") + copy("b", "g")
    assert left(body, "a", "b") == ["identity b", "exp h", "identity g"]


def test_the_next_step_reads_what_is_copied() -> None:
    body = one("exp", "h", "a") + copy("a", "h") + one("tanh", "h", "b") + copy("b", "h")
    assert left(body, "a", "b") == ["exp a", "tanh h"]


def test_the_last_copy_stays_where_its_tensor_is_read_behind_it() -> None:
    body = one("exp", "h", "a") + copy("a", "h") + one("tanh", "h", "b") + copy("b", "h") + one("abs", "h", "g")
    assert left(body, "a", "b") == ["exp a", "tanh b", "identity h", "abs g"]


def test_what_the_caller_computed_is_copied() -> None:
    assert left(copy("w", "h"), before=one("exp", "g", "w")) == ["exp w", "identity h"]


def test_what_nobody_reads_goes() -> None:
    """A step overwrites what the one before carried, and what was computed for that alone."""
    body = one("exp", "w", "a") + one("tanh", "a", "b") + copy("b", "h") + one("abs", "w", "c") + copy("c", "h")
    assert left(body, "a", "b", "c") == ["abs h"]


def entry(made: str) -> str:
    return f"""
%e = spyre.kernel.alloc : {Y}
{made}
%tile = spyre.kernel.tile %y dim 0 at %i * 1 : {X} to {E}
spyre.kernel.compute "identity" [m = 4, n = 64] ins(%e[0, m, n] : {Y}) outs(%tile[0, m, n] : {E})
"""


def test_entries_are_written_at_once() -> None:
    made = f'spyre.kernel.compute "exp" [m = 4, n = 64] ins(%w[m, n] : {T}) outs(%e[0, m, n] : {Y})'
    assert left(entry(made)) == ["exp tile"]
    assert left(entry(made) + made) == ["exp e", "identity tile", "exp e"]


def test_entries_that_lie_otherwise_are_copied() -> None:
    other = Y.replace("order [1, 2, 0], stick 2", "order [2, 1, 0], stick 2")
    made = f'spyre.kernel.compute "exp" [m = 4, n = 64] ins(%w[m, n] : {T}) outs(%e[0, m, n] : {other})'
    assert left(entry(made).replace(Y, other)) == ["exp e", "identity tile"]


def test_entries_that_are_read_stay_until_they_are_copied() -> None:
    made = f'spyre.kernel.compute "exp" [m = 4, n = 64] ins(%w[m, n] : {T}) outs(%e[0, m, n] : {Y})'
    old = f"""
%old = spyre.kernel.tile %y dim 0 at %i * 1 : {X} to {E}
spyre.kernel.compute "abs" [m = 4, n = 64] ins(%old[0, m, n] : {E}) outs(%g[m, n] : {T})
"""
    assert left(entry(made + old)) == ["exp e", "abs g", "identity tile"]


def test_products_write_entries_to_the_scratchpads_first() -> None:
    operands = f"ins(%w[m, k] : {T}, %k[k, n] : {K}) outs(%e[0, m, n] : {Y})"
    made = f'spyre.kernel.compute "batchmatmul" [m = 4, n = 64, k = 64] {operands}'
    assert left(entry(made)) == ["batchmatmul e", "identity tile"]
