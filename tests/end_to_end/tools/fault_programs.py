# ruff: noqa: E501
"""Programs as text with a fault to plant: a few SuperDSCs on two cores, or a few kernels.

Each core has two rows of a tensor of four sticks. x is argument 1, the result is argument 2, and the pool is segment 0;
segments are 16 GiB apart.
"""

from __future__ import annotations

from dataclasses import dataclass

X, OUT, POOL = 1 << 34, 2 << 34, 0
LX = "lx"
HBM = "hbm"
ROW = 128  # bytes
LX_BYTES = 2 * 1024 * 1024


@dataclass(frozen=True)
class At:
    """An operand: where it starts, per core or by a step per slice of two rows."""

    base: int
    component: str = HBM
    starts: tuple[int, ...] | None = None
    step: int = 2 * ROW
    format: str = "SEN169_FP16"
    symbolic: bool = False

    def text(self, number: int) -> str:
        start = f"{self.base}" if self.component == LX else f"{self.base} + {self.step} * mb"
        start = start if self.starts is None else str(list(self.starts))
        start = f"symbolic start {self.base} + -1 * mb" if self.symbolic else f"start {start}"
        return f"%a{number} = superdsc.allocate {number} in {self.component} [mb, out] {start}"


def sdsc(number: int, function: str, *operands: At, rows: int = 4, splits: tuple[int, int] = (2, 1), columns: int = 64,
         fields: str = "") -> str:  # fmt: skip
    """A function on rows of `columns` elements; its line of the model is 10 times its number."""
    *inputs, output = (f"%t{n}" for n in range(len(operands)))
    nodes = "\n".join(operand.text(n) for n, operand in enumerate(operands))
    entries = "\n".join(
        f"%t{n} = superdsc.labeled_ds {n} OUTPUT {o.format} scale [1, 1] at %a{n}" for n, o in enumerate(operands)
    )
    return f"""
      superdsc.sdsc @"{number}_{function}" splits {{mb = {splits[0]}, out = {splits[1]}}} {fields} {{
        superdsc.dsc {function} sizes {{mb = {rows}, out = {columns}}} classes {{OUTPUT = [mb, out] stick {{out = 64}}}} {{
          {nodes}
          {entries}
          superdsc.compute sfp {function} SEN169_FP16 ({", ".join(inputs)}) -> ({output})
        }}
      }} loc("model.py":{number}0:0)"""


def program(*files: str, launches: tuple[int, ...] | None = None, bound: tuple[int, ...] = ()) -> str:
    """A module that runs the files in their order, or in the order given, with symbols -1, -2, … bound."""
    order = range(len(files)) if launches is None else launches
    given = ", ".join(f"%s{n}" for n in range(len(bound)))
    ids = f", symbol_ids={[-1 - n for n in range(len(bound))]}" if bound else ""
    runs = "\n".join(
        [f"%s{n} = arith.constant {address} : index" for n, address in enumerate(bound)]
        + [
            f'sdscbundle.sdsc_execute ({given}) {{sdsc_filename="sdsc_{n}.json"{ids}}} loc("model.py":{n}0:0)'
            for n in order
        ]
    )
    tensor = "!spyre.tensor<[4, 64] x SEN169_FP16, order [1, 0], stick 1, hbm>"
    return f"""{"".join(files)}
      func.func @sdsc_bundle() {{
        {runs}
        func.return
      }}
      func.func @main(%x: tensor<4x64xf32>) -> tensor<4x64xf32> {{
        %0 = spyre.kernel.to_device %x segment 1 : tensor<4x64xf32> to {tensor}
        %1 = spyre.kernel.alloc segment 2 : {tensor}
        spyre.kernel.launch @sdsc_bundle(%0, %1) pool_bytes 1024 : {tensor}, {tensor}
        %2 = spyre.kernel.from_device %1 : {tensor} to tensor<4x64xf32> loc("model.py":99:0)
        func.return %2 : tensor<4x64xf32>
      }}"""


x, out, pool, lx = At(X), At(OUT), At(POOL), At(0, LX)


# The kernel level: buffers instead of addresses, except in the scratchpads, which all cores divide alike.
TYPES = "".join(
    f"!{name} = !spyre.tensor<[4, 64] x SEN169_FP16, order [1, 0], stick 1, {space}>\n"
    for name, space in (("t", HBM), ("l", LX))
)


def kernels(*body: str) -> str:
    """A module at the kernel level with a buffer %o for the result, and two overlapping ones, %l and %m, in LX."""
    lines = "\n".join(f'{op} loc("model.py":{number}0:0)' for number, op in enumerate(body))
    return f"""{TYPES}
      func.func @main(%x: tensor<4x64xf32>) -> tensor<4x64xf32> {{
        %t = spyre.kernel.to_device %x : tensor<4x64xf32> to !t
        %o = spyre.kernel.alloc : !t
        %l = spyre.kernel.alloc at 0 : i64 : !l
        %m = spyre.kernel.alloc at 128 : i64 : !l
        {lines}
        %r = spyre.kernel.from_device %o : !t to tensor<4x64xf32> loc("model.py":99:0)
        func.return %r : tensor<4x64xf32>
      }}"""


def kernel(
    function: str, source: str, target: str, space: str = "m = 4 over 2", read: str = "m", write: str = "m"
) -> str:
    types = ["!l" if name in ("%l", "%m", "%z") else "!t" for name in (source, target)]
    return (
        f'spyre.kernel.compute "{function}" [{space}, n = 64] '
        f"ins({source}[{read}, n] : {types[0]}) outs({target}[{write}, n] : {types[1]})"
    )
