"""Changes of a program that are tried for accuracy: each compiled and run, with what it cures and what it costs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from spyre_mlir.debug.error_walk import KernelError
from spyre_mlir.dialects.superdsc.model.json_value import JsonObject
from spyre_mlir.options import CompileOptions
from spyre_mlir.report.figures import finite
from spyre_mlir.report.timing import three_digits
from spyre_mlir.text.notebook import ShownAsText

# The largest error of a program's results compiled with some options, and its predicted time, us.
Measure = Callable[[CompileOptions], tuple[float, float]]


@dataclass(frozen=True, repr=False)
class Attempt(ShownAsText):
    """One change, tried.

    Attributes:
        change: what to write.
        before, error: the largest root mean square error of a result, without and with it.
        us_before, us: predicted time of all kernels, without and with it.
    """

    change: str
    before: float
    error: float
    us_before: float
    us: float

    @property
    def helps(self) -> bool:
        """Return whether the error becomes smaller by half or more."""
        return self.error <= self.before / 2

    def value(self) -> JsonObject:
        """Return it as plain data; an error that is infinite is null."""
        return {
            "change": self.change,
            "before": finite(self.before),
            "error": finite(self.error),
            "us_before": self.us_before,
            "us": self.us,
            "helps": self.helps,
            "text": str(self),
        }

    def __str__(self) -> str:
        """A sentence: the error, and the price."""
        effect = f"the error of {self.before:.1e} becomes {self.error:.1e}"
        price = f"{three_digits(self.us_before)} us become {three_digits(self.us)}"
        return f"{self.change}, tried: {effect}{'' if self.helps else ', which is no cure'}; {price}"


def attempts(
    options: CompileOptions, before: float, us_before: float, measure: Measure, suspects: Sequence[KernelError] = ()
) -> Sequence[Attempt]:
    """Try what may make the results of a program more accurate: float32 for all of it, then where the error arises.

    Args:
        options: that the program was compiled with.
        before: its largest error.
        us_before: its predicted time.
        measure: compiles and runs it with other options.
        suspects: its launches, the worst first.

    Raises:
        UnsupportedError: the program does not compile with a change, though it does without.
    """
    if options.keep_float32:
        return ()
    error, us = measure(replace(options, keep_float32=True))
    tried = [Attempt("keep_float32=True", before, error, us_before, us)]
    if tried[0].helps:  # and perhaps a part of it does
        for names in _parts(options, suspects):
            error, us = measure(replace(options, keep_float32_in=names))
            tried.append(Attempt(f"keep_float32_in={names!r}", before, error, us_before, us))
    return tried


def _parts(options: CompileOptions, suspects: Sequence[KernelError]) -> Iterator[tuple[str, ...]]:
    """Parts of a program that may be all that has to keep float32: where the worst error arises, and where all do."""
    spoilt = [one for one in suspects if one.overflows or one.lost] or list(suspects[:1])
    for names in ({one.module for one in spoilt}, {one.line for one in spoilt}):
        chosen = tuple(sorted({*names, *options.keep_float32_in}))
        if all(chosen) and chosen and set(chosen) != set(options.keep_float32_in):
            yield chosen
