"""Structure of the checkout: sizes of folders and files, tests that mirror the package, names with one meaning."""

from __future__ import annotations

import ast
import tomllib
from collections import defaultdict
from pathlib import Path

import pytest

from spyre_mlir.transforms import FOLDERS, get_all_passes
from tests.paths import ROOT, TESTS

PACKAGE = ROOT / "spyre_mlir"
UNIT = TESTS / "unit"
MODULES = sorted(p for p in PACKAGE.rglob("*.py") if p.name != "__init__.py")
MOST_FILES, MOST_LINES, LEAST_MIRRORED = 20, 400, 0.95
# Op classes of two dialects share no name; type aliases and type variables are local to their modules.
PASS_HELPERS = {
    "aten_forms",
    "aten_to_loop",
    "loop_to_kernel",
    "kernel_to_superdsc",
    "kernel_plans",
    "kernel_loops",
    "plan_notes",
    "planned_loops",
    "kernel_to_ktdp",
    "regions",
    "utils",
    "buffer_layouts",
    "cut_nests",
    "host_program",
}
TASKS = tomllib.loads((TESTS / "tooling" / "navigation.toml").read_text(encoding="utf-8"))["task"]
LEAST_GUESSED = 36
MOST_ANY = 50


def folders() -> list[Path]:
    return sorted({path.parent for path in MODULES})


def test_folders_have_at_most_twenty_files() -> None:
    large = {str(f.relative_to(ROOT)): n for f in folders() if (n := len(list(f.glob("*.py")))) > MOST_FILES}
    assert large == {}


def test_folders_have_at_least_three_files() -> None:
    small = {str(f.relative_to(ROOT)): n for f in folders() if (n := len(list(f.glob("*.py")))) < 3}
    assert small == {}


def test_files_have_at_most_four_hundred_lines() -> None:
    files = [*MODULES, *TESTS.rglob("*.py"), *(ROOT / "tools").rglob("*.py"), *(ROOT / "benchmarks").rglob("*.py")]
    lines = {path: len(path.read_text(encoding="utf-8").splitlines()) for path in files}
    assert {str(path.relative_to(ROOT)): n for path, n in lines.items() if n > MOST_LINES} == {}


def mirrored(path: Path) -> Path:
    """The test file of a module."""
    inside = path.relative_to(PACKAGE)
    return UNIT / inside.parent / f"test_{inside.name}"


def test_modules_have_a_test_of_their_path() -> None:
    without = [str(path.relative_to(ROOT)) for path in MODULES if not mirrored(path).exists()]
    assert len(without) <= (1 - LEAST_MIRRORED) * len(MODULES), without


def test_unit_tests_are_of_a_module() -> None:
    homes = {mirrored(path) for path in MODULES}
    packages = {UNIT / f.relative_to(PACKAGE) / "test_package.py" for f in [PACKAGE, *folders()]}
    assert [
        str(path.relative_to(ROOT)) for path in sorted(UNIT.rglob("test_*.py")) if path not in homes | packages
    ] == []


def test_transforms_holds_passes_and_folders_of_their_helpers() -> None:
    transforms = PACKAGE / "transforms"
    passes = {path.stem for folder in FOLDERS for path in (transforms / folder).glob("*.py")} - {"__init__"}
    assert {load().name.replace("-", "_") for load in get_all_passes().values()} == passes
    assert {f.name for f in folders() if f.parent == PACKAGE / "transforms"} == PASS_HELPERS


def test_public_classes_have_one_meaning() -> None:
    homes = defaultdict[str, list[str]](list)
    for path in MODULES:
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                homes[node.name].append(str(path.relative_to(ROOT)))
    assert {name: places for name, places in homes.items() if len(places) > 1} == {}


def listed_names(tree: ast.Module) -> set[str] | None:
    """The names in `__all__` of a module; None if it has none, or makes it up."""
    for node in tree.body:
        match node:
            case ast.Assign(targets=[ast.Name("__all__")], value=ast.List(elts=names)):
                return {name.value for name in names if isinstance(name, ast.Constant) and isinstance(name.value, str)}
            case _:
                continue
    return None


def test_lists_of_public_names_have_what_other_modules_import() -> None:
    trees = {path: ast.parse(path.read_text(encoding="utf-8")) for path in MODULES}
    dotted = {".".join(path.relative_to(ROOT).with_suffix("").parts): path for path in MODULES}
    missing = defaultdict[str, set[str]](set)
    for tree in trees.values():
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and node.module in dotted:
                listed = listed_names(trees[dotted[node.module]])
                missing[node.module] |= {a.name for a in node.names if listed is not None and a.name not in listed}
    assert {module: sorted(names) for module, names in missing.items() if names} == {}


def test_values_in_ops_are_typed() -> None:
    modules = [path for path in MODULES if path.is_relative_to(PACKAGE / "ops")]
    nodes = [node for path in modules for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))]
    assert sum(isinstance(node, ast.Name) and node.id == "Any" for node in nodes) <= MOST_ANY
    assert not any(isinstance(node, ast.alias) and node.name == "Any" and node.asname for node in nodes)


@pytest.mark.parametrize("task", TASKS, ids=[task["question"] for task in TASKS])
def test_places_that_engineers_look_for_exist(task: dict[str, object]) -> None:
    paths = task["path"]
    assert isinstance(paths, list)
    assert all((ROOT / str(path)).exists() for path in paths)


def test_a_stranger_guesses_the_places() -> None:
    assert len(TASKS) == 40
    assert sum(task["answer"] in task["path"] for task in TASKS) >= LEAST_GUESSED
