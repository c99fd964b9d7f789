"""Every end-to-end program is compiled once for the session."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

import pytest

from tests.end_to_end.models import PROGRAMS

if TYPE_CHECKING:
    from spyre_mlir import CompiledModel


@cache
def compiled_program(name: str) -> tuple[CompiledModel, Any, Any]:
    import spyre_mlir

    model, inputs = PROGRAMS[name]()
    return spyre_mlir.compile(model, inputs), model, inputs


SLOW = ("llama_2_layers",)  # layers of an encoder run by default, in regions


@pytest.fixture(
    params=[
        pytest.param(
            n, marks=pytest.mark.slow(reason="a program of two layers; one layer runs by default") if n in SLOW else ()
        )
        for n in sorted(PROGRAMS)
    ]
)
def program(request: pytest.FixtureRequest) -> tuple[CompiledModel, Any, Any]:
    """Compiled program, model, inputs."""
    return compiled_program(request.param)
