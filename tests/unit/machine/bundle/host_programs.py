"""A host program of one launch, by hand: what is sent, negated by a bundle, and read back."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from spyre_mlir.dialects.superdsc.model.descriptor import Descriptor, Dim, OpClass, Operand
from spyre_mlir.machine.bundle.host_program import DeviceProgram
from spyre_mlir.machine.memory.exact import ExactMemory, Memory
from tests.unit.machine.modules import device, parse

Array = NDArray[Any]
DL16 = "SEN169_FP16"
ROWS = device((4, 64), 1)  # four rows of a stick
ARG = "!sdscbundle.input_arg<index>"
BASES = (1 << 20, 2 << 20)
# The result goes to the pool and is lost, and from there to the argument.
POOL = """func.func @sdsc_bundle(%p0: !sdscbundle.input_arg<index>, %p1: !sdscbundle.input_arg<index>) {
  %step = arith.constant 256 : index
  %pool = sdscbundle.device_mem_allocate 512 bytes : index
  %pool1 = arith.addi %pool, %step : index
  %a = sdscbundle.input_arg_extract value from %p0 : !sdscbundle.input_arg<index> -> index
  %a1 = arith.addi %a, %step : index
  %b = sdscbundle.input_arg_extract value from %p1 : !sdscbundle.input_arg<index> -> index
  %b1 = arith.addi %b, %step : index
  sdscbundle.sdsc_execute (%a, %a1, %pool, %pool1) {sdsc_filename="sdsc_0.json", symbol_ids=[-1, -2, -3, -4]}
  sdscbundle.sdsc_execute (%pool, %pool1, %b, %b1) {sdsc_filename="sdsc_0.json", symbol_ids=[-1, -2, -3, -4]}
  func.return
}"""


def negation(*starts: str, symbolic: bool = True, index: int = 0) -> Descriptor:
    """Negates four rows of a stick on two cores; a start is one of core 0, or a symbol of each core."""
    dims = (Dim("mb", 4, 2), Dim("out", 64))
    operands = tuple(
        Operand(("mb", "out"), (4, 64), "out", DL16, tuple(start.split()), symbolic=symbolic) for start in starts
    )
    return Descriptor(index, "neg", "sfp", OpClass.POINTWISE, dims, operands)


def bundle(count: int = 2) -> str:
    """A bundle function that launches one file on buffers of two slices each."""
    names = [f"%p{n}" for n in range(count)]
    lines = "%step = arith.constant 256 : index\n"
    for n, name in enumerate(names):
        lines += f"%a{n} = sdscbundle.input_arg_extract value from {name} : {ARG} -> index\n"
        lines += f"%b{n} = arith.addi %a{n}, %step : index\n"
    bound = ", ".join(f"%a{n}, %b{n}" for n in range(count))
    ids = [-1 - n for n in range(2 * count)]
    arguments = ", ".join(f"{name}: {ARG}" for name in names)
    return (
        f"func.func @sdsc_bundle({arguments}) {{\n{lines}"
        f'sdscbundle.sdsc_execute ({bound}) {{sdsc_filename="sdsc_0.json", symbol_ids={ids}}}\nfunc.return\n}}'
    )


def host(
    send: str = "", alloc: str = "", launch: str = "", element: str = "f32", type_: str = ROWS, back: str = ""
) -> str:
    """Sends %x, launches, and reads %o back; attributes of each op as text."""
    tensor = f"tensor<4x64x{element}>"
    return f"""func.func @main(%x: {tensor} {{aten.name = "left"}}) -> {tensor} {{
      %d = spyre.kernel.to_device %x {send} : {tensor} to {type_}
      %o = spyre.kernel.alloc {alloc} : {type_}
      spyre.kernel.launch @sdsc_bundle (%d, %o) {launch} : {type_}, {type_}
      %r = spyre.kernel.from_device %o : {type_} to {tensor} {back}
      func.return %r : {tensor}
    }}"""


def program(
    text: str | None = None, files: Mapping[str, Descriptor] | None = None, bundle_text: str | None = None, **other: Any
) -> DeviceProgram:
    """The program of a host function, its bundle, and the files of that."""
    known = files or {"sdsc_0.json": negation("-1 -2", "-3 -4")}
    return DeviceProgram(parse(text or host()), parse(bundle_text or bundle()), known.__getitem__, **other)


def numbers() -> Array:
    """Four rows that DLFloat16 holds exactly."""
    return np.arange(-128.0, 128.0).reshape(4, 64)


def memory() -> Memory:
    """Memory of the two arguments of a bundle, the first with numbers."""
    made = ExactMemory()
    for base in BASES:
        made.add_region(f"at {base}", base, 512)
    made.store(BASES[0] + 2 * np.arange(256), numbers().reshape(-1), DL16)
    return made
