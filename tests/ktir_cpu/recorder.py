"""A pytest plugin for the tests of ktir-cpu: keeps every call of its interpreter, so that ours can answer it too.

Its tests bind inputs to the examples, and compare what comes out with numpy. A call is kept as the text of the
module, the function, the arrays and numbers it was given, and the arrays it gave.
"""

from __future__ import annotations

import os
import pickle
from pathlib import Path
from typing import Any

import numpy as np

KEPT = "KTIR_CALLS"


def pytest_configure(config: object) -> None:
    """Wraps the interpreter before the tests import it."""
    from ktir_cpu import KTIRInterpreter  # pyright: ignore[reportMissingImports] - on the path of this process alone

    load, execute = KTIRInterpreter.load, KTIRInterpreter.execute_function
    folder, count = Path(os.environ[KEPT]), [0]

    def loading(self: Any, source: Any, *rest: Any, **options: Any) -> Any:
        self.kept_source = source
        return load(self, source, *rest, **options)

    def executing(self: Any, function: str, **given: Any) -> Any:
        before = {name: np.array(value) if isinstance(value, np.ndarray) else value for name, value in given.items()}
        found = execute(self, function, **given)
        count[0] += 1
        call = (str(self.kept_source), function, before, found)
        (folder / f"{count[0]:04}.pickle").write_bytes(pickle.dumps(call))
        return found

    KTIRInterpreter.load, KTIRInterpreter.execute_function = loading, executing
