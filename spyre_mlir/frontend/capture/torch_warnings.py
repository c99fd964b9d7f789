"""Torch's warnings about its own internals during export, which tell users nothing about their model."""

from __future__ import annotations

import logging
import sys
import warnings
from collections.abc import Generator
from contextlib import contextmanager, redirect_stderr
from typing import Any, TextIO, cast

from spyre_mlir.frontend.torch_tracing import tracing_alone

_LOGGERS = (
    "torch.export",
    "torch._subclasses.fake_tensor",
    "torch.fx.experimental.symbolic_shapes",
    "torch._export.serde.serialize",
)


class _WithoutGraphs:
    """Standard error, but for the graph that torch prints where a model depends on data; our error names the line."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._dropped = False

    def write(self, text: str) -> int:
        self._dropped = text.lstrip().startswith("def forward(self") or (self._dropped and text == "\n")
        return len(text) if self._dropped else self._stream.write(text)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


@contextmanager
def torch_noise_hidden() -> Generator[list[logging.LogRecord]]:
    """Silence torch's warnings about its own internals during export; the model's warnings pass.

    One thread at a time. Gives what torch would have logged: traces of what becomes our errors.
    """
    hidden: list[logging.LogRecord] = []
    loggers = [logging.getLogger(name) for name in _LOGGERS]

    def hide(record: logging.LogRecord) -> bool:
        hidden.append(record)
        return False

    with tracing_alone(), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=r".*isinstance\(treespec, LeafSpec\)", category=FutureWarning)
        # Recurrent layers keep a list of their own parameters, which export swaps as it does the parameters.
        warnings.filterwarnings("ignore", message=r"The tensor attributes? .*_flat_weights", category=UserWarning)
        # Weights of programs that were saved without values come back as results of a cast.
        warnings.filterwarnings("ignore", message=r"The \.grad attribute of a Tensor", category=UserWarning)
        try:
            for logger in loggers:
                logger.addFilter(hide)
            with redirect_stderr(cast(TextIO, _WithoutGraphs(sys.stderr))):
                yield hidden
        finally:
            for logger in loggers:
                logger.removeFilter(hide)
