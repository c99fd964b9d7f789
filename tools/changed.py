"""Test files that a change can reach, by the imports between modules; `tools/dev.py test --changed [REF]` runs them.

Changed are files that differ from the commit REF, `HEAD` if it is not given, untracked ones included. A test file is
chosen if it, or a module it imports directly or through others, is changed. Packages that find their modules at run
time count as importing all of them; lit files are chosen with the tools they run. Where a change is no Python module of
the package or of the tests (data, templates, pyproject.toml), every test is chosen.
"""

from __future__ import annotations

import ast
import subprocess
from collections.abc import Iterable
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FINDERS = ("spyre_mlir.ops", "spyre_mlir.transforms", "spyre_mlir.dialects")
TOOLS = ("spyre_mlir.cli.opt", "spyre_mlir.cli.run", "spyre_mlir.cli.compile", "spyre_mlir.cli.translate")
DOCS = (".md",)


def changed_files(ref: str) -> set[str]:
    """Paths that differ from a commit, relative to the root."""
    commands = (["git", "diff", "--name-only", ref], ["git", "ls-files", "--others", "--exclude-standard"])
    outputs = [subprocess.run(c, cwd=ROOT, capture_output=True, text=True, check=True).stdout for c in commands]
    return {line for output in outputs for line in output.splitlines()}


def name_of(path: Path) -> str:
    """The module of a file."""
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


def modules() -> dict[str, Path]:
    """Modules of the package and of the tests, by name."""
    return {name_of(p): p for folder in ("spyre_mlir", "tests") for p in (ROOT / folder).rglob("*.py")}


def imports(path: Path, known: Iterable[str]) -> set[str]:
    """Modules that a file imports, anywhere in it, and the packages around them."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module:
            found |= {node.module, *(f"{node.module}.{alias.name}" for alias in node.names)}
        elif isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and node.value.startswith("spyre_mlir."):
            found.add(node.value)
    names = set(known)
    around = {".".join(name.split(".")[:n]) for name in found for n in range(1, name.count(".") + 1)}
    return (found | (around - {"spyre_mlir"})) & names  # the root loads its names when they are used


def reached(changed: set[str], graph: dict[str, set[str]]) -> set[str]:
    """Modules from which imports lead to a changed one, those included."""
    users: dict[str, set[str]] = {}
    for user, used in graph.items():
        for name in used:
            users.setdefault(name, set()).add(user)
    found, pending = set(changed), list(changed)
    while pending:
        for user in users.get(pending.pop(), set()) - found:
            found.add(user)
            pending.append(user)
    return found


@cache
def import_graph() -> dict[str, set[str]]:
    """Modules that each module of the checkout imports; packages that find their modules at run time import all."""
    known = modules()
    graph = {name: imports(path, known) for name, path in known.items()}
    for package in FINDERS:
        graph[package] |= {name for name in known if name.startswith(f"{package}.")}
    return graph


def reachable_tests(changed: set[str]) -> list[str]:
    """Paths to give to pytest; the folder of all tests if anything can be concerned, nothing if nothing is."""
    known = modules()
    paths = {str(path.relative_to(ROOT)): name for name, path in known.items()}
    lit = sorted(path for path in changed if path.startswith("tests/lit/") and path.endswith(".mlir"))
    others = {path for path in changed if path not in paths and path not in lit}
    if any(not path.endswith(DOCS) for path in others):
        return ["tests"]
    hit = reached({paths[path] for path in changed if path in paths}, import_graph())
    chosen = sorted(str(known[n].relative_to(ROOT)) for n in hit if known[n].name.startswith("test_"))
    chosen += ["tests/lit"] if hit & set(TOOLS) else lit
    return chosen + (["tests/tooling/test_pages.py"] if others and "tests/tooling/test_pages.py" not in chosen else [])
