"""Page of the tests that the default run leaves out, for `reference_pages.py`: reads the marks, runs nothing."""

from __future__ import annotations

import ast
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from dialect_pages import EDIT, table

ROOT = Path(__file__).resolve().parent.parent
INTRO = """Tests marked `slow` are left out of `python3 tools/dev.py test`. Each mark gives its reason;
`tests/left_out.toml` lists cases that are left out because another case of the same behaviour takes less time, and
tests of many cases of which one in a few runs, always the same ones.
`python3 tools/dev.py suites` runs all of them, suite by suite; the command of a row runs the slow tests of one file."""


@dataclass(frozen=True)
class SlowMark:
    """A mark `pytest.mark.slow`.

    Attributes:
        path: the test file, relative to the root.
        line: where the mark is; 0 if the list of the left-out gives it.
        test: the test or fixture that it stands in or above; "" for a constant of the module.
        reason: why the default run leaves the test out; "" if the mark has none.
    """

    path: str
    line: int
    test: str
    reason: str


def slow_marks(path: Path) -> Iterator[SlowMark]:
    """Marks of a test file, in order."""
    name = str(path.relative_to(ROOT))
    text = path.read_text(encoding="utf-8")
    for statement in ast.parse(text).body if "slow" in text else ():
        test = statement.name if isinstance(statement, ast.FunctionDef) else ""
        called = {id(node.func): node for node in ast.walk(statement) if isinstance(node, ast.Call)}
        marks = (n for n in ast.walk(statement) if isinstance(n, ast.Attribute) and n.attr == "slow")
        for mark in sorted(marks, key=lambda node: node.lineno):
            call = called.get(id(mark))
            given = {} if call is None else {k.arg: ast.literal_eval(k.value) for k in call.keywords}
            yield SlowMark(name, mark.lineno, test, str(given.get("reason", "")))


def listed_marks() -> Iterator[SlowMark]:
    """Marks that `tests/left_out.toml` gives, one per file and test."""
    for path, row in tomllib.loads((ROOT / "tests" / "left_out.toml").read_text(encoding="utf-8")).items():
        names = [name.partition("[")[0] for name in (*row.get("tests", ()), *row.get("one_in", ()))]
        for name in dict.fromkeys(names):
            yield SlowMark(path, 0, name, row["reason"])


def all_slow_marks() -> list[SlowMark]:
    """Marks of every test file, in the file or in the list, by file."""
    files = [p for p in (ROOT / "tests").rglob("*.py") if p.name.startswith("test_") or p.name == "conftest.py"]
    inside = [mark for path in sorted(files) for mark in slow_marks(path)]
    return sorted([*inside, *listed_marks()], key=lambda mark: mark.path)


def slow_tests_page() -> str:
    """A row per mark: file, test, reason, command."""
    rows = [(f"`{m.path}`", f"`{m.test}`" if m.test else "", m.reason, f"`{command(m)}`") for m in all_slow_marks()]
    parts = ["# Slow tests", EDIT.format(source="tests/"), INTRO, table(("file", "test", "reason", "command"), rows)]
    return "\n\n".join(parts) + "\n"


def command(mark: SlowMark) -> str:
    """Return the command that runs the tests behind a mark: those of a folder if it is at a fixture of the folder."""
    path = Path(mark.path)
    return f"python3 tools/dev.py test {path.parent if path.name == 'conftest.py' else path} -m slow"
