"""The page of refusals: each rule has a test that fails when the rule is gone."""

from __future__ import annotations

import ast
import re

from tests.paths import ROOT

PAGE = ROOT / "docs" / "reference" / "refused.md"
ROW = re.compile(r"^\| .* \| .* \| `(tests/\S+\.py)::(test_\w+)` \|$", re.MULTILINE)


def test_every_rule_has_a_test() -> None:
    text = PAGE.read_text(encoding="utf-8")
    _, _, *rows = [line for line in text.splitlines() if line.startswith("|")]
    guards = ROW.findall(text)
    assert len(guards) == len(rows)
    for path, name in guards:
        tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
        assert name in {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}, f"{path}::{name}"
