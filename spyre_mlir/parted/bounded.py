"""A part that is compiled once for all sizes up to a bound: calls are padded, where padding is proved away.

Decision: docs/decisions/0192-a-bound-stands-for-sizes-that-data-decides.md
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from spyre_mlir.choices import EXAMPLE_STEP
from spyre_mlir.compiled import CompiledModel
from spyre_mlir.dialects.aten_sizes import GuardOp
from spyre_mlir.dialects.ir.functions import functions
from spyre_mlir.dialects.size_expressions import symbols_in
from spyre_mlir.dynamic.programs import specialized
from spyre_mlir.errors import ImportProgramError, InputError, NoSuchPlaceError, SpyreError, UnsupportedError
from spyre_mlir.options import CompileOptions
from spyre_mlir.padding.buckets import check_bucket
from spyre_mlir.transforms.specialize_shapes import check_guards

if TYPE_CHECKING:
    from spyre_mlir.frontend import Program
    from spyre_mlir.frontend.data_sizes.dividing import Piece
    from spyre_mlir.frontend.data_sizes.padded import PaddedPiece, SizesBySymbol

# The operator that makes a size, and its place in the model, by the name of the symbol.
Makers = Mapping[str, tuple[str, str]]

_HINT = "leave out max_size: each size then has a program of its own"
# Between the sizes of a program: one less is compared, too, and a product has a few more.
_APART = 4


@dataclass
class BoundedPart:
    """The program of a part for its largest sizes.

    Attributes:
        piece: pads and masks.
        program: for the largest sizes.
        most: the largest sizes.
        makers: what makes them.
        apart: whether the program is for sizes that no other value of the piece has.
    """

    piece: PaddedPiece
    program: CompiledModel
    most: SizesBySymbol
    makers: Makers
    apart: bool = False
    _small: dict[tuple[int, ...], bool] = field(default_factory=dict[tuple[int, ...], bool])

    def run(self, inputs: Sequence[Any], run: Callable[[CompiledModel, tuple[Any, ...]], Any]) -> Any:
        """Run the program on padded inputs; None if it does not stand for their sizes, or for what padding makes.

        Padding that is infinite makes results no numbers, and zeros of padding may make indices of entries that are not
        there, as `i - 1` does: the proof says nothing of either.

        Raises:
            InputError: a size is above its bound.
        """
        from spyre_mlir.frontend import has_gaps

        sizes = self.piece.sizes_of(inputs)
        if sizes is None:
            return None
        self._check(sizes)
        compiled = _compiled(self.most, self.piece, self.piece.is_masked, self.apart)
        if any(size > compiled[symbol] for symbol, size in sizes.items()) or not self._stands_for(inputs, sizes):
            return None
        given = self.piece.arguments(inputs, sizes, compiled)
        try:
            padded = run(self.program, given)
        except NoSuchPlaceError:  # of padding, or of the caller: the program for these sizes tells
            return None
        results = self.piece.results(padded, sizes)
        return None if results is None or has_gaps(results) else results

    def _check(self, sizes: SizesBySymbol) -> None:
        for symbol, size in sizes.items():
            if size > self.most[symbol] and not self.piece.derives(symbol):
                op, place = _makers_of(symbol, self.makers)[0]
                raise InputError(
                    f"{op} gives a size of {size} in this call, expected {self.most[symbol]} at most",
                    where=place,
                    hint="compile the model with a larger max_size, or without it",
                )

    def _stands_for(self, inputs: Sequence[Any], sizes: SizesBySymbol) -> bool:
        """Return if the program stands for these sizes: for 1 if torch gives no other shapes for it, never for 0.

        The proof takes the first element of a constant for one of the caller's.
        """
        least = self.piece.least()
        if all(size >= least[symbol] for symbol, size in sizes.items()):
            return True
        if any(size < max(1, self.piece.lower(symbol)) for symbol, size in sizes.items()):
            return False
        key = tuple(min(size, least[symbol]) for symbol, size in sizes.items())
        if key not in self._small:
            self._small[key] = self.piece.keeps_shapes(inputs, sizes)
        return self._small[key]


@dataclass(frozen=True)
class Bounding:
    """Settings that parts with a bound share.

    Attributes:
        options: for which programs are compiled, `max_size` among them.
        makers: what makes sizes.
        build: lowers a static program.
    """

    options: CompileOptions
    makers: Makers
    build: Callable[[Program], CompiledModel]

    def part(self, piece: Piece, name: str) -> BoundedPart:
        """Compile a piece for its largest sizes, with masks if it needs some.

        Raises:
            UnsupportedError: padding may reach a result.
            InputError: the program does not say how large a size may be.
        """
        from spyre_mlir.frontend.data_sizes.padded import PaddedPiece

        try:
            plain = PaddedPiece(piece, name, masked=False)
        except UnsupportedError as refused:
            raise _refusal(name, refused) from refused
        most = self._most(plain)
        refusals = list[SpyreError]()
        for padded, bounds, apart in _ways(piece, name, plain, most):
            try:
                return self._proved(padded, bounds, apart)
            except (UnsupportedError, ImportProgramError) as refused:
                if not apart:
                    refusals.append(refused)
        raise self._behind(plain, name, refusals[-1]) from refusals[-1]

    def read(self, piece: Piece, name: str, program: CompiledModel, masked: bool, apart: bool) -> BoundedPart:
        """Return a part whose program was saved."""
        from spyre_mlir.frontend.data_sizes.padded import PaddedPiece

        plain = PaddedPiece(piece, name, masked=False)
        most = self._most(plain)
        if not masked:
            return BoundedPart(plain, program, most, self.makers, apart)
        padded = PaddedPiece(piece, name, masked=True, bounds=_compiled(most, plain, masked=True))
        return BoundedPart(padded, program, padded.with_largest_derived(most), self.makers, apart)

    def _most(self, piece: PaddedPiece) -> dict[Any, int]:
        """The largest sizes by symbol: those of the option, or the program's own where these are less."""
        given = self.options.max_size if isinstance(self.options.max_size, int) else None
        found = dict[Any, int]()
        for symbol in piece.symbols:
            asked = None if given is None else int(symbol.subs(dict.fromkeys(symbol.free_symbols, given)))
            known = [size for size in (asked, piece.upper(symbol)) if size is not None]
            if not known:
                op, place = _makers_of(symbol, self.makers)[0]
                raise InputError(
                    f"the program does not say how large the size is that {op} makes",
                    where=place,
                    hint="give a number, max_size=512, or check it in the model, torch._check(n <= 512)",
                )
            found[symbol] = min(known)
        return found

    def _proved(self, piece: PaddedPiece, bounds: SizesBySymbol, apart: bool) -> BoundedPart:
        from spyre_mlir.frontend import sizes_of_call

        least = piece.least()
        most = _compiled(bounds, piece, piece.is_masked, apart)
        program = self._imported(piece, least, most)
        if program.origin is None:
            raise UnsupportedError(f"torch takes the sizes of {program.name} for granted")

        def at(sizes: SizesBySymbol) -> Program:
            try:
                return specialized(program, sizes_of_call(program, piece.examples(sizes)))
            except InputError as error:
                raise UnsupportedError(error.message, where=error.where) from error

        try:
            ends = [sizes_of_call(program, piece.examples(sizes)) for sizes in (least, most)]
        except InputError as error:  # torch takes one of the sizes for a sum of another one
            raise UnsupportedError(error.message, where=error.where) from error
        check_conditions(program, *ends)
        for symbol, others in _settings(least, most, piece.extents()):
            size = most[symbol]
            smaller = [(at({**others, symbol: n}), n) for n in sorted({least[symbol], size - 1})]
            check_bucket(at({**others, symbol: size}), size, smaller, self.options)
        return BoundedPart(piece, self.build(at(most)), bounds, self.makers, apart)

    def _imported(self, piece: PaddedPiece, least: SizesBySymbol, most: SizesBySymbol) -> Program:
        """The program with symbols: for sizes far apart, or if the model refuses these, for sizes within the bounds."""
        from spyre_mlir.frontend import import_program

        fixed = piece.extents()
        wide = {s: _beside(max(EXAMPLE_STEP * number, least[s]), fixed) for number, s in enumerate(most, 1)}
        try:
            return import_program(piece.model, piece.examples(wide), None, (piece.dynamic_shapes(),))
        except ImportProgramError:
            within = {s: _below(min(size, most[s]), least[s], fixed) for s, size in wide.items()}
            if within == wide:
                raise
            return import_program(piece.model, piece.examples(within), None, (piece.dynamic_shapes(),))

    def _behind(self, piece: PaddedPiece, name: str, refused: SpyreError) -> UnsupportedError:
        """The error for a part, named by what makes its sizes."""
        makers = dict.fromkeys(op for symbol in piece.symbols for op, _ in _makers_of(symbol, self.makers))
        return _refusal(f"{name}, behind {' and '.join(makers)},", refused)


def _makers_of(symbol: Any, makers: Makers) -> list[tuple[str, str]]:
    """What makes a size, or the sizes of a sum, with its place in the model."""
    return [makers[name] for name in sorted(map(str, symbol.free_symbols))]


def _refusal(what: str, refused: SpyreError) -> UnsupportedError:
    text = f"{what} has no program for all sizes: {refused.message}"
    return UnsupportedError(text, where=refused.where, hint=_HINT)


def check_conditions(program: Program, least: Mapping[str, int], most: Mapping[str, int]) -> None:
    """Check that all sizes fulfil what the export takes for granted.

    Raises:
        UnsupportedError: one does not, or a condition is about two sizes.
    """
    main, *_ = functions(program.module)
    for condition in [op.condition.data for op in main.body.block.ops if isinstance(op, GuardOp)]:
        names = symbols_in(condition)
        if len(names) > 1:
            raise UnsupportedError(f"the export takes for granted that {condition}")
        for name in names:
            for size in range(least[name], most[name] + 1):
                _check_condition(condition, {name: size})


def _check_condition(condition: str, sizes: Mapping[str, int]) -> None:
    try:
        check_guards([condition], sizes)
    except InputError as error:
        raise UnsupportedError(error.message) from error


def _ways(
    piece: Piece, name: str, plain: PaddedPiece, most: SizesBySymbol
) -> Iterator[tuple[PaddedPiece, SizesBySymbol, bool]]:
    """What to prove of a piece, one after the other: without masks, with them, and with sizes apart from all others."""
    from spyre_mlir.frontend.data_sizes.padded import PaddedPiece

    yield plain, most, False
    last, bounds = plain, most
    masked = PaddedPiece(piece, name, masked=True, bounds=_compiled(most, plain, masked=True))
    if masked.is_masked:
        last, bounds = masked, masked.with_largest_derived(most)
        yield last, bounds, False
    if _meets_others(most, plain):
        yield last, bounds, True


def _meets_others(most: SizesBySymbol, piece: PaddedPiece) -> bool:
    """Return whether a bound that the program says is a size that it has besides, as that of the table that is read."""
    return any(size in piece.extents() for size in most.values())


def _compiled(most: SizesBySymbol, piece: PaddedPiece, masked: bool, apart: bool = False) -> dict[Any, int]:
    """The sizes of the program: one more than the least at least, with which it is compared, and apart from each other.

    Equal constants are one argument, so that a program with several equal sizes has fewer than one for smaller sizes.
    Masks bring constants, so that with them sizes are apart from all others of the piece, unless the program says how
    large they are: it may read as many rows of a tensor. If that is refused, all sizes are tried apart from others.
    """
    least, found = piece.least(), dict[Any, int]()
    for symbol, bound in most.items():
        size = max(bound, least[symbol] + 1)
        is_free = apart or (masked and (piece.derives(symbol) or piece.upper(symbol) is None))
        fixed = piece.extents() if is_free else frozenset[int]()
        while _is_near(size, found.values(), _APART) or _is_near(size, fixed, _APART - 1):
            size += 1
        found[symbol] = size
    return found


def _is_near(size: int, others: Iterable[int], distance: int) -> bool:
    return any(abs(size - other) < distance for other in others)


def _beside(size: int, fixed: Collection[int]) -> int:
    """An even size that is none of some others: a slice of all rows is the rows for torch, and its size known."""
    return next(n for n in range(size, size + 2 * len(fixed) + 2, 2) if n not in fixed)


def _below(size: int, least: int, fixed: Collection[int]) -> int:
    """A size that is no larger, and none of some others, if there is one."""
    return next((n for n in range(size, least - 1, -1) if n not in fixed), size)


def _settings(least: SizesBySymbol, most: SizesBySymbol, fixed: Collection[int]) -> Iterator[tuple[Any, SizesBySymbol]]:
    """Each symbol, with the sizes of the other ones: the largest, and small ones, apart from the least and from others.

    Args:
        least: the least sizes.
        most: the largest ones.
        fixed: sizes that the program has besides.
    """
    for symbol, size in most.items():
        yield symbol, most
        if len(most) > 1:
            yield symbol, _small({s: n for s, n in most.items() if s != symbol}, least, {*fixed, size, size - 1})


def _small(most: SizesBySymbol, least: SizesBySymbol, fixed: Collection[int]) -> dict[Any, int]:
    """Small sizes, apart from the least, from each other, and from some that a program has besides."""
    small = dict[Any, int]()
    for symbol, bound in most.items():
        size = least[symbol] + 2
        while size < bound and (size in fixed or _is_near(size, small.values(), 2)):
            size += 1
        small[symbol] = min(size, bound)
    return small
