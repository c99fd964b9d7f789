"""Groups of kernels that share a loop over rows: members, buffers and bytes counted by hand."""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp

from spyre_mlir.dialects.ir.functions import functions
from spyre_mlir.dialects.spyre.kernel import KernelOp
from spyre_mlir.transforms.kernel_loops.row_groups import RowGroup, grow
from spyre_mlir.transforms.kernel_loops.row_loops import row_loops
from tests.unit.transforms.levels import ops, passed

# Rows of two sticks: 64 x 2 x 128 bytes are 16384; one value per row in a stick of its own: 64 x 128 are 8192.
T = "!spyre.tensor<[64, 128] x SEN169_FP16, order [1, 0], stick 1, hbm>"
S = "!spyre.tensor<[64] x SEN169_FP16, order [0, unit], stick unit, hbm>"
V = "!spyre.tensor<[128] x SEN169_FP16, order [0], stick 0, hbm>"
TYPES = {"t": T, "s": S, "v": V}
BYTES = {"t": 16384, "s": 8192, "v": 256}


def kernel(function: str, loops: str, *uses: str) -> str:
    """`uses` are as t0[m, n]: the first letter says which type; the last is the result."""
    said = [f"%{u} : {TYPES[u[0]]}" for u in uses]
    return f'spyre.kernel.compute "{function}" [{loops}] ins({", ".join(said[:-1])}) outs({said[-1]})\n'


BOTH = "m = 64, n = 128"
EXP = kernel("exp", BOTH, "t0[m, n]", "t1[m, n]")
MAX = kernel("max", BOTH, "t1[m, n]", "s0[m]")
SUB = kernel("sub", BOTH, "t1[m, n]", "s0[m]", "t2[m, n]")
BIAS = kernel("add", BOTH, "t2[m, n]", "v0[n]", "t3[m, n]")
FOLD = kernel("sum", BOTH, "t2[m, n]", "v1[n]")


def module(*kernels: str, result: str = "t3") -> ModuleOp:
    """All buffers; t0 and v0 come from the host, which reads the result."""
    allocs = "".join(f"%{n} = spyre.kernel.alloc : {TYPES[n[0]]}\n" for n in ("t1", "t2", "t3", "s0", "v1"))
    return passed(f"""func.func @main(%x: tensor<64x128xf32>, %y: tensor<128xf32>) -> tensor<64x128xf32> {{
      %t0 = spyre.kernel.to_device %x : tensor<64x128xf32> to {T}
      %v0 = spyre.kernel.to_device %y : tensor<128xf32> to {V}
      {allocs} {"".join(kernels)}
      %z = spyre.kernel.from_device %{result} : {T} to tensor<64x128xf32>
      func.return %z : tensor<64x128xf32>
    }}""")


def grown(*kernels: str, result: str = "t3") -> dict[str, RowGroup]:
    """The groups that begin with the first kernel, by its loop."""
    block = functions(module(*kernels, result=result))[0].body.block
    first = next(op for op in block.ops if isinstance(op, KernelOp))
    groups = grow(first, list(block.ops)[block.get_operation_index(first) + 1 :])
    return {group.loops[0]: group for group in groups}


def names(group: RowGroup) -> list[str]:
    return [op.function_name for op in group.ops]


def test_a_gather_joins_by_each_of_its_loops() -> None:
    """It reads nothing of the group, so that kernels behind say which of two loops of one extent is the right one."""
    x, i = T.replace("64, 128", "4, 64"), "!spyre.tensor<[4, 4] x SENUINT32, order [0, 1], stick 1, hbm>"
    table = "!spyre.tensor<[9, 64] x SEN169_FP16, order [0, 1], stick 1, hbm>"
    rows = "!spyre.tensor<[4, 4, 64] x SEN169_FP16, order [0, 1, 2], stick 2, hbm>"
    text = f"""func.func @main() {{
      %x = spyre.kernel.alloc : {x}
      %y = spyre.kernel.alloc : {x}
      %i = spyre.kernel.alloc : {i}
      %t = spyre.kernel.alloc : {table}
      %g = spyre.kernel.alloc : {rows}
      %z = spyre.kernel.alloc : {rows}
      spyre.kernel.compute "exp" [m = 4, n = 64] ins(%x[m, n] : {x}) outs(%y[m, n] : {x})
      spyre.kernel.gather axis 0 [h = 4, s = 4, n = 64] ins(%i[h, s] : {i}, %t[0, n] : {table})
        outs(%g[h, s, n] : {rows})
      spyre.kernel.compute "add" [h = 4, s = 4, n = 64] ins(%g[h, s, n] : {rows}, %y[s, n] : {x})
        outs(%z[h, s, n] : {rows})
      func.return
    }}"""
    first, *behind = ops(passed(text), KernelOp)
    groups = [group for group in grow(first, behind) if group.loops[0] == "m"]
    assert [(group.loops, len(group.ops)) for group in groups] == [(["m", "h"], 2), (["m", "s", "s"], 3)]


def test_groups_grow_as_long_as_rows_depend_on_rows() -> None:
    groups = grown(EXP, MAX, SUB, BIAS)
    assert {name: names(group) for name, group in groups.items()} == {
        "m": ["exp", "max", "sub", "add"],
        "n": ["exp"],  # the maximum folds n
    }
    assert (groups["m"].pieces, groups["n"].pieces) == (64, 2)  # columns stay together by the stick
    assert groups["m"].loops == ["m"] * 4
    assert groups["m"].rows == [(0, 0), (0, 0), (0, 0, 0), (0, None, 0)]


def test_what_is_no_kernel_ends_a_group_unless_it_makes_a_buffer() -> None:
    more = f"%k = spyre.kernel.constant 1.0 : f64 : {V}\n%t9 = spyre.kernel.alloc : {T}\n"
    assert names(grown(EXP, more, MAX)["m"]) == ["exp", "max"]
    read = f"%r = spyre.kernel.from_device %t1 : {T} to tensor<64x128xf32>\n"
    assert names(grown(EXP, read, MAX)["m"]) == ["exp"]


def test_rows_that_the_group_wrote_otherwise_end_it() -> None:
    """With as many rows as columns: what was written row by row is read column by column, or the other way round."""
    t = "!spyre.tensor<[64, 64] x SEN169_FP16, order [1, 0], stick {}, hbm>"
    a, b = t.format(1), t.format(0).replace("[1, 0]", "[0, 1]")
    text = f"""func.func @main() {{
      %a = spyre.kernel.alloc : {a}
      %b = spyre.kernel.alloc : {b}
      %c = spyre.kernel.alloc : {b}
      spyre.kernel.restickify [m = 64, n = 64] ins(%a[m, n] : {a}) outs(%b[m, n] : {b})
      spyre.kernel.compute "exp" [m = 64, n = 64] ins(%b[m, n] : {b}) outs(%c[m, n] : {b})
      spyre.kernel.restickify [m = 64, n = 64] ins(%c[m, n] : {b}) outs(%a[n, m] : {a})
      func.return
    }}"""
    move, exp, back = ops(passed(text, verify=False), KernelOp)
    by_rows = RowGroup()
    by_rows.add(move, "m", (0, 0))
    assert by_rows.take(exp) and by_rows.loops == ["m", "m"]
    # It writes a by columns where the group read it by rows, with either loop: what it reads was written by rows too.
    assert not by_rows.take(back)
    mixed = RowGroup()
    mixed.add(move, "n", (1, 1))
    assert mixed.take(exp) and mixed.loops == ["n", "n"] and mixed.rows[1] == (1, 1)


def shifted(first: str, second: str) -> list[str]:
    """Names in the group over m of two ops between tensors a and b of 64 rows, and c and d of 63."""
    short = T.replace("64, 128", "63, 128")
    types = {"a": T, "b": T, "c": short, "d": short}
    allocs = "".join(f"%{name} = spyre.kernel.alloc : {type_}\n" for name, type_ in types.items())
    text = []
    for function, rows, read, written in (first.split(), second.split()):
        index, _, name = read.partition("@")
        type_ = types[name]
        text.append(f"""spyre.kernel.compute "{function}" [m = {rows}, n = 128]
          ins(%{name}[{index}, n] : {type_}) outs(%{written}[m, n] : {types[written]})\n""")
    made = passed(f"func.func @main() {{ {allocs} {''.join(text)} func.return }}")
    one, two = ops(made, KernelOp)
    return next(names(group) for group in grow(one, [two]) if group.loops[0] == "m")


def test_a_group_reads_rows_beside_its_own_of_nothing_that_it_writes() -> None:
    assert shifted("exp 63 m+1@a c", "neg 63 m@c d") == ["exp", "neg"]
    assert shifted("exp 64 m@a b", "neg 63 m+1@b c") == ["exp"]  # row m + 1 is made in the next trip


def test_a_group_writes_nothing_of_which_it_has_read_rows_beside_its_own() -> None:
    """Row 17 is read at m = 16 and written at m = 8, which may be a trip earlier."""
    short = T.replace("64, 128", "32, 128")
    pairs = "m = 32, r = 2, n = 128"

    def group(source: str) -> list[str]:
        made = passed(f"""func.func @main() {{
          %a = spyre.kernel.alloc : {T}
          %b = spyre.kernel.alloc : {T}
          %c = spyre.kernel.alloc : {short}
          spyre.kernel.compute "exp" [m = 32, n = 128] ins(%{source}[m + 1, n] : {T}) outs(%c[m, n] : {short})
          spyre.kernel.compute "neg" [{pairs}] ins(%b[m * 2 + r, n] : {T}) outs(%a[m * 2 + r, n] : {T})
          func.return
        }}""")
        one, two = ops(made, KernelOp)
        return next(names(found) for found in grow(one, [two]) if found.loops[0] == "m")

    assert group("a") == ["exp"]
    assert group("b") == ["exp", "neg"]


def test_loops_of_other_extent_join_only_by_what_the_group_wrote() -> None:
    """The second op reads nothing that the group wrote, and has 32 rows and 96 columns where the group has 64 rows."""
    small = T.replace("[64, 128]", "[32, 96]")
    text = f"""func.func @main() {{
      %a = spyre.kernel.alloc : {T}
      %b = spyre.kernel.alloc : {T}
      %c = spyre.kernel.alloc : {small}
      %d = spyre.kernel.alloc : {small}
      spyre.kernel.compute "exp" [m = 64, n = 128] ins(%a[m, n] : {T}) outs(%b[m, n] : {T})
      spyre.kernel.compute "exp" [m = 32, n = 96] ins(%c[m, n] : {small}) outs(%d[m, n] : {small})
      func.return
    }}"""
    large, other = ops(passed(text), KernelOp)
    group = RowGroup()
    group.add(large, "m", (0, 0))
    assert not group.take(other)
    again = RowGroup()
    again.add(other, "m", (0, 0))
    assert not again.take(large)


def test_buffers_of_the_group_alone() -> None:
    group = grown(EXP, MAX, SUB, BIAS)["m"]
    by_name = {v.name_hint: v for v in group.written}
    assert list(by_name) == ["t1", "s0", "t2", "t3"]
    assert [v.name_hint for v in group.internal()] == ["t1", "s0", "t2"]  # the host reads t3
    # What a kernel of the group reads before it is written comes from outside.
    again = grown(kernel("exp", BOTH, "t2[m, n]", "t1[m, n]"), kernel("neg", BOTH, "t1[m, n]", "t2[m, n]"))["m"]
    assert [v.name_hint for v in again.internal()] == ["t1"]
    # The host sends what is overwritten here.
    sent = grown(kernel("exp", BOTH, "t2[m, n]", "t0[m, n]"), kernel("neg", BOTH, "t0[m, n]", "t3[m, n]"))["m"]
    assert sent.internal() == []


def test_pieces_divide_every_loop_and_whole_sticks() -> None:
    assert grown(MAX)["m"].pieces == 64  # no lanes
    # 96 columns are a stick and a half: they stay in one piece.
    half = T.replace("[64, 128]", "[64, 96]")
    text = f"""func.func @main() {{
      %a = spyre.kernel.alloc : {half}
      %b = spyre.kernel.alloc : {half}
      spyre.kernel.compute "exp" [m = 64, n = 96] ins(%a[m, n] : {half}) outs(%b[m, n] : {half})
      func.return
    }}"""
    (op,) = ops(passed(text), KernelOp)
    assert {group.loops[0]: group.pieces for group in grow(op, [])} == {"m": 64, "n": 1}


HEADS = "!spyre.tensor<[8, 64, 64] x SEN169_FP16, order [1, 2, 0], stick 2, hbm>"
KEYS = "!spyre.tensor<[2, 64, 64] x SEN169_FP16, order [1, 2, 0], stick 2, hbm>"


def heads(read: str = "b0 * 4 + b1", more: str = "") -> list[KernelOp]:
    """Two heads of keys are negated, and each is added to four of eight heads of queries, which an exp then reads."""
    loops = "b0 = 2, b1 = 4, m = 64, n = 64"
    return ops(
        passed(f"""func.func @main() {{
      %q = spyre.kernel.alloc : {HEADS}
      %k = spyre.kernel.alloc : {KEYS}
      %l = spyre.kernel.alloc : {KEYS}
      %s = spyre.kernel.alloc : {HEADS}
      %e = spyre.kernel.alloc : {HEADS}
      spyre.kernel.compute "neg" [b = 2, m = 64, n = 64] ins(%k[b, m, n] : {KEYS}) outs(%l[b, m, n] : {KEYS})
      spyre.kernel.compute "add" [{loops}] ins(%q[{read}, m, n] : {HEADS}, %l[b0, m, n] : {KEYS})
        outs(%s[{read}, m, n] : {HEADS})
      spyre.kernel.compute "exp" [h = 8, m = 64, n = 64] ins(%s[h, m, n] : {HEADS}) outs(%e[h, m, n] : {HEADS})
      {more} func.return
    }}"""),
        KernelOp,
    )


def test_a_step_may_be_a_block_of_rows_of_another_tensor() -> None:
    """A step of b0 is four heads of queries, side by side, and one head of keys."""
    neg, add, exp = heads()
    assert row_loops(add)["b0"] == (0, 0, 0)
    assert "b1" not in row_loops(add)  # its steps are one head in four, in two places
    by_heads = grow(neg, [add, exp])[0]
    assert by_heads.loops == ["b", "b0", "h"]
    assert by_heads.rows == [(0, 0), (0, 0, 0), (0, 0)]
    assert by_heads.pieces == 2  # gcd(2, 2, 8)
    assert by_heads.first(2).pieces == 2
    # The exp alone could be cut into eight.
    assert grow(exp, [])[0].pieces == 8


def test_steps_that_lie_apart_are_no_blocks() -> None:
    _, add, _ = heads(read="b1 * 2 + b0")
    assert "b0" not in row_loops(add)  # steps of 1 within steps of 2
    assert row_loops(add)["b1"] == (0, None, 0)  # a step of b1 is two heads side by side


def test_the_first_ops_are_a_group_of_their_own() -> None:
    group = grown(EXP, MAX, SUB, BIAS)["m"]
    part = group.first(2)
    assert (names(part), part.loops, part.rows) == (["exp", "max"], ["m", "m"], [(0, 0), (0, 0)])
    assert [v.name_hint for v in part.written] == ["t1", "s0"]
    assert part.internal() == []  # the third op reads both
    assert [v.name_hint for v in group.first(3).internal()] == ["t1", "s0"]
    assert names(group) == ["exp", "max", "sub", "add"]


def test_an_op_that_touches_nothing_of_the_group_may_run_before_it() -> None:
    exp, reader, writer, sharer, apart = ops(
        module(
            EXP,
            kernel("neg", BOTH, "t1[m, n]", "t2[m, n]"),
            kernel("neg", BOTH, "t2[m, n]", "t0[m, n]"),
            kernel("neg", BOTH, "t0[m, n]", "t2[m, n]"),
            kernel("neg", BOTH, "t2[m, n]", "t3[m, n]"),
        ),
        KernelOp,
    )
    group = RowGroup()
    group.add(exp, "m", (0, 0))
    assert not group.is_independent(reader)  # of what the group writes
    assert not group.is_independent(writer)  # of what the group reads
    assert group.is_independent(sharer)  # both only read it
    assert group.is_independent(apart)


def test_independent_ops_do_not_end_a_group() -> None:
    """The sum of t0 over its rows joins no group over rows; it reads what the exp reads and may go before it."""
    fold = kernel("sum", BOTH, "t0[m, n]", "v1[n]")
    assert names(grown(EXP, fold, MAX)["m"]) == ["exp", "max"]
    # One that reads the result of the group ends it, unless it is a sum that can grow.
    fold = kernel("max", BOTH, "t1[m, n]", "v1[n]")
    assert names(grown(EXP, fold, MAX)["m"]) == ["exp"]


def test_a_block_and_its_tensor_are_not_walked_together() -> None:
    """Rows of a block are other rows of the tensor: a loop over both would read what is not written yet."""
    part = "!spyre.tensor<[64, 64] x SEN169_FP16, order [1, 0], stick 1, extents [64, 128], hbm>"
    text = f"""func.func @main(%x: tensor<64x128xf32>, %at: tensor<1xi64>) -> tensor<64x128xf32> {{
      %t0 = spyre.kernel.to_device %x : tensor<64x128xf32> to {T}
      %t1 = spyre.kernel.alloc : {T}
      %b = spyre.kernel.block_number of %at, blocks of 64 in 128 : tensor<1xi64>
      %p = spyre.kernel.tile %t0 dim 1 at %b * 64 : {T} to {part}
      spyre.kernel.compute "exp" [m = 64, n = 64] ins(%p[m, n] : {part}) outs(%p[m, n] : {part})
      {EXP}
      %z = spyre.kernel.from_device %t1 : {T} to tensor<64x128xf32>
      func.return %z : tensor<64x128xf32>
    }}"""
    block = functions(passed(text))[0].body.block
    first = next(op for op in block.ops if isinstance(op, KernelOp))
    groups = grow(first, list(block.ops)[block.get_operation_index(first) + 1 :])
    assert [names(group) for group in groups] == [["exp"], ["exp"]]


def test_rows_of_other_kernels_may_be_fewer_in_a_step() -> None:
    """A step of the first kernel is two rows; the second kernel reads nothing of the group, but has as many rows."""
    pairs = kernel("exp", "m = 32, i = 2, n = 128", "t0[m * 2 + i, n]", "t1[m * 2 + i, n]")
    peak = kernel("max", BOTH, "t0[m, n]", "s0[m]")
    group = grown(pairs, peak, SUB, BIAS)["m"]
    assert names(group) == ["exp", "max", "sub", "add"]
    assert (group.loops, group.pieces) == (["m"] * 4, 32)
