"""Random descriptors, written as JSON: the machine against the oracle on addresses, and against numpy on values."""

from __future__ import annotations

import random
from dataclasses import replace

import numpy as np
import pytest

from spyre_mlir.dialects.superdsc.codec.build import build
from spyre_mlir.dialects.superdsc.codec.describe import describe_json
from spyre_mlir.dialects.superdsc.codec.mirror import sdsc_to_json
from spyre_mlir.dialects.superdsc.model.descriptor import Descriptor, Dim, OpClass, Operand, start_offsets
from spyre_mlir.machine.superdsc.run import element_addresses, execute
from tests.oracles.superdsc_decoder import Decoder
from tests.unit.machine.programs import Floats, get, memory_for, put

SEGMENT = 1 << 24
LANES = {"SEN169_FP16": 64, "IEEE_FP32": 32}
SEEDS = range(40)


def divisors(number: int) -> list[int]:
    return [n for n in range(1, number + 1) if number % n == 0]


def random_dims(rng: random.Random, labels: list[str], sticks: set[str], may_split: set[str]) -> tuple[Dim, ...]:
    """Dims of up to 32 cores; stick dims are whole sticks on every core."""
    dims: list[Dim] = []
    cores = 1
    for label in labels:
        count = rng.choice([1, 2, 3, 4, 6])
        split = rng.choice([n for n in divisors(count) if n * cores <= 32]) if label in may_split else 1
        cores *= split
        dims.append(Dim(label, count * 64 if label in sticks else count, split))
    return tuple(dims)


def random_operand(
    rng: random.Random, dims: tuple[Dim, ...], op_class: OpClass, own: set[str], stick: str, place: int, **fixed: str
) -> Operand:
    """An operand with the given dims in any order, gaps behind some, in HBM or LX."""
    order = [dim.label for dim in dims if dim.label in own]
    rng.shuffle(order)
    by_label = {dim.label: dim for dim in dims}
    component = fixed.get("component") or rng.choice(["hbm", "hbm", "lx"])
    extents: list[int] = []
    for label in order:
        used = by_label[label].per_core if component == "lx" else by_label[label].extent
        gap = rng.choice([0, 0, 1, 2]) if op_class is not OpClass.RESTICKIFY else 0
        extents.append(used + gap * (64 if label == stick else 1))
    data_format = fixed.get("data_format", "SEN169_FP16")
    operand = Operand(tuple(order), tuple(extents), stick if stick in own else None, data_format, (), False, component)
    base = place * SEGMENT if component == "hbm" else place << 18
    starts = tuple(str(base + offset) for offset in start_offsets(dims, operand, op_class))
    return replace(operand, start=starts)


def pointwise(rng: random.Random) -> Descriptor:
    labels = [*["mb", "x"][: rng.choice([0, 1, 2])], "out"]
    dims = random_dims(rng, labels, {"out"}, set(labels))
    data_format = rng.choice(list(LANES))
    operands: list[Operand] = []
    for place in range(3):
        own = {label for label in labels if place == 2 or rng.random() < 0.7}
        operands.append(random_operand(rng, dims, OpClass.POINTWISE, own, "out", place, data_format=data_format))
    return Descriptor(0, "sub", "sfp", OpClass.POINTWISE, dims, tuple(operands))


def reduction(rng: random.Random) -> Descriptor:
    labels = ["mb", "x", "out"]
    kept = {label for label in labels if rng.random() < 0.5}
    folded = sorted(set(labels) - kept)
    split = {*kept, *folded[:1]}
    dims = random_dims(rng, labels, {"out"}, split)
    whole = random_operand(rng, dims, OpClass.REDUCTION, set(labels), "out", 0)
    result = random_operand(rng, dims, OpClass.REDUCTION, kept, "out", 1, component="hbm")
    return Descriptor(0, rng.choice(["sum", "max"]), "sfp", OpClass.REDUCTION, dims, (whole, result))


def matmul(rng: random.Random) -> Descriptor:
    labels = [*["x"][: rng.choice([0, 1])], "mb", "out", "in"]
    dims = random_dims(rng, labels, {"out", "in"}, set(labels))
    batch = set(labels) & {"x"}
    own = ({*batch, "mb", "in"}, {*(batch if rng.random() < 0.5 else set()), "in", "out"}, {*batch, "mb", "out"})
    operands = tuple(
        random_operand(rng, dims, OpClass.MATMUL, dims_of, stick, place, component="hbm")
        for place, (dims_of, stick) in enumerate(zip(own, ("in", "out", "out"), strict=True))
    )
    return Descriptor(0, "batchmatmul", "pt", OpClass.MATMUL, dims, operands)


def restickify(rng: random.Random) -> Descriptor:
    labels = ["mb", "x", "out"]
    dims = random_dims(rng, labels, {"mb", "out"}, set(labels))
    operands = tuple(
        random_operand(rng, dims, OpClass.RESTICKIFY, set(labels), stick, place, component="hbm")
        for place, stick in enumerate(("out", "mb"))
    )
    return Descriptor(0, "ReStickifyOpHBM", "sfp", OpClass.RESTICKIFY, dims, operands)


FAMILIES = {"pointwise": pointwise, "reduction": reduction, "matmul": matmul, "restickify": restickify}


def expected(view: Descriptor, arrays: list[Floats]) -> Floats:
    """Numpy's answer, with one axis per iteration dim and the missing ones taken out at the end."""
    wide = [
        array.reshape([dim.extent if dim.label in operand.order else 1 for dim in view.dims])
        for array, operand in zip(arrays, view.inputs, strict=True)
    ]
    missing = tuple(place for place, dim in enumerate(view.dims) if dim.label not in view.output.order)
    if view.op_class is OpClass.MATMUL:
        result = (wide[0] * wide[1]).sum(axis=missing)
    elif view.op_class is OpClass.REDUCTION:
        result = wide[0].sum(axis=missing) if view.op_func == "sum" else wide[0].max(axis=missing)
    else:
        result = wide[0] if view.op_class is OpClass.RESTICKIFY else wide[0] - wide[1]
        result = np.broadcast_to(result, [dim.extent for dim in view.dims])
    return result


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("family", FAMILIES)
def test_machine_witness_and_numpy_agree(family: str, seed: int) -> None:
    rng = random.Random(f"{family} {seed}")
    value = sdsc_to_json(build(FAMILIES[family](rng)))
    view, decoder = describe_json(value), Decoder(value)
    assert decoder.problems() == []
    for operand in range(len(view.operands)):
        for core in decoder.cores:
            coords, addresses = decoder.addresses(operand, core)
            ours, found = element_addresses(view, operand, core)
            axes = list(coords)
            keys = [np.lexsort([c[d] for d in axes]) if axes else np.zeros(1, dtype=int) for c in (coords, ours)]
            assert np.array_equal(addresses[keys[0]], found[keys[1]])
    memory = memory_for(decoder)
    numbers = np.random.default_rng(seed)
    arrays: list[Floats] = []
    for index, operand in enumerate(view.inputs):
        shape = [dim.extent for dim in view.dims if dim.label in operand.order]
        arrays.append(numbers.standard_normal(shape))
        put(memory, decoder, index, arrays[-1])
    execute(view, memory)
    result, written = get(memory, decoder, decoder.output)
    assert written.all()
    np.testing.assert_allclose(result, expected(view, arrays), rtol=1e-9, atol=1e-9)
