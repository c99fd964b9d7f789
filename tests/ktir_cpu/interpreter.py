"""The interpreter that KTIR's authors publish, unmodified, from the checkout that KTIR_CPU names."""

from __future__ import annotations

import os
import sys
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

VARIABLE = "KTIR_CPU"


def checkout() -> Path:
    """Where ktir-cpu is; a test that asks is skipped where it is nowhere."""
    given = os.environ.get(VARIABLE)
    if given is None:
        pytest.skip(f"{VARIABLE} names no checkout of ktir-cpu: no second opinion")
    path = Path(given)
    if not (path / "ktir_cpu" / "__init__.py").is_file():
        pytest.fail(f"{VARIABLE} is {given}, which is no checkout of ktir-cpu")
    return path


def ktir_cpu() -> ModuleType:
    """The package."""
    path = str(checkout())
    if path not in sys.path:
        sys.path.append(path)
    return import_module("ktir_cpu")


def run(text: str, function: str, arrays: dict[str, Any]) -> dict[str, Any]:
    """A function of a module on some arrays and numbers by name; gives the arrays after it."""
    interpreter = ktir_cpu().KTIRInterpreter()
    interpreter.load(text)
    with np.errstate(all="ignore"):  # infinities and NaN are values of the program
        return interpreter.execute_function(function, **arrays)
