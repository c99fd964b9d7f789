"""The taxonomy of errors: codes, exit codes, texts, and where a fault happened."""

from __future__ import annotations

import pytest
from xdsl.utils.exceptions import PassFailedException

from spyre_mlir import errors
from spyre_mlir.errors import FaultKind, FaultPlace, MachineFault, OverflowFault, SpyreError, frames_of_ours
from tests.paths import ROOT

# As docs/reference/errors.md lists them: class, code, exit code.
CODES = [
    (errors.SpyreError, "SPY-0000", 1),
    (errors.UnsupportedError, "SPY-U001", 2),
    (errors.ImportProgramError, "SPY-I001", 1),
    (errors.InputError, "SPY-I002", 1),
    (errors.RegistrationError, "SPY-P001", 1),
    (errors.ConstraintError, "SPY-C001", 1),
    (errors.LoweringError, "SPY-L001", 1),
    (errors.EmitError, "SPY-E001", 1),
    (errors.ReadError, "SPY-R001", 1),
    (errors.MachineFault, "SPY-F001", 3),
    (errors.OverflowFault, "SPY-F002", 3),
]


@pytest.mark.parametrize(("kind", "code", "exit_code"), CODES)
def test_every_error_has_its_codes(kind: type[SpyreError], code: str, exit_code: int) -> None:
    assert (kind.code, kind.exit_code) == (code, exit_code)
    assert issubclass(kind, SpyreError)


@pytest.mark.parametrize("code", [code for _, code, _ in CODES[1:]])
def test_every_code_has_its_place_in_the_reference(code: str) -> None:
    assert code in (ROOT / "docs" / "reference" / "errors.md").read_text()


def test_errors_are_what_their_callers_expect() -> None:
    assert issubclass(errors.RegistrationError, ValueError)
    assert issubclass(errors.ConstraintError, ValueError)
    assert issubclass(errors.LoweringError, PassFailedException)


@pytest.mark.parametrize(
    ("where", "hint", "text"),
    [
        (None, None, "[SPY-I002] no such file"),
        ("model.py:3", None, "[SPY-I002] no such file\n  at: model.py:3"),
        (None, "give another", "[SPY-I002] no such file\n  try: give another"),
        ("model.py:3", "give another", "[SPY-I002] no such file\n  at: model.py:3\n  try: give another"),
    ],
)
def test_a_text_says_what_where_and_what_to_try(where: str | None, hint: str | None, text: str) -> None:
    error = errors.InputError("no such file", where=where, hint=hint)
    assert str(error) == text
    assert (error.message, error.where, error.hint, error.args) == ("no such file", where, hint, ("no such file",))


def test_an_error_is_about_no_numbered_op_until_a_pass_says_so() -> None:
    error = errors.LoweringError("does not fit")
    assert error.origin is None
    assert error.others == ()


@pytest.mark.parametrize(
    ("place", "text"),
    [
        (FaultPlace(), ""),
        (FaultPlace(op="2:batchmatmul", tensor="Tensor1"), "op 2:batchmatmul, Tensor1"),
        (FaultPlace(core=0, low=256), "core 0, bytes 0x100"),
        (FaultPlace(low=0, high=128), "bytes 0x0..0x80"),
        (FaultPlace(high=128, level="superdsc", line="model.py:3"), ""),
        (FaultPlace(op="1:add", tensor="T", core=3, low=16, high=32), "op 1:add, T, core 3, bytes 0x10..0x20"),
    ],
)
def test_a_place_says_what_is_known(place: FaultPlace, text: str) -> None:
    assert str(place) == text


KINDS = (
    "uninitialised-read out-of-bounds lx-overflow misaligned wrong-format double-write use-after-free double-free "
    "overwritten-read read-write-race cohort-mismatch index-out-of-range divided-table span stale-read foreign-slice "
    "unwritten-output nan-born int32-overflow bad-schedule unbound-symbol deadlock mismatched-collective "
    "division-by-zero loop-step "
    "trip-count constraint wrong-shape wrong-product operand-count host-step overflow"
)


def test_words_of_faults_are_their_names() -> None:
    assert " ".join(FaultKind) == KINDS
    assert all(kind.name == kind.value.upper().replace("-", "_") for kind in FaultKind)


def test_a_fault_begins_with_its_word() -> None:
    place = FaultPlace(core=1)
    fault = MachineFault(FaultKind.SPAN, "too far", where="main", hint="divide it", place=place)
    assert str(fault) == "[SPY-F001] span: too far\n  at: main\n  try: divide it"
    assert (fault.kind, fault.place) == (FaultKind.SPAN, place)
    assert MachineFault(FaultKind.SPAN, "too far").place == FaultPlace()


def test_an_overflow_is_a_fault_of_its_own() -> None:
    fault = OverflowFault("beyond 1e9", where="main", hint="scale it")
    assert str(fault) == "[SPY-F002] overflow: beyond 1e9\n  at: main\n  try: scale it"
    assert fault.kind is FaultKind.OVERFLOW


def test_no_frame_of_this_file_is_the_package_s() -> None:
    assert frames_of_ours() == 1
