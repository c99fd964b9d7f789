"""What becomes of one sample: compiled, run from its files, compared with torch."""

from __future__ import annotations

import signal
import traceback
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import asdict, dataclass, field, replace
from inspect import signature
from types import FrameType
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from tests.opinfo.compare import (
    HALF_TOLERANCE,
    SELECTING,
    TOLERANCE,
    ULP,
    UNDEFINED,
    UP_TO_A_FACTOR,
    equally_selected,
    error_of,
    exceptional,
    in_parts,
)
from tests.opinfo.samples import Case

SECONDS = 60


@dataclass
class Outcome:
    """What became of one sample.

    Attributes:
        status: ``ok``, ``wrong``, ``exception`` (differs, and has values DL16 cannot hold), ``refused``, ``crash``,
            ``slow``, or ``none`` where torch itself raises.
        support: ``native``, ``composed`` or ``host``, if it compiled.
        detail: why, where it is not ``ok``.
        error: largest error in exact numerics, and in device numerics if asked for; and what is allowed.
        kernels: how many there are.
        host_ops: what the host runs, and why.
        shown: the sample's tensors and numbers.
    """

    key: str
    status: str
    support: str = ""
    detail: str = ""
    error: float = 0.0
    allowed: float = TOLERANCE
    device_error: float | None = None
    device_allowed: float | None = None
    kernels: int = 0
    host_ops: list[str] = field(default_factory=list)
    shown: str = ""

    def record(self) -> dict[str, Any]:
        return asdict(self)

    def line(self) -> str:
        """One line, and below it the detail if there is one."""
        text = f"{self.status:9} {self.key:40} {self.support:8} {self.kernels:4} kernels  {self.error:.1e}"
        if self.device_error is not None:
            text += f"  device {self.device_error:.1e} of {self.device_allowed or 0:.1e}"
        below = self.detail.replace("\n", "\n    ")
        return f"{text}  {self.shown}" + (f"\n    {below}" if below else "")


class TooSlow(BaseException):
    """The time limit passed; no `except Exception` on the way may keep it."""


@contextmanager
def limited(seconds: int) -> Iterator[None]:
    """Raises TooSlow after so many seconds of computing, however busy the machine is with something else."""

    def stop(_signal: int, _frame: FrameType | None) -> None:
        raise TooSlow

    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def judge(case: Case, *, device: bool = False, levels: bool = False, seconds: int = SECONDS) -> Outcome:
    """Compiles and runs a case; never raises."""
    outcome = Outcome(case.key, "crash", shown=str(case)[:300])
    try:
        with limited(seconds), warnings.catch_warnings(), torch.no_grad():
            warnings.simplefilter("ignore")
            _judge(case, outcome, device, levels)
    except TooSlow:
        outcome.status, outcome.detail = "slow", f"more than {seconds} s of computing"
    except Exception as error:  # noqa: BLE001 - whatever it is, it is the finding
        outcome.status, outcome.detail = "crash", _traceback(error)
    return outcome


def _traceback(error: Exception) -> str:
    """What and where; xDSL's notes show the whole module once per frame."""
    error.__notes__ = []
    frames = traceback.extract_tb(error.__traceback__)[-5:]
    first = str(error).strip().split("\n", 1)[0][:300]
    places = [f"{f.filename.rpartition('/spyre_mlir/')[2]}:{f.lineno} {f.name}" for f in reversed(frames)]
    return f"{type(error).__name__}: {first}\n" + "\n".join(places)


def _judge(case: Case, outcome: Outcome, device: bool, levels: bool) -> None:
    import spyre_mlir
    from spyre_mlir.errors import MachineFault, SpyreError
    from spyre_mlir.parted.model import PartedModel

    try:
        narrow, draws = in_parts(_seeded(case, 1)), _draws(case)
    except Exception as error:  # noqa: BLE001 - torch's own refusals are of all kinds
        outcome.status, outcome.detail = "none", f"torch: {str(error)[:200]}"
        return
    with Redrawn(case) if draws else nullcontext():
        wide = in_parts(reference(case))
    options: Any = {"host_fallback": "allow"} if "host_fallback" in signature(spyre_mlir.compile).parameters else {}
    try:
        compiled = spyre_mlir.compile(case.model, case.inputs, numerics="exact", **options)
        outcome.support, outcome.host_ops, outcome.kernels = outcome_of(compiled)
        outcome.allowed = TOLERANCE + sum(e.tolerance for e in entries_of(compiled))
        torch.manual_seed(1)
        got = in_parts(compiled(*case.fresh()))
        outcome.status, outcome.detail = "ok", ""
        _compare(case, outcome, got, narrow, wide)
        if levels and outcome.status == "ok":
            verification = compiled.verify(*case.fresh())
            if not verification:
                outcome.status, outcome.detail = "wrong", str(verification)
        # Where data decides a size, rounding may: elements have no counterpart then.
        if device and outcome.status == "ok" and not isinstance(compiled, PartedModel):
            _device(case, outcome, compiled, narrow, wide)
    except MachineFault as error:
        _blame(case, outcome, str(error), narrow)
    except SpyreError as error:
        outcome.status, outcome.detail = "refused", f"{type(error).__name__}: {error}"


def _seeded(case: Case, seed: int) -> tuple[Any, ...]:
    torch.manual_seed(seed)
    return case.model(*case.fresh())


class Redrawn(TorchDispatchMode):
    """Gives the numbers that a case drew from its first seed: in double precision torch would draw others."""

    def __init__(self, case: Case) -> None:
        super().__init__()
        self._seen: list[torch.Tensor] = []
        self._again = False
        with self:
            _seeded(case, 1)
        self._again = True

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if torch.Tag.nondeterministic_seeded not in func.tags:
            return func(*args, **(kwargs or {}))
        if not self._again:
            made = func(*args, **(kwargs or {}))
            self._seen.append(made.clone())
            return made
        made = self._seen.pop(0)
        made = made.double() if made.is_floating_point() else made
        return args[0].copy_(made) if torch.Tag.inplace in func.tags else made


def _draws(case: Case) -> bool:
    """Whether torch draws random numbers for a case."""
    before = torch.get_rng_state()
    case.model(*case.fresh())
    return not torch.equal(before, torch.get_rng_state())


def _unlike(a: Any, b: Any) -> bool:
    both = isinstance(a, torch.Tensor) and isinstance(b, torch.Tensor)
    if not both or a.layout is not torch.strided or a.is_complex():
        return False  # half-precision ones, which are refused, know no `nan_to_num`
    return not torch.equal(torch.nan_to_num(a), torch.nan_to_num(b))


def reference(case: Case) -> tuple[Any, ...] | None:
    """The model in double precision, or None where the op does not take it."""
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)  # what integers and truth values become
    try:
        return case.model(*(x.double() if x.is_floating_point() else x.clone() for x in case.inputs))
    except Exception:  # noqa: BLE001 - torch's own refusals are of all kinds
        return None
    finally:
        torch.set_default_dtype(before)


def outcome_of(compiled: Any) -> tuple[str, list[str], int]:
    """How the program runs, which ops run on the host, and how many kernels there are."""
    from spyre_mlir.ops.table import Family
    from spyre_mlir.parted.model import PartedModel

    if isinstance(compiled, PartedModel):
        reasons = sorted({f"{step.op}: {step.reason}" for step in compiled.host_steps})
        return "host", reasons, sum(program.kernels for program in compiled.programs)
    entries = entries_of(compiled, known=False)
    doing = [e for e in entries if e is None or e.family not in (Family.VIEW, Family.CREATION)]
    kernels = compiled._lowered.records[-1].kernels or 0
    whole = all(e is not None and e.family is not Family.COMPOSITE and (not e.decompose or kernels <= 1) for e in doing)
    steps = sorted({f"{step.op}: {step.reason}" for step in getattr(compiled._lowered, "host_steps", ())})
    return "host" if steps else "native" if whole and len(doing) <= 1 else "composed", steps, kernels


def entries_of(compiled: Any, *, known: bool = True) -> list[Any]:
    """The entries of the op table for the ops of a program, as it was imported; None for others unless `known`."""
    from spyre_mlir.ops import ATEN
    from spyre_mlir.parted.model import PartedModel

    programs = compiled.programs if isinstance(compiled, PartedModel) else [compiled]
    names = [op.name.removeprefix("aten.") for one in programs for op in one._lowered.modules["aten"].walk()]
    ops = [n for n in names if n.partition(".")[0] not in ("builtin", "func", "arith", "ub", "tensor")]
    entries = [ATEN.find(n) or next((e for e in ATEN if e.name == n), None) for n in ops]
    return [e for e in entries if e is not None or not known]


def _compare(case: Case, outcome: Outcome, got: Any, narrow: Any, wide: Any) -> None:
    for n, (a, b) in enumerate(zip(got, narrow, strict=True)):
        w = b if wide is None or not isinstance(b, torch.Tensor) else wide[n]
        if (what := difference(case, a, b, w, outcome, device=False)) is not None:
            _blame(case, outcome, f"result {n}: {what}", (b, w))
            return


def _device(case: Case, outcome: Outcome, compiled: Any, narrow: Any, wide: Any) -> None:
    compiled._options = replace(compiled._options, numerics="device")
    outcome.device_error, outcome.device_allowed = 0.0, max(2.0, sum(e.ulps for e in entries_of(compiled))) * ULP
    torch.manual_seed(1)
    got = in_parts(compiled(*case.fresh()))
    if outcome.support == "host":
        return  # what the host makes of rounded inputs is its own: signs of vectors may turn
    for n, (a, b) in enumerate(zip(got, narrow, strict=True)):
        w = b if wide is None or not isinstance(b, torch.Tensor) else wide[n]
        if (what := difference(case, a, b, w, outcome, device=True)) is not None:
            _blame(case, outcome, f"device numerics, result {n}: {what}", (b, w))
            return


def _blame(case: Case, outcome: Outcome, what: str, results: tuple[Any, ...]) -> None:
    values = exceptional([*case.inputs, *results])
    if values == ["-0"] and not _sign_of_zero_matters(case):
        values = []
    outcome.status = "exception" if values else "wrong"
    outcome.detail = f"{what}{f'; values: {values}' if values else ''}"


def _sign_of_zero_matters(case: Case) -> bool:
    """Whether torch gives something else where the zeros of the inputs have no sign."""
    plain = tuple(torch.where(x == 0, torch.zeros_like(x), x) for x in case.inputs)
    return any(map(_unlike, _seeded(case, 1), _seeded(replace(case, inputs=plain), 1)))


def difference(case: Case, a: Any, b: Any, wide: Any, outcome: Outcome, *, device: bool) -> str | None:
    """What is wrong with a result, or None."""
    if not isinstance(b, torch.Tensor):
        return None if a == b or (a != a and b != b) else f"{a!r} instead of {b!r}"
    if not isinstance(a, torch.Tensor) or a.shape != b.shape or a.dtype is not b.dtype:
        was = f"{a.dtype} {list(a.shape)}" if isinstance(a, torch.Tensor) else repr(a)
        return f"{was} instead of {b.dtype} {list(b.shape)}"
    if case.base in UNDEFINED:
        return None
    if not b.is_floating_point():
        return _whole(case, a, b)
    has_wide = isinstance(wide, torch.Tensor) and wide.shape == b.shape and case.op not in UP_TO_A_FACTOR
    expected = wide.to(b.dtype) if has_wide else b
    error = error_of(a, expected, merged=device)
    # A float16 result is rounded when it is returned, and so is the reference, twice if torch computed in float16.
    in_halves = not isinstance(wide, torch.Tensor) or wide.dtype is torch.float16
    halves = 0 if b.dtype is not torch.float16 else 2 if in_halves else 1
    allowed = outcome.allowed + halves * HALF_TOLERANCE
    if device:
        outcome.device_error = max(outcome.device_error or 0.0, error)
        allowed = max(allowed, outcome.device_allowed or 0.0)
    else:
        outcome.error = max(outcome.error, error)
    return None if error <= allowed else f"error {error:.2e}, allowed {allowed:.2e}"


def _whole(case: Case, a: torch.Tensor, b: torch.Tensor) -> str | None:
    if torch.equal(a, b):
        return None
    if case.base in SELECTING and b.dtype is torch.int64 and any(equally_selected(x, a, b) for x in case.inputs[:1]):
        return None
    return f"{int((a != b).sum())} of {a.numel()} elements differ"
