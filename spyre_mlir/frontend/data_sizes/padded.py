"""A piece that runs on padded tensors, whatever sizes data decides: one program for all sizes up to a bound.

Decision: docs/decisions/0192-a-bound-stands-for-sizes-that-data-decides.md
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from copy import deepcopy
from itertools import count, product
from typing import Any

import torch
from torch.export import Dim
from torch.fx import Graph, GraphModule, Node
from typing_extensions import override

from spyre_mlir.errors import UnsupportedError
from spyre_mlir.frontend.capture.tracing.torch_errors import REFUSED
from spyre_mlir.frontend.data_sizes.calls import piece_model, place_of_call
from spyre_mlir.frontend.data_sizes.dividing import DividedProgram, Piece, SizingCall
from spyre_mlir.frontend.data_sizes.equal_sizes import size_expression
from spyre_mlir.frontend.data_sizes.inlined_branches import inline_branches
from spyre_mlir.frontend.data_sizes.masked.masking import symbol_of
from spyre_mlir.frontend.data_sizes.masked.masks import Masks
from spyre_mlir.frontend.data_sizes.masked.resized import RESIZING, has_padding_between
from spyre_mlir.frontend.data_sizes.masked.sized_pairs import merges_pairs
from spyre_mlir.frontend.graph_runs import KnownNumbers
from spyre_mlir.frontend.locations import place_of
from spyre_mlir.frontend.torch_private import expression_of, free_unbacked_symbols, size_bounds, tree_flatten

SizesBySymbol = Mapping[Any, int]


class PaddedPiece:
    """A piece whose arguments are padded with zeros; behind them are masks of the padding, and sizes as tensors.

    Attributes:
        model: the piece as a model; its arguments are the tensors of the piece, masks, and sizes.
        symbols: of the sizes that are padded, and expressions of them that are sizes of their own.
        is_masked: whether it has more masks and sizes than numbers of the piece need.
        is_checked: whether its last result says if the program stands for a call.
    """

    def __init__(self, piece: Piece, name: str, *, masked: bool, bounds: SizesBySymbol | None = None) -> None:
        """Writes the graph of the piece.

        Args:
            piece: which stays as it is.
            name: of the model.
            masked: whether reductions get masks, and operators sizes as tensors.
            bounds: the sizes that the program is compiled for, by symbol, as far as they are known.

        Raises:
            UnsupportedError: something besides sizes that data decides differs from call to call.
        """
        self._piece = piece
        self._bounds = _symbols(piece)
        _check_results(piece, self._bounds)
        graph = deepcopy(piece.module.graph)
        inlined = masked and inline_branches(graph, piece.module)
        derived = tuple(_derived(graph, self._bounds)) if masked else ()
        symbols = (*self._bounds, *derived)
        given = graph.find_nodes(op="placeholder")
        self._tensors = [place for place, n in enumerate(piece.inputs) if isinstance(n.meta["val"], torch.Tensor)]
        with graph.inserting_after(given[-1]):
            counts = {s: graph.placeholder(_named("count", s)) for s in reversed(symbols)}
            masks = {s: graph.placeholder(_named("places", s)) for s in reversed(symbols)}
        put = Masks(graph, masks, counts, bounds=bounds or {})
        self.is_masked = (masked and put.put()) or inlined
        self._least, self._counted = put.least, put.counted
        self.is_checked = bool(put.checks)
        if self.is_checked:
            put.return_checks()
        for node in given:
            if not isinstance(node.meta["val"], torch.Tensor):
                _ask_mask(node, masks[symbol_of(node.meta["val"])])
        for node in [n for n in graph.nodes if n.op == "call_function" and _expression(n) in derived]:
            _ask_mask(node, masks[_expression(node)])  # numbers that are such a size
        self._masks, self._counts = ([s for s in symbols if of[s].users] for of in (masks, counts))
        self._derived = tuple(s for s in derived if s in self._masks or s in self._counts)
        self.symbols = (*self._bounds, *self._derived)
        self.is_masked |= bool(self._derived)  # numbers of it are lengths of masks
        for unread in [n for n in (*masks.values(), *counts.values()) if not n.users]:
            graph.erase_node(unread)
        self.model = piece_model(Piece(GraphModule(piece.module, graph), piece.inputs, piece.outputs), name)

    def upper(self, symbol: Any) -> int | None:
        """Return the largest size that checks of the program and shapes of its tensors allow, if they say one."""
        return self._bounds[symbol][1]

    def derives(self, symbol: Any) -> bool:
        """Return whether a size follows from the other ones."""
        return symbol in self._derived

    def with_derived(self, sizes: SizesBySymbol) -> dict[Any, int]:
        """Return sizes by symbol, and those of the expressions that follow from them."""
        return {**sizes, **{expression: _value(expression, sizes) for expression in self._derived}}

    def with_largest_derived(self, most: SizesBySymbol) -> dict[Any, int]:
        """Return the largest sizes by symbol, and of the expressions that follow from them: `6 - u0` falls with u0."""
        ends = product(*((self.lower(symbol), size) for symbol, size in most.items()))
        settings = [self.with_derived(dict(zip(most, end, strict=True))) for end in ends]
        return {**most, **{one: max(setting[one] for setting in settings) for one in self._derived}}

    def lower(self, symbol: Any) -> int:
        """Return the least size that checks of the program allow."""
        return self._bounds[symbol][0] if symbol in self._bounds else 0

    def extents(self) -> frozenset[int]:
        """Return the sizes that values of the piece have in each call."""
        values = (node.meta.get("val") for node in self._piece.module.graph.nodes)
        tensors = (value for value in values if isinstance(value, torch.Tensor))
        return frozenset(extent for value in tensors for extent in map(_plain, value.shape) if isinstance(extent, int))

    def least(self) -> dict[Any, int]:
        """Return the least sizes that the program is compared for: torch traces as if none were 0 or 1."""
        least = {symbol: max(2, self.lower(symbol), self._least.get(symbol, 0)) for symbol in self.symbols}
        return {symbol: next(n for n in count(size) if n not in self._counted) for symbol, size in least.items()}

    def examples(self, sizes: SizesBySymbol) -> tuple[torch.Tensor, ...]:
        """Return arguments of the model for some sizes."""
        inputs = [self._piece.inputs[place].meta["val"] for place in self._tensors]
        zeros = [torch.zeros(_extents(value, sizes), dtype=value.dtype) for value in inputs]
        return (*zeros, *self._told(sizes, sizes))

    def _told(self, sizes: SizesBySymbol, most: SizesBySymbol) -> Iterator[torch.Tensor]:
        """The masks and sizes of a call."""
        yield from (torch.arange(most[symbol]) < sizes[symbol] for symbol in self._masks)
        yield from (torch.tensor(sizes[symbol]) for symbol in self._counts)

    def dynamic_shapes(self) -> tuple[Any, ...]:
        """Return which sizes of the arguments are symbols, as an export takes it."""
        inputs = [self._piece.inputs[place].meta["val"] for place in self._tensors]
        sized = [
            {dim: Dim.AUTO for dim, n in enumerate(x.shape) if isinstance(n, torch.SymInt)} or None for x in inputs
        ]
        return (*sized, *({0: Dim.AUTO} for _ in self._masks), *(None for _ in self._counts))

    def sizes_of(self, inputs: Sequence[Any]) -> dict[Any, int] | None:
        """Return the values of the symbols in a call of the piece; None if its sizes contradict each other."""
        found = dict[Any, int]()
        for node, given in zip(self._piece.inputs, inputs, strict=True):
            known = node.meta["val"]
            pairs = zip(known.shape, given.shape, strict=True) if isinstance(known, torch.Tensor) else ((known, given),)
            for extent, value in pairs:
                if (symbol := symbol_of(extent)) in self._bounds:
                    found[symbol] = int(value)
        told = zip(self._piece.inputs, inputs, strict=True)
        agree = (list(x.shape) == _extents(n.meta["val"], found) for n, x in told if isinstance(x, torch.Tensor))
        return self.with_derived(found) if all(agree) else None

    def keeps_shapes(self, inputs: Sequence[Any], sizes: SizesBySymbol) -> bool:
        """Return whether torch's operators give shapes as they are for other sizes, on these inputs of the piece.

        A size of 1 may broadcast, or be squeezed, and some operators refuse a size of 0.
        """
        try:
            with torch.no_grad():
                return _Shapes(self._piece.module, sizes).agree(inputs)
        except REFUSED:
            return False

    def arguments(self, inputs: Sequence[Any], sizes: SizesBySymbol, most: SizesBySymbol) -> tuple[torch.Tensor, ...]:
        """Return the arguments of the model: the inputs of the piece with zeros behind them, masks and sizes.

        Args:
            inputs: of the piece.
            sizes: values of the symbols in the call.
            most: those that the program is for.
        """
        tensors = [
            _padded(inputs[place], _extents(self._piece.inputs[place].meta["val"], most)) for place in self._tensors
        ]
        return (*tensors, *self._told(sizes, most))

    def results(self, outputs: Sequence[torch.Tensor], sizes: SizesBySymbol) -> tuple[torch.Tensor, ...] | None:
        """Return the results of the piece, without what padding made; None if a check of the model failed."""
        if self.is_checked:
            *outputs, stands = outputs
            if not bool(stands):
                return None
        pairs = zip(self._piece.outputs, outputs, strict=True)
        return tuple(_first(given, _extents(node.meta["val"], sizes)) for node, given in pairs)


def reads_data_size(piece: Piece) -> bool:
    """Return whether data decides a size of a piece, or a number that it reads."""
    return any(free_unbacked_symbols(node.meta["val"]) for node in piece.inputs)


def size_makers(program: DividedProgram) -> dict[str, tuple[str, str]]:
    """Return the operator that makes a size, and its place in the model, by the names of the symbols."""
    calls = [step for step in program.steps if isinstance(step, SizingCall)]
    return {str(s): place_of_call(step) for step in calls for s in step.node.meta.get("unbacked_bindings") or ()}


class _Shapes(KnownNumbers):
    """Runs a piece with torch's operators, and compares the shapes of all values with those that its symbols say."""

    def __init__(self, module: GraphModule, sizes: SizesBySymbol) -> None:
        super().__init__(module)
        self._sizes = sizes
        self._agree = True

    def agree(self, inputs: Sequence[Any]) -> bool:
        """Return whether all shapes of a call agree."""
        self.run(*inputs)
        return self._agree

    @override
    def run_node(self, n: Node) -> Any:
        """Run one node."""
        value = super().run_node(n)
        if n.op == "call_function":
            pairs = zip(tree_flatten(n.meta.get("val"))[0], tree_flatten(value)[0], strict=True)
            self._agree &= all(self._same(known, given) for known, given in pairs)
        return value

    def _same(self, known: object, given: object) -> bool:
        if not isinstance(given, torch.Tensor):
            return True
        return isinstance(known, torch.Tensor) and list(given.shape) == _extents(known, self._sizes)


def _symbols(piece: Piece) -> dict[Any, tuple[int, int | None]]:
    """The symbols of a piece in the order in which inputs have them, and sums of them, with least and largest values.

    The largest one is None if it is not known.

    Raises:
        UnsupportedError: its inputs have other symbols and numbers.
    """
    found, symbolic = dict[Any, None](), dict[Any, torch.SymInt]()
    for node in piece.inputs:
        value = node.meta["val"]
        if not isinstance(value, torch.Tensor) and not _is_symbol(value):
            raise UnsupportedError(f"{node.name} is a number of the data that is no size", where=place_of(node))
        of_inputs = _symbols_of_inputs(value)
        for symbol in _symbols_in(value):
            if symbol in of_inputs:
                raise UnsupportedError(f"the size {symbol} is one of the model's inputs", where=place_of(node))
            found[symbol] = None
        extents = value.shape if isinstance(value, torch.Tensor) else (value,)
        symbolic.update({symbol: extent for extent in extents if (symbol := symbol_of(extent)) is not None})
    told = {symbol for symbol in symbolic if symbol.is_Symbol}
    sums = [s for s in symbolic if not s.is_Symbol and (not s.free_symbols <= told or len(s.free_symbols) > 1)]
    return {symbol: size_bounds(symbolic[symbol]) for symbol in (*(s for s in found if s in told), *sums)}


def _check_results(piece: Piece, symbols: Collection[Any]) -> None:
    """Raises UnsupportedError if a result has a size that those of the inputs do not say, as of branches."""
    for node in piece.outputs:
        for extent in node.meta["val"].shape:
            symbol = symbol_of(extent)
            if symbol is not None and _known_value(symbol, dict.fromkeys(symbols, 8)) is None:
                text = "the size of a result does not follow from those that the part begins with"
                raise UnsupportedError(text, where=place_of(node))


def _symbols_in(value: object) -> Iterator[Any]:
    """The symbols in the sizes of a tensor, or in a number."""
    for size in value.shape if isinstance(value, torch.Tensor) else (value,):
        if isinstance(size, torch.SymInt):
            yield from sorted(size_expression(size).free_symbols, key=str)


def _symbols_of_inputs(value: Any) -> set[Any]:
    """Those that inputs of the model say, not data."""
    extents = value.shape if isinstance(value, torch.Tensor) else (value,)
    symbols = {s for size in extents if isinstance(size, torch.SymInt) for s in expression_of(size).free_symbols}
    return symbols - set(free_unbacked_symbols(value))


def _is_symbol(number: object) -> bool:
    return isinstance(number, torch.SymInt) and bool(expression_of(number).is_Symbol)


def _ask_mask(node: Node, mask: Node) -> None:
    """Put the length of a mask in the place of a number that is this size."""
    with node.graph.inserting_after(mask):
        length = node.graph.call_function(torch.ops.aten.sym_size.int, (mask, 0))
    length.meta = dict(node.meta)
    node.replace_all_uses_with(length)
    node.graph.erase_node(node)


def _extents(value: torch.Tensor, sizes: SizesBySymbol) -> list[int]:
    return [
        extent if symbol_of(extent) is None else _value(symbol_of(extent), sizes) for extent in map(_plain, value.shape)
    ]


def _plain(extent: Any) -> Any:
    return int(size_expression(extent)) if isinstance(extent, torch.SymInt) and symbol_of(extent) is None else extent


def _value(expression: Any, sizes: SizesBySymbol) -> int:
    """The value of an expression; -1 if sizes do not say it."""
    value = _known_value(expression, sizes)
    return -1 if value is None else value


def _known_value(expression: Any, sizes: SizesBySymbol) -> int | None:
    """The value of an expression; None if sizes do not say it."""
    if expression in sizes:
        return sizes[expression]
    for total in [s for s in sizes if not s.is_Symbol]:
        # One of its symbols that has no value of its own is what the others leave of it.
        lost = (v for v in sorted(total.free_symbols, key=str) if v not in sizes and v not in (total - v).free_symbols)
        if (symbol := next(lost, None)) is not None:
            expression = expression.subs({symbol: sizes[total] - (total - symbol)}).expand()
    expression = expression.subs({s: size for s, size in sizes.items() if s.is_Symbol})
    return int(expression) if expression.is_number else None


def _derived(graph: Graph, symbols: Collection[Any]) -> Iterator[Any]:
    """The sizes of results that are expressions of symbols, of calls that make a longer or shorter one of a size."""
    found = dict[Any, None]()
    for node in graph.nodes:
        if node.target in RESIZING or has_padding_between(node) or merges_pairs(node):
            for extent in [n for value in tree_flatten(node.meta["val"])[0] for n in value.shape]:
                expression = symbol_of(extent)
                if expression is not None and expression not in symbols:
                    found[expression] = None
    yield from (one for one in found if _known_value(one, dict.fromkeys(symbols, 8)) is not None)


def _expression(node: Node) -> Any:
    """The expression that a number of a graph is; None if it is none."""
    return symbol_of(node.meta.get("val"))


def _named(kind: str, symbol: Any) -> str:
    text = f"{kind}_{symbol}".replace("-", "less").replace("+", "more")  # `u0 - 1` and `u0 + 1` are two
    return re.sub(r"\W+", "_", text)


def _padded(given: torch.Tensor, extents: Sequence[int]) -> torch.Tensor:
    if list(given.shape) == list(extents):
        return given
    made = given.new_zeros(extents)
    made[tuple(map(slice, given.shape))] = given
    return made


def _first(given: torch.Tensor, extents: Sequence[int]) -> torch.Tensor:
    return given if list(given.shape) == list(extents) else given[tuple(map(slice, extents))].clone()
