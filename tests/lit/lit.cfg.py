"""Settings of real lit; tests/conftest.py runs the same files inside pytest."""

import os
import shutil
import sys
from pathlib import Path

import lit.formats

config.name = "spyre-mlir"  # noqa: F821 - lit provides `config`
config.test_format = lit.formats.ShTest()  # noqa: F821
config.suffixes = [".mlir"]  # noqa: F821
config.test_source_root = str(Path(__file__).parent)  # noqa: F821
config.test_exec_root = str(Path(__file__).parents[2] / "build" / "lit")  # noqa: F821
config.environment["PATH"] = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])  # noqa: F821
mlir_opt = os.environ.get("XDSL_MLIR_OPT") or shutil.which("mlir-opt") or shutil.which("mlir-opt-22")
if mlir_opt:
    config.available_features.add("mlir-opt")  # noqa: F821
    config.substitutions.append((r"(?<![-\w])mlir-opt(?![-\w])", mlir_opt))  # noqa: F821
