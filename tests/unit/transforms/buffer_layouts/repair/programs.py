"""Programs at the loop level whose first layouts are not the quickest, and the plans of their functions."""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp

from spyre_mlir.transforms.buffer_layouts.repair.planned_layouts import PlannedLayouts
from spyre_mlir.transforms.buffer_layouts.repair.prices import LayoutPricing
from spyre_mlir.transforms.convert_spyre_loop_to_spyre_kernel import ConvertSpyreLoopToSpyreKernelPass
from spyre_mlir.universe import make_context
from tests.unit.transforms.levels import passed

CONVERT = ConvertSpyreLoopToSpyreKernelPass()
T, ROW = "tensor<1024x1024xf16>", "tensor<1x1024xf16>"
PLACED = '{aten.kind = "input", aten.layout = "default"}'


def relu(name: str, of: str, said: str = "") -> str:
    return f"""%{name} = spyre.loop.nest [m = 1024, n = 1024] ins(%{of}[m, n] : {T}) -> [m, n] : {T} {said} {{
      ^bb0(%e: f16):
        %r = spyre.loop.apply "relu"(%e) : (f16) -> f16
        spyre.loop.yield %r : f16
      }}"""


def greatest(name: str, of: str) -> str:
    """The largest of each column."""
    return f"""%{name} = spyre.loop.nest [r = 1024, n = 1024] ins(%{of}[r, n] : {T}) -> [0, n] : {ROW}
      reduce "arith.maximumf" {{
      ^bb0(%e: f16):
        spyre.loop.yield %e : f16
      }}"""


def less(name: str, one: str, other: str) -> str:
    """A row taken from every row."""
    return f"""%{name} = spyre.loop.nest [m = 1024, n = 1024] ins(%{one}[m, n] : {T}, %{other}[0, n] : {ROW})
      -> [m, n] : {T} {{
      ^bb0(%e: f16, %f: f16):
        %d = arith.subf %e, %f : f16
        spyre.loop.yield %d : f16
      }}"""


def function(*lines: str, result: str = T, name: str = "main") -> str:
    """A function of %x, placed, whose last line makes %out, placed."""
    body = "\n".join(lines)
    return f"func.func @{name}(%x: {T} {PLACED}) -> ({result} {PLACED}) {{\n{body}\nfunc.return %out : {result}\n}}"


def columns_less_their_greatest(name: str = "main") -> str:
    """Columns in the lanes need no change of layout and are 16 sticks, for 16 of 32 cores."""
    return function(relu("0", "x"), greatest("1", "0"), less("out", "0", "1"), name=name)


def few_columns_less_their_greatest(name: str = "main") -> str:
    """Columns in the lanes are 2 sticks, for 2 of 32 cores; rows in the lanes take two changes of layout."""
    return columns_less_their_greatest(name).replace("x1024xf16", "x128xf16").replace("n = 1024", "n = 128")


def planned(text: str) -> tuple[ModuleOp, list[PlannedLayouts]]:
    """A module, and the layouts that its functions have at first."""
    module = passed(text)
    functions = CONVERT.planned(make_context(), module)
    found = [PlannedLayouts.of(one) for one in functions]
    for one in functions:
        one.take_back()
    return module, found


def pricing() -> LayoutPricing:
    return LayoutPricing(make_context())
