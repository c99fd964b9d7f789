"""`manifest.json`: the sources of a bundle's files, for people, for reports, and for faults.

It is ours and nothing needs it to run the public files. It says of every launch which line of the model it comes from
and what it was on the levels above; of every file its labels and its certainty; of every buffer of the launch what it
holds and where; of every weight where its bytes are.

Decision: docs/decisions/0049-mutants-and-names-of-tensors.md
Decision: docs/decisions/0091-launches-against-layouts.md
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

from xdsl.dialects.builtin import DictionaryAttr, ModuleOp, StringAttr
from xdsl.dialects.func import FuncOp, ReturnOp
from xdsl.ir import BlockArgument, Operation, SSAValue

from spyre_mlir.backend.json_file import dump_text, record_in
from spyre_mlir.backend.provenance import Levels, buffer_layouts, layout_text, origins
from spyre_mlir.backend.split import folder_of, launches
from spyre_mlir.backend.weights import DeviceWeight, argument_names, launched_buffers
from spyre_mlir.dialects.places import Source, source_of
from spyre_mlir.dialects.sdscbundle import BUNDLE_FUNCTION, DeviceMemAllocateOp
from spyre_mlir.dialects.spyre.kernel import (
    FromDeviceOp,
    KernelConstantOp,
    LaunchOp,
    ToDeviceOp,
    device_tensor,
    segment_of,
)
from spyre_mlir.dialects.spyre.kernel_loop import BlockNumberOp, TileOp
from spyre_mlir.dialects.spyre.loop_blocks import THE_ENTRY, NamedEntry
from spyre_mlir.dialects.superdsc.codec.described import certainty
from spyre_mlir.dialects.superdsc.dialect.ops import SdscOp
from spyre_mlir.dialects.superdsc.model.json_value import Json, JsonObject
from spyre_mlir.hw.spec import STICK_BYTES, segment_base

FORMAT, VERSION = "spyre-mlir bundle", 1
AGAIN = "write the bundle again"


@dataclass(frozen=True)
class Parts:
    """Inputs of a manifest.

    Attributes:
        program: the host program.
        bundle: the bundle function's module.
        files: SuperDSCs by file name.
        levels: the same program on the levels above; may be empty.
    """

    program: ModuleOp
    bundle: ModuleOp
    files: Mapping[str, SdscOp]
    levels: Levels


def static_manifest(parts: Parts) -> JsonObject:
    """Return all of a manifest that follows from the program alone; see `manifest_text` for the remainder."""
    generations = sorted({op.generation.value for op in parts.files.values()})
    name = parts.program.sym_name
    return {
        "format": FORMAT,
        "version": VERSION,
        "name": "" if name is None else name.data,
        "superdsc": generations[0] if len(generations) == 1 else list[Json](generations),
        "pool_bytes": _pool_bytes(parts),
        "arguments": [_argument(n, buffer) for n, buffer in enumerate(launched_buffers(parts.program))],
        "buffers": buffer_layouts(parts.levels),
        "weights": {},
        "files": {file: _file(op) for file, op in parts.files.items()},
        "launches": _launches(parts),
        "calls": [source_of(op.location).module for op in parts.program.walk() if isinstance(op, LaunchOp)],
        "digests": {},
    }


def manifest_text(
    static: JsonObject, weights: Sequence[DeviceWeight], starts: Mapping[str, int], digests: Mapping[str, str]
) -> str:
    """Return the text of ``manifest.json``.

    Args:
        static: what follows from the program.
        weights: weights in device form.
        starts: where the bytes of each start in the file of weights.
        digests: per file of the directory, the manifest left out, its digest.
    """
    known: JsonObject = {weight.key: _weight(weight, starts[weight.key]) for weight in weights}
    return dump_text({**static, "weights": known, "digests": dict(digests)})


def _pool_bytes(parts: Parts) -> int:
    """Return the pool size of a launch; of several launches, the largest: a pool ends with its launch."""
    pools = [op.size.value.data for op in parts.bundle.walk() if isinstance(op, DeviceMemAllocateOp)]
    fixed = [op.fixed_pool_bytes for op in parts.program.walk() if isinstance(op, LaunchOp)]
    return max([*pools, *(size for size in fixed if size is not None)], default=0)


def _argument(number: int, buffer: SSAValue) -> JsonObject:
    owner, tensor = buffer.owner, device_tensor(buffer)
    entry: JsonObject = {"number": number, "holds": _contents(owner)}
    if returned := _returned(buffer):
        entry["returned"] = list[Json](returned)
    entry["layout"] = layout_text(buffer)
    if isinstance(owner, ToDeviceOp) and owner.moved is not None:
        entry["moved"] = _moves(owner)
    if not isinstance(owner, TileOp | KernelConstantOp):
        sizes, walked = tensor.layout.device_sizes(tensor.shape, tensor.lanes)
        entry |= {"default": tensor.is_default, "device_size": list[Json](sizes), "stride_map": list[Json](walked)}
    tensor = owner.compact() if isinstance(owner, TileOp) else tensor
    entry["bytes"] = tensor.sticks * STICK_BYTES
    if isinstance(owner, TileOp):
        entry["block"] = _block(owner)
    if (segment := segment_of(buffer)) is not None:
        entry["address"] = segment_base(segment)
    return entry


def _returned(buffer: SSAValue) -> list[int]:
    """Return the numbers of the program's results that a buffer is read back as."""
    read = [use.operation.result for use in buffer.uses if isinstance(use.operation, FromDeviceOp)]
    return sorted(use.index for value in read for use in value.uses if isinstance(use.operation, ReturnOp))


def _block(tile: TileOp) -> JsonObject:
    """Where a block starts: so many bytes behind the start of its tensor for every whole block before a position."""
    number = tile.index.owner
    known = number if isinstance(number, BlockNumberOp) else None
    position = None if known is None else known.position
    named = _source(position, tile) if isinstance(position, BlockArgument) else "input"
    entry = THE_ENTRY if known is None else NamedEntry.of(known)
    added: JsonObject = {} if entry.number is None else {"number": entry.number}
    added |= {"plus": entry.offset} if entry.offset else {}
    added |= {"from_end": True} if entry.from_end else {}
    added |= {"per": entry.per} if entry.per > 1 else {}
    added |= {"run": entry.run} if entry.run > 1 else {}
    return {"position": named, **added, "entries": tile.step.value.data, "bytes_apart": tile.step_bytes}


def _contents(owner: object) -> str:
    """Return the contents of a launch's buffer: an argument of the program, a constant, or a result."""
    if isinstance(owner, TileOp):
        return _contents(owner.source.owner)
    if isinstance(owner, ToDeviceOp):
        return _source(owner.source, owner)
    return f"constant {owner.value}" if isinstance(owner, KernelConstantOp) else "result"


def _source(value: SSAValue, op: Operation) -> str:
    """Return the name of a host tensor that an op reads: of an argument its own."""
    function = op.parent_op()
    names = argument_names(function) if isinstance(function, FuncOp) else []
    place = value.index if isinstance(value, BlockArgument) else len(names)
    return names[place] if place < len(names) else "input"


def _weight(weight: DeviceWeight, start: int) -> JsonObject:
    size = weight.tensor.sticks * STICK_BYTES
    layout = layout_text(weight.transfer.result)
    moved: JsonObject = {} if weight.transfer.moved is None else {"moved": _moves(weight.transfer)}
    entry: JsonObject = {"name": weight.name, "argument": weight.argument, "layout": layout, **moved}
    return {**entry, "offset": start, "bytes": size}


def _moves(op: ToDeviceOp) -> list[Json]:
    """What is done to a tensor of the model before it is laid out, as the host program says it."""
    return [str(move) for move in op.moved or ()]


def _file(op: SdscOp) -> JsonObject:
    """Operation, labels, certainty: how sure it is that the real consumer takes what the file relies on."""
    labels = op.attributes.get("labels")
    named: JsonObject = {}
    if isinstance(labels, DictionaryAttr):
        named = {label: name.data for label, name in labels.data.items() if isinstance(name, StringAttr)}
    sure = certainty(op)
    entry: JsonObject = {"operation": op.root_key.partition("_")[2], "labels": named, "certainty": sure.tag.value}
    return {**entry, "because": list[Json](sure.reasons)} if sure.reasons else entry


def _launches(parts: Parts) -> list[Json]:
    ordered = launches(parts.bundle)
    sources = [source_of(op.location) for op in ordered]
    entries: list[Json] = []
    for op, source, origin in zip(ordered, sources, origins(sources, parts.levels), strict=True):
        entry: JsonObject = {"file": op.sdsc_filename.data}
        if (function := _function_of(op)) != BUNDLE_FUNCTION:
            entry["folder"] = folder_of(function)
        if source:
            entry["source"] = {"file": source.file, "line": source.line, "module": source.module}
        entries.append({**entry, **origin})
    return entries


def _function_of(op: Operation) -> str:
    """Name of the bundle function that an op is in, loops between or not."""
    parent = op.parent_op()
    while parent is not None and not isinstance(parent, FuncOp):
        parent = parent.parent_op()
    return BUNDLE_FUNCTION if parent is None else parent.sym_name.data


@dataclass(frozen=True)
class LaunchWalk:
    """Access strides of a launch in its tensors; all empty where they are unknown.

    Attributes:
        labels: the loop of the kernel that each label of the file stands for.
        loops: extent of every loop, before rounding to sticks.
        maps: per operand, its index into every dimension of its tensor.
        axis: the dimension of its table that a gather picks rows along.
        views: the layouts of operands that see their tensor in another one, by their numbers.
    """

    labels: Mapping[str, str] = field(default_factory=dict[str, str])
    loops: Mapping[str, int] = field(default_factory=dict[str, int])
    maps: tuple[str, ...] = ()
    axis: int | None = None
    views: Mapping[int, str] = field(default_factory=dict[int, str])


@dataclass(frozen=True)
class Manifest:
    """Fields of a manifest that running a bundle uses.

    Attributes:
        launches: per launch, in the order of the text, its file and its place in the model.
        tensors: per launch, which tensor each of its operands is; empty where that is not known.
        walks: per launch, how it walks its tensors.
        layouts: per tensor, by its name in `tensors`, its layout.
        weights: per buffer of the launch that a weight fills, the weight's name and its key in the file of weights.
        weight_layouts: per buffer of the launch that a weight fills, the layout in the file of weights.
        extents: per file the logical extent of every label; 0 for a label that stands for no loop.
        digests: per file of the directory its digest when it was written; empty in bundles of earlier versions.
        calls: per launch of the program, the module of the model that it stands for; empty where it is none.
    """

    launches: tuple[tuple[str, Source], ...] = ()
    tensors: tuple[tuple[str, ...], ...] = ()
    walks: tuple[LaunchWalk, ...] = ()
    layouts: Mapping[str, str] = field(default_factory=dict[str, str])
    weights: Mapping[int, tuple[str, str]] = field(default_factory=dict[int, tuple[str, str]])
    weight_layouts: Mapping[int, str] = field(default_factory=dict[int, str])
    extents: Mapping[str, Mapping[str, int]] = field(default_factory=dict[str, Mapping[str, int]])
    digests: Mapping[str, str] = field(default_factory=dict[str, str])
    calls: tuple[str, ...] = ()


def read_manifest(path: Path) -> Manifest:
    """Read a manifest; an empty one if there is no file.

    Raises:
        ReadError: it is no manifest, or one of a later version.
    """
    if not path.exists():
        return Manifest()
    with record_in(path, FORMAT, VERSION, AGAIN) as value:
        ordered = _list(value["launches"])
        weights, files = _object(value["weights"]), _object(value["files"])
        return Manifest(
            tuple(map(_read_launch, ordered)),
            tuple(map(_read_tensors, ordered)),
            tuple(_read_walk(entry, files) for entry in map(_object, ordered)),
            _read_layouts(value),
            _read_weights(weights),
            {_number(entry["argument"]): _text(entry["layout"]) for entry in map(_object, weights.values())},
            _read_extents(files, ordered),
            {file: _text(digest) for file, digest in _object(value.get("digests", {})).items()},
            tuple(map(_text, _list(value.get("calls", [])))),
        )


def _read_launch(value: Json) -> tuple[str, Source]:
    entry = _object(value)
    source = _object(entry.get("source", {}))
    file, line, module = source.get("file"), source.get("line", 0), source.get("module", "")
    known = Source(
        file if isinstance(file, str) else None,
        line if isinstance(line, int) else 0,
        module if isinstance(module, str) else "",
    )
    return _text(entry["file"]), known


def _read_tensors(value: Json) -> tuple[str, ...]:
    return tuple(map(_text, _list(_object(value).get("tensors", []))))


def _read_walk(entry: JsonObject, files: JsonObject) -> LaunchWalk:
    if "maps" not in entry:  # in older bundles
        return LaunchWalk()
    kernel = _object(entry["kernel"])
    labels = _object(_object(files[_text(entry["file"])])["labels"])
    return LaunchWalk(
        {label: _text(loop) for label, loop in labels.items()},
        {name: _number(_list(sizes)[0]) for name, sizes in _object(kernel["loops"]).items()},
        tuple(map(_text, _list(entry["maps"]))),
        _number(kernel["axis"]) if "axis" in kernel else None,
        {int(number): _text(layout) for number, layout in _object(entry.get("views", {})).items()},
    )


def _read_layouts(value: JsonObject) -> dict[str, str]:
    """Layouts of arguments and buffers by name; older bundles say nothing of buffers."""
    arguments = map(_object, _list(value["arguments"]))
    layouts = {f"argument {_number(entry['number'])}": _text(entry["layout"]) for entry in arguments}
    return layouts | {name: _text(layout) for name, layout in _object(value.get("buffers", {})).items()}


def _read_weights(value: JsonObject) -> dict[int, tuple[str, str]]:
    found: dict[int, tuple[str, str]] = {}
    for key, item in value.items():
        entry = _object(item)
        found[_number(entry["argument"])] = (_text(entry["name"]), key)
    return found


def _read_extents(files: JsonObject, launched: Sequence[Json]) -> dict[str, dict[str, int]]:
    found: dict[str, dict[str, int]] = {}
    for entry in map(_object, launched):
        loops = _object(_object(entry.get("kernel", {})).get("loops", {}))
        if loops:
            labels = _object(_object(files[_text(entry["file"])])["labels"])
            sizes = {label: _list(loops.get(_text(loop), [0]))[0] for label, loop in labels.items()}
            found[_text(entry["file"])] = {label: size for label, size in sizes.items() if isinstance(size, int)}
    return found


def _object(value: Json) -> JsonObject:
    if not isinstance(value, dict):
        raise TypeError("an object")
    return cast("JsonObject", value)


def _list(value: Json) -> list[Json]:
    if not isinstance(value, list):
        raise TypeError("a list")
    return cast("list[Json]", value)


def _number(value: Json) -> int:
    if not isinstance(value, int):
        raise TypeError("a number")
    return value


def _text(value: Json) -> str:
    if not isinstance(value, str):
        raise TypeError("a text")
    return value
