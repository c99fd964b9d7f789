"""Small programs at the superdsc level, written by hand: one kernel per file, addresses in the files."""

from __future__ import annotations

from xdsl.dialects.builtin import ModuleOp

from spyre_mlir.text.render import parse_module
from spyre_mlir.universe import make_context

LAYOUT = "[64, 128] x SEN169_FP16, order [1, 0], stick 1, hbm"
DEVICE = f"!spyre.tensor<{LAYOUT}>"
HOST = "tensor<64x128xf16>"
BYTES = 64 * 128 * 2


def kernel(root: str, function: str = "relufwd", extra: str = "") -> str:
    """A SuperDSC on two cores, each with 32 rows of 64 elements and as many of the other 64, 4096 bytes apart."""
    labels = '{labels = {mb = "m", out = "n"}}'
    return f"""superdsc.sdsc @"{root}" {extra} splits {{mb = 2, out = 1}} attributes {labels} {{
  superdsc.dsc {function} sizes {{mb = 64, out = 128}} classes {{OUTPUT = [mb, out] stick {{out = 64}}}} {{
    %a0 = superdsc.allocate 0 in hbm [mb, out] start 17179869184 + 4096 * mb
    %a1 = superdsc.allocate 1 in hbm [mb, out] start 34359738368 + 4096 * mb
    %t0 = superdsc.labeled_ds 0 OUTPUT SEN169_FP16 scale [1, 1] at %a0
    %t1 = superdsc.labeled_ds 1 OUTPUT SEN169_FP16 scale [1, 1] at %a1
    superdsc.compute sfp {function} SEN169_FP16 (%t0) -> (%t1)
  }}
}}
"""


def bundle(*files: str, name: str = "sdsc_bundle") -> str:
    """A bundle function that launches files."""
    lines = "".join(f'  sdscbundle.sdsc_execute () {{sdsc_filename="{file}"}}\n' for file in files)
    return f"func.func @{name}() {{\n{lines}  func.return\n}}\n"


def host(*launched: str, name: str = "main") -> str:
    """A host program that sends `x`, launches bundle functions on it and on a result, and takes the result back."""
    launches = "".join(f"  spyre.kernel.launch @{one}(%0, %1) : {DEVICE}, {DEVICE}\n" for one in launched)
    return f"""func.func @{name}(%x: {HOST} {{aten.name = "x"}}) -> {HOST} {{
  %0 = spyre.kernel.to_device %x : {HOST} to {DEVICE}
  %1 = spyre.kernel.alloc : {DEVICE}
{launches}  %2 = spyre.kernel.from_device %1 : {DEVICE} to {HOST}
  func.return %2 : {HOST}
}}
"""


ONE = kernel("0_relufwd") + kernel("1_abs", "abs") + bundle("sdsc_0.json", "sdsc_1.json") + host("sdsc_bundle")
TWO = (
    kernel("0_relufwd")
    + kernel("1_abs", "abs")
    + bundle("sdsc_0.json", name="sdsc_bundle_0")
    + bundle("sdsc_1.json", name="sdsc_bundle_1")
    + host("sdsc_bundle_0", "sdsc_bundle_1")
)


def read(text: str) -> ModuleOp:
    """A module of a text."""
    return parse_module(text, make_context(), "program.mlir")
