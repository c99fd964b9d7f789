"""Kernels of one function: which follow which without waiting, and what leaves the scratchpads."""

from __future__ import annotations

import pytest
from xdsl.dialects import scf
from xdsl.dialects.builtin import ModuleOp

from spyre_mlir.dialects.ir.functions import functions
from spyre_mlir.dialects.spyre.kernel import AllocOp, KernelOp, device_tensor
from spyre_mlir.dialects.spyre.kernel_loop import buffer_behind
from spyre_mlir.errors import UnsupportedError
from spyre_mlir.transforms.kernel_to_ktdp.function_groups import (
    FunctionGroup,
    cores_of,
    grouped,
    kernels_of,
    spill,
)
from tests.unit.transforms.kernel_to_ktdp.kernels import matrix, sparse
from tests.unit.transforms.levels import ops, passed

T, S = matrix(64, 128), sparse(64)
TILE = T.replace("stick 1", "stick 1, extents [64, 128]").replace("[64, 128] x", "[16, 128] x")
ROWS, HALF, COLUMNS = "m = 64 over 4, n = 128", "m = 64 over 2, n = 128", "m = 64 over 2, n = 128 over 2"


def kernel(source: str, target: str, split: str = ROWS, function: str = "exp") -> str:
    uses = f"ins(%{source}[m, n] : {T}) outs(%{target}[m, n] : {T})"
    return f'spyre.kernel.compute "{function}" [{split}] {uses}\n'


def loop(body: str) -> str:
    return f"""scf.for %i = %c0 to %c4 step %c1 {{
      %at = spyre.kernel.tile %a dim 0 at %i * 16 : {T} to {TILE}
      {body}
    }}
    """


def tiled(source: str, target: str, split: str = "m = 16 over 4, n = 128", function: str = "exp") -> str:
    kinds = [TILE if n == "at" else T.replace("[64, 128] x", "[16, 128] x") for n in (source, target)]
    uses = f"ins(%{source}[m, n] : {kinds[0]}) outs(%{target}[m, n] : {kinds[1]})"
    return f'spyre.kernel.compute "{function}" [{split}] {uses}\n'


SMALL = T.replace("[64, 128] x", "[16, 128] x")


def module(body: str, space: str = "hbm") -> ModuleOp:
    constants = "".join(f"%c{n} = arith.constant {n} : index\n" for n in (0, 1, 4))
    allocs = "".join(f"%{n} = spyre.kernel.alloc : {T}\n" for n in "abcd")
    allocs += "".join(f"%{n} = spyre.kernel.alloc : {SMALL}\n" for n in "pq")
    return passed(f"func.func @main() {{\n{constants}{allocs}{body} func.return\n}}")


def items(found: ModuleOp) -> list[KernelOp | scf.ForOp]:
    return [op for op in functions(found)[0].body.block.ops if isinstance(op, KernelOp | scf.ForOp)]


def groups(body: str) -> list[FunctionGroup]:
    return grouped(items(module(body)))


def sizes(body: str) -> list[tuple[int, int]]:
    """Cores and kernels of every group."""
    return [(g.cores, len(g.kernels)) for g in groups(body)]


def test_cores_that_read_what_they_wrote_wait_for_nobody() -> None:
    assert sizes(kernel("a", "b") + kernel("b", "c") + kernel("c", "b")) == [(4, 3)]


def test_another_number_of_cores_is_another_function() -> None:
    assert sizes(kernel("a", "b") + kernel("c", "d", HALF) + kernel("c", "d")) == [(4, 1), (2, 1), (4, 1)]


def test_what_another_core_wrote_is_read_in_the_next_function() -> None:
    """Both on four cores: one by rows, one by rows and columns."""
    assert sizes(kernel("a", "b") + kernel("b", "c", COLUMNS)) == [(4, 1), (4, 1)]


def test_what_another_core_reads_is_written_in_the_next_function() -> None:
    assert sizes(kernel("a", "b") + kernel("c", "a", COLUMNS)) == [(4, 1), (4, 1)]
    assert sizes(kernel("a", "b") + kernel("c", "b", COLUMNS)) == [(4, 1), (4, 1)]


def test_reading_needs_no_waiting() -> None:
    assert sizes(kernel("a", "b") + kernel("a", "c", COLUMNS)) == [(4, 2)]


def test_any_kernel_before_counts() -> None:
    assert sizes(kernel("a", "b") + kernel("a", "c") + kernel("b", "d", COLUMNS)) == [(4, 2), (4, 1)]
    split = kernel("a", "b") + kernel("b", "c", COLUMNS) + kernel("a", "d")
    assert sizes(split) == [(4, 1), (4, 2)]  # the last joins the second


def test_what_all_cores_have_is_nobodys_own() -> None:
    """A sum that four cores share: no core has a slice of it."""
    fold = f'spyre.kernel.compute "sum" [m = 64, n = 128 over 2] ins(%b[m, n] : {T}) outs(%s[m] : {S})\n'
    more = (
        f'spyre.kernel.compute "sub" [m = 64, n = 128 over 2] ins(%b[m, n] : {T}, %s[m] : {S}) outs(%c[m, n] : {T})\n'
    )
    body = f"%s = spyre.kernel.alloc : {S}\n" + kernel("a", "b", "m = 64, n = 128 over 2") + fold + more
    assert [g.cores for g in groups(body)] == [2, 2]


def test_a_loop_runs_on_the_cores_of_its_kernels() -> None:
    found = items(module(loop(tiled("at", "p") + tiled("p", "q"))))
    assert cores_of(found[0]) == 4 and len(kernels_of(found[0])) == 2
    empty = items(module("scf.for %i = %c0 to %c4 step %c1 {\n}\n"))
    assert cores_of(empty[0]) == 1
    assert sizes(loop(tiled("at", "p")) + kernel("c", "d")) == [(4, 2)]
    with pytest.raises(UnsupportedError, match="a loop whose kernels run on 2 and 4 cores") as refused:
        groups(loop(tiled("at", "p") + tiled("at", "q", "m = 16 over 2, n = 128")))
    assert refused.value.hint is not None and "divide the kernels of the loop alike, or unroll it" in refused.value.hint
    assert str(refused.value.where).startswith('"<text>":')


def test_cores_in_a_loop_do_not_wait() -> None:
    columns = "m = 16 over 2, n = 128 over 2"
    with pytest.raises(UnsupportedError, match="exp touches what other cores have of neg") as refused:
        groups(loop(tiled("at", "p", function="neg") + tiled("p", "q", columns)))
    assert refused.value.hint is not None and "KTIR has no such wait inside a function" in refused.value.hint
    # Nor may the next trip touch what another core had in this one.
    with pytest.raises(UnsupportedError, match=r"touches what other cores have of (exp|neg)"):
        groups(loop(tiled("p", "q", columns, "neg") + tiled("at", "p")))


def test_a_kernel_that_updates_in_place_is_its_own_neighbour() -> None:
    assert len(groups(loop(tiled("p", "p")))) == 1
    assert len(groups(loop(tiled("at", "p") + tiled("p", "q") + tiled("q", "p")))) == 1


def test_tiles_of_one_buffer_are_not_told_apart() -> None:
    """What one trip writes another core may read in the next."""
    found = items(module(loop(tiled("at", "p"))))
    tile = kernels_of(found[0])[0].inputs[0]
    assert buffer_behind(tile).name_hint == "a"
    assert sizes(kernel("b", "a") + loop(tiled("at", "p"))) == [(4, 1), (4, 1)]
    assert sizes(kernel("b", "c") + loop(tiled("at", "p"))) == [(4, 2)]
    assert {str(v.name_hint) for v in grouped(found)[0].buffers()} == {"a", "p"}


def test_what_several_functions_touch_leaves_the_scratchpads() -> None:
    lx = T.replace("hbm", "lx")
    body = f"%l = spyre.kernel.alloc at 0 : i64 : {lx}\n%k = spyre.kernel.alloc at 65536 : i64 : {lx}\n"
    for source, target in (("a", "l"), ("l", "k"), ("k", "b")):
        kinds = [lx if n in "lk" else T for n in (source, target)]
        uses = f"ins(%{source}[m, n] : {kinds[0]}) outs(%{target}[m, n] : {kinds[1]})"
        body += f'spyre.kernel.compute "exp" [{ROWS}] {uses}\n'
    found = module(body + kernel("c", "d"))
    exp, neg, last, other = ops(found, KernelOp)
    spill([FunctionGroup(4, [exp, neg]), FunctionGroup(4, [last]), FunctionGroup(4, [other])])
    spaces = {str(op.result.name_hint): device_tensor(op.result).space for op in ops(found, AllocOp)}
    assert spaces == {**dict.fromkeys("abcdpqk", "hbm"), "l": "lx"}
