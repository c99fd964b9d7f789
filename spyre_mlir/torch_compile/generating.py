"""`generate` of transformers with the forward pass on the hardware model: sampling and stopping stay transformers' own.

Nothing of transformers is imported: a model brings its `generate`, and that its cache.

Decision: docs/decisions/0124-generate-is-transformers-own.md
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import wraps
from typing import Any, cast

import torch
from torch.fx import GraphModule
from typing_extensions import override

from spyre_mlir.compiled import CompiledModel
from spyre_mlir.errors import InputError, UnsupportedError
from spyre_mlir.generation import GeneratingModel, Generation
from spyre_mlir.options import CompileOptions
from spyre_mlir.runtime.residence import CARD
from spyre_mlir.torch_compile.backend import Captured
from spyre_mlir.torch_compile.dynamo_private import Unsupported, any_number_of_graphs
from spyre_mlir.torch_compile.graph import CapturedGraph

log = logging.getLogger(__name__)

_LONGEST_BEFORE = "_previous_max_cache_length"  # of transformers: a later cache is as long as the longest one so far
_WINDOWS = ("sliding_attention", "chunked_attention")


def compile_for_generation(model: Any, generation: Generation, choices: Mapping[str, Any]) -> GeneratingModel:
    """Compile a model of transformers for its `generate`.

    Args:
        model: with `generate` and `config`.
        generation: how.
        choices: options of `compile`.

    Raises:
        InputError: the model has no `generate`, no cache of this kind, or there is no such option.
        UnsupportedError: it has an encoder, which would run elsewhere.
    """
    CompileOptions.of(choices)
    if not isinstance(model, torch.nn.Module) or not callable(getattr(model, "generate", None)):
        name = type(model).__name__
        raise InputError(f"{name} has no generate", hint="generation= is for models of transformers that generate text")
    config: Any = getattr(model, "config", None)
    if getattr(config, "is_encoder_decoder", False):
        raise UnsupportedError(
            f"generation by {type(model).__name__}, which has an encoder", hint='torch.compile(model, backend="spyre")'
        )
    if generation.cache == "sliding" and not _has_window(config):
        raise InputError(f"the attention of {type(model).__name__} has no window", hint='cache="static"')
    return Generating(model, generation, choices)


def _has_window(config: Any) -> bool:
    """Return whether some layer attends to a window."""
    text = config.get_text_config(decoder=True)
    kinds = getattr(text, "layer_types", None)
    return bool(set(kinds) & set(_WINDOWS)) if kinds else getattr(text, "sliding_window", None) is not None


class Generating(GeneratingModel):
    """See `GeneratingModel`."""

    def __init__(self, model: Any, generation: Generation, choices: Mapping[str, Any]) -> None:
        """Keeps the model; the forward pass is compiled when it first runs."""
        self._model: Any = model
        self._own: Callable[..., Any] = model.forward
        self._generation, self._choices = generation, dict(choices)
        self._graphs: list[CapturedGraph] = []
        self._prefill: list[CompiledModel] = []
        self._decode: list[CompiledModel] = []
        self._cache: Any = None
        self._whole = True
        self._forward = self._compiled(self._own)

    def __repr__(self) -> str:
        """One line: the class of the model, its cache, and how many programs there are."""
        counts = f"{len(self._prefill)} programs for prompts, {len(self._decode)} for a token"
        return f"<{type(self._model).__name__} that generates, {self._generation.cache} cache: {counts}>"

    @property
    @override
    def prefill(self) -> Sequence[CompiledModel]:
        """See `GeneratingModel.prefill`."""
        return tuple(self._prefill)

    @property
    @override
    def decode(self) -> Sequence[CompiledModel]:
        """See `GeneratingModel.decode`."""
        return tuple(self._decode)

    @override
    def generate(self, *args: Any, **kwargs: Any) -> Any:
        """See `GeneratingModel.generate`."""
        given = self._arguments(kwargs)
        visible = given.get("past_key_values") is not None
        with self._in_place_of_forward():
            try:
                result = self._model.generate(*args, **given)
                visible |= not isinstance(result, torch.Tensor)
            finally:
                if visible:
                    self.to_host()
                self._cache = None
        return result

    @override
    def to_host(self) -> None:
        """See `GeneratingModel.to_host`."""
        for tensor in _tensors_of(self._cache):
            CARD.release(tensor)

    def _arguments(self, kwargs: Mapping[str, Any]) -> dict[str, Any]:
        """The arguments of transformers' `generate`."""
        kind = None if self._generation.grows else "static"
        asked = kwargs.get("cache_implementation", kind)
        own = kwargs.get("past_key_values") is not None
        if asked != kind:
            raise InputError(
                f"cache_implementation is {asked!r}, but the model was compiled for a {self._generation.cache} cache",
                hint="leave it out",
            )
        settings = kwargs.get("generation_config", getattr(self._model, "generation_config", None))
        beams = kwargs.get("num_beams", getattr(settings, "num_beams", None)) or 1
        if beams > 1 and kind is not None:
            raise UnsupportedError(
                f"search with {beams} beams over a static cache", hint='num_beams=1, or Generation(cache="growing")'
            )
        _check_assistant(kwargs, grows=kind is None)
        given = {"disable_compile": True, **kwargs}
        if kind is not None and not own:
            given["cache_implementation"] = kind
        if self._generation.max_length is not None and not own:
            given["max_cache_len"] = self._generation.max_length
        return given

    @contextmanager
    def _in_place_of_forward(self) -> Generator[None]:
        """Lets the model run the compiled forward pass, and caches be as long as ours."""
        attributes: dict[str, object] = self._model.__dict__
        before = {name: attributes[name] for name in ("forward", _LONGEST_BEFORE) if name in attributes}
        if self._generation.max_length is not None:
            attributes.pop(_LONGEST_BEFORE, None)
        attributes["forward"] = self._step()
        try:
            yield
        finally:
            for name in ("forward", *([_LONGEST_BEFORE] if self._generation.max_length is not None else [])):
                attributes.pop(name, None)
            attributes.update(before)

    def _step(self) -> Callable[..., Any]:
        """A forward pass of one call of `generate`."""
        first = True

        @wraps(self._own)
        def step(*args: Any, **kwargs: Any) -> Any:
            nonlocal first
            ids = kwargs.get("input_ids", args[0] if args else None)
            if first:
                self._begin(kwargs.get("past_key_values"), ids)
            known = {id(program) for graph in self._graphs for program in graph.programs}
            result = self._run(*args, **kwargs)
            made = [p for graph in self._graphs for p in graph.programs if id(p) not in known]
            reads_prompt = first or (isinstance(ids, torch.Tensor) and ids.shape[-1] > 1)
            (self._prefill if reads_prompt else self._decode).extend(made)
            first = False
            return result

        return step

    def _begin(self, cache: Any, ids: Any) -> None:
        """Checks the length of a fresh cache, and makes its tensors, so that the first program writes to them too."""
        self._cache, most = cache, self._generation.max_length
        layers: Sequence[Any] = getattr(cache, "layers", ())
        lengths = [n for layer in layers if isinstance(n := getattr(layer, "max_cache_len", None), int)]
        if most is not None and max(lengths, default=0) > most:
            raise InputError(
                f"the cache would hold {max(lengths)} tokens, and the model was compiled for {most}",
                hint=f"generate less, or compile(model, generation=Generation(max_length={max(lengths)}))",
            )
        shape_of: Any = getattr(self._model, "_get_static_cache_init_shape", lambda: None)
        # Not of a cache that grows: models without attention have no heads to ask for.
        if lengths and isinstance(ids, torch.Tensor) and (shape := shape_of()) is not None:
            heads, size = shape
            cache.early_initialization(ids.shape[0], heads, size, self._model.dtype, self._model.device)

    def _run(self, *args: Any, **kwargs: Any) -> Any:
        """The compiled forward pass; in parts, with the cache on both sides, if torch cannot capture it as a whole."""
        with any_number_of_graphs():
            try:
                return self._forward(*args, **kwargs)
            except Unsupported as error:
                if not self._whole:
                    raise
                log.info("the cache is written back after every step: %s", str(error).partition("\n")[0])
                self.to_host()
                self._whole = False
                self._forward = self._compiled(self._own)
                return self._forward(*args, **kwargs)

    def _compiled(self, forward: Callable[..., Any]) -> Callable[..., Any]:
        """A forward pass that Dynamo captures; between its parts nobody reads what only the card has."""
        whole = self._whole and not self._generation.grows

        def back_end(graph: GraphModule, _examples: Sequence[Any]) -> Callable[..., Any]:
            captured = Captured.of(graph, [self._choices], holds=whole)
            self._graphs.extend(captured.programs)
            return lambda *inputs: captured.run(0, inputs)

        return cast(Any, torch).compile(forward, backend=back_end, fullgraph=whole)


def _check_assistant(kwargs: Mapping[str, Any], *, grows: bool) -> None:
    """Refuse assistants that are compiled, and those of caches that do not shrink where tokens are rejected."""
    if isinstance(kwargs.get("assistant_model"), GeneratingModel):
        raise InputError("the assistant is a compiled model", hint="give the model that it was made of")
    named = [name for name in ("assistant_model", "prompt_lookup_num_tokens") if kwargs.get(name) is not None]
    if named and not grows:
        raise UnsupportedError(f"generation with {named[0]} over a static cache", hint='Generation(cache="growing")')


def _tensors_of(cache: Any) -> Iterator[torch.Tensor]:
    """The tensors of a cache of transformers."""
    for layer in cast("Sequence[object]", getattr(cache, "layers", ())):
        yield from (value for value in vars(layer).values() if isinstance(value, torch.Tensor))


__all__ = ["Generating", "compile_for_generation"]
