"""Placement of buffers in the pool, by the bytes of their sticks: 64 DL16 numbers are one stick of 128 bytes."""

from __future__ import annotations

from dataclasses import replace

import pytest
from xdsl.dialects.builtin import ModuleOp

from spyre_mlir.dialects.spyre.kernel import AllocOp, FreeOp
from spyre_mlir.errors import LoweringError
from spyre_mlir.hw.spec import SPYRE
from spyre_mlir.transforms.assign_pool import FirstFit
from tests.unit.transforms.levels import ops, passed

T = "!spyre.tensor<[2, 64] x SEN169_FP16, order [1, 0], stick 1, hbm>"  # 256 bytes
W = "!spyre.tensor<[4, 64] x SEN169_FP16, order [1, 0], stick 1, hbm>"  # 512 bytes
TILE = "!spyre.tensor<[2, 64] x SEN169_FP16, order [1, 0], stick 1, extents [4, 64], hbm>"
LX = T.replace("hbm", "lx")


def kernel(function: str, source: str, target: str, kind: str = T, rows: int = 2) -> str:
    uses = f"ins(%{source}[m, n] : {kind}) outs(%{target}[m, n] : {kind})"
    return f'spyre.kernel.compute "{function}" [m = {rows}, n = 64] {uses}\n'


def alloc(name: str, kind: str = T) -> str:
    return f"%{name} = spyre.kernel.alloc : {kind}\n"


def main(body: str, result: str, host: str = "tensor<2x64xf32>", kind: str = T) -> str:
    return f"""func.func @main(%x: {host}) -> {host} {{
    %in = spyre.kernel.to_device %x : {host} to {kind}
    {body}
    %out = spyre.kernel.from_device %{result} : {kind} to {host}
    func.return %out : {host}
    }}"""


CHAIN = "".join(
    [
        *(alloc(n) for n in ("a", "b", "c", "d")),
        kernel("exp", "in", "a") + kernel("neg", "a", "b") + kernel("abs", "b", "c") + kernel("abs", "c", "d"),
    ]
)


def placed(module: ModuleOp) -> dict[str, int | None]:
    """Offsets of buffers by their names."""
    return {
        str(op.result.name_hint): None if op.offset is None else op.offset.value.data for op in ops(module, AllocOp)
    }


def freed(module: ModuleOp) -> list[tuple[str, str]]:
    """What is freed, and behind which op."""
    found = list[tuple[str, str]]()
    for op in ops(module, FreeOp):
        before = op.prev_op
        while isinstance(before, FreeOp):
            before = before.prev_op
        assert before is not None
        found.append((str(op.operands[0].name_hint), getattr(before, "function_name", before.name)))
    return found


def test_ranges_are_the_lowest_gap_that_is_large_enough() -> None:
    pool = FirstFit(100)
    assert [pool.take(n) for n in (30, 20, 40)] == [0, 30, 50]
    assert pool.take(11) is None
    assert pool.take(10) == 90
    pool.release(30)
    assert pool.take(21) is None
    assert pool.take(20) == 30
    pool.release(0)
    pool.release(30)
    assert [pool.take(n) for n in (45, 5, 1)] == [0, 45, None]


def test_buffers_live_from_their_allocation_to_their_last_use() -> None:
    module = passed(main(CHAIN, "d"), "assign-pool")
    # All are allocated before the first use; the host reads d.
    assert placed(module) == {"a": 0, "b": 256, "c": 512, "d": None}
    assert freed(module) == [("a", "neg"), ("b", "abs"), ("c", "abs")]


def test_bytes_are_used_again_after_the_last_use() -> None:
    body = alloc("a") + alloc("b") + alloc("d") + kernel("exp", "in", "a") + kernel("neg", "a", "b")
    body += alloc("c") + kernel("abs", "b", "c") + alloc("e") + kernel("abs", "c", "e") + kernel("abs", "e", "d")
    assert placed(passed(main(body, "d"), "assign-pool")) == {"a": 0, "b": 256, "d": None, "c": 0, "e": 256}


def test_a_buffer_that_nothing_uses_is_free_at_once() -> None:
    module = passed(main(alloc("a") + alloc("b") + alloc("d") + kernel("exp", "in", "d"), "d"), "assign-pool")
    assert placed(module) == {"a": 0, "b": 0, "d": None}
    assert freed(module) == [("a", "spyre.kernel.alloc"), ("b", "spyre.kernel.alloc")]


def test_scratchpad_buffers_keep_their_addresses_and_are_freed_too() -> None:
    """The end of l, which starts at byte 0 of the scratchpads, does not free byte 0 of the pool."""
    body = alloc("a") + alloc("d") + f"%l = spyre.kernel.alloc at 0 : i64 : {LX}\n" + kernel("exp", "in", "a")
    body += f'spyre.kernel.compute "neg" [m = 2, n = 64] ins(%a[m, n] : {T}) outs(%l[m, n] : {LX})\n'
    body += f'spyre.kernel.compute "abs" [m = 2, n = 64] ins(%l[m, n] : {LX}) outs(%d[m, n] : {T})\n'
    body += alloc("b") + kernel("relufwd", "a", "b") + kernel("exp", "b", "d")
    module = passed(main(body, "d"), "assign-pool")
    assert placed(module) == {"l": 0, "a": 0, "b": 256, "d": None}
    assert freed(module) == [("l", "abs"), ("a", "relufwd"), ("b", "exp")]


def test_a_buffer_of_two_launches_is_outside_of_the_pool() -> None:
    host = "tensor<2x64xf32>"
    body = alloc("a") + alloc("b") + kernel("exp", "in", "a") + kernel("neg", "a", "b")
    body += f"""%back = spyre.kernel.from_device %b : {T} to {host}
    %h = spyre.kernel.host "aten.special_bessel_j1" because "no entry" (%back) {{self = #aten.operands<1>}}
      : ({host}) -> {host}
    %g = spyre.kernel.to_device %h : {host} to {T}
    """
    body += alloc("c") + alloc("d") + kernel("abs", "a", "c") + kernel("abs", "c", "d") + kernel("abs", "g", "d")
    assert placed(passed(main(body, "d"), "assign-pool")) == {"a": None, "b": None, "c": 0, "d": None}


def test_buffers_of_a_loop_are_free_after_each_trip() -> None:
    body = "".join(f"%c{n} = arith.constant {n} : index\n" for n in (0, 1, 2))
    body += alloc("a", W) + kernel("exp", "in", "a", W, 4)
    body += f"""scf.for %i = %c0 to %c2 step %c1 {{
      %p = spyre.kernel.tile %a dim 0 at %i * 2 : {W} to {TILE}
      {alloc("b")}
      spyre.kernel.compute "neg" [m = 2, n = 64] ins(%p[m, n] : {TILE}) outs(%b[m, n] : {T})
      {alloc("c")} {kernel("abs", "b", "c")}
    }}
    """
    body += alloc("e", W) + alloc("d", W) + kernel("relufwd", "in", "e", W, 4) + kernel("abs", "e", "d", W, 4)
    module = passed(main(body, "d", "tensor<4x64xf32>", W), "assign-pool")
    # a lives as long as the loop that reads it; e takes its bytes.
    assert placed(module) == {"a": 0, "b": 512, "c": 768, "e": 0, "d": None}
    assert sorted(freed(module)) == [("a", "scf.for"), ("b", "abs"), ("c", "abs"), ("e", "abs")]


def test_a_full_pool_is_refused() -> None:
    passed(main(CHAIN, "d"), "assign-pool", spec=replace(SPYRE, pool_bytes=768))
    with pytest.raises(LoweringError, match="the pool has 767 bytes, no 256 of them free for this buffer") as refused:
        passed(main(CHAIN, "d"), "assign-pool", spec=replace(SPYRE, pool_bytes=767))
    assert str(refused.value.where).startswith("spyre.kernel.alloc at ")
    assert refused.value.hint == "use a smaller batch or sequence"


def test_what_the_host_sends_and_reads_must_fit_the_card() -> None:
    """The input and a constant of 256 bytes each, and the result; the pool does not count."""
    body = CHAIN + f"%k = spyre.kernel.constant 1.0 : f64 : {W}\n"
    passed(main(body, "d"), "assign-pool", spec=replace(SPYRE, hbm_card_bytes=1024))
    with pytest.raises(LoweringError, match="results take 1024 bytes, the card has 1023") as refused:
        passed(main(body, "d"), "assign-pool", spec=replace(SPYRE, hbm_card_bytes=1023))
    assert str(refused.value.where).startswith("the largest, 512 bytes: spyre.kernel.constant at ")
    assert refused.value.hint == "use a smaller model, or divide it over several cards"
