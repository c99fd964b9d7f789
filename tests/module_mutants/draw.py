"""Draws line mutants of modules that have a mirrored test file, from a seed alone."""

from __future__ import annotations

import ast
import random
from collections import defaultdict
from collections.abc import Iterator
from copy import copy
from dataclasses import dataclass
from pathlib import Path
from typing import Any

Change = tuple[ast.expr | ast.stmt, str]  # a node and the text to put in its place
# Either way round: what is compared and computed.
_PAIRS = """Lt LtE, Lt GtE, Gt GtE, Gt LtE, Eq NotEq, Is IsNot, In NotIn, And Or,
    Add Sub, Mult Add, FloorDiv Mult, Mod FloorDiv, BitAnd BitOr"""
_OPS = [pair.split() for pair in _PAIRS.split(",")]
_FUNCTIONS = {"min": "max", "max": "min", "any": "all", "all": "any", "sorted": "list", "reversed": "list"}
# Read by people or type checkers, guards of our own logic, data of tests, and what changes no behaviour.
_SILENT_FIELDS = {"annotation", "returns", "decorator_list", "bases", "exc", "cause"}
_SILENT_NAMES = {"__repr__", "__str__", "__hash__", "cast", "Sample", "samples", "log", "logger", "logging", "warnings"}
_SILENT_KEYWORDS = {"message", "strict", "frozen", "slots", "kw_only", "repr", "stacklevel"}


@dataclass(frozen=True)
class Mutant:
    """A line of a module, numbered from 1, as it is and as it becomes."""

    module: str
    line: int
    before: str
    after: str

    def applied(self, source: str) -> str:
        """The module's text with the change."""
        lines = source.splitlines(keepends=True)
        assert lines[self.line - 1].rstrip("\n") == self.before
        return "".join([*lines[: self.line - 1], self.after + "\n", *lines[self.line :]])


def mirrored(module: Path) -> Path:
    """The test file of a module; both paths are in the checkout."""
    inside = module.relative_to("spyre_mlir")
    return Path("tests/unit") / inside.parent / f"test_{inside.name}"


def draw(root: Path, count: int, seed: int, part: str = "spyre_mlir") -> list[Mutant]:
    """At most `count` mutants of the modules at or under `part`: one per module before any module gets a second one."""
    top = root / part
    found = [top] if top.is_file() else sorted(top.rglob("*.py"))
    modules = [path for p in found if (root / mirrored(path := p.relative_to(root))).exists()]
    random.Random(f"{seed} modules").shuffle(modules)
    queues = [_queue(path, (root / path).read_text(encoding="utf-8"), seed) for path in modules]
    drawn: list[Mutant] = []
    while queues and len(drawn) < count:
        rest: list[Iterator[Mutant]] = []
        for queue in queues:
            if len(drawn) < count and (mutant := next(queue, None)) is not None:
                drawn.append(mutant)
                rest.append(queue)
        queues = rest
    return drawn


def _queue(path: Path, source: str, seed: int) -> Iterator[Mutant]:
    """A mutant per line of a module, shuffled; each compiles."""
    chance = random.Random(f"{seed} {path}")
    lines = defaultdict[int, list[Mutant]](list)
    for mutant in mutants(str(path), source):
        lines[mutant.line].append(mutant)
    chosen = [chance.choice(choices) for _, choices in sorted(lines.items())]
    chance.shuffle(chosen)
    yield from (mutant for mutant in chosen if _compiles(mutant.applied(source)))


def _compiles(source: str) -> bool:
    try:
        compile(source, "mutant", "exec", dont_inherit=True)
    except (SyntaxError, ValueError):
        return False
    return True


def mutants(module: str, source: str) -> list[Mutant]:
    """Every mutant of a module; not all of them compile."""
    lines = source.split("\n")
    found: dict[tuple[int, str], Mutant] = {}
    for node, text in _changes(ast.parse(source)):
        line = lines[node.lineno - 1].encode()  # columns of ast count bytes
        after = (line[: node.col_offset] + text.encode() + line[node.end_col_offset :]).decode()
        if node.lineno == node.end_lineno and after != line.decode():
            found[node.lineno, after] = Mutant(module, node.lineno, line.decode(), after)
    return [found[key] for key in sorted(found)]


def _changes(tree: ast.AST) -> Iterator[Change]:
    """Changes of a node and of all inside it."""
    if _silent(tree):
        return
    yield from _of_expression(tree)
    yield from _of_statement(tree)
    silent = [getattr(tree, name, None) for name in _SILENT_FIELDS]
    for child in ast.iter_child_nodes(tree):
        if not any(child is value or (isinstance(value, list) and child in value) for value in silent):
            yield from _changes(child)


def _silent(node: ast.AST) -> bool:
    match node:
        case ast.Assert() | ast.JoinedStr() | ast.If(test=ast.Name(id="TYPE_CHECKING")):
            return True
        case ast.FunctionDef(name=name) | ast.Call(func=ast.Attribute(attr=name) | ast.Name(id=name)) if (
            name in _SILENT_NAMES or name.endswith("Error")
        ):
            return True
        case ast.Call(func=ast.Attribute(value=ast.Name(id=name))):
            return name in _SILENT_NAMES
        case ast.Expr(value=ast.Call() as call):
            return _silent(call)
        case ast.keyword(arg=name):
            return name in _SILENT_KEYWORDS
        case ast.Assign(targets=[ast.Name(id=name)], value=ast.Subscript() | ast.BinOp(op=ast.BitOr())):
            return name[:1].isupper() and not name.isupper()  # a type alias
        case _:
            return False


def _of_expression(node: ast.AST) -> Iterator[Change]:
    match node:
        case ast.Compare() | ast.BoolOp() | ast.BinOp():
            yield from ((node, f"({ast.unparse(other)})") for other in _with_other_operator(node))
        case ast.UnaryOp(op=ast.Not() | ast.USub(), operand=inner):
            yield node, f"({ast.unparse(inner)})"
        case ast.Constant(value=bool(value)):
            yield node, str(not value)
        case ast.Constant(value=int(value) | float(value)):
            yield node, repr(value + 1)
        case ast.Call(func=ast.Name(id=name) as called, keywords=keywords):
            if (other := _FUNCTIONS.get(name)) and (other != "list" or not keywords):
                yield called, other
        case ast.Subscript(value=ast.Attribute(attr="results")):
            pass  # the only result of an op
        case ast.Subscript(slice=ast.Constant(value=0) as at):
            yield at, "-1"
        case ast.Subscript(slice=ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=1)) as at):
            yield at, "0"
        case _:
            pass


def _with_other_operator(node: ast.Compare | ast.BoolOp | ast.BinOp) -> Iterator[ast.expr]:
    sides = (node.left, node.right) if isinstance(node, ast.BinOp) else ()
    if any(isinstance(side, ast.JoinedStr) or isinstance(getattr(side, "value", 0), str) for side in sides):
        return  # texts that are put together
    ops = node.ops if isinstance(node, ast.Compare) else [node.op]
    for at, op in enumerate(ops):
        kind = type(op).__name__
        for name in (one if kind == other else other for one, other in _OPS if kind in (one, other)):
            changed: Any = copy(node)
            changed.op = getattr(ast, name)()
            changed.ops = [*ops[:at], changed.op, *ops[at + 1 :]]
            yield changed


def _of_statement(node: ast.AST) -> Iterator[Change]:
    match node:
        case ast.If(test=test) | ast.IfExp(test=test) | ast.While(test=test):
            if not isinstance(test, ast.UnaryOp | ast.NamedExpr):
                yield test, f"(not ({ast.unparse(test)}))"
        case ast.comprehension(ifs=ifs):
            yield from ((test, "True") for test in ifs if not any(isinstance(n, ast.NamedExpr) for n in ast.walk(test)))
        case ast.Continue() | ast.Break() | ast.Raise() | ast.Expr(value=ast.Call()):
            yield node, "pass"
        case ast.FunctionDef():
            returned = [n.value for n in ast.walk(node) if isinstance(n, ast.Return) and n.value is not None]
            yield from ((here, ast.unparse(there)) for here in returned for there in returned if here is not there)
        case _:
            pass
