"""Context shared by the parts of a SuperDSC, gathered from the fields that decide the others.

Gathering reads only deciding fields, so an op whose derived fields are still elided gives the same context as the
finished one.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import prod

from spyre_mlir.dialects.superdsc.model import derived_values, keys
from spyre_mlir.dialects.superdsc.model.descriptor import Version
from spyre_mlir.dialects.superdsc.model.json_value import (
    Json,
    JsonObject,
    as_int,
    as_int_map,
    as_ints,
    as_list,
    as_object,
    as_text,
    as_texts,
)

_MAX_CORES = 4096  # a bound on derived text only: a wrong file must not ask for a table of a billion cores


@dataclass(frozen=True)
class LayoutClass:
    """A layout class: the order of scales, and the stick dims."""

    order: tuple[str, ...]
    sticks: tuple[str, ...]


@dataclass(frozen=True)
class LabeledDs:
    """An operand's class, scales and format."""

    layout: str
    scale: tuple[int, ...]
    format: str


@dataclass
class FileContext:
    """Deciding facts of one SDSC and of one DSC in it; None or empty where the file does not say."""

    version: Version = Version.TS26
    splits: dict[str, int] | None = None
    sizes: dict[str, int] | None = None
    layouts: dict[str, LayoutClass] = field(default_factory=dict[str, LayoutClass])
    operands: dict[int, LabeledDs] = field(default_factory=dict[int, LabeledDs])
    components: dict[int, str] = field(default_factory=dict[int, str])
    has_constants: bool = False
    op_name: str = ""

    @property
    def cores(self) -> int | None:
        """Product of the splits, if the file gives usable ones."""
        return None if self.splits is None else prod(self.splits.values())

    def slices(self) -> list[dict[str, int]]:
        """Slices per core by the rule; empty without splits."""
        return [] if self.splits is None else derived_values.slices_of(self.splits)

    def read_sdsc(self, fields: JsonObject) -> None:
        """Read the facts decided by the top-level object."""
        splits = as_int_map(fields.get(keys.SPLITS))
        usable = splits and all(split > 0 for split in splits.values()) and prod(splits.values()) <= _MAX_CORES
        self.splits = splits if usable else None

    def read_dsc(self, fields: JsonObject) -> None:
        """Read the facts decided by the DSC object."""
        self.sizes = sizes_in(fields.get(keys.SIZES))
        for name, entry in (as_object(fields.get(keys.CLASSES)) or {}).items():
            info = as_object(entry) or {}
            order, sticks = as_texts(info.get(keys.ORDER)), as_texts(info.get(keys.STICK_DIMS))
            if order is not None and sticks is not None:
                self.layouts[name] = LayoutClass(tuple(order), tuple(sticks))

    def read_labeled_ds(self, fields: JsonObject) -> None:
        """Read the facts decided by one operand's entry."""
        index, layout = as_int(fields.get(keys.INDEX)), as_text(fields.get(keys.CLASS))
        scale, name = as_ints(fields.get(keys.SCALE)), as_text(fields.get(keys.FORMAT))
        if index is not None and layout is not None and scale is not None and name is not None:
            self.operands[index] = LabeledDs(layout, tuple(scale), name)

    def read_allocate(self, fields: JsonObject) -> None:
        """Read the facts decided by one allocate node."""
        index, component = as_int(fields.get(keys.INDEX)), as_text(fields.get(keys.COMPONENT))
        if index is not None and component is not None:
            self.components[index] = component


def plain_sizes(value: Json) -> dict[str, int] | None:
    """Return sizes per label of an `N_` that holds nothing but its name and sizes; None otherwise."""
    fields = as_object(value)
    if fields is None or list(fields)[:1] != [keys.NAME] or fields[keys.NAME] != "n":
        return None
    sizes = as_int_map({key: size for key, size in fields.items() if key != keys.NAME})
    if sizes is None or any(not key.endswith("_") for key in sizes):
        return None
    return {key.removesuffix("_"): size for key, size in sizes.items()}


def sizes_in(value: Json) -> dict[str, int] | None:
    """Return sizes per label of any `N_` of a DSC: members that are objects describe windows or symbolic sizes."""
    fields = as_object(value)
    if fields is None:
        return None
    return plain_sizes({key: member for key, member in fields.items() if not isinstance(member, dict)})


def version_of(fields: JsonObject) -> Version:
    """Return the generation whose structure a top-level object follows, judged by its first DSC."""
    for dsc in as_list(fields.get(keys.DSCS)) or []:
        for entry in (as_object(dsc) or {}).values():
            body = as_object(entry) or {}
            stage = as_object((as_object(body.get(keys.STAGES)) or {}).get("0")) or {}
            if keys.SYMBOLIC_DIMS in (as_object(stage.get(keys.STEADY)) or {}):
                return Version.TSNEW
            nodes = [as_object(node) or {} for node in as_list(body.get(keys.SCHEDULE_TREE)) or []]
            if nodes and not any(keys.INDIRECT in node for node in nodes):
                return Version.TS25
    return Version.TS26
