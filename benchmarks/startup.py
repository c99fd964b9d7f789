"""How long spyre-opt takes to start and read a small file, against xdsl-opt on the same file.

Prints both medians and the median of the ratios of paired runs: `python benchmarks/startup.py [pairs]`.
"""

from __future__ import annotations

import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

PROGRAM = "func.func @f(%a: i32) -> i32 {\n  %0 = arith.addi %a, %a : i32\n  func.return %0 : i32\n}\n"


def seconds(module: str, path: Path) -> float:
    """Wall clock of one run of a tool in a fresh process."""
    code = f"import sys; from {module} import main; sys.exit(main())"
    start = time.perf_counter()
    subprocess.run([sys.executable, "-c", code, str(path)], check=True, stdout=subprocess.DEVNULL)
    return time.perf_counter() - start


def main() -> None:
    pairs = int(sys.argv[1]) if len(sys.argv) > 1 else 15
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "small.mlir"
        path.write_text(PROGRAM)
        runs = [(seconds("spyre_mlir.cli.opt", path), seconds("xdsl.tools.xdsl_opt", path)) for _ in range(pairs + 1)]
    runs = runs[1:]  # the first pair fills the file cache
    ours, stock = (statistics.median(column) for column in zip(*runs, strict=True))
    ratio = statistics.median(our / theirs for our, theirs in runs)
    print(f"spyre-opt {ours * 1000:.0f} ms, xdsl-opt {stock * 1000:.0f} ms, ratio {ratio:.2f}")


if __name__ == "__main__":
    main()
