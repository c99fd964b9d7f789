"""Fields of windowed ops: the sizes of windows, and the special fields of their input.

Pooling and convolution (newest torch-spyre code generation; likely) write the same sizes for the whole and per core;
convolution by channel writes its own per core, and counts what no window reaches.
"""

from __future__ import annotations

from collections.abc import Mapping

from spyre_mlir.dialects.superdsc.codec.cursor import Cursor
from spyre_mlir.dialects.superdsc.model import derived_values, keys
from spyre_mlir.dialects.superdsc.model.descriptor import Descriptor, Dim, OpClass, Window
from spyre_mlir.dialects.superdsc.model.json_value import JsonObject
from spyre_mlir.errors import EmitError

_IN_MEMORY = "padded_fullspan_wunneeded"
_NOT_IN_MEMORY = "padded_nozeropad"


def pad_type(window: Window) -> str:
    """Return the padding type of an input dim: padding in memory, no padding, or padding that is not stored."""
    return _NOT_IN_MEMORY if window.front or window.back else _IN_MEMORY


def window_sizes(view: Descriptor, *, per_core: bool) -> JsonObject:
    """Return `paddingSizes_` of the whole, or of one core's work."""
    return {window.dim: _one(view, window, per_core=per_core) for window in view.windows}


def _one(view: Descriptor, window: Window, *, per_core: bool) -> JsonObject:
    fields: JsonObject = {keys.PAD_FRONT: window.front, keys.PAD_BACK: window.back}
    total = window.total
    if view.op_class is OpClass.DEPTHWISE:
        dim, places = view.dim(window.dim), view.dim(window.over).extent
        if per_core and dim.split > 1:
            total = dim.per_core * window.stride + places - 1
        beyond = total - ((dim.per_core if per_core else dim.extent) - 1) * window.stride - places
        back = min(window.back, max(beyond, 0))
        fields = {
            keys.PAD_FRONT: window.front,
            keys.PAD_BACK: window.back - back,
            keys.UNNEEDED: beyond,
            keys.UNNEEDED_FRONT: 0,
            keys.UNNEEDED_BACK: back,
        }
    rest: JsonObject = {
        keys.TOTAL_SIZE: total,
        keys.STRIDE: window.stride,
        keys.DILATION: window.dilation,
        keys.WINDOW_DIM: window.over,
    }
    return fields | rest


def read_windows(sizes: Cursor, dims: Mapping[str, Dim]) -> tuple[Window, ...]:
    """Return the windows of an `N_`, in file order.

    Raises:
        ReadError: a member is missing or contradicts the sizes.
        UnsupportedError: padding that no window needs at the front: which elements are left out is not public.
    """
    if keys.PADDING_SIZES not in sizes:
        return ()
    return tuple(
        _window(label.removesuffix("_"), entry, dims) for label, entry in sizes.at(keys.PADDING_SIZES).members()
    )


def _window(label: str, entry: Cursor, dims: Mapping[str, Dim]) -> Window:
    over = entry.at(keys.WINDOW_DIM)
    place = over.text().removesuffix("_")
    for name, where in ((label, entry), (place, over)):
        if name not in dims:
            where.fail(f"one of the dims {list(dims)}", name)
    if keys.UNNEEDED_FRONT in entry and entry.at(keys.UNNEEDED_FRONT).integer():
        entry.at(keys.UNNEEDED_FRONT).unsupported("padding at the front that no window needs")
    dropped = entry.at(keys.UNNEEDED_BACK).integer() if keys.UNNEEDED_BACK in entry else 0
    numbers = [entry.at(key).integer() for key in (keys.TOTAL_SIZE, keys.STRIDE, keys.DILATION)]
    pads = [entry.at(key).integer() for key in (keys.PAD_FRONT, keys.PAD_BACK)]
    window = Window(label, place, *numbers, front=pads[0], back=pads[1] + dropped)
    if min(numbers) < 1 or min(pads) < 0 or window.stored < 1:
        entry.fail("positive sizes, and padding smaller than the whole")
    wanted = window.reach(dims[label].extent, dims[place].extent)
    if window.total < wanted:
        entry.at(keys.TOTAL_SIZE).fail(f"at least the {wanted} elements that the windows reach")
    return window


def coordinate(view: Descriptor, window: Window) -> JsonObject:
    """Return the `coordInfo` of a windowed input dim: one core's elements, and the distance to the next core's."""
    dim, places = view.dim(window.dim), view.dim(window.over).extent
    if view.op_class is OpClass.CONVOLUTION:
        size, step = window.reach(dim.per_core, places), dim.per_core * window.stride
    elif view.op_class is OpClass.DEPTHWISE:
        size, step = dim.per_core * window.stride + places - 1, dim.per_core * window.stride
    else:
        size = step = window.total // dim.split
    entry = derived_values.coordinate(size, dim.split, 1, None, step=step)
    entry[keys.COORD_PADDING] = pad_type(window)
    return entry


def memories(view: Descriptor, number: int, component: str) -> JsonObject | None:
    """Return `memOrg_` of an operand of a windowed op; None for the default."""
    read = number < len(view.operands) - 1
    if view.op_class is OpClass.DEPTHWISE:
        if number != 0:
            return None
        if component == keys.LX:
            return {keys.LX: {keys.PRESENT: 1, keys.IS_PADDED: 1}}
        slot: JsonObject = {keys.PRESENT: 1, keys.IS_PADDED: 1, keys.IS_ZERO_PADDED: 0}
        return {keys.HBM: dict(slot), keys.LX: dict(slot)}
    if component == keys.LX:
        return None

    def slot_of(node: str) -> JsonObject:
        return {
            keys.PRESENT: 1,
            keys.IS_PADDED: int(read),
            keys.IS_ZERO_PADDED: 0,
            keys.DS_OFFSET: 0,
            keys.ALLOCATE_NODE: node,
        }

    return {keys.HBM: slot_of(derived_values.node_name(number, component)), keys.LX: slot_of("")}


def check_windows(view: Descriptor, where: str) -> None:
    """Refuse inconsistent windows.

    Raises:
        EmitError: what is wrong.
    """
    labels = [dim.label for dim in view.dims]
    for window in view.windows:
        if window.dim not in labels or window.over not in labels:
            raise EmitError(f"a window of {window.over} over {window.dim}, dims are {labels}", where=where)
        if view.dim(window.over).split > 1:
            raise EmitError(f"dim {window.over} is a window and cannot be divided over cores", where=where)
        wanted = window.reach(view.dim(window.dim).extent, view.dim(window.over).extent)
        if window.total < wanted or window.stored < 1:
            message = f"windows over {window.dim} reach {wanted} elements, {window.total} are there with padding"
            raise EmitError(message, where=where)
