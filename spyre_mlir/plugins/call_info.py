"""Call metadata passed to plugin functions, and attribution of their errors."""

from __future__ import annotations

from collections.abc import Callable, Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from traceback import extract_tb
from typing import Any, Generic, TypeVar

from xdsl.utils.exceptions import VerifyException

from spyre_mlir.errors import RegistrationError, SpyreError

_OURS = str(Path(__file__).parent)
F = TypeVar("F", bound=Callable[..., Any])
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
        target: the operator, e.g. ``acme::blend``.
        args, kwargs: as the graph has them; tensors are `Value`s.
        inputs, outputs: what the tensors look like.
        attributes: the arguments that are no tensors, by their names in the schema, defaults filled in.
    """

    name: str
    target: str
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]
    inputs: tuple[TensorMeta, ...]
    outputs: tuple[TensorMeta, ...]
    attributes: Mapping[str, Any]


@dataclass(frozen=True)
class Registered(Generic[F]):
    """One registered function.

    Attributes:
        op: the operation.
        function: what was registered for it.
        owner: module and name of the function.
        priority: the highest is asked first.
        when: whether it wants a call; called with the `Build` and the arguments.
    """

    op: str
    function: F
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
