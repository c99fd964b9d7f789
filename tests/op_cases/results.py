"""Outcomes of all cases, kept beside the code: the page is made of them, and a run can go on where one stopped."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from tests.op_cases.judge import Outcome

FILE = Path(__file__).with_name("results.json")


def load(path: Path = FILE) -> dict[str, Outcome]:
    """Outcomes by the id of their case."""
    if not path.exists():
        return {}
    found = json.loads(path.read_text(encoding="utf-8"))
    return {name: Outcome(**{**facts, "host": tuple(facts.get("host", ()))}) for name, facts in found.items()}


def save(outcomes: Mapping[str, Outcome], path: Path = FILE) -> None:
    """Writes them in the order of their ids, one to a line; facts that say nothing are left out."""
    lines = (f" {json.dumps(name)}: {json.dumps(_facts(outcomes[name]))}" for name in sorted(outcomes))
    path.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")


def _facts(outcome: Outcome) -> dict[str, object]:
    """Infinity is no number of JSON: an outcome that is wrong by kind says so in words."""
    facts = {**vars(outcome), "ulps": outcome.ulps if outcome.ulps < float("inf") else -1.0}
    return {key: value for key, value in facts.items() if value or key == "status"}
