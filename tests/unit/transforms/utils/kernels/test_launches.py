"""Launches of a function: what stands between two host steps is one."""

from __future__ import annotations

import pytest
from xdsl.ir import Operation

from spyre_mlir.dialects.ir.functions import functions
from spyre_mlir.dialects.spyre.kernel import KernelOp
from spyre_mlir.text.render import parse_module
from spyre_mlir.transforms.utils.kernels.launches import called_functions, launch_numbers, launch_ops, one_launch
from spyre_mlir.universe import make_context
from tests.unit.transforms.levels import ops, passed

T = "!spyre.tensor<[2, 64] x SEN169_FP16, order [1, 0], stick 1, hbm>"
HOST = 'spyre.kernel.host "aten.special_bessel_j1" because "no entry" (%x) {self = #aten.operands<1>}'
STEP = f"%h = {HOST} : (tensor<2x64xf32>) -> tensor<2x64xf32>\n"
KERNEL = f'spyre.kernel.compute "exp" [m = 2, n = 64] ins(%a[m, n] : {T}) outs(%a[m, n] : {T})\n'
LOOP = f"scf.for %i = %c0 to %c2 step %c1 {{\n{KERNEL}}}\n"


def numbers(parts: str) -> list[int]:
    """The launches of the kernels (k), those in loops (l) included, among host steps (h)."""
    texts = {"k": KERNEL, "l": LOOP, "h": STEP}
    body = "".join(texts[p].replace("%h", f"%h{n}") for n, p in enumerate(parts))
    module = passed(f"""func.func @main(%x: tensor<2x64xf32>) {{
      %c0 = arith.constant 0 : index
      %c1 = arith.constant 1 : index
      %c2 = arith.constant 2 : index
      %a = spyre.kernel.alloc : {T}
      {body} func.return
    }}""")
    found = launch_numbers(functions(module)[0].body.block)
    kernels = ops(module, KernelOp)
    assert set(found) == set(kernels)
    return [found[op] for op in kernels]


@pytest.mark.parametrize(
    ("parts", "launches"),
    [
        ("kk", [0, 0]),
        ("khk", [0, 1]),
        ("hk", [0]),
        ("khhkk", [0, 1, 1]),
        ("hhlkhl", [0, 0, 1]),
        ("lhkhk", [0, 1, 2]),
        ("hkhhk", [0, 1]),
        ("h", []),
    ],
)
def test_host_steps_end_launches_that_have_begun(parts: str, launches: list[int]) -> None:
    assert numbers(parts) == launches


def test_users_outside_of_launches_do_not_count() -> None:
    module = passed(f"func.func @main() {{\n%a = spyre.kernel.alloc : {T}\n{KERNEL * 3} func.return\n}}")
    one, two, three = ops(module, KernelOp)
    launches: dict[Operation, int] = {one: 0, two: 0, three: 1}
    other = next(iter(functions(module)[0].body.block.ops))
    assert one_launch([one, two, other], launches)
    assert one_launch([three], launches)
    assert one_launch([], launches)
    assert not one_launch([two, three], launches)


CALLING = f"""
func.func @main(%x: tensor<2x64xf32>) {{
  %a = spyre.kernel.to_device %x : tensor<2x64xf32> to {T}
  {KERNEL}
  func.call @layers(%a) : ({T}) -> ()
  func.call @layers(%a) : ({T}) -> ()
  {KERNEL}
  func.return
}}
func.func private @layers(%a: {T}) {{
  {KERNEL}
  func.return
}}"""


def test_a_call_is_a_launch_of_its_own() -> None:
    module = parse_module(CALLING, make_context(), "main.mlir")
    main = functions(module)[0]
    found = launch_numbers(main.body.block)
    assert list(found.values()) == [0, 1, 2, 3]
    ops = list(found)
    assert not one_launch([ops[1]], found)
    assert one_launch([ops[0]], found)
    assert list(called_functions(module)) == ["layers"]
    assert launch_ops(main) == ops
