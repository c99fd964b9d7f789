"""Models that compile at their first call, as their inputs are not known before."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from spyre_mlir.compiled import CompiledModel
from spyre_mlir.errors import InputError, NotCompiledError
from spyre_mlir.options import CompileOptions
from spyre_mlir.pickling import CopiedAsItIs
from spyre_mlir.report import Accuracy, Verification
from spyre_mlir.sizes import counted
from spyre_mlir.text.no_module import missing
from spyre_mlir.text.notebook import ShownAsText

Compile = Callable[[Any, tuple[Any, ...], Mapping[str, Any], CompileOptions], CompiledModel]


def _modes(model: Any) -> str:
    """Return the training mode of every module of a model, one digit each; "" for anything but a module."""
    return "".join(str(int(part.training)) for part in model.modules()) if hasattr(model, "modules") else ""


class LazyModel(ShownAsText, CopiedAsItIs):
    """A model compiled at its first call, once per signature of inputs and training mode of its modules.

    What Python reads from tensors (option `specialize_values`) is that of the first call of a signature.
    """

    def __init__(self, model: Any, options: CompileOptions, compiled: Compile) -> None:
        """Keeps the model for later.

        Args:
            model: a module or function of torch.
            options: of its programs.
            compiled: compiles it for arguments and keyword arguments.

        Raises:
            InputError: an option needs example inputs.
        """
        if options.max_size is not None:
            raise InputError("max_size needs example inputs", hint="compile(model, (x,), max_size=…)")
        self._model = model
        self._options = options
        self._compile = compiled
        self._compiled: dict[str, CompiledModel] = {}

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Compiles for these inputs if need be, and runs."""
        from spyre_mlir.frontend import untraced

        return untraced(self._call, args, kwargs)

    def _call(self, *args: Any, **kwargs: Any) -> Any:
        return self.compiled_for(*args, **kwargs)(*args, **kwargs)

    def __repr__(self) -> str:
        """One line: the class of the model, and how many programs there are."""
        return f"<LazyModel {type(self._model).__name__}: {counted(len(self._compiled), 'program')}>"

    def __getstate__(self) -> dict[str, Any]:
        """Pickles the model and the options; programs are made again at the first call."""
        return {**self.__dict__, "_compiled": {}}

    def __getattr__(self, name: str) -> Any:
        """Everything else is that of the program, as soon as there is one.

        Raises:
            NotCompiledError: there is none yet, or several.
            AttributeError: a compiled model has no such attribute either.
        """
        if not name.startswith("_") and len(self.programs) == 1:
            return getattr(self.programs[0], name)
        if name.startswith("_") or not hasattr(CompiledModel, name):
            raise missing(type(self).__name__, name)
        hint = "call the model first, or give compile example inputs" if not self.programs else "take one of `programs`"
        raise NotCompiledError(f"{name} is of one program, and the model has {len(self.programs)}", hint=hint)

    def __dir__(self) -> list[str]:
        """Names what a compiled model has, too."""
        return sorted({*super().__dir__(), *(name for name in dir(CompiledModel) if not name.startswith("_"))})

    def compiled_for(self, *args: Any, **kwargs: Any) -> CompiledModel:
        """Return the compiled program for inputs of this signature."""
        from spyre_mlir.frontend import autocast_now, signature_of

        signature = f"{_modes(self._model)} {autocast_now()} {signature_of(args, kwargs)}"
        known = self._compiled.get(signature)
        if known is None or known.replaced is not None or known.changed:
            self._compiled[signature] = self._compile(self._model, args, kwargs, self._options)
        return self._compiled[signature]

    def accuracy(self, *args: Any, **kwargs: Any) -> Accuracy:
        """Same as `CompiledModel.accuracy`, for the program of these inputs."""
        return self.compiled_for(*args, **kwargs).accuracy(*args, **kwargs)

    @property
    def programs(self) -> tuple[CompiledModel, ...]:
        """The programs compiled so far."""
        return tuple(self._compiled.values())

    def verify(self, *args: Any, tolerance: float = 1e-4, **kwargs: Any) -> Verification:
        """Same as `CompiledModel.verify`, for the program of these inputs."""
        return self.compiled_for(*args, **kwargs).verify(*args, tolerance=tolerance, **kwargs)


__all__ = ["LazyModel"]
