"""The tool that changes modules: what it draws, and that it tells what tests notice from what they do not."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.module_mutants.__main__ import main, outcomes
from tests.module_mutants.draw import Mutant, draw, mirrored, mutants
from tests.paths import ROOT

MODULE = "spyre_mlir/small.py"
SOURCE = '''"""Not 1 but 2."""


def larger(one: "list[0]", other: int) -> int:
    """Of 2 numbers."""
    if one < 0:
        raise ValueError(f"{one + 1} is less than {1}")
    return one if one > other else other
'''
TEST = """
from spyre_mlir.small import larger
def test_larger():
    assert (larger(1, 2), larger(4, 3), larger(0, 0)) == (2, 4, 0)
"""
KILLED = ("    return one if one > other else other", "    return one if (one <= other) else other")
EQUIVALENT = ("    return one if one > other else other", "    return one if (one >= other) else other")


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    for name, text in {MODULE: SOURCE, "tests/unit/test_small.py": TEST, "pyproject.toml": ""}.items():
        path = tmp_path / "checkout" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return tmp_path / "checkout"


def test_changes_leave_out_messages_and_annotations() -> None:
    assert [(m.line, m.after.strip()) for m in mutants(MODULE, SOURCE)] == [
        (6, "if (not (one < 0)):"),
        (6, "if (one <= 0):"),
        (6, "if (one >= 0):"),
        (6, "if one < 1:"),
        (7, "pass"),
        (8, "return one if (not (one > other)) else other"),
        (8, "return one if (one <= other) else other"),
        (8, "return one if (one >= other) else other"),
    ]


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("x = a and b", "x = (a or b)"),
        ("x = a + 2", "x = (a - 2)"),
        ("x = a is None", "x = (a is not None)"),
        ("x = not a", "x = (a)"),
        ("x = max(a, b)", "x = min(a, b)"),
        ("x = f(strict=True)[0]", "x = f(strict=True)[-1]"),
        ("x = [a for a in b if a]", "x = [a for a in b if True]"),
        ("x = True", "x = False"),
        ("f(a)", "pass"),
    ],
)
def test_a_line_becomes(before: str, after: str) -> None:
    assert after in [m.after for m in mutants(MODULE, before)]


@pytest.mark.parametrize("line", ["x: f(1) = a", "assert a > 1", "log.debug(1)", "x = 'a' + b", "Alias = List[1]"])
def test_a_line_stays(line: str) -> None:
    assert mutants(MODULE, line) == []


def test_a_seed_draws_the_same_mutants_again_one_per_module() -> None:
    drawn, again, others = (draw(ROOT, 10, seed, "spyre_mlir/hw") for seed in (0, 0, 1))
    assert drawn == again != others
    assert len({m.module for m in drawn}) == 10
    assert all((ROOT / mirrored(Path(m.module))).exists() for m in drawn)


def test_a_module_alone_gives_a_mutant_per_line(checkout: Path) -> None:
    assert sorted(m.line for m in draw(checkout, 10, 0, MODULE)) == [6, 7, 8]


def test_what_the_mirrored_file_notices_is_killed_and_the_checkout_stays(checkout: Path) -> None:
    drawn = [Mutant(MODULE, 8, *KILLED), Mutant(MODULE, 8, *EQUIVALENT)]
    assert [o.killer for o in outcomes(checkout, drawn)] == ["tests/unit/test_small.py::test_larger", ""]
    assert (checkout / MODULE).read_text(encoding="utf-8") == SOURCE


def test_a_test_that_fails_without_a_mutant_proves_nothing(checkout: Path) -> None:
    path = checkout / "tests/unit/test_small.py"
    path.write_text(TEST.replace("(2, 4, 0)", "(2, 4, 1)"), encoding="utf-8")
    with pytest.raises(SystemExit, match=r"^fails without any mutant: tests/unit/test_small.py::test_larger$"):
        list(outcomes(checkout, [Mutant(MODULE, 8, *KILLED)]))


@pytest.mark.slow
def test_mirrored_files_notice_nine_mutants_in_ten() -> None:
    assert main([]) == 0
