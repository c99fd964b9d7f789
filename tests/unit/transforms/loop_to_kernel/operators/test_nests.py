"""Ops of the loop level as planned kernels; `test_convert_spyre_loop_to_spyre_kernel.py` has what they compute."""

from spyre_mlir.transforms.loop_to_kernel.layout_planner import LayoutPlanner
from spyre_mlir.transforms.loop_to_kernel.operators.nests import lower_nest
from tests.unit.transforms.loop_to_kernel.planning import names, nest, steps

T = "tensor<4x128xf32>"


def test_a_nest_is_a_kernel_with_a_loop_in_the_lanes_of_its_result() -> None:
    op = nest(f"""func.func @main(%x: {T}) -> {T} {{
      %0 = spyre.loop.nest [m = 4, n = 128] ins(%x[m, n] : {T}) -> [m, n] : {T} {{
      ^bb0(%e: f32):
        %r = spyre.loop.apply "relu"(%e) : (f32) -> f32
        spyre.loop.yield %r : f32
      }}
      func.return %0 : {T}
    }}""")
    p = LayoutPlanner()
    p.hosts[op.inputs[0]] = False
    lower_nest(p, op)
    assert names(p) == ["relufwd"]
    assert p.chosen.lanes == {op: "n"} and p.chosen.made[op] is steps(p)[0].output[0]
    assert p.chosen.made[op].layout.stick == 1
