"""Runs a SuperDSC file that another compiler wrote: an addition of two 512 x 512 tensors on 32 cores.

The file has addresses only, so this puts tensors there the way the file says, runs it, and reads the sum back.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

from spyre_mlir.backend.read import read_json
from spyre_mlir.dialects.superdsc.codec.describe import describe
from spyre_mlir.hw.spec import STICK_BYTES
from spyre_mlir.hw.sticks import round_up
from spyre_mlir.machine.memory.exact import ExactMemory
from spyre_mlir.machine.superdsc.run import element_addresses, execute

FILE = Path(__file__).resolve().parent.parent / "tests" / "data" / "superdsc_real" / "01_add_512x512_32core_hbm.json"


def main() -> int:
    view = describe(read_json(FILE))
    print(f"{view.op_func} over", ", ".join(f"{d.label} = {d.extent} on {d.split} cores" for d in view.dims))
    # Index grids and byte addresses of every element, per operand, over all cores.
    places = []
    for operand in range(len(view.operands)):
        cores = [element_addresses(view, operand, core) for core in range(view.cores)]
        index = tuple(np.concatenate([coords[d.label] for coords, _ in cores]) for d in view.dims)
        places.append((index, np.concatenate([addresses for _, addresses in cores])))
    memory, random = ExactMemory(), np.random.default_rng(0)
    tensors = [random.standard_normal([d.extent for d in view.dims]) for _ in places]
    for number, (index, addresses) in enumerate(places):
        base, end = int(addresses.min()), round_up(int(addresses.max()) + 1, STICK_BYTES)
        memory.add_region(f"operand {number}", base, end - base)
        if number < len(places) - 1:
            memory.store(addresses, tensors[number][index], view.operands[number].format)
    execute(view, memory)
    index, addresses = places[-1]
    result, written = memory.load(addresses, view.operands[-1].format)
    print("every element written:", bool(written.all()))
    print("the sum is right:", bool(np.array_equal(result, (tensors[0] + tensors[1])[index])))
    return 0


if __name__ == "__main__":
    sys.exit(main())
