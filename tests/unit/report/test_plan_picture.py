"""The picture of a plan says what the kernel level says: loops, slices, layouts, memories, and what is rearranged."""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp

from spyre_mlir.report.plan_picture import PlannedRow, plan_picture
from spyre_mlir.text import parse_module
from spyre_mlir.universe import make_context

TYPES = """
!t = !spyre.tensor<[512, 128] x SEN169_FP16, order [1, 0], stick 1, hbm>
!l = !spyre.tensor<[512, 128] x SEN169_FP16, order [1, 0], stick 1, lx>
!turned = !spyre.tensor<[512, 128] x SEN169_FP16, order [0, 1], stick 0, hbm>
!rows = !spyre.tensor<[128, 128] x SEN169_FP16, order [1, 0], stick 1, extents [512, 128], hbm>
!column = !spyre.tensor<[512, 1] x SEN169_FP16, order [0, unit, 1], stick unit, hbm>
"""
PROGRAM = (
    TYPES
    + """
func.func @layers(%x: !t, %o: !t) {
  %c0 = arith.constant 0 : index
  %c1 = arith.constant 1 : index
  %c4 = arith.constant 4 : index
  scf.for %i = %c0 to %c4 step %c1 {
    %dt = spyre.kernel.tile %x dim 0 at %i * 128 : !t to !rows
    %ot = spyre.kernel.tile %o dim 0 at %i * 128 : !t to !rows
    spyre.kernel.compute "exp" [m = 128 over 16, n = 128 over 2] ins(%dt[m, n] : !rows) outs(%ot[m, n] : !rows)
  }
  func.return
}
func.func @main(%x: tensor<512x128xf16>) -> tensor<512x128xf16> {
  %d = spyre.kernel.to_device %x : tensor<512x128xf16> to !t
  %o = spyre.kernel.alloc : !t
  func.call @layers(%d, %o) : (!t, !t) -> ()
  func.call @layers(%o, %d) : (!t, !t) -> ()
  %s = spyre.kernel.alloc : !turned
  spyre.kernel.restickify [m = 512 over 8, n = 128] ins(%d[m, n] : !t) outs(%s[m, n] : !turned)
  %held = spyre.kernel.alloc at 4096 : i64 : !l
  spyre.kernel.compute "identity" [m = 512 over 32, n = 128] ins(%d[m, n] : !t) outs(%held[m, n] : !l)
  %sum = spyre.kernel.alloc : !column
  spyre.kernel.compute "sum" [m = 512, n = 128] ins(%held[m, n] : !l) outs(%sum[m, 0] : !column)
  %last = spyre.kernel.alloc : !turned
  spyre.kernel.compute "abs" [m = 512, n = 128] ins(%s[m, n] : !turned) outs(%last[m, n] : !turned)
  %r = spyre.kernel.from_device %last : !turned to tensor<512x128xf16>
  func.return %r : tensor<512x128xf16>
}
"""
)


def rows(program: str = PROGRAM) -> dict[str, tuple[PlannedRow, ...]]:
    module = parse_module(program, make_context(), "plan.mlir")
    return {function.name: function.rows for function in plan_picture(module, ModuleOp([])).functions}


def shown(row: PlannedRow) -> list[str]:
    """Loops of a row, then its operands: what is marked stands in stars."""
    loops = " ".join(f"*{axis.text}*" if axis.marked else axis.text for axis in row.loops)
    operands = (*row.reads, *row.writes)
    return [loops] + [
        f"%{one.value} {one.memory} " + " ".join(f"*{a.text}*" if a.marked else a.text for a in one.axes)
        for one in operands
    ]


def test_the_main_function_comes_first_and_calls_are_counted() -> None:
    module = parse_module(PROGRAM, make_context(), "plan.mlir")
    found = plan_picture(module, ModuleOp([])).functions
    assert [(one.name, one.calls, one.kernels) for one in found] == [("main", 0, 4), ("layers", 2, 1)]


def test_loops_that_hints_ask_for_say_so_and_what_the_host_reads_too() -> None:
    hinted = PROGRAM.replace(
        "outs(%ot[m, n] : !rows)", "outs(%ot[m, n] : !rows) attributes {spyre.hint = {tile = {m = 4}}}"
    )
    assert rows(hinted)["layers"][0].what == "4 trips, as a hint asks"
    for_host = PROGRAM.replace("from_device %last", "from_device %s")
    assert rows(for_host)["main"][2].rearranged == "stick 1 to 0, for abs"
    last = for_host.replace("ins(%s[m, n] : !turned)", "ins(%last[m, n] : !turned)")
    assert rows(last)["main"][2].rearranged == "stick 1 to 0, for the host"


def test_kernels_stand_inside_their_loops() -> None:
    assert [(row.depth, row.what, row.cores) for row in rows()["layers"]] == [(0, "4 trips", 0), (1, "exp", 32)]
    assert [row.what for row in rows()["main"]] == [
        "call layers",
        "call layers",
        "ReStickifyOpHBM",
        "identity",
        "sum",
        "abs",
    ]


def test_divided_loops_and_dimensions_in_the_sticks_are_marked() -> None:
    (_, exp), (_, _, turned, _, total, _) = rows()["layers"], rows()["main"]
    assert shown(exp) == ["*m 128/16* *n 128/2*", "%dt hbm *128* 128", "%ot hbm *128* 128"]
    assert shown(turned) == ["*m 512/8* n 128", "%d hbm *128* 512", "%s hbm *512* 128"]
    assert shown(total) == ["m 512 n 128", "%held lx *128* 512", "%sum hbm 512 *unit* 1"]


def test_what_computes_nothing_says_what_it_is_for() -> None:
    said = [row.rearranged for row in rows()["main"]]
    assert said == ["", "", "stick 1 to 0, for abs", "copy to lx, for sum", "", ""]


def test_an_operand_says_its_format_its_place_and_its_size() -> None:
    (copied,) = rows()["main"][3].writes
    assert copied.about == "SEN169_FP16, lx at 4,096, 131,072 bytes with padding"


def test_a_program_without_kernels_says_so() -> None:
    text = "func.func @main(%x: tensor<4xf16>) -> tensor<4xf16> { func.return %x : tensor<4xf16> }"
    module = parse_module(text, make_context(), "plan.mlir")
    assert str(plan_picture(module, ModuleOp([]))) == "no kernels: the host does all"


def test_it_prints_as_tables() -> None:
    text = str(plan_picture(parse_module(PROGRAM, make_context(), "plan.mlir"), ModuleOp([])))
    lines = [" ".join(line.split()) for line in text.splitlines()]
    assert "main, kernels: 4" in lines and "layers, kernels: 1, calls: 2" in lines
    assert "kernel 0 exp m 128/16, n 128/2 32 %dt hbm 128*x128 %ot hbm 128*x128" in lines
