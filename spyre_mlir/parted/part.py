"""A part of a model in which data decides sizes: a program with symbols, and programs for sizes of their own.

Decision: docs/decisions/0149-programs-are-divided-where-data-decides-sizes.md
"""

from __future__ import annotations

import logging
from collections import OrderedDict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from spyre_mlir.compiled import CompiledModel
from spyre_mlir.dynamic.model import DynamicModel
from spyre_mlir.errors import ImportProgramError, InputError, UnsupportedError
from spyre_mlir.parted.bounded import BoundedPart, Bounding

if TYPE_CHECKING:
    from spyre_mlir.frontend.data_sizes.dividing import Piece

log = logging.getLogger(__name__)

Run = Callable[[CompiledModel, tuple[Any, ...]], Any]
Compile = Callable[[Any, tuple[Any, ...], Any], CompiledModel | DynamicModel]


@dataclass
class Part:
    """A piece of a program, compiled: once with symbols if that is possible, else for the sizes of each call.

    Attributes:
        compile: compiles a model for example inputs and symbols.
        model: the piece as a model of torch.
        kept: how many programs for single sizes are kept.
        made: its program with symbols, or of known sizes.
        bounded: its program for all sizes up to a bound.
        fixed: programs for single sizes.
    """

    piece: Piece
    name: str
    compile: Compile
    kept: int
    model: Any = field(init=False)
    made: CompiledModel | DynamicModel | None = None
    bounded: BoundedPart | None = None
    fixed: OrderedDict[str, CompiledModel] = field(default_factory=OrderedDict[str, CompiledModel])

    def __post_init__(self) -> None:
        from spyre_mlir.frontend.data_sizes.calls import piece_model

        self.model = piece_model(self.piece, self.name)

    def prepare(self, bounding: Bounding | None = None) -> None:
        """Compile it with symbols, or as it is if all of its sizes are known.

        Args:
            bounding: compiles it once if data decides a size of it.
        """
        from spyre_mlir.frontend.data_sizes.calls import symbolic_examples

        if bounding is not None and self.has_size_of_data:
            self.bounded = bounding.part(self.piece, self.name)
            return
        found = symbolic_examples(self.piece)
        if found is None:
            return
        examples, symbols = found
        if symbols is None:
            self.made = self.compile(self.model, examples, None)
            return
        try:
            self.made = self.compile(self.model, examples, (symbols,))
        except (ImportProgramError, UnsupportedError) as refused:
            log.info("%s is compiled for each size: %s", self.name, refused.message)
            if self.piece.of_inputs:  # the example has sizes that calls are likely to have, and shows what is refused
                self._fixed(examples)

    @property
    def has_size_of_data(self) -> bool:
        """True if data decides a size of it, or a number that it reads."""
        from spyre_mlir.frontend.data_sizes.padded import reads_data_size

        return reads_data_size(self.piece)

    def described(self) -> str:
        """Return for which sizes it is compiled, and when."""
        if self.bounded is not None:
            return "once for " + ", ".join(f"{symbol} <= {size}" for symbol, size in self.bounded.most.items())
        if isinstance(self.made, CompiledModel):
            return "once"
        return "for the sizes of each call" + ("" if self.made is None else ", from a program with symbols")

    def run(self, inputs: tuple[Any, ...], run: Run) -> Any:
        """Run the program for these inputs.

        Args:
            inputs: of the piece.
            run: runs a program.
        """
        results = None if self.bounded is None else self.bounded.run(inputs, run)
        return run(self.program(inputs), inputs) if results is None else results

    def program(self, inputs: tuple[Any, ...]) -> CompiledModel:
        """Return the program for these inputs."""
        if isinstance(self.made, CompiledModel):
            return self.made
        if self.made is not None:
            try:
                return self.made.compiled_for(*inputs)
            except (InputError, ImportProgramError) as refused:
                log.info("%s has a program of its own for these sizes: %s", self.name, refused.message)
        return self._fixed(inputs)

    def _fixed(self, inputs: tuple[Any, ...]) -> CompiledModel:
        from spyre_mlir.frontend import signature_of

        key = signature_of(inputs, {})
        found = self.fixed.pop(key, None)
        if found is None:
            made = self._compiled_for(inputs)
            assert isinstance(made, CompiledModel)
            found = made
        self.fixed[key] = found
        while len(self.fixed) > self.kept:
            self.fixed.popitem(last=False)
        return found

    def _compiled_for(self, inputs: tuple[Any, ...]) -> CompiledModel | DynamicModel:
        from spyre_mlir.frontend.data_sizes.calls import refusal

        try:
            return self.compile(self.model, inputs, None)
        except ImportProgramError as refused:
            if (said := refusal(self.model, inputs)) is None:
                raise
            text = f"torch refuses the sizes of this call: {said}"
            raise InputError(text, where=refused.where, hint="eager torch refuses them, too") from refused

    def programs(self) -> Iterator[CompiledModel]:
        """The programs of single sizes at hand, that of a bound first."""
        if self.bounded is not None:
            yield self.bounded.program
        if isinstance(self.made, DynamicModel):
            yield from self.made.programs
        elif self.made is not None:
            yield self.made
        yield from self.fixed.values()
