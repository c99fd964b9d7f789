"""Forbidden phrases in pages and first lines of docstrings: planted ones are found, the checkout has none."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from tests.paths import ROOT

with pytest.MonkeyPatch.context() as patch:
    patch.setattr(sys, "path", [str(ROOT / "tools"), *sys.path])
    check_english: Any = import_module("check_english")


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A small checkout without forbidden phrases."""
    for name, text in {
        "README.md": "# Title\n\nProse.\n",
        "CONTRIBUTING.md": "# Contributing\n",
        "docs/page.md": "# Page\n\nThe host runs the ops.\n",
        "spyre_mlir/module.py": '"""Division of work."""\n\n\ndef _f():\n    """What a function is."""\n',
    }.items():
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return tmp_path


@pytest.mark.slow(reason="tools/dev.py check asks the same")
def test_checkout_has_no_forbidden_phrase() -> None:
    assert check_english.problems(ROOT) == []


def test_plain_prose_passes(checkout: Path) -> None:
    assert check_english.problems(checkout) == []


@pytest.mark.parametrize(
    ("line", "found"),
    [
        ("# What a call runs", "# What"),
        ("What the device cannot run, the host runs.", "What"),
        ("It runs. Whether it ends is open.", "Whether"),
        ("* Who computes a host step", "* Who"),
        ("| What | it is |", "| What"),
        ("12. What a call runs", "12. What"),
        ("a tool of us", "of us"),
        ("Somebody wants float32.", "Somebody"),
        ("files that nobody looks at", "nobody"),
        ("the culprit is named", "culprit"),
        ("Witnesses share no code", "Witnesses"),
        ("fates of ops", "fates"),
        ("tests of the trunk", "trunk"),
        ("two doors", "doors"),
        ("operands are re-laid", "re-laid"),
        ("a whole quotient", "whole quotient"),
        ("bundles of others", "bundles of others"),
        ("the usual division", "usual division"),
        ("a whole number", "whole number"),
        ("digits behind the point", "behind the point"),
        ("an op made of others", "made of others"),
        ("It is taken apart.", "taken apart"),
    ],
)
def test_a_planted_phrase_is_found(checkout: Path, line: str, found: str) -> None:
    (checkout / "docs" / "page.md").write_text(f"# Page\n\nText.\n\n{line}\n")
    (message,) = check_english.problems(checkout)
    assert message.startswith(f"docs/page.md:5: {found!r}; try: ")


@pytest.mark.parametrize(
    "text",
    [
        "It says what it does, whether it ends, and who runs it.",
        "A whole number of sticks.",
        "The outdoors, a fatal error, ours of usual size.",
        "`culprit` is the attribute, [a page](fates.md#what) has more.",
        "```text\nculprit: sdsc_1.json\n```",
    ],
)
def test_code_and_words_inside_of_a_sentence_are_free(checkout: Path, text: str) -> None:
    (checkout / "docs" / "page.md").write_text(text)
    assert check_english.problems(checkout) == []


def test_first_line_of_a_docstring_is_checked(checkout: Path) -> None:
    (checkout / "spyre_mlir" / "module.py").write_text('"""What a rule is.\n\nWho asks.\n"""\n')
    assert check_english.problems(checkout) == ["spyre_mlir/module.py:1: 'What'; try: begin with a noun or a verb"]


def test_first_lines_of_public_names_are_checked(checkout: Path) -> None:
    method = '    def f(self):\n        """Whether it ends.\n\n        What?\n        """\n'
    text = f'"""A rule."""\n\n\nclass C:\n    """Who asks."""\n\n{method}'
    (checkout / "spyre_mlir" / "module.py").write_text(text)
    assert check_english.problems(checkout) == [
        "spyre_mlir/module.py:4: 'Who'; try: begin with a noun or a verb",
        "spyre_mlir/module.py:7: 'Whether'; try: begin with a noun or a verb",
    ]
