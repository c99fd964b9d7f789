"""Call metadata passed to plugin functions, and attribution of their errors."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from traceback import extract_tb
from typing import Any, TypeAlias

from xdsl.utils.exceptions import VerifyException

from spyre_mlir.errors import RegistrationError, SpyreError

_OURS = str(Path(__file__).parents[1])
# A function that a plugin registers; what it takes and gives depends on the kind of registration.
Hook: TypeAlias = Callable[..., Any]
# What functions of others raise when they are wrong: their owner is named instead of a bug of ours.
MISTAKES = (
    *(ArithmeticError, AssertionError, AttributeError, ImportError, LookupError),
    *(NameError, OSError, RuntimeError, TypeError, ValueError, VerifyException),
)


@dataclass(frozen=True)
class TensorMeta:
    """Name in the graph, shape and torch dtype name of a tensor."""

    name: str
    shape: tuple[int, ...]
    dtype: str


@dataclass(frozen=True)
class NodeInfo:
    """One operator call of a model, as passed to conversions.

    Attributes:
        name: of the node.
        op: what the graph calls the node, always ``call_function``.
        target: the operator of torch, e.g. ``torch.ops.acme.blend.default``.
        args, kwargs: as the graph has them; tensors are `Value`s.
        input_metas, output_metas: what the tensors look like.
        attrs: the arguments that are no tensors, by their names in the schema, defaults filled in.
    """

    name: str
    op: str
    target: Any
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]
    input_metas: Sequence[TensorMeta]
    output_metas: Sequence[TensorMeta]
    attrs: Mapping[str, Any]


@dataclass(frozen=True)
class OpNode:
    """Op of any type, which a conversion makes of a call; the executor registered for the type computes it.

    Attributes:
        name: of the op; results keep the names of `outputs`.
        op_type: the operation, in any spelling of a name; it needs no operator of torch.
        inputs: tensors of the call, in the order in which the executor gets them.
        outputs: the results of the call, all of them.
        attrs: what the executor gets beside the tensors: numbers, text, truth values, None, and lists of them.
    """

    name: str
    op_type: str
    inputs: Sequence[TensorMeta]
    outputs: Sequence[TensorMeta]
    attrs: Mapping[str, Any] = field(default_factory=dict[str, Any])


@dataclass(frozen=True)
class Registered:
    """One registered function.

    Attributes:
        op: the operation.
        function: what was registered for it.
        owner: module and name of the function.
        priority: the highest is asked first.
        when: whether it wants a call; called with the `Build` and the arguments.
    """

    op: str
    function: Hook
    owner: str
    priority: int = 0
    when: Callable[..., bool] | None = None

    def wants(self, build: Any, bound: Mapping[str, Any]) -> bool:
        """Return whether the function handles a call with these arguments."""
        with self.blamed():
            return self.when is None or self.when(build, **bound)

    def __call__(self, /, *args: Any, **kwargs: Any) -> Any:
        """Calls the function.

        Raises:
            RegistrationError: it failed; it is named.
        """
        with self.blamed():
            return self.function(*args, **kwargs)

    @contextmanager
    def blamed(self) -> Generator[None]:
        """Attribute errors raised inside the block to the owner of the plugin."""
        try:
            yield
        except SpyreError:
            raise
        except MISTAKES as error:
            theirs = [f for f in extract_tb(error.__traceback__) if not f.filename.startswith(_OURS)]
            raise RegistrationError(
                f"{self.owner}, registered for {self.op}, failed: {type(error).__name__}: {error}",
                where=f"{theirs[-1].filename}:{theirs[-1].lineno}" if theirs else None,
                hint="fix the function, or uninstall its package",
            ) from error


@contextmanager
def called_for(call: str) -> Generator[None]:
    """Name a call of the model, e.g. ``acme::blend at model.py:3``, in errors of plugins raised inside the block."""
    try:
        yield
    except RegistrationError as error:
        if error.where is None or call not in error.where:
            error.where = call if error.where is None else f"{error.where}, called for {call}"
        raise
