"""How long spyre-opt takes to start and read a small aten file, against xdsl-opt on the same file.

xdsl-opt finds the aten dialect through the entry point of an installed spyre-mlir. Prints both medians and the median
of the ratios of paired runs: `python benchmarks/startup.py [pairs]`.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import tempfile
import time
from importlib.metadata import entry_points
from pathlib import Path

PROGRAM = """\
func.func @main(%x: tensor<4x64xf32>) -> tensor<4x64xf32> {
  %0 = aten.relu(%x) : (tensor<4x64xf32>) -> tensor<4x64xf32>
  func.return %0 : tensor<4x64xf32>
}
"""
ALLOWED = 1.3


def seconds(module: str, path: Path) -> float:
    """Wall clock of one run of a tool in a fresh process."""
    code = f"import sys; from {module} import main; sys.exit(main())"
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    environment["PYTHONPYCACHEPREFIX"] = str(path.parent)  # compiled modules of both tools, as installed ones have
    start = time.perf_counter()
    subprocess.run([sys.executable, "-c", code, str(path)], check=True, stdout=subprocess.DEVNULL, env=environment)
    return time.perf_counter() - start


def main() -> None:
    if not entry_points(group="xdsl.universe", name="spyre_mlir"):
        sys.exit("error: spyre-mlir is not installed here, xdsl-opt cannot find it\n  try: python3 tools/dev.py setup")
    pairs = int(sys.argv[1]) if len(sys.argv) > 1 else 15
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "small.mlir"
        path.write_text(PROGRAM)
        runs = [(seconds("spyre_mlir.cli.opt", path), seconds("xdsl.tools.xdsl_opt", path)) for _ in range(pairs + 1)]
    runs = runs[1:]  # the first pair fills the file cache
    ours, stock = (statistics.median(column) for column in zip(*runs, strict=True))
    ratio = statistics.median(our / theirs for our, theirs in runs)
    print(f"spyre-opt {ours * 1000:.0f} ms, xdsl-opt {stock * 1000:.0f} ms, ratio {ratio:.2f} (at most {ALLOWED})")


if __name__ == "__main__":
    main()
