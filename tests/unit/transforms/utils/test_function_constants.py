"""Constants of hardware functions: names as files have them, numbers as their formats have them."""

from __future__ import annotations

import numpy as np
import pytest
from xdsl.dialects.builtin import DictionaryAttr, FloatAttr, f32, f64
from xdsl.ir import Block

from spyre_mlir.dialects.spyre.kernel import KernelOp
from spyre_mlir.dialects.spyre.loop import YieldOp
from spyre_mlir.dialects.spyre.scalars import ApplyOp
from spyre_mlir.errors import UnsupportedError
from spyre_mlir.ops import ATEN
from spyre_mlir.transforms.utils.function_constants import as_attribute, file_constants, function_constants
from tests.unit.transforms.levels import ops, passed

DL16, FP32 = "SEN169_FP16", "IEEE_FP32"


def body(function: str | None, **numbers: float) -> Block:
    block = Block(arg_types=[f32])
    made = None if function is None else ApplyOp(function, block.args, f32, as_attribute(numbers).data)
    block.add_ops(
        [*([] if made is None else [made]), YieldOp.create(operands=[made.result if made else block.args[0]])]
    )
    return block


def test_numbers_of_the_body_have_the_names_of_the_file() -> None:
    found = function_constants(body("softplus", beta=2.0, threshold=8.0), "softplus", DL16)
    assert list(found.items()) == [("softplusBeta", 2.0), ("softplusThresh", 8.0)]


def test_what_the_body_does_not_set_has_the_default_of_torch() -> None:
    """torch.nn.functional.softplus: beta 1, threshold 20."""
    assert function_constants(body("softplus"), "softplus", FP32) == {"softplusBeta": 1.0, "softplusThresh": 20.0}
    assert function_constants(body("softplus", threshold=3.0), "softplus", FP32) == {
        "softplusBeta": 1.0,
        "softplusThresh": 3.0,
    }


def test_constants_are_in_the_order_of_the_file_whatever_the_body_says_first() -> None:
    assert list(function_constants(body("clamp", max=2.0, min=-1.0), "clip", FP32)) == ["clipMin", "clipMax"]


def test_numbers_are_rounded_to_the_format() -> None:
    """0.1 is 1.6 / 16: DL16 has 9 bits behind the point, 1.6 is 819.2 / 512."""
    assert function_constants(body("softplus", beta=0.1), "softplus", DL16)["softplusBeta"] == 819 / 512 / 16
    single = function_constants(body("softplus", beta=0.1), "softplus", FP32)["softplusBeta"]
    assert single == float(np.float32(0.1)) != 0.1


def test_functions_without_constants_have_none() -> None:
    assert function_constants(body(None), "identity", DL16) == {}
    assert function_constants(body("silu"), "silu", DL16) == {}


def test_a_constant_without_a_value_is_refused() -> None:
    with pytest.raises(UnsupportedError, match="'clamp' sets no constant clipMax of the hardware function clip") as no:
        function_constants(body("clamp", min=0.0), "clip", DL16)
    assert no.value.hint == "name an argument for it in op_info"
    with pytest.raises(UnsupportedError, match=r"'silu' sets no constant clipMin, clipMax of .* clip"):
        function_constants(body("silu"), "clip", DL16)


def test_a_function_that_no_list_has_takes_what_is_given() -> None:
    assert ATEN.by_opfunc("mystery") is None
    assert function_constants(body("clamp", min=0.0), "mystery", DL16) == {"clipMin": 0.0}


def test_an_attribute_holds_double_precision() -> None:
    assert as_attribute({"a": 0.1}) == DictionaryAttr({"a": FloatAttr(0.1, f64)})


@pytest.mark.parametrize(("form", "word"), [(DL16, (31 << 9) + 256), (FP32, 0x3FC00000)])
def test_files_hold_words_of_the_format_of_the_operand(form: str, word: int) -> None:
    """1.5: DL16 has a bias of 31 and 9 bits behind the point, so 1 is 31 << 9; float32 is IEEE 754."""
    t = f"!spyre.tensor<[2, 64] x {form}, order [1, 0], stick 1, hbm>"
    module = passed(f"""func.func @main() {{
      %a = spyre.kernel.alloc : {t}
      %b = spyre.kernel.alloc : {t}
      spyre.kernel.compute "softplus" [m = 2, n = 64] ins(%a[m, n] : {t}) outs(%b[m, n] : {t})
        op_info {{softplusBeta = 1.5 : f64, softplusThresh = 1.5 : f64}}
      func.return
    }}""")
    found = file_constants(ops(module, KernelOp)[0])
    assert [(c.name, c.format, c.bits) for c in found] == [("softplusBeta", form, word), ("softplusThresh", form, word)]


def test_movement_has_no_constants() -> None:
    a, b = (f"!spyre.tensor<[64, 64] x {DL16}, order [{o}], stick {s}, hbm>" for o, s in (("1, 0", 1), ("0, 1", 0)))
    module = passed(f"""func.func @main() {{
      %a = spyre.kernel.alloc : {a}
      %b = spyre.kernel.alloc : {b}
      spyre.kernel.restickify [m = 64, n = 64] ins(%a[m, n] : {a}) outs(%b[m, n] : {b})
      func.return
    }}""")
    assert file_constants(ops(module, KernelOp)[0]) == ()
