"""A correct bundle in memory, and drafts of it: what a mutant changes, and the bundle that comes of it.

A launch is held as its descriptor and the place of every operand on every core, so that an edit may be as consistent
as a compiler's mistake is: `build` then writes the SuperDSC that says just that. Single values are edited in its JSON.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from xdsl.dialects.arith import AddiOp, ConstantOp
from xdsl.dialects.builtin import IndexType, IntegerAttr, ModuleOp
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import BlockArgument, SSAValue

from spyre_mlir.backend.manifest import Manifest
from spyre_mlir.backend.read import read_json
from spyre_mlir.backend.split import launches
from spyre_mlir.backend.stored import read_bundle
from spyre_mlir.dialects.sdscbundle import TENSORS, DeviceMemAllocateOp, InputArgExtractOp, SdscExecuteOp
from spyre_mlir.dialects.superdsc.codec.build import build
from spyre_mlir.dialects.superdsc.codec.describe import describe
from spyre_mlir.dialects.superdsc.codec.mirror import sdsc_to_json
from spyre_mlir.dialects.superdsc.model.descriptor import Descriptor, Operand
from spyre_mlir.universe import make_context

Array = NDArray[Any]
Json = dict[str, Any]
LX, POOL = "lx", "pool"


@dataclass(frozen=True)
class Place:
    """Where an operand starts on one core: an argument, the pool or the scratchpads, and bytes from its start."""

    base: str
    offset: int


@dataclass(frozen=True)
class Node:
    """A launch.

    Args:
        number: its number in the correct bundle.
        file: its SuperDSC file.
        view: what the file says; where operands start stands in `places` alone.
        places: per operand, its place on each core.
    """

    number: int
    file: str
    view: Descriptor
    places: tuple[tuple[Place, ...], ...]

    def moved(self, operand: int, places: Sequence[Place]) -> Node:
        """The launch with an operand elsewhere."""
        return replace(self, places=(*self.places[:operand], tuple(places), *self.places[operand + 1 :]))


@dataclass(frozen=True)
class Image:
    """A correct bundle.

    Args:
        directory: where it lies.
        program: the host program.
        module: the bundle function's module.
        values: the SuperDSC files.
        nodes: the launches.
        inputs: two sets of arrays for the host program.
        superdsc: the level that the bundle was written from.
        manifest: what the directory says beyond the public files; empty if the bundle is to be one of others.
    """

    directory: Path
    program: ModuleOp
    module: ModuleOp
    values: dict[str, Json]
    nodes: tuple[Node, ...]
    inputs: tuple[tuple[Array, ...], ...]
    superdsc: ModuleOp
    manifest: Manifest

    @cached_property
    def views(self) -> dict[str, Descriptor]:
        """What the files say, as they are read from disk."""
        return {name: describe(read_json(json.dumps(value), name)) for name, value in self.values.items()}

    @cached_property
    def pool_bytes(self) -> int:
        """Bytes of scratch memory."""
        return sum(op.size.value.data for op in self.module.walk() if isinstance(op, DeviceMemAllocateOp))

    @cached_property
    def bases(self) -> list[str]:
        """The arguments and the pool."""
        return sorted({p.base for node in self.nodes for places in node.places for p in places} - {LX})


def image_of(directory: Path, superdsc: ModuleOp, inputs: Sequence[Sequence[Array]], *, names: bool = True) -> Image:
    """Reads a bundle directory; without names, as if there were no manifest."""
    stored = read_bundle(directory, make_context())
    for op in launches(stored.bundle) if not names else ():
        op.attributes.pop(TENSORS, None)
    assert stored.program is not None
    at = places_of(stored.bundle)
    values: dict[str, Json] = {}
    nodes: list[Node] = []
    for number, op in enumerate(launches(stored.bundle)):
        file = op.sdsc_filename.data
        values[file] = json.loads((directory / file).read_text())
        view = stored.descriptor(file)
        bound = {i: at[a] for i, a in zip(op.ids, op.addresses, strict=True)}
        places = tuple(
            tuple(bound[int(s)] if o.symbolic else Place(LX, int(s)) for s in o.start) for o in view.operands
        )
        nodes.append(Node(number, file, view, places))
    for arrays in inputs:
        for array in arrays:
            array.flags.writeable = False
    manifest = stored.manifest if names else Manifest()
    given = tuple(map(tuple, inputs))
    return Image(directory, stored.program, stored.bundle, values, tuple(nodes), given, superdsc, manifest)


def places_of(module: ModuleOp) -> dict[SSAValue, Place]:
    """What every address of a bundle function without loops is."""
    found: dict[SSAValue, Place] = {}
    numbers: dict[SSAValue, int] = {}
    for op in module.walk():
        if isinstance(op, InputArgExtractOp):
            assert isinstance(op.arg, BlockArgument)
            found[op.result] = Place(f"arg{op.arg.index}", 0)
        elif isinstance(op, DeviceMemAllocateOp):
            found[op.result] = Place(POOL, 0)
        elif isinstance(op, ConstantOp) and isinstance(op.value, IntegerAttr):
            numbers[op.result] = op.value.value.data
        elif isinstance(op, AddiOp):
            start = found[op.lhs]
            found[op.result] = Place(start.base, start.offset + numbers[op.rhs])
    return found


@dataclass
class Draft:
    """A bundle that is being changed.

    Args:
        image: the correct one.
        nodes: the launches in their order; one may stand here twice or not at all.
        raw: files with single values edited.
        pool_bytes: bytes of scratch memory.
        touched: numbers of the launches that the mutant changed.
    """

    image: Image
    nodes: list[Node] = field(default_factory=list[Node])
    raw: dict[str, Json] = field(default_factory=dict[str, Json])
    pool_bytes: int = 0
    touched: set[int] = field(default_factory=set[int])

    @classmethod
    def of(cls, image: Image) -> Draft:
        """Nothing changed yet."""
        return cls(image, list(image.nodes), {}, image.pool_bytes)

    def change(self, node: Node) -> None:
        """Put a changed launch in the place of the one of its number."""
        self.nodes = [node if old.number == node.number else old for old in self.nodes]
        self.touched.add(node.number)

    def json(self, node: Node) -> Json:
        """The object under a file's root key, to be edited."""
        self.touched.add(node.number)
        value = self.raw.setdefault(node.file, copy.deepcopy(self.image.values[node.file]))
        return next(iter(value.values()))

    def bundle(self) -> tuple[ModuleOp, dict[str, Json]]:
        """The module of the changed bundle, and its changed files.

        Raises:
            SpyreError: a changed descriptor has no SuperDSC.
        """
        image = self.image
        edited = [n for n in self.nodes if n is not image.nodes[n.number]]
        if not edited and self.pool_bytes == image.pool_bytes and len(self.nodes) == len(image.nodes):
            same = all(a is b for a, b in zip(self.nodes, image.nodes, strict=True))
            if same:
                return image.module, self.raw
        module = image.module.clone()
        writer = _Writer(module, image.nodes, min(i for op in launches(image.module) for i in (0, *op.ids)) - 1)
        files = {node.file: writer.write(node) for node in edited} | self.raw
        writer.arrange([node.number for node in self.nodes])
        for op in module.walk():
            if isinstance(op, DeviceMemAllocateOp) and self.pool_bytes != image.pool_bytes:
                op.properties["size"] = IntegerAttr(self.pool_bytes, op.size.type)
        return module, files


def _json(view: Descriptor) -> Json:
    return json.loads(json.dumps(sdsc_to_json(build(view))))


def _started(view: Descriptor, old: Descriptor) -> Iterator[Operand]:
    """Operands that start where others do."""
    for operand, other in zip(view.operands, old.operands, strict=True):
        yield replace(operand, start=other.start, symbolic=other.symbolic)


class _Writer:
    """Changes the launches of a module."""

    def __init__(self, module: ModuleOp, nodes: Sequence[Node], next_id: int) -> None:
        self.nodes = nodes
        self.ops = launches(module)
        self.values = {place: value for value, place in places_of(module).items()}
        self.next_id = next_id
        self.function = next(op for op in module.ops if isinstance(op, FuncOp))
        self.first = self.ops[0]

    def write(self, node: Node) -> Json:
        """Give a launch the addresses of its operands; returns its file."""
        places: dict[Place, int] = {}
        operands: list[Operand] = []
        if node.places == self.nodes[node.number].places:
            return _json(replace(node.view, operands=tuple(_started(node.view, self.nodes[node.number].view))))
        for operand, starts in zip(node.view.operands, node.places, strict=True):
            if operand.component == LX:
                operands.append(replace(operand, start=tuple(str(p.offset) for p in starts)))
                continue
            ids = [places.setdefault(p, self.next_id - len(places)) for p in starts]
            operands.append(replace(operand, start=tuple(map(str, ids)), symbolic=True))
        old = self.ops[node.number]
        new = SdscExecuteOp(node.file, [self.value(p) for p in places], list(places.values()))
        new.location, new.attributes = old.location, dict(old.attributes)
        block = self.function.body.block
        block.insert_op_before(new, old)
        old.detach()
        self.ops[node.number] = new
        self.next_id -= len(places)
        return _json(replace(node.view, operands=tuple(operands)))

    def value(self, place: Place) -> SSAValue:
        """The address of a place."""
        if place not in self.values:
            number = ConstantOp(IntegerAttr(place.offset, IndexType()))
            total = AddiOp(self.values[Place(place.base, 0)], number.result)
            block = self.function.body.block
            anchor = next(op for op in block.ops if isinstance(op, (SdscExecuteOp, ReturnOp)))
            block.insert_ops_before([number, total], anchor)
            self.values[place] = total.result
        return self.values[place]

    def arrange(self, numbers: Sequence[int]) -> None:
        """Put the launches in an order."""
        if list(numbers) == list(range(len(self.ops))):
            return
        block = self.function.body.block
        for op in self.ops:
            op.detach()
        end = next(op for op in block.ops if isinstance(op, ReturnOp))
        seen: set[int] = set()
        for number in numbers:
            op = self.ops[number].clone() if number in seen else self.ops[number]
            op.location = self.ops[number].location
            block.insert_op_before(op, end)
            seen.add(number)


def random_inputs(given: Sequence[Array], seed: int) -> list[Array]:
    """Integers drawn anew, floats with something added to each, so that no two elements are alike."""
    rng = np.random.default_rng(seed)
    return [
        rng.integers(0, a.max() + 1, a.shape)
        if a.dtype.kind in "iu"
        else (a + rng.standard_normal(a.shape) * (float(a.std()) or 0.5)).astype(a.dtype)
        for a in given
    ]
