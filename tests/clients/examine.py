"""What a row of the page says of a model, found by compiling it once and running it twice."""

from __future__ import annotations

import copy
import time
import warnings
from collections import Counter
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import nn
from torch.utils._pytree import tree_leaves

import spyre_mlir
from spyre_mlir.compiled import CompiledModel
from spyre_mlir.errors import SpyreError
from tests.clients.catalogue import CATALOGUE, build, version_of
from tests.clients.page import DEVICE, EXACT, Row
from tests.emitted import check_bundle_once
from tests.oracles.bundle_steps import host_steps
from tests.states import code_digest


class Trouble(Exception):
    """Why a row has no numbers, or what is wrong with them."""


def row_of(name: str) -> Row:
    """The row of an entry; whatever goes wrong is what it says, beside what was found before."""
    found: dict[str, Any] = {"version": version_of(CATALOGUE[name].package), "code": code_digest()}
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            _examine(name, found)
    except Trouble as trouble:
        found["trouble"] = str(trouble)
    return Row(**found)


def _examine(name: str, found: dict[str, Any]) -> None:
    with _said("the package"):
        model, inputs = build(name)
        wanted = _eager(model, inputs)
    with _said("compiling"):
        start = time.process_time()
        compiled = spyre_mlir.compile(copy.deepcopy(model), copy.deepcopy(inputs), host_fallback="allow", cache=False)
        found["seconds"] = round(time.process_time() - start, 1)
        assert isinstance(compiled, CompiledModel)
        directory = compiled.bundle_directory()
        steps = host_steps(directory)
        found["kernels"], found["host"] = len(compiled.timeline().kernels), len(steps)
        found["reasons"] = dict(Counter(f"{step.callee}: {step.reason}" for step in steps if step.reason))
    with _said("checking the files"):
        check_bundle_once(directory)
    with _said("running in exact numerics"):
        found["exact"] = _difference(_exactly(compiled, inputs), wanted)
    with _said("running in device numerics"):
        found["device"] = compiled.accuracy(*copy.deepcopy(inputs)).worst
    found["trouble"] = _judged(found["exact"], found["device"])


def _judged(exact: float, device: float) -> str:
    """What is wrong with the numbers of a row; NaN is wrong too."""
    if not exact <= EXACT:
        return f"wrong: an exact error of {exact:.1e} is beyond {EXACT:.0e}"
    return "" if device <= DEVICE else f"wrong: a device error of {device:.1e} is beyond {DEVICE:.0e}"


@contextmanager
def _said(where: str) -> Generator[None]:
    """Any error inside becomes trouble, with where it was; those that are no `SpyreError` are crashes."""
    try:
        yield
    except Trouble:
        raise
    except SpyreError as error:
        raise Trouble(f"{where}: {type(error).__name__}: {error}") from error
    except Exception as error:
        raise Trouble(f"crash in {where}: {type(error).__name__}: {error}") from error


def _eager(model: nn.Module, inputs: Sequence[torch.Tensor]) -> list[Any]:
    with torch.no_grad():
        return tree_leaves(copy.deepcopy(model)(*copy.deepcopy(inputs)))


def _exactly(compiled: CompiledModel, inputs: Sequence[torch.Tensor]) -> list[Any]:
    """The results of the files in exact numerics, which the bundle carries as well as its own."""
    compiled.bundle_directory()
    return tree_leaves(compiled.in_exact_numerics()(*copy.deepcopy(inputs)))


def _difference(got: Sequence[Any], wanted: Sequence[Any]) -> float:
    """The largest error of any result relative to the largest of its numbers; infinite if two are not of a kind."""
    kinds = [[(leaf.shape, leaf.dtype) for leaf in leaves] for leaves in (got, wanted)]
    if kinds[0] != kinds[1]:
        raise Trouble(f"wrong: expected results {kinds[1]}, got {kinds[0]}")
    return max(_largest(a, b) for a, b in zip(got, wanted, strict=True))


def _largest(got: torch.Tensor, wanted: torch.Tensor) -> float:
    if torch.equal(got, wanted) or wanted.numel() == 0:
        return 0.0
    if not wanted.is_floating_point() or not torch.equal(got.isfinite(), wanted.isfinite()):
        return float("inf")
    finite = wanted.isfinite()
    if not torch.equal(got[~finite].nan_to_num(), wanted[~finite].nan_to_num()):
        return float("inf")
    return float((got - wanted)[finite].abs().max() / wanted[finite].abs().max())
