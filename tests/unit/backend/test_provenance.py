"""Which kernel op a launch comes from, whether loops were kept or unrolled."""

from __future__ import annotations

from typing import Any

import pytest

from spyre_mlir.backend.provenance import origins
from spyre_mlir.dialects.places import Source
from spyre_mlir.text.render import parse_module
from spyre_mlir.universe import make_context

T = "!spyre.tensor<[64, 128] x SEN169_FP16, order [1, 0], stick 1, hbm>"


def kernel(name: str) -> str:
    return f'spyre.kernel.compute "{name}" [m = 64, n = 128] ins(%a[m, n] : {T}) outs(%b[m, n] : {T})'


# One kernel, a loop of three trips around one kernel and a loop of two trips around another, and one more.
KERNELS = f"""func.func @main() {{
  %a = spyre.kernel.alloc : {T}
  %b = spyre.kernel.alloc : {T}
  %0 = arith.constant 0 : index
  %1 = arith.constant 1 : index
  %2 = arith.constant 2 : index
  %3 = arith.constant 3 : index
  {kernel("exp")}
  scf.for %i = %0 to %3 step %1 {{
    {kernel("neg")}
    scf.for %j = %0 to %2 step %1 {{
      {kernel("abs")}
    }}
  }}
  {kernel("sqrt")}
  func.return
}}"""


@pytest.mark.parametrize(
    ("launches", "functions"),
    [
        (4, ["exp", "neg", "abs", "sqrt"]),
        (11, ["exp", *["neg", "abs", "abs"] * 3, "sqrt"]),
        (5, []),  # a bundle that is not of these kernels
    ],
)
def test_launches_go_with_kernels(launches: int, functions: list[str]) -> None:
    module = parse_module(KERNELS.encode(), make_context(), "kernels")
    found: list[Any] = origins([Source()] * launches, {"spyre.kernel": module})
    assert [one["kernel"]["function"] for one in found if "kernel" in one] == functions
    numbers = [one["kernel"]["number"] for one in found if "kernel" in one]
    assert numbers == [["exp", "neg", "abs", "sqrt"].index(name) for name in functions]
