"""`mode` and `options` of `torch.compile(backend="spyre")`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from spyre_mlir.errors import InputError
from spyre_mlir.options import CompileOptions, option_names
from spyre_mlir.torch_compile.dynamo_private import inductor_modes
from spyre_mlir.torch_compile.training import TRAINING

_BY = 'torch.compile(backend="spyre")'
_DEFAULT = "default"
_TUNING = "kernels are not measured, the pass plan chooses by the cost model"
_REASONS = {
    "lite": "it leaves operators to eager unless they are marked, and a program is compiled as a whole",
    "reduce-overhead": "it stands for CUDA graphs, and a bundle is launched as a whole",
    "max-autotune": _TUNING,
    "max-autotune-no-cudagraphs": _TUNING,
}


@dataclass(frozen=True)
class Settings:
    """Settings of a captured graph.

    Attributes:
        options: keyword arguments of `spyre_mlir.compile`.
        training: whether calls that autograd records have a backward pass.
    """

    options: Mapping[str, Any]
    training: bool

    @staticmethod
    def of(mode: str | None, options: Mapping[str, Any] | None) -> Settings:
        """Read the options that `torch.compile` passes on.

        Raises:
            InputError: a mode besides ``default``, an option that `compile` does not have, or a value it cannot have.
        """
        if mode not in (None, _DEFAULT):
            raise _refused(mode)
        chosen = dict(options or {})
        training = chosen.pop(TRAINING, False)
        if not isinstance(training, bool):
            raise InputError(f"{TRAINING} must be True or False, got {training!r}")
        CompileOptions.of(chosen, by=_BY, beside=(TRAINING,))
        return Settings(chosen, training)


def _refused(mode: str) -> InputError:
    """The error for a mode: why it has no meaning here, and what there is instead."""
    if mode in _REASONS:
        why = _REASONS[mode]
    elif mode in inductor_modes():
        why = "it stands for settings of Inductor, which has no part here"
    else:
        why = "torch.compile has none of that name either"
    hint = f'leave mode out ("{_DEFAULT}" is the only one); options= takes {", ".join([TRAINING, *option_names()])}'
    return InputError(f"{_BY} has no mode {mode!r}: {why}", hint=hint)
