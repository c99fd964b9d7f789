"""`python -m tests.opinfo NAME ...`: what the compiler makes of samples from PyTorch's OpInfo database."""

from __future__ import annotations

import argparse
import sys

from tests.opinfo.judge import SECONDS, Outcome, judge
from tests.opinfo.samples import DTYPES, SAMPLES, cases, named


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="+", metavar="NAME", help="entries, with all their variants")
    parser.add_argument("--dtype", default="float32", help=f"of {', '.join(DTYPES)}, separated by commas, or all")
    parser.add_argument("--samples", type=int, default=SAMPLES)
    parser.add_argument("--device", action="store_true", help="also run in device numerics")
    parser.add_argument("--levels", action="store_true", help="also run at every level")
    parser.add_argument("--seconds", type=int, default=SECONDS, help="time limit of a sample")
    options = parser.parse_args()
    dtypes = list(DTYPES) if options.dtype == "all" else options.dtype.split(",")
    bad = 0
    for pattern in options.names:
        found = named(pattern)
        if not found:
            print(f"{pattern}: no such entry")
        for name in found:
            for dtype in dtypes:
                for case in cases(name, dtype, options.samples):
                    outcome = judge(case, device=options.device, levels=options.levels, seconds=options.seconds)
                    print(line(outcome), flush=True)
                    bad += outcome.status not in ("ok", "none", "exception")
    return int(bad > 0)


def line(outcome: Outcome) -> str:
    text = f"{outcome.status:9} {outcome.key:40} {outcome.fate:8} {outcome.kernels:4} kernels  {outcome.error:.1e}"
    if outcome.device_error is not None:
        text += f"  device {outcome.device_error:.1e} of {outcome.device_allowed or 0:.1e}"
    text += f"  {outcome.shown}"
    return f"{text}\n    {outcome.detail.replace(chr(10), chr(10) + '    ')}" if outcome.detail else text


if __name__ == "__main__":
    sys.exit(main())
